/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti.c - CUPTI while a process is traced: started with its capture, asked for what it has a few
 * times a second by the drain thread, which alone reads it; stopped before the process is.
 *
 * CUPTI stamps the host's calls, and fits the device's times to, our own clock where it takes one:
 * ticks as nanoseconds, and back to within one. Else a pair of readings at each look ties its clock
 * to ours.
 * Whatever goes wrong turns this part off, says so once, and the rest goes on.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "activity.h"
#include "cupti-buffers.h"
#include "cupti-library.h"
#include "parts.h"
#include "state.h"

#define EXPORT         __attribute__((visibility("default")))
#define FLUSH_NS       200000000u
#define FLUSH_WAITS_S  5
#define FUNCTIONS_MAX  1024
#define NAME_MAX_BYTES 1024 /* templates have names of any length */
#define KNOWN_NAMES    512
#define PASSED_OVER    UINT32_MAX

enum stage { UNTRIED, STARTING, RUNNING, STOPPED };

static struct rs_cupti cupti;
static uint32_t stage;       /* atomic */
static uint64_t asked, done; /* atomic: flushes that somebody waits for, and those that came */
static uint32_t done_futex;  /* atomic: low bits of `done` */
static uint64_t dropped;     /* atomic: records that CUPTI had no room for */
static uint32_t ending;      /* atomic: the flush that is asked for is the last */

/* the drain thread's */
static uint64_t last_flush_ns, lost_since; /* tick */
static bool own_clock;
static struct pair {
    uint64_t tick, ns; /* of our clock and CUPTI's, at one moment */
} before_pair, pair;
static struct known {
    const char *text;
    uint64_t hash; /* of it */
    uint32_t id;
} known_names[KNOWN_NAMES];
static uint32_t function_names[2][FUNCTIONS_MAX]; /* RS_DEF_STRING id, 0 not asked yet */

/* ---- time ---- */

static uint64_t scale(uint64_t value, uint64_t by, uint64_t per)
{
    return (uint64_t)(((unsigned __int128)value * by + per / 2) / per);
}

static uint64_t clock_of_cupti(void)
{
    return scale(rs_tick(), 1000000000u, rs_state.ticks_per_s);
}

static void pair_clocks(void)
{
    uint64_t start = rs_tick(), ns;
    if (own_clock || cupti.GetTimestamp(&ns) != RS_CUPTI_SUCCESS)
        return;
    before_pair = pair;
    pair = (struct pair){start + (rs_tick() - start) / 2, ns};
}

/* By the line through the last two pairs; from one alone by the clock's rate. */
static uint64_t tick_of(uint64_t ns)
{
    if (own_clock)
        return scale(ns, rs_state.ticks_per_s, 1000000000u);
    bool two = before_pair.ns && pair.ns > before_pair.ns;
    uint64_t ticks = two ? pair.tick - before_pair.tick : rs_state.ticks_per_s;
    uint64_t per = two ? pair.ns - before_pair.ns : 1000000000u;
    if (ns >= pair.ns)
        return pair.tick + scale(ns - pair.ns, ticks, per);
    uint64_t back = scale(pair.ns - ns, ticks, per);
    return back < pair.tick ? pair.tick - back : 0;
}

/* ---- buffers: on any thread, inside CUDA's calls ---- */

static void request(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
    bool wanted = __atomic_load_n(&stage, __ATOMIC_ACQUIRE) != STOPPED && rs_core->on[RS_ON_KEEP];
    *buffer = wanted ? rs_cupti_buffer_ask() : NULL;
    *bytes = *buffer ? RS_CUPTI_BUFFER_BYTES : 0;
    *max_records = 0;
}

static void count_dropped(void *context, uint32_t stream)
{
    size_t lost = 0;
    if (cupti.ActivityGetNumDroppedRecords(context, stream, &lost) == RS_CUPTI_SUCCESS && lost)
        __atomic_fetch_add(&dropped, lost, __ATOMIC_RELAXED);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                     size_t valid_bytes)
{
    count_dropped(context, stream);
    if (rs_cupti_buffer_give_back(buffer, valid_bytes))
        rs_drain_wake();
}

/* ---- records: the drain thread ---- */

/* The core's way takes a lock, for each kernel. A module that is loaded where another was may have
 * another name at the same place: what stands there counts too. */
static uint32_t name_text(const char *text)
{
    struct known *k = &known_names[(uintptr_t)text / 8 % KNOWN_NAMES];
    uint64_t hash = 0xcbf29ce484222325u;
    size_t n = 0;
    for (; text[n] && n < NAME_MAX_BYTES; n++)
        hash = (hash ^ (unsigned char)text[n]) * 0x100000001b3u;
    if (k->text == text && k->hash == hash)
        return k->id;
    uint32_t id = rs_core->string(text, n);
    *k = (struct known){text, hash, id};
    return id;
}

static uint32_t name_function(const struct rs_activity *a)
{
    bool driver = a->kind == RS_CUPTI_DRIVER;
    uint32_t *known = a->function < FUNCTIONS_MAX ? &function_names[driver][a->function] : NULL;
    if (known && *known)
        return *known;
    const char *name = NULL;
    uint32_t id = PASSED_OVER;
    uint32_t domain = driver ? RS_CUPTI_DOMAIN_DRIVER : RS_CUPTI_DOMAIN_RUNTIME;
    if (cupti.GetCallbackName(domain, a->function, &name) == RS_CUPTI_SUCCESS && name &&
        !rs_activity_is_idle_talk(name))
        id = rs_core->string(name, rs_activity_plain_name(name));
    if (known && id)
        *known = id;
    return id;
}

static void record(const struct rs_activity *a, void *data)
{
    struct rs_thread *t = data;
    uint32_t name;
    if (a->op == RS_OP_HOST_CALL) {
        name = name_function(a);
        if (name == PASSED_OVER)
            return;
    } else {
        name = name_text(rs_activity_name(a));
    }
    rs_activity_write(t, a, name, tick_of(a->start_ns), tick_of(a->end_ns));
}

static void record_losses(struct rs_thread *t)
{
    uint64_t lost = __atomic_load_n(&dropped, __ATOMIC_RELAXED), now = rs_tick();
    if (lost && !rs_room(t, 1)) /* the next look tells of them */
        return;
    if (lost) {
        __atomic_fetch_sub(&dropped, lost, __ATOMIC_RELAXED);
        struct rs_event *e = rs_slot(t, 0);
        *e = (struct rs_event){.op = RS_OP_HOLE, .peer = -1, .start = lost_since, .end = now};
        e->count = lost;
        rs_commit(t, 1);
    }
    lost_since = now;
}

static void turn_off(const char *why)
{
    __atomic_store_n(&stage, STOPPED, __ATOMIC_RELEASE);
    rs_core->meta("off.cuda", why);
    if (rs_env.local_rank <= 0)
        rs_say("CUDA's kernels are not recorded, all else is: %s", why);
}

static void read_buffer(struct rs_thread *t, const struct rs_cupti_buffer *b)
{
    struct rs_activity_counts counts = {0};
    int error = rs_activities_read(b->memory, b->valid_bytes, cupti.ActivityGetNextRecord, record,
                                   t, &counts);
    if (counts.untimed)
        __atomic_fetch_add(&dropped, counts.untimed, __ATOMIC_RELAXED);
    if (error)
        turn_off("this CUPTI's records are shorter than those of the versions that are known");
}

static void tell_done(uint64_t until)
{
    __atomic_store_n(&done, until, __ATOMIC_RELEASE);
    __atomic_store_n(&done_futex, (uint32_t)until, __ATOMIC_RELEASE);
    syscall(SYS_futex, &done_futex, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void flush_if_due(uint64_t now_ns, uint64_t wanted)
{
    bool forced = wanted != __atomic_load_n(&done, __ATOMIC_RELAXED);
    if (!forced && now_ns - last_flush_ns < FLUSH_NS)
        return;
    last_flush_ns = now_ns;
    cupti.ActivityFlushAll(forced ? RS_CUPTI_FLUSH_FORCED : 0);
    count_dropped(NULL, 0); /* where no buffer came back since */
    pair_clocks();
}

void rs_cuda_look(uint64_t now_ns, void (*write_rings)(void *), void *data)
{
    uint64_t wanted = __atomic_load_n(&asked, __ATOMIC_ACQUIRE);
    struct rs_cupti_buffer b;
    if (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) != RUNNING) {
        if (wanted != __atomic_load_n(&done, __ATOMIC_RELAXED))
            tell_done(wanted);
        return;
    }
    flush_if_due(now_ns, wanted);
    struct rs_thread *t = rs_thread_if_recording();
    while (rs_cupti_buffer_take(&b)) {
        if (t &&
            __atomic_load_n(&stage, __ATOMIC_ACQUIRE) == RUNNING) /* a buffer may turn it off */
            read_buffer(t, &b);
        rs_cupti_buffer_done(&b);
        write_rings(data); /* room for the next one */
    }
    if (t)
        record_losses(t);
    if (wanted != __atomic_load_n(&done, __ATOMIC_RELAXED)) {
        if (__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) /* CUPTI itself ends next */
            __atomic_store_n(&stage, STOPPED, __ATOMIC_RELEASE);
        tell_done(wanted);
    }
}

/* What CUPTI has is wanted in the rings now: the drain thread reads it. */
void rs_cuda_flush(void)
{
    struct timespec end, now;
    if (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) != RUNNING || !rs_state.draining)
        return;
    int saved = errno;
    uint64_t number = __atomic_add_fetch(&asked, 1, __ATOMIC_ACQ_REL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += FLUSH_WAITS_S;
    for (;;) {
        uint32_t seen = __atomic_load_n(&done_futex, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&done, __ATOMIC_ACQUIRE) >= number)
            break;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec >= end.tv_sec)
            break;
        struct timespec left = {.tv_nsec = 100000000};
        rs_drain_wake();
        syscall(SYS_futex, &done_futex, FUTEX_WAIT_PRIVATE, seen, &left, NULL, 0);
    }
    errno = saved;
}

/* ---- the start ---- */

/* Only so that CUPTI knows that it is taken: no callback is enabled. */
static void ignore(void *data, int domain, uint32_t function, const void *more)
{
}

static const char *explain(int result, const char *doing, char *text, size_t size)
{
    const char *name = NULL;
    switch (result) {
    case RS_CUPTI_MULTIPLE_SUBSCRIBERS:
        return "another tool in this process uses CUPTI already (Nsight, or the program's own "
               "profiler); run without it";
    case RS_CUPTI_INSUFFICIENT_PRIVILEGES:
    case RS_CUPTI_VIRTUALIZED_PRIVILEGES:
        return "the driver lets only administrators profile (its module's option "
               "NVreg_RestrictProfilingToAdminUsers)";
    case RS_CUPTI_NOT_INITIALIZED:
    case RS_CUPTI_UNKNOWN:
        snprintf(text, size, "CUPTI can't %s: is there an NVIDIA driver, and one new enough?",
                 doing);
        return text;
    default:
        if (!cupti.GetResultString || cupti.GetResultString(result, &name) != RS_CUPTI_SUCCESS)
            name = NULL;
        snprintf(text, size, "CUPTI can't %s: %s (%d)", doing, name ? name : "error", result);
        return text;
    }
}

static const struct {
    uint32_t kind;
    const char *what;
} wanted_kinds[] = {
    {RS_CUPTI_CONCURRENT_KERNEL, "kernels"},      {RS_CUPTI_MEMCPY, "copies"},
    {RS_CUPTI_MEMCPY2, "copies between devices"}, {RS_CUPTI_MEMSET, "memory set"},
    {RS_CUPTI_RUNTIME, "calls of the runtime"},   {RS_CUPTI_DRIVER, "calls of the driver"},
    {RS_CUPTI_SYNCHRONIZATION, "waits"},
};

/* Kernels are what it is for; what else can't be had is left out, and said in the capture. */
static const char *enable(char *text, size_t size)
{
    char lacking[256] = "";
    for (size_t i = 0; i < sizeof(wanted_kinds) / sizeof(*wanted_kinds); i++) {
        int result = cupti.ActivityEnable(wanted_kinds[i].kind);
        if (result == RS_CUPTI_SUCCESS)
            continue;
        if (i == 0)
            return explain(result, "record kernels", text, size);
        size_t n = strlen(lacking);
        snprintf(lacking + n, sizeof(lacking) - n, "%s%s", n ? ", " : "", wanted_kinds[i].what);
    }
    if (lacking[0]) {
        snprintf(text, size, "CUPTI refuses %s", lacking);
        rs_core->meta("off.cuda.kinds", text);
    }
    return NULL;
}

static void stop_at_exit(void)
{
    if (!rs_life_is_own())
        return;
    __atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
    rs_cuda_flush();
    __atomic_store_n(&stage, STOPPED, __ATOMIC_RELEASE);
}

static const char *subscribe(char *text, size_t size)
{
    void *subscriber = NULL;
    int result = cupti.Subscribe(&subscriber, ignore, NULL);
    if (result != RS_CUPTI_SUCCESS)
        return explain(result, "be used", text, size);
    if (!cupti.SetThreadIdType || cupti.SetThreadIdType(RS_CUPTI_THREAD_SYSTEM) != RS_CUPTI_SUCCESS)
        rs_core->meta("cuda.threads",
                      "of the host's calls unknown: this CUPTI tells no thread ids");
    own_clock = cupti.ActivityRegisterTimestampCallback &&
                cupti.ActivityRegisterTimestampCallback(clock_of_cupti) == RS_CUPTI_SUCCESS;
    pair_clocks();
    result = cupti.ActivityRegisterCallbacks(request, complete);
    const char *why = result == RS_CUPTI_SUCCESS ? enable(text, size)
                                                 : explain(result, "take buffers", text, size);
    if (why)
        cupti.Unsubscribe(subscriber);
    return why;
}

static void start(void)
{
    char text[512];
    const char *why = rs_cupti_open(&cupti, text, sizeof(text));
    if (!why)
        why = subscribe(text, sizeof(text));
    if (why) {
        turn_off(why);
        return;
    }
    snprintf(text, sizeof(text), "%s, version %u", cupti.path, cupti.version);
    rs_core->meta("cupti.library", text);
    lost_since = rs_tick();
    atexit(stop_at_exit); /* after what CUPTI itself has there: so called before it */
    __atomic_store_n(&stage, RUNNING, __ATOMIC_RELEASE);
}

void rs_cuda_capture_started(void)
{
    uint32_t untried = UNTRIED;
    if (RS_LIKELY(__atomic_load_n(&stage, __ATOMIC_ACQUIRE) != UNTRIED) ||
        !(rs_core->parts & RS_PART_CUDA) || !rs_core->on[RS_ON_KEEP] || !rs_cupti_is_cuda_here() ||
        !__atomic_compare_exchange_n(&stage, &untried, STARTING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return;
    int saved = errno;
    sigset_t all, before; /* CUPTI's threads inherit it: the program's signals aren't for them */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rs_quiet++;
    start();
    rs_quiet--;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
}

/* The driver's initialisation calls it, by CUDA_INJECTION64_PATH. Before the capture has begun
 * there is nothing to do: its beginning will find the driver. */
EXPORT int InitializeInjection(void);
EXPORT int InitializeInjection(void)
{
    if (rs_core && *rs_core->started && rs_life_is_own())
        rs_cuda_capture_started();
    return 1;
}

/* CUDA doesn't live through a fork, nor do CUPTI's threads: nothing of it is touched again. */
static void forget_parent(void)
{
    uint32_t now = __atomic_load_n(&stage, __ATOMIC_RELAXED);
    __atomic_store_n(&stage, now == UNTRIED ? UNTRIED : STOPPED, __ATOMIC_RELEASE);
    asked = done = dropped = 0;
    done_futex = 0;
}

void rs_cuda_init(const char *library)
{
    if (!rs_core || !(rs_core->parts & RS_PART_CUDA))
        return;
    pthread_atfork(NULL, NULL, forget_parent);
    if (library && library[0]) /* a tool that the user chose keeps its place */
        setenv("CUDA_INJECTION64_PATH", library, 0);
}
