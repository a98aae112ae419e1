/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - each thread's ring: made at its first event, drained for the last time after its end.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "parts.h"
#include "state.h"

#define SLOTS ((uint64_t)1 << 15)

static pthread_key_t key;
static bool have_key;

static void thread_ended(void *entry)
{
    struct rs_thread_entry *e = entry;
    e->thread.depth++; /* destructors after this one may still make calls: they aren't recorded */
    free(e->thread.scratch);
    e->thread.scratch = NULL;
    if (!rs_life_is_own()) /* the lock is the parent's, as it was at the fork */
        return;
    rs_lock();
    if (e->thread.ring->open.op == 0)
        e->thread.ring->open.range_depth = 0;
    e->ended = true;
    rs_unlock();
}

void rs_threads_init(void)
{
    have_key = pthread_key_create(&key, thread_ended) == 0;
}

/* A thread that came through a fork has no ring until its next event: its first look for room makes
 * one. Calls before that show what they are in here. */
static struct rs_ring_thread no_ring;

static bool map_ring(struct rs_thread_entry *e)
{
    e->map_bytes = RS_RING_SLOTS_OFFSET + SLOTS * sizeof(struct rs_event);
    struct rs_ring_process *c = rs_state.control;
    struct rs_ring_thread *r = rs_memory_map(c->prefix, c->thread_count + 1, e->map_bytes,
                                             e->map_bytes, e->path, sizeof(e->path));
    if (!r)
        return false;
    if (!e->path[0] && rs_state.kill_safe) {
        rs_state.kill_safe = false;
        rs_meta_not_kill_safe_locked(errno);
    }
    r->version = RS_RING_VERSION;
    r->thread = e->thread.number;
    r->tid = (uint32_t)syscall(SYS_gettid);
    r->slot_count = SLOTS;
    e->thread.ring = r;
    e->thread.slots = (struct rs_event *)((char *)r + RS_RING_SLOTS_OFFSET);
    e->thread.mask = SLOTS - 1;
    e->thread.use_tsc = rs_state.core.use_tsc;
    e->thread.head = 0;
    e->thread.limit = SLOTS / 4;
    /* Each page once, so that no later store faults. */
    for (size_t at = 0; at < e->map_bytes; at += 4096)
        ((volatile char *)r)[at] = ((volatile char *)r)[at];
    r->magic = RS_RING_MAGIC;
    __atomic_store_n(&c->thread_count, c->thread_count + 1, __ATOMIC_RELEASE);
    return true;
}

/* Names that the program gave (NVTX): most do so before a thread's first event. */
#define NAMED_MAX 256
static struct {
    uint32_t tid;
    char name[60];
} named[NAMED_MAX];
static unsigned named_count;

static const char *given_name(uint32_t tid)
{
    for (unsigned i = named_count; i-- > 0;) /* the last one counts */
        if (named[i].tid == tid)
            return named[i].name;
    return NULL;
}

static void define(const struct rs_thread_entry *e)
{
    char name[16 + 24] = "";
    uint32_t tid = e->thread.ring->tid;
    const char *given = given_name(tid);
    prctl(PR_GET_NAME, name);
    if (tid == (uint32_t)rs_state.pid)
        snprintf(name, sizeof(name), "main");
    rs_defs_thread(e->thread.number, tid, given ? given : name);
}

void rs_thread_name(uint32_t tid, const char *name)
{
    if (!rs_life_is_own()) /* the definitions and the lock are another's */
        return;
    rs_lock();
    if (named_count < NAMED_MAX) {
        named[named_count].tid = tid;
        snprintf(named[named_count++].name, sizeof(named[0].name), "%s", name);
    }
    for (const struct rs_thread_entry *e = rs_state.threads; e; e = e->next)
        if (e->thread.ring->tid == tid)
            rs_defs_thread(e->thread.number, tid, name);
    rs_unlock();
}

/* A thread without memory for a ring looks for it again, but not at each of its calls. */
#define LOOKS_AGAIN_NS 100000000u
static uint64_t no_memory_until_ns; /* atomic */

static bool is_without_memory(void)
{
    uint64_t until = __atomic_load_n(&no_memory_until_ns, __ATOMIC_RELAXED);
    return until && rs_tick_monotonic() < until;
}

static void note_no_memory(int error)
{
    static const char lost[] = "some threads had no memory for a ring: their calls are missing";
    if (!no_memory_until_ns)
        rs_say("%s: %s", lost, strerrordesc_np(error));
    __atomic_store_n(&no_memory_until_ns, rs_tick_monotonic() + LOOKS_AGAIN_NS, __ATOMIC_RELAXED);
    rs_meta_set_locked("off.threads", lost);
}

static bool enter_list(struct rs_thread_entry *e)
{
    e->thread.number = rs_state.thread_number;
    if (!map_ring(e)) {
        note_no_memory(errno);
        return false;
    }
    rs_state.thread_number++;
    define(e);
    e->next = rs_state.threads;
    rs_state.threads = e;
    rs_drain_start();
    return true;
}

/* Of threads that are gone. */
static struct rs_thread_entry *unused;

static struct rs_thread_entry *new_entry(void)
{
    struct rs_thread_entry *e = unused;
    if (!e)
        return rs_memory_keep(sizeof(*e));
    unused = e->next;
    *e = (struct rs_thread_entry){0};
    return e;
}

static void free_entry(struct rs_thread_entry *e)
{
    e->next = unused;
    unused = e;
}

static struct rs_thread_entry *attach_locked(void)
{
    if (!rs_state.control && !rs_life_start())
        return NULL;
    struct rs_thread_entry *e = new_entry();
    if (!e)
        note_no_memory(ENOMEM);
    if (e && !enter_list(e)) {
        free_entry(e);
        e = NULL;
    }
    return e;
}

/* What that calls is not recorded. */
static void start_cuda(struct rs_thread_entry *e)
{
    e->thread.depth++;
    rs_cuda_capture_started();
    e->thread.depth--;
}

/* In a forked child, at the first record of the thread that forked. */
static bool give_ring(struct rs_thread *t)
{
    struct rs_thread_entry *e =
        (struct rs_thread_entry *)((char *)t - offsetof(struct rs_thread_entry, thread));
    if (is_without_memory())
        return false;
    int saved = errno;
    rs_lock();
    bool done = rs_state.on[RS_ON_KEEP] && (rs_state.control || rs_life_start()) && enter_list(e);
    rs_unlock();
    if (done)
        start_cuda(e);
    errno = saved;
    return done;
}

/* The front library and a back end each have an rs_self: one ring for both, or a fork and the end
 * of the thread would know the last one only. */
struct rs_thread *rs_thread_attach(void)
{
    struct rs_thread_entry *own = have_key ? pthread_getspecific(key) : NULL;
    if (own)
        return &own->thread;
    if (is_without_memory())
        return NULL;
    int saved = errno;
    rs_lock();
    struct rs_thread_entry *e = rs_state.on[RS_ON_KEEP] ? attach_locked() : NULL;
    rs_unlock();
    if (e && have_key)
        pthread_setspecific(key, e);
    if (e)
        start_cuda(e);
    errno = saved;
    return e ? &e->thread : NULL;
}

/* The hole is recorded before the event that follows it; until there is room it grows. */
static void close_hole(struct rs_thread *t)
{
    struct rs_ring_thread *r = t->ring;
    struct rs_event *e = rs_slot(t, 0);
    *e = (struct rs_event){.op = RS_OP_HOLE, .peer = -1, .start = r->hole_first};
    e->end = rs_tick();
    e->count = r->hole_count;
    rs_commit(t, 1);
    r->hole_count = 0;
    __atomic_store_n(&r->hole_first, 0, __ATOMIC_RELEASE);
}

bool rs_thread_make_room(struct rs_thread *t, unsigned slots)
{
    if (t->ring == &no_ring && !give_ring(t))
        return false;
    if (t->keeping)
        return false;
    struct rs_ring_thread *r = t->ring;
    uint64_t free_to = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) + t->mask + 1;
    bool hole = r->hole_first != 0;
    if (free_to - t->head < SLOTS / 2)
        rs_drain_wake();
    if (t->head + slots + hole <= free_to) {
        /* Come back every quarter, so that the writer is woken in time. */
        t->limit = t->head + SLOTS / 4 < free_to ? t->head + SLOTS / 4 : free_to;
        if (hole)
            close_hole(t);
        return true;
    }
    /* While a hole is open every event comes here, so that it is closed as soon as possible. */
    t->limit = t->head;
    if (!hole)
        r->hole_first = rs_tick();
    r->hole_count++;
    __atomic_store_n(&r->dropped, r->dropped + 1, __ATOMIC_RELAXED);
    return false;
}

/* One that is just ending may still look at its state. */
static bool lives(const struct rs_thread_entry *e)
{
    return syscall(SYS_tgkill, rs_state.pid, e->thread.ring->tid, 0) == 0;
}

static void drop(struct rs_thread_entry *e)
{
    struct rs_thread_entry **at = &rs_state.threads;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    rs_state.events += e->thread.ring->events;
    rs_state.dropped += e->thread.ring->dropped;
    munmap(e->thread.ring, e->map_bytes);
    if (e->path[0])
        unlink(e->path);
    free_entry(e);
}

void rs_threads_drop_ended(void)
{
    for (struct rs_thread_entry *e = rs_state.threads, *next; e; e = next) {
        const struct rs_ring_thread *r = e->thread.ring;
        next = e->next;
        if (e->ended && r->tail == r->head && !lives(e) && rs_writer_put_hole(&e->thread))
            drop(e);
    }
}

/* The rings are the parent's: the mappings go, its files stay. The calling thread's state stays
 * too, as wrappers keep pointers to it. */
void rs_threads_forget(void)
{
    struct rs_thread_entry *own = have_key ? pthread_getspecific(key) : NULL;
    while (rs_state.threads) {
        struct rs_thread_entry *e = rs_state.threads;
        rs_state.threads = e->next;
        if (e->thread.ring != &no_ring)
            munmap(e->thread.ring, e->map_bytes);
        if (e != own)
            free_entry(e);
    }
    if (own) {
        own->thread.ring = &no_ring;
        own->thread.head = own->thread.limit = 0;
        own->path[0] = 0;
    }
    memset(&no_ring, 0, sizeof(no_ring));
    rs_state.thread_number = 0;
}
