/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-fault.h"

enum parameter { RANK, MS, HOSTS, MBPS, FLOWS, STEP, SIGNAL, PARAMETER_COUNT };

struct word {
    const char *at;
    size_t n;
};

static bool is(struct word w, const char *text)
{
    return strlen(text) == w.n && memcmp(w.at, text, w.n) == 0;
}

/* Cuts the part before the next `separator` off; a word that is all there is has none after it. */
static struct word cut(struct word *rest, char separator)
{
    const char *found = memchr(rest->at, separator, rest->n);
    struct word first = {rest->at, found ? (size_t)(found - rest->at) : rest->n};
    size_t used = first.n + (found ? 1 : 0);
    rest->at += used;
    rest->n -= used;
    return first;
}

static int number(struct word w, double min, double max, double *ret)
{
    char text[32], *end;
    if (w.n == 0 || w.n >= sizeof text || strspn(w.at, "0123456789.") < w.n)
        return -EINVAL;
    memcpy(text, w.at, w.n);
    text[w.n] = 0;
    *ret = strtod(text, &end);
    return *end || *ret < min || *ret > max ? -EINVAL : 0;
}

static int whole(struct word w, double max, int64_t *ret)
{
    double value;
    if (memchr(w.at, '.', w.n) || number(w, 0, max, &value))
        return -EINVAL;
    *ret = (int64_t)value;
    return 0;
}

static int read_int(struct word w, int *ret)
{
    int64_t value;
    int error = whole(w, 1e6, &value);
    if (!error)
        *ret = (int)value;
    return error;
}

static int read_rank(struct word w, struct rt_fault *f)
{
    return read_int(w, &f->rank);
}
static int read_ms(struct word w, struct rt_fault *f)
{
    return number(w, 0.001, 1e6, &f->ms);
}
static int read_hosts(struct word w, struct rt_fault *f)
{
    struct word first = cut(&w, '-');
    if (read_int(first, &f->hosts[0]) || read_int(w, &f->hosts[1]) || f->hosts[0] == f->hosts[1])
        return -EINVAL;
    if (f->hosts[0] > f->hosts[1]) {
        int higher = f->hosts[0];
        f->hosts[0] = f->hosts[1];
        f->hosts[1] = higher;
    }
    return 0;
}
static int read_mbps(struct word w, struct rt_fault *f)
{
    return number(w, 0.1, 1e6, &f->mbps);
}
static int read_flows(struct word w, struct rt_fault *f)
{
    return read_int(w, &f->flows) || f->flows == 0 ? -EINVAL : 0;
}
static int read_step(struct word w, struct rt_fault *f)
{
    return whole(w, 1e12, &f->step);
}
static int read_signal(struct word w, struct rt_fault *f)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"KILL", SIGKILL}, {"TERM", SIGTERM}, {"SEGV", SIGSEGV}, {"ABRT", SIGABRT}};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (is(w, signals[i].name)) {
            f->signal = signals[i].number;
            return 0;
        }
    return -EINVAL;
}

static const struct {
    const char *name, *expected;
    int (*read)(struct word w, struct rt_fault *f);
} parameters[PARAMETER_COUNT] = {
    [RANK] = {"rank", "a rank", read_rank},
    [MS] = {"ms", "milliseconds", read_ms},
    [HOSTS] = {"hosts", "two hosts, as 0-1", read_hosts},
    [MBPS] = {"mbps", "Mbit/s", read_mbps},
    [FLOWS] = {"flows", "a number of connections", read_flows},
    [STEP] = {"step", "a step's number", read_step},
    [SIGNAL] = {"signal", "KILL, TERM, SEGV or ABRT", read_signal},
};

static const struct {
    const char *name;
    unsigned needed, allowed; /* bits of enum parameter */
} kinds[RT_FAULT_KIND_COUNT] = {
    [RT_FAULT_SLOW_RANK] = {"slow-rank", 1 << RANK | 1 << MS, 0},
    [RT_FAULT_SLOW_LINK] = {"slow-link", 1 << HOSTS | 1 << MBPS, 1 << FLOWS},
    [RT_FAULT_DIE] = {"die", 1 << RANK | 1 << STEP | 1 << SIGNAL, 0},
};

struct message {
    char *text;
    size_t bytes;
};

__attribute__((format(printf, 2, 3))) static int fail(struct message m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(m.text, m.bytes, format, args);
    va_end(args);
    return -EINVAL;
}

static int parse_parameter(struct word text, struct rt_fault *f, unsigned *seen, struct message m)
{
    struct word value = text, name = cut(&value, '=');
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        if (!is(name, parameters[p].name) ||
            !((kinds[f->kind].needed | kinds[f->kind].allowed) & 1u << p))
            continue;
        if (*seen & 1u << p)
            return fail(m, "RT_FAULT: %s: %s is given twice", kinds[f->kind].name,
                        parameters[p].name);
        *seen |= 1u << p;
        if (parameters[p].read(value, f))
            return fail(m, "RT_FAULT: %s: %s=%.*s: expected %s", kinds[f->kind].name,
                        parameters[p].name, (int)value.n, value.at, parameters[p].expected);
        return 0;
    }
    return fail(m, "RT_FAULT: %s: unknown parameter '%.*s'", kinds[f->kind].name, (int)name.n,
                name.at);
}

static int parse_parameters(struct word text, struct rt_fault *f, struct message m)
{
    unsigned seen = 0;
    while (text.n > 0) {
        int error = parse_parameter(cut(&text, ','), f, &seen, m);
        if (error)
            return error;
    }
    for (int p = 0; p < PARAMETER_COUNT; p++)
        if (kinds[f->kind].needed & ~seen & 1u << p)
            return fail(m, "RT_FAULT: %s: %s is missing", kinds[f->kind].name, parameters[p].name);
    return 0;
}

static int parse_fault(struct word text, struct rt_fault *f, struct message m)
{
    struct word rest = text, name = cut(&rest, ':');
    for (int k = 0; k < RT_FAULT_KIND_COUNT; k++)
        if (is(name, kinds[k].name)) {
            *f = (struct rt_fault){.kind = (enum rt_fault_kind)k};
            return parse_parameters(rest, f, m);
        }
    return fail(m, "RT_FAULT: unknown fault '%.*s'; known: slow-rank, slow-link, die", (int)name.n,
                name.at);
}

int rt_faults_parse(struct rt_faults *ret, const char *text, char *message, size_t message_bytes)
{
    struct message m = {message, message_bytes};
    struct rt_faults faults = {.n = 0};
    struct word rest = {text ? text : "", text ? strlen(text) : 0};
    while (rest.n > 0) {
        struct word one = cut(&rest, ';');
        if (faults.n == RT_FAULT_MAX)
            return fail(m, "RT_FAULT: more than %d faults", RT_FAULT_MAX);
        int error = parse_fault(one, &faults.fault[faults.n++], m);
        if (error)
            return error;
    }
    *ret = faults;
    return 0;
}

int rt_faults_read(struct rt_faults *ret, char *message, size_t message_bytes)
{
    return rt_faults_parse(ret, getenv("RT_FAULT"), message, message_bytes);
}
