/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.c - what the machine does beside the program, once a second: the drain thread reads it
 * and records it on a track of its own.
 *
 * Values are rates over the time since the last look, but for memory and GPUs. What counts for the
 * whole host (network cards, TCP, GPUs) is recorded by one process of each host. The files are
 * opened with the capture, above the numbers that programs expect to get, and read again and again:
 * a descriptor that another thread of the program may get at any moment would take its place. One
 * that the program has closed, or made something else, is not looked at any more.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu-use.h"
#include "state.h"

#define PERIOD_NS 1000000000u
#define CARDS_MAX 16
#define TEXT_MAX  16384

enum file { STATM, SCHEDSTAT, NET_DEV, NET_SNMP, FILES };

static const struct {
    const char *path;
    bool of_host;
} files[FILES] = {
    [STATM] = {"/proc/self/statm", false},
    [SCHEDSTAT] = {"/proc/self/schedstat", false}, /* of the main thread */
    [NET_DEV] = {"/proc/self/net/dev", true},      /* of this network namespace */
    [NET_SNMP] = {"/proc/self/net/snmp", true},
};

static struct {
    int fd; /* 0: none */
    dev_t device;
    ino_t inode;
} opened[FILES];

struct card {
    char name[32];
    double received, sent, errors;
};

struct sample {
    uint64_t ns;
    struct rusage used;
    double waited_ns; /* -1 unknown, as all below */
    double resident_bytes;
    double retransmitted;
    unsigned cards;
    struct card card[CARDS_MAX];
};

static struct sample samples[2]; /* the drain thread's: the last one and the one before */
static uint32_t looks;

/* ---- files ---- */

static bool is_ours(unsigned i)
{
    struct stat st;
    return opened[i].fd && fstat(opened[i].fd, &st) == 0 && st.st_dev == opened[i].device &&
           st.st_ino == opened[i].inode;
}

void rs_counters_start(void)
{
    struct stat st;
    looks = 0;
    for (unsigned i = 0; i < FILES && rs_env.parts & RS_PART_COUNTERS; i++) {
        if (files[i].of_host && rs_env.local_rank > 0)
            continue;
        int fd = open(files[i].path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        opened[i].fd = rs_writer_move_up(fd);
        if (fstat(opened[i].fd, &st) != 0)
            continue;
        opened[i].device = st.st_dev;
        opened[i].inode = st.st_ino;
    }
}

/* The parent's. */
void rs_counters_forget(void)
{
    for (unsigned i = 0; i < FILES; i++) {
        if (is_ours(i))
            close(opened[i].fd);
        opened[i].fd = 0;
    }
    rs_gpu_use_forget();
}

static bool read_file(enum file i, char *ret)
{
    ssize_t n = is_ours(i) ? pread(opened[i].fd, ret, TEXT_MAX - 1, 0) : 0;
    ret[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* ---- a look ---- */

static double field(const char *text, unsigned n)
{
    char *end;
    double value = strtod(text, &end);
    for (; n > 0 && end != text; n--) {
        text = end;
        value = strtod(text, &end);
    }
    return end == text ? -1 : value;
}

/* "  eth0: bytes packets errs drop fifo frame compressed multicast bytes packets errs drop ..." */
static void read_cards(struct sample *s, char *text)
{
    char *at = text, *colon;
    for (char *line; (line = strsep(&at, "\n")) && s->cards < CARDS_MAX;) {
        line += strspn(line, " ");
        colon = strchr(line, ':');
        if (!colon)
            continue;
        struct card *c = &s->card[s->cards];
        c->received = field(colon + 1, 0);
        c->sent = field(colon + 1, 8);
        c->errors =
            field(colon + 1, 2) + field(colon + 1, 3) + field(colon + 1, 10) + field(colon + 1, 11);
        snprintf(c->name, sizeof(c->name), "%.*s", (int)(colon - line), line);
        s->cards += c->received > 0 || c->sent > 0;
    }
}

/* A line of names, then one of numbers. */
static double retransmitted(char *text)
{
    char *names = strstr(text, "\nTcp:"), *numbers = names ? strstr(names + 1, "\nTcp:") : NULL;
    if (!numbers)
        return -1;
    *numbers = 0;
    unsigned n = 0;
    char *at = names + sizeof("\nTcp:") - 1;
    for (char *name; (name = strsep(&at, " "));) {
        if (strcmp(name, "RetransSegs") == 0)
            return field(numbers + sizeof("\nTcp:") - 1, n);
        n += name[0] != 0;
    }
    return -1;
}

static void look(struct sample *s, uint64_t now_ns)
{
    char text[TEXT_MAX];
    *s = (struct sample){.ns = now_ns};
    getrusage(RUSAGE_SELF, &s->used);
    s->waited_ns = read_file(SCHEDSTAT, text) ? field(text, 1) : -1;
    s->resident_bytes =
        read_file(STATM, text) ? field(text, 1) * (double)sysconf(_SC_PAGESIZE) : -1;
    s->retransmitted = read_file(NET_SNMP, text) ? retransmitted(text) : -1;
    if (read_file(NET_DEV, text))
        read_cards(s, text);
}

/* ---- the record ---- */

static void put(struct rs_thread *t, uint64_t tick, const char *name, const char *unit,
                double value)
{
    uint32_t name_id = rs_core->string(name, strlen(name));
    uint32_t unit_id = rs_core->string(unit, strlen(unit));
    if (value < 0 || !rs_room(t, 1))
        return;
    struct rs_counter_event *e = rs_slot(t, 0);
    *e = (struct rs_counter_event){.op = RS_OP_COUNTER, .name = name_id, .unit = unit_id};
    e->start = e->end = tick;
    e->value = value;
    rs_commit(t, 1);
}

static double seconds(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

/* A counter that is unknown, or began again, has no rate. */
static double rate(double before, double now, double over_s)
{
    return before < 0 || now < before ? -1 : (now - before) / over_s;
}

static void put_card(struct rs_thread *t, uint64_t tick, const struct sample *before,
                     const struct card *c, double over_s)
{
    char name[64];
    const struct card *old = NULL;
    for (unsigned i = 0; i < before->cards; i++)
        if (strcmp(before->card[i].name, c->name) == 0)
            old = &before->card[i];
    if (!old)
        return;
    snprintf(name, sizeof(name), "%s received", c->name);
    put(t, tick, name, "B/s", rate(old->received, c->received, over_s));
    snprintf(name, sizeof(name), "%s sent", c->name);
    put(t, tick, name, "B/s", rate(old->sent, c->sent, over_s));
    snprintf(name, sizeof(name), "%s errors and drops", c->name);
    put(t, tick, name, "1/s", rate(old->errors, c->errors, over_s));
}

static void put_gpus(struct rs_thread *t, uint64_t tick)
{
    struct rs_gpu_use gpus[RS_GPUS_MAX];
    unsigned n = rs_gpu_use_look(gpus);
    for (unsigned i = 0; i < n; i++) {
        char name[32];
        const struct rs_gpu_use *g = &gpus[i];
        snprintf(name, sizeof(name), "GPU %u busy", i);
        put(t, tick, name, "%", g->percent);
        snprintf(name, sizeof(name), "GPU %u memory", i);
        put(t, tick, name, "B", g->memory_bytes);
        snprintf(name, sizeof(name), "GPU %u power", i);
        put(t, tick, name, "W", g->power_w);
        snprintf(name, sizeof(name), "GPU %u clock", i);
        put(t, tick, name, "Hz", g->clock_hz);
    }
}

static void put_sample(struct rs_thread *t, const struct sample *before, const struct sample *now)
{
    uint64_t tick = rs_tick();
    double over_s = (double)(now->ns - before->ns) / 1e9;
    const struct rusage *a = &before->used, *b = &now->used;
    put(t, tick, "CPU", "cores", rate(seconds(a), seconds(b), over_s));
    put(t, tick, "minor page faults", "1/s",
        rate((double)a->ru_minflt, (double)b->ru_minflt, over_s));
    put(t, tick, "major page faults", "1/s",
        rate((double)a->ru_majflt, (double)b->ru_majflt, over_s));
    put(t, tick, "context switches, voluntary", "1/s",
        rate((double)a->ru_nvcsw, (double)b->ru_nvcsw, over_s));
    put(t, tick, "context switches, involuntary", "1/s",
        rate((double)a->ru_nivcsw, (double)b->ru_nivcsw, over_s));
    double waited = rate(before->waited_ns, now->waited_ns, over_s);
    put(t, tick, "run-queue wait of the main thread", "s/s", waited < 0 ? -1 : waited / 1e9);
    put(t, tick, "resident memory", "B", now->resident_bytes);
    put(t, tick, "TCP segments retransmitted", "1/s",
        rate(before->retransmitted, now->retransmitted, over_s));
    for (unsigned i = 0; i < now->cards; i++)
        put_card(t, tick, before, &now->card[i], over_s);
    if (rs_env.local_rank <= 0)
        put_gpus(t, tick);
}

void rs_counters_sample(uint64_t now_ns)
{
    struct sample *now = &samples[looks % 2], *before = &samples[(looks + 1) % 2];
    if (!(rs_env.parts & RS_PART_COUNTERS) || !rs_state.started ||
        (looks && now_ns - before->ns < PERIOD_NS))
        return;
    look(now, now_ns);
    if (looks++ == 0) {
        rs_core->name_thread((uint32_t)syscall(SYS_gettid), "counters");
        return;
    }
    struct rs_thread *t = rs_thread_if_recording();
    if (t)
        put_sample(t, before, now);
}
