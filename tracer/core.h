/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h - how a wrapper records: the part of the tracer that every wrapped API shares.
 *
 * Model: each thread has a ring on tmpfs (schemas/ring.h). A wrapper brackets the real call with
 * rs_call_enter and rs_call_leave; between them the ring's head says what the thread is in. The
 * drain thread writes rings to the capture file. Nothing here allocates, locks or blocks once a
 * thread, communicator and type have been seen; the first sight of each may.
 * Threads: everything may be called from any thread; a struct rs_thread only from its own.
 * Errors: none reach the caller. Trouble turns recording off, counts, and stands in the capture.
 * errno is kept by whoever calls a slow function (rs_core->...) on a wrapped call's path.
 *
 * The front library and the back ends are separate objects and share no symbols: each has its own
 * hidden `rs_core`, which the front fills at load and hands to a back end at its init.
 */
#ifndef RS_TRACER_CORE_H
#define RS_TRACER_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "ops.h"
#include "ring.h"
#include "rsc.h"
#include "settings.h"

#define RS_LIKELY(x)   __builtin_expect(!!(x), 1)
#define RS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RS_HIDDEN      __attribute__((visibility("hidden")))
/* On every recorded call's way: with hundreds of wrappers the compiler would call them. */
#define RS_INLINE static inline __attribute__((always_inline))

/* A communicator as this process knows it. Lives as long as the process. */
struct rs_comm {
    uint64_t identity;
    uint32_t id;       /* RS_DEF_COMM id, 0 where there was no room for it */
    uint32_t next_seq; /* number of its next collective: only the thread that calls one moves it */
    uint32_t next_child; /* communicators made from it so far */
    int32_t rank, size;
    uint32_t api;     /* enum rs_comm_api */
    int32_t *members; /* world ranks by rank in it, NULL unknown */
};

struct rs_type {
    uint32_t id;   /* RS_DEF_DTYPE or RS_DEF_REDOP id, 0 where there was no room for it */
    uint32_t name; /* RS_DEF_STRING id */
    uint64_t size_bytes;
};

#define RS_RUN_ID_MAX 256

/* Words of rs_core.on. */
enum rs_on {
    RS_ON_RECORD, /* zero: record nothing: stopped, failed, or switched off (window.c) */
    RS_ON_OWN,    /* zero: this process's memory is a copy */
    RS_ON_KEEP,   /* zero: stopped or failed. Where only RS_ON_RECORD is, numbers and handles are
                     kept up to date, so that recording may go on at any moment */
    RS_ON_WORDS
};

#define RS_PREFETCH 32 /* slots */
#define RS_CACHE    4  /* last handles seen by a thread, direct-mapped */

/* A handle seen before, UINT64_MAX none, and the struct rs_comm or rs_type behind it. */
struct rs_cached {
    uint64_t handle;
    void *object;
};

struct rs_thread {
    struct rs_ring_thread *ring;
    struct rs_event *slots;
    uint64_t mask;  /* slot_count - 1 */
    uint64_t head;  /* own copy of ring->head */
    uint64_t limit; /* head may grow to this before ring->tail must be read again */
    uint32_t depth; /* > 0: inside a recorded call or the tracer itself; record nothing */
    uint32_t number;
    uint32_t range_depth;
    bool use_tsc;   /* as rs_core has it */
    bool keeping;   /* in a call that began while capture was off: it finds no room */
    uint32_t epoch; /* the caches hold what was so at this *rs_core->epoch */
    struct rs_cached comm_cache[RS_CACHE], dtype_cache[RS_CACHE], redop_cache[RS_CACHE];
    void *scratch; /* a back end's own, one block of malloc: the thread frees it as it ends */
};

/* The slow functions, and what changes at run time. One table, made by core.c. */
struct rs_core {
    uint32_t abi;             /* sizeof(struct rs_core) */
    uint32_t parts;           /* enum rs_part bits that are on */
    volatile uint32_t *epoch; /* from 1; grows when any handle is freed or made again: caches are
                                 stale */
    volatile uint32_t *on;    /* by enum rs_on; all zero in the child of a fork that no handler saw,
                                 which has another's rings */
    volatile uint32_t *started; /* nonzero: a call of a traced API has made this process a capture;
                                   what records beside such calls (NVTX, I/O) waits for it */
    volatile uint32_t *end_flags; /* enum rs_end_flags that hold now */
    bool use_tsc;
    bool rank_told; /* RINGSCOPE_RANK or the launcher says which rank this process is */

    /* The calling thread's state, made at first sight; NULL where recording is off. */
    struct rs_thread *(*thread)(void);
    /* The ring is full as far as the thread knows: look at tail again; false: drop (counted). */
    bool (*make_room)(struct rs_thread *t, unsigned slots);

    /* Interning: the same text gives the same id for the life of the process. 0 on failure. */
    uint32_t (*string)(const char *text, size_t bytes);
    /* The program's name for a thread, perhaps before its first event. */
    void (*name_thread)(uint32_t tid, const char *name);
    /* RS_DEF_OP for an operation this process may record; call once per op when its slot resolves.
     */
    void (*define_op)(uint16_t op);

    /* Handle tables. find_x: NULL where unknown. define_x replaces what the handle meant before.
     * forget_x: the handle was freed. `members` may be NULL and is copied. */
    struct rs_comm *(*find_comm)(enum rs_comm_api api, uint64_t handle);
    struct rs_comm *(*define_comm)(enum rs_comm_api api, uint64_t handle, uint64_t identity,
                                   uint64_t parent, int32_t rank, int32_t size,
                                   const int32_t *members, int32_t device, const char *name);
    void (*forget_comm)(enum rs_comm_api api, uint64_t handle);
    struct rs_type *(*find_dtype)(uint32_t api, uint64_t handle);
    struct rs_type *(*define_dtype)(uint32_t api, uint64_t handle, const char *name, uint64_t size);
    struct rs_type *(*find_redop)(uint32_t api, uint64_t handle);
    struct rs_type *(*define_redop)(uint32_t api, uint64_t handle, const char *name);
    void (*forget_type)(uint32_t api, uint64_t handle);

    /* Facts of the capture's META: the last value of a key wins. Known keys: capture-format.md. */
    void (*meta)(const char *key, const char *value);
    /* World rank and size, once known (MPI_Init, launcher's variables, NCCL). */
    void (*set_rank)(int32_t rank, int32_t world_size);
    const char *(*run_id)(void);
    /* A back end learned which id all ranks have: before anything was made from the own one. */
    void (*set_run_id)(const char *id);
    uint64_t (*run_hash)(void);  /* of the run id: the seed of identities */
    const char *(*host)(void);   /* RINGSCOPE_HOST or the host's name */
    const char *(*domain)(void); /* clock domain: machine name + time namespace */
    void (*anchor)(void);        /* take a clock anchor now */
    void (*probe)(const struct rs_clock_probe *probe);
    /* Flush rings to the file now; `reason` RS_END_* also writes the end block once. */
    void (*flush)(enum rs_end_reason reason);
};

extern const struct rs_core *rs_core RS_HIDDEN;
extern __thread struct rs_thread *rs_self RS_HIDDEN __attribute__((tls_model("initial-exec")));

static __attribute__((noinline, unused)) uint64_t rs_tick_monotonic(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

RS_INLINE uint64_t rs_tick_by(bool use_tsc)
{
#if defined(__x86_64__)
    if (RS_LIKELY(use_tsc))
        return __rdtsc();
#elif defined(__aarch64__)
    if (RS_LIKELY(use_tsc)) {
        uint64_t v;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
        return v;
    }
#endif
    return rs_tick_monotonic();
}

RS_INLINE uint64_t rs_tick(void)
{
    return rs_tick_by(rs_core->use_tsc);
}

static __attribute__((noinline, unused)) void rs_caches_clear(struct rs_thread *t, uint32_t epoch)
{
    for (int i = 0; i < RS_CACHE; i++)
        t->comm_cache[i].handle = t->dtype_cache[i].handle = t->redop_cache[i].handle = UINT64_MAX;
    t->epoch = epoch;
}

/* The thread's state if a call made now is to be recorded: recording is on, and this is the
 * outermost recorded call. Else NULL: just make the real call. */
RS_INLINE struct rs_thread *rs_thread_if_recording(void)
{
    struct rs_thread *t = rs_self;
    if (RS_UNLIKELY(!t)) {
        if (!rs_core || !*rs_core->on)
            return NULL;
        t = rs_self = rs_core->thread();
        if (!t)
            return NULL;
    }
    if (RS_UNLIKELY(t->depth != 0 || !*rs_core->on))
        return NULL;
    uint32_t epoch = *rs_core->epoch;
    if (RS_UNLIKELY(t->epoch != epoch))
        rs_caches_clear(t, epoch);
    return t;
}

/* Where capture is switched off: the thread's state if a call made now would else be recorded. What
 * numbers a collective then counts it. NULL: recording, stopped, or inside another call. */
RS_INLINE struct rs_thread *rs_thread_if_off(void)
{
    struct rs_thread *t = rs_self;
    if (RS_UNLIKELY(!t)) {
        if (!rs_core || !rs_core->on[RS_ON_KEEP] || rs_core->on[RS_ON_RECORD])
            return NULL;
        t = rs_self = rs_core->thread();
        if (!t)
            return NULL;
    }
    if (RS_UNLIKELY(t->depth != 0 || !rs_core->on[RS_ON_KEEP]))
        return NULL;
    uint32_t epoch = *rs_core->epoch;
    if (RS_UNLIKELY(t->epoch != epoch))
        rs_caches_clear(t, epoch);
    return t;
}

/* The same for a call that makes, ends or means handles: it goes the whole way of a recorded one,
 * and finds no room for its record, until rs_thread_kept. */
static __attribute__((noinline, unused)) struct rs_thread *rs_thread_if_keeping(void)
{
    struct rs_thread *t = rs_thread_if_off();
    if (t) {
        t->keeping = true;
        t->limit = 0; /* so that make_room is asked */
    }
    return t;
}
RS_INLINE void rs_thread_kept(struct rs_thread *t)
{
    t->keeping = false;
}

/* The drain thread has read the ring's old slots, perhaps on another core: a store to them waits
 * for the line. So lines are asked for before they are needed; behind the ring's end that does
 * nothing. */
RS_INLINE void rs_prefetch(const struct rs_event *e)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(e[RS_PREFETCH]));
#else
    __builtin_prefetch(e + RS_PREFETCH, 1);
#endif
}

/* Slot `i` of the record being written, valid after rs_room(t, n) with i < n. */
RS_INLINE void *rs_slot(struct rs_thread *t, unsigned i)
{
    return &t->slots[(t->head + i) & t->mask];
}
RS_INLINE bool rs_room(struct rs_thread *t, unsigned n)
{
    return RS_LIKELY(t->head + n <= t->limit) || rs_core->make_room(t, n);
}
/* The same for a record of what began before capture was switched off. */
RS_INLINE bool rs_room_of_before(struct rs_thread *t, unsigned n)
{
    bool keeping = t->keeping;
    t->keeping = false;
    bool room = rs_room(t, n);
    t->keeping = keeping;
    if (RS_UNLIKELY(keeping))
        t->limit = 0;
    return room;
}
RS_INLINE void rs_commit(struct rs_thread *t, unsigned n)
{
    t->head += n;
    __atomic_store_n(&t->ring->head, t->head, __ATOMIC_RELEASE);
    /* events are counted by the consumer: whoever reads slots can tell extension slots apart */
}

/* Enter: what the thread is in, for `status` and for the capture of a killed process. */
RS_INLINE uint64_t rs_call_enter(struct rs_thread *t, uint16_t op, uint32_t comm, uint32_t seq,
                                 int32_t peer, uint64_t count, uint32_t dtype)
{
    struct rs_open *o = &t->ring->open;
    t->depth++;
    o->comm = comm;
    o->seq = seq;
    o->peer = peer;
    o->count = count;
    o->dtype = dtype;
    uint64_t now = rs_tick_by(t->use_tsc);
    o->start = now;
    __atomic_store_n(&o->op, op, __ATOMIC_RELEASE);
    return now;
}
/* Leave: returns the end tick; the caller then writes the record with rs_room, rs_slot, rs_commit.
 */
RS_INLINE uint64_t rs_call_leave(struct rs_thread *t)
{
    uint64_t now = rs_tick_by(t->use_tsc);
    __atomic_store_n(&t->ring->open.op, 0, __ATOMIC_RELEASE);
    t->depth--;
    return now;
}

/* Where in a cache the handle is, or goes. */
RS_INLINE struct rs_cached *rs_cached(struct rs_cached *cache, uint64_t handle)
{
    uint64_t at = handle * 0x9e3779b97f4a7c15u >> 58 & (RS_CACHE - 1) * sizeof(*cache);
    return (struct rs_cached *)(void *)((char *)cache + at);
}

/* Definitions.md section 13: mixing of identities. Order matters. */
static inline uint64_t rs_hash_mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ull;
    h ^= h >> 33;
    return h;
}

#endif
