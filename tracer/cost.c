/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.c - what tracing itself costs: records into a ring that nobody reads, timed once in a
 * process, and what was recorded and written, for the capture's META. The lower side of the truth:
 * a thread's ring has left the cache, or is in that of the drain thread's processor.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "state.h"

#define RECORDS 512u /* a round */
#define ROUNDS  8

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* As a wrapper does it for a collective whose communicator and types were seen before, but for the
 * call itself. */
__attribute__((noinline)) static void record(struct rs_thread *t, uint64_t handle)
{
    const struct rs_cached *comm = rs_cached(t->comm_cache, handle);
    const struct rs_cached *type = rs_cached(t->dtype_cache, handle);
    const struct rs_cached *op = rs_cached(t->redop_cache, handle);
    if (t->depth || comm->handle != handle || type->handle != handle || op->handle != handle)
        return;
    struct rs_comm *c = comm->object;
    struct rs_type *dtype = type->object, *redop = op->object;
    uint32_t seq = c->next_seq++;
    uint64_t start = rs_call_enter(t, RS_OP_FIRST_API, c->id, seq, -1, handle, dtype->id);
    uint64_t end = rs_call_leave(t);
    if (!rs_room(t, 1))
        return;
    struct rs_event *e = rs_slot(t, 0);
    rs_prefetch(e);
    *e = (struct rs_event){.op = RS_OP_FIRST_API, .peer = -1, .start = start, .end = end};
    e->count = handle;
    e->comm = c->id;
    e->dtype = dtype->id;
    e->seq = seq;
    e->redop = redop->id;
    rs_commit(t, 1);
}

struct scratch {
    struct rs_thread thread;
    struct rs_ring_thread ring;
    struct rs_comm comm;
    struct rs_type type;
    struct rs_event slots[ROUNDS * RECORDS];
};

static void prepare(struct scratch *s)
{
    struct rs_thread *t = &s->thread;
    t->ring = &s->ring;
    t->slots = s->slots;
    t->mask = ROUNDS * RECORDS - 1;
    t->limit = 2 * ROUNDS * RECORDS; /* each slot is met twice: only the first may fault */
    t->use_tsc = rs_core->use_tsc;
    *rs_cached(t->comm_cache, 1) = (struct rs_cached){1, &s->comm};
    *rs_cached(t->dtype_cache, 1) = *rs_cached(t->redop_cache, 1) = (struct rs_cached){1, &s->type};
}

/* Nanoseconds of RECORDS records. The best round: in the others something else ran. */
static uint64_t measure(struct scratch *s)
{
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        uint64_t before = now_ns();
        for (uint32_t i = 0; i < RECORDS; i++)
            record(&s->thread, 1);
        uint64_t took = now_ns() - before;
        best = took < best ? took : best;
    }
    return best;
}

void rs_cost_calibrate(void)
{
    static bool done;
    char text[32];
    if (done)
        return;
    done = true;
    struct scratch *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return;
    prepare(s);
    uint64_t hundredths = measure(s) * 100 / RECORDS;
    munmap(s, sizeof(*s));
    snprintf(text, sizeof(text), "%" PRIu64 ".%02u", hundredths / 100,
             (unsigned)(hundredths % 100));
    rs_meta_set_locked("cost.event_ns", text);
}

static size_t add(char *to, const char *key, uint64_t value)
{
    size_t n = strlen(key) + 1;
    memcpy(to, key, n);
    return n + (size_t)snprintf(to + n, 24, "%" PRIu64, value) + 1;
}

size_t rs_cost_payload(char ret[RS_COST_BYTES], uint64_t events, uint64_t dropped)
{
    size_t n = add(ret, "cost.events", events);
    n += add(ret + n, "cost.dropped", dropped);
    n += add(ret + n, "cost.bytes", rs_state.bytes);
    n += add(ret + n, "cost.drain_ns", rs_state.drain_ns);
    return n;
}
