/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit.c - RINGSCOPE_SIZE_LIMIT: where the capture is full, events are counted in place of
 * written. One that keeps the newest is so once it can't be made small again.
 *
 * What was left out is one hole for each thread. It is written once the thread or the process ends;
 * until then its two copies in the ring's head say at any moment how many slots are counted, so
 * that recovery after a SIGKILL counts the others and none twice.
 */
#include <stdio.h>

#include "state.h"

static const struct rs_event *slot(const struct rs_thread *t, uint64_t i)
{
    return &t->slots[i & t->mask];
}

static void reach(void)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)rs_env.size_limit);
    rs_meta_set_locked("limit.reached", text);
    __atomic_store_n(&rs_state.control->full_tick, rs_tick(), __ATOMIC_RELEASE);
}

bool rs_limit_is_reached(void)
{
    return rs_state.control->full_tick != 0;
}

uint64_t rs_limit_cut(const struct rs_thread *t, uint64_t from, uint64_t to)
{
    if (!rs_env.size_limit || (rs_env.keep_last && !rs_keep_gave_up()))
        return to;
    uint64_t used = rs_state.control->capture_bytes + sizeof(struct rs_block);
    uint64_t room =
        used < rs_env.size_limit ? (rs_env.size_limit - used) / sizeof(struct rs_event) : 0;
    if (to - from <= room)
        return to;
    reach();
    to = from + room;
    while (to > from && slot(t, to)->op >= RS_OP_EXT)
        to--;
    return to;
}

/* A hole that is itself left out was counted as dropped. */
static void count(struct rs_ring_skip *s, const struct rs_event *e)
{
    if (e->op >= RS_OP_EXT)
        return;
    if (!s->first_tick || e->start < s->first_tick)
        s->first_tick = e->start;
    if (e->end > s->last_tick)
        s->last_tick = e->end;
    s->count += e->op != RS_OP_HOLE;
}

static void publish(struct rs_ring_thread *r, const struct rs_ring_skip *s)
{
    uint64_t other = !r->skip_now;
    r->skip[other] = *s;
    __atomic_store_n(&r->skip_now, other, __ATOMIC_RELEASE);
}

void rs_limit_skip(struct rs_thread *t, uint64_t head)
{
    struct rs_ring_thread *r = t->ring;
    struct rs_ring_skip s = r->skip[r->skip_now];
    uint64_t before = s.count;
    if (r->tail == head)
        return;
    for (uint64_t i = r->tail; i < head; i++)
        count(&s, slot(t, i));
    s.tail = head;
    publish(r, &s);
    rs_state.skipped += s.count - before;
    __atomic_store_n(&r->tail, head, __ATOMIC_RELEASE);
}

bool rs_limit_hole(const struct rs_thread *t, struct rs_event *ret, uint64_t *ret_tail)
{
    const struct rs_ring_skip *s = &t->ring->skip[t->ring->skip_now];
    if (!s->count)
        return false;
    *ret = (struct rs_event){.op = RS_OP_HOLE, .flags = RS_EVENT_LIMIT, .peer = -1};
    ret->start = s->first_tick;
    ret->end = s->last_tick;
    ret->count = s->count;
    *ret_tail = s->tail;
    return true;
}

void rs_limit_forget_hole(struct rs_thread *t)
{
    struct rs_ring_skip none = {.tail = t->ring->skip[t->ring->skip_now].tail};
    publish(t->ring, &none);
}
