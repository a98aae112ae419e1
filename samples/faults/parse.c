/* SPDX-License-Identifier: Apache-2.0 */
/* RT_FAULT: a table of parameters, and one of faults. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "play.h"

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

/* ---- values ---- */

static int number(struct word w, double min, double max, double *ret)
{
    char text[32], *end;
    if (w.n == 0 || w.n >= sizeof text || strspn(w.at, "0123456789.") < w.n)
        return -EINVAL;
    memcpy(text, w.at, w.n);
    text[w.n] = 0;
    double value = strtod(text, &end);
    if (*end || !(value >= min && value <= max))
        return -EINVAL;
    *ret = value;
    return 0;
}

static int whole(struct word w, double min, double max, int64_t *ret)
{
    double value;
    if (memchr(w.at, '.', w.n) || number(w, min, max, &value))
        return -EINVAL;
    *ret = (int64_t)value;
    return 0;
}

static int read_int(struct word w, int min, int *ret)
{
    int64_t value;
    int error = whole(w, min, 1e6, &value);
    if (!error)
        *ret = (int)value;
    return error;
}

static int read_rank(struct word w, struct rt_fault *f)
{
    return read_int(w, 0, &f->rank);
}
static int read_any_rank(struct word w, struct rt_fault *f)
{
    return is(w, "all") ? 0 : read_rank(w, f);
}
static int read_ms(struct word w, struct rt_fault *f)
{
    return number(w, 0.001, 1e6, &f->ms);
}
static int read_us(struct word w, struct rt_fault *f)
{
    int error = number(w, 1, 1e6, &f->ms);
    f->ms /= 1000;
    return error;
}
static int read_host(struct word w, struct rt_fault *f)
{
    return read_int(w, 0, &f->host);
}
static int read_hosts(struct word w, struct rt_fault *f)
{
    struct word first = cut(&w, '-');
    if (read_int(first, 0, &f->hosts[0]) || read_int(w, 0, &f->hosts[1]) ||
        f->hosts[0] == f->hosts[1])
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
    return read_int(w, 1, &f->flows);
}
static int read_percent(struct word w, struct rt_fault *f)
{
    return number(w, 0.001, 50, &f->percent);
}
static int read_factor(struct word w, struct rt_fault *f)
{
    return number(w, 1.001, 1000, &f->factor);
}
static int read_spread(struct word w, struct rt_fault *f)
{
    return number(w, 0.001, 1000, &f->spread);
}
static int read_prob(struct word w, struct rt_fault *f)
{
    return number(w, 0.000001, 1, &f->prob);
}
static int read_seed(struct word w, struct rt_fault *f)
{
    int64_t value;
    int error = whole(w, 0, 1e15, &value);
    if (!error)
        f->seed = (uint64_t)value;
    return error;
}
static int read_step(struct word w, struct rt_fault *f)
{
    return whole(w, 0, 1e12, &f->step);
}
static int read_every(struct word w, struct rt_fault *f)
{
    return read_int(w, 1, &f->every);
}
static int read_bytes(struct word w, struct rt_fault *f)
{
    int64_t value;
    if (whole(w, 4, 1e12, &value) || value % 4 != 0)
        return -EINVAL;
    f->bytes = (uint64_t)value;
    return 0;
}
static int read_stages(struct word w, struct rt_fault *f)
{
    return read_int(w, 2, &f->stages);
}
static int read_name(struct word w, struct rt_fault *f)
{
    if (w.n == 0 || w.n >= sizeof f->name)
        return -EINVAL;
    memcpy(f->name, w.at, w.n);
    f->name[w.n] = 0;
    return 0;
}

struct choice {
    const char *name;
    int value;
};

static int choose(struct word w, const struct choice *choices, int *ret)
{
    for (; choices->name; choices++)
        if (is(w, choices->name)) {
            *ret = choices->value;
            return 0;
        }
    return -EINVAL;
}

static int read_signal(struct word w, struct rt_fault *f)
{
    static const struct choice signals[] = {
        {"KILL", SIGKILL}, {"TERM", SIGTERM}, {"SEGV", SIGSEGV}, {"ABRT", SIGABRT}, {NULL, 0}};
    return choose(w, signals, &f->signal);
}
static int read_what(struct word w, struct rt_fault *f)
{
    static const struct choice whats[] = {
        {"count", RT_FAULT_COUNT}, {"dtype", RT_FAULT_DTYPE}, {"op", RT_FAULT_OP}, {NULL, 0}};
    int what, error = choose(w, whats, &what);
    if (!error)
        f->what = (enum rt_fault_what)what;
    return error;
}
static int read_lib(struct word w, struct rt_fault *f)
{
    (void)f;
    return is(w, "nccl") ? 0 : -EINVAL;
}
/* "2.19" or "2.19.3", as NCCL makes a number of it. */
static int read_version(struct word w, struct rt_fault *f)
{
    int part[3] = {0}, n = 0;
    do
        if (read_int(cut(&w, '.'), 0, &part[n++]))
            return -EINVAL;
    while (n < 3 && w.n > 0);
    if (n < 2 || w.n > 0 || part[0] > 99 || part[1] > 99 || part[2] > 99)
        return -EINVAL;
    bool old = part[0] < 2 || (part[0] == 2 && part[1] <= 8);
    f->version = part[0] * (old ? 1000 : 10000) + part[1] * 100 + part[2];
    return 0;
}

/* ---- the tables ---- */

enum parameter {
    RANK,
    ANY_RANK,
    MS,
    US,
    HOST,
    HOSTS,
    MBPS,
    FLOWS,
    PERCENT,
    FACTOR,
    SPREAD,
    PROB,
    SEED,
    STEP,
    EVERY,
    BYTES,
    STAGES,
    PHASE,
    SIGNAL,
    WHAT,
    LIB,
    VALUE,
    BARE_NAME,
    PARAMETER_COUNT
};

/* One without a name is all that stands after the fault's. */
static const struct {
    const char *name, *expected;
    int (*read)(struct word w, struct rt_fault *f);
} parameters[PARAMETER_COUNT] = {
    [RANK] = {"rank", "a rank", read_rank},
    [ANY_RANK] = {"rank", "a rank, or all", read_any_rank},
    [MS] = {"ms", "milliseconds", read_ms},
    [US] = {"us", "microseconds", read_us},
    [HOST] = {"host", "a host's number", read_host},
    [HOSTS] = {"hosts", "two hosts, as 0-1", read_hosts},
    [MBPS] = {"mbps", "Mbit/s", read_mbps},
    [FLOWS] = {"flows", "a number of connections", read_flows},
    [PERCENT] = {"percent", "up to 50", read_percent},
    [FACTOR] = {"factor", "more than 1", read_factor},
    [SPREAD] = {"spread", "a part of the time, as 0.3", read_spread},
    [PROB] = {"prob", "a probability, as 0.02", read_prob},
    [SEED] = {"seed", "a whole number", read_seed},
    [STEP] = {"step", "a step's number", read_step},
    [EVERY] = {"every", "a number of steps", read_every},
    [BYTES] = {"bytes", "bytes, a multiple of 4", read_bytes},
    [STAGES] = {"stages", "2 or more", read_stages},
    [PHASE] = {"phase", "a phase's name", read_name},
    [SIGNAL] = {"signal", "KILL, TERM, SEGV or ABRT", read_signal},
    [WHAT] = {"what", "count, dtype or op", read_what},
    [LIB] = {"lib", "nccl", read_lib},
    [VALUE] = {"value", "a version, as 2.19", read_version},
    [BARE_NAME] = {NULL, "a name", read_name},
};

#define P(parameter) (1u << (parameter))

static const struct {
    const char *name;
    uint32_t needed, allowed; /* bits of enum parameter */
} kinds[RT_FAULT_KIND_COUNT] = {
    [RT_FAULT_SLOW_RANK] = {"slow-rank", P(RANK) | P(MS), 0},
    [RT_FAULT_SLOW_CODE] = {"slow-code", P(RANK) | P(PHASE) | P(MS), 0},
    [RT_FAULT_SLOW_HOST] = {"slow-host", P(HOST) | P(FACTOR), 0},
    [RT_FAULT_IMBALANCE] = {"imbalance", P(SPREAD), P(SEED)},
    [RT_FAULT_JITTER] = {"jitter", P(RANK) | P(PROB) | P(MS), P(SEED)},
    [RT_FAULT_CONTEND] = {"contend", P(RANK), 0},
    [RT_FAULT_COMM_STEALS_CPU] = {"comm-steals-cpu", 0, 0},
    [RT_FAULT_SLOW_LINK] = {"slow-link", P(HOSTS) | P(MBPS), P(FLOWS)},
    [RT_FAULT_LOSS] = {"loss", P(HOSTS) | P(PERCENT), 0},
    [RT_FAULT_SLOW_LOADER] = {"slow-loader", P(ANY_RANK) | P(MS), 0},
    [RT_FAULT_SLOW_CHECKPOINT] = {"slow-checkpoint", P(EVERY) | P(MS), 0},
    [RT_FAULT_SLOW_LAUNCH] = {"slow-launch", P(RANK) | P(US), 0},
    [RT_FAULT_LATE_SEND] = {"late-send", P(RANK) | P(MS), 0},
    [RT_FAULT_SMALL_TENSORS] = {"small-tensors", P(BYTES), 0},
    [RT_FAULT_NO_FUSION] = {"no-fusion", 0, 0},
    [RT_FAULT_NO_OVERLAP] = {"no-overlap", 0, 0},
    [RT_FAULT_ALGORITHM] = {"algorithm", P(BARE_NAME), 0},
    [RT_FAULT_PIPELINE] = {"pipeline", P(STAGES), 0},
    [RT_FAULT_MISMATCH] = {"mismatch", P(RANK) | P(STEP) | P(WHAT), 0},
    [RT_FAULT_SKIP] = {"skip", P(RANK) | P(STEP), 0},
    [RT_FAULT_SWAP_ORDER] = {"swap-order", P(RANK) | P(STEP), 0},
    [RT_FAULT_DEADLOCK] = {"deadlock", P(STEP), 0},
    [RT_FAULT_DIE] = {"die", P(RANK) | P(STEP) | P(SIGNAL), 0},
    [RT_FAULT_FLIP_BIT] = {"flip-bit", P(RANK) | P(STEP), 0},
    [RT_FAULT_VERSION] = {"version", P(RANK) | P(LIB) | P(VALUE), 0},
};
_Static_assert(RT_FAULT_KIND_COUNT <= 32 && PARAMETER_COUNT <= 32, "bits of a word");

int rt_faults_host_number(const char *name)
{
    struct word w = {name, name ? strlen(name) : 0};
    int number;
    if (w.n < 4 || memcmp(name, "host", 4) != 0)
        return -1;
    w.at += 4;
    w.n -= 4;
    return read_int(w, 0, &number) ? -1 : number;
}

int rt_faults_host_ranks(void)
{
    const char *text = getenv("RT_HOST_RANKS");
    int number;
    if (!text)
        return 0;
    return read_int((struct word){text, strlen(text)}, 1, &number) ? -1 : number;
}

const char *rt_fault_name(enum rt_fault_kind kind)
{
    return kinds[kind].name;
}

/* ---- reading ---- */

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

static const char *shown(int p)
{
    return parameters[p].name ? parameters[p].name : "its name";
}

static int parse_parameter(struct word text, struct rt_fault *f, uint32_t *seen, struct message m)
{
    struct word value = text, name = cut(&value, '=');
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        const char *wanted = parameters[p].name;
        bool bare = !wanted && !memchr(text.at, '=', text.n);
        if (!(bare || (wanted && is(name, wanted))) ||
            !((kinds[f->kind].needed | kinds[f->kind].allowed) & P(p)))
            continue;
        if (*seen & P(p))
            return fail(m, "RT_FAULT: %s: %s is given twice", kinds[f->kind].name, shown(p));
        *seen |= P(p);
        if (bare)
            value = text;
        if (parameters[p].read(value, f))
            return fail(m, "RT_FAULT: %s: %s%s%.*s: expected %s", kinds[f->kind].name,
                        bare ? "" : wanted, bare ? "" : "=", (int)value.n, value.at,
                        parameters[p].expected);
        return 0;
    }
    return fail(m, "RT_FAULT: %s: unknown parameter '%.*s'", kinds[f->kind].name, (int)name.n,
                name.at);
}

static int parse_parameters(struct word text, struct rt_fault *f, struct message m)
{
    uint32_t seen = 0;
    while (text.n > 0) {
        int error = parse_parameter(cut(&text, ','), f, &seen, m);
        if (error)
            return error;
    }
    for (int p = 0; p < PARAMETER_COUNT; p++)
        if (kinds[f->kind].needed & ~seen & P(p))
            return fail(m, "RT_FAULT: %s: %s is missing", kinds[f->kind].name, shown(p));
    return 0;
}

static int fail_unknown(struct word name, struct message m)
{
    char known[512] = "";
    size_t n = 0;
    for (int k = 0; k < RT_FAULT_KIND_COUNT && n < sizeof known; k++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", k ? ", " : "", kinds[k].name);
    return fail(m, "RT_FAULT: unknown fault '%.*s'; known: %s", (int)name.n, name.at, known);
}

static int parse_fault(struct word text, struct rt_fault *f, struct message m)
{
    struct word rest = text, name = cut(&rest, ':');
    for (int k = 0; k < RT_FAULT_KIND_COUNT; k++)
        if (is(name, kinds[k].name)) {
            *f = (struct rt_fault){
                .kind = (enum rt_fault_kind)k, .rank = RT_FAULT_ANY, .step = RT_FAULT_ANY};
            return parse_parameters(rest, f, m);
        }
    return fail_unknown(name, m);
}

int rt_faults_parse(struct rt_faults *ret, const char *text, char *message, size_t message_bytes)
{
    struct message m = {message, message_bytes};
    struct rt_faults faults = {.n = 0, .size = 1, .host = -1, .step = RT_FAULT_ANY};
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
