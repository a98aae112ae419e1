/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce in the ranks' own memory: each rank reads its part of all buffers and writes the result
 * into all. Nothing is copied on the way, and ranks wait for each other twice, whatever n is.
 *
 * Cost: 2 a + S g + S b: a rank reads and writes S bytes, half of a ring's.
 *
 * Bits: a part is reduced by one rank, its own elements first, then those of the ranks after it, so
 * they depend on the count and the element's place.
 */
#include "rt-step.h"

/* Short enough to stay in the first cache between reducing and writing out. */
#define STEP_BYTES 8192u

struct part {
    const struct rt_reach *reach;
    int rank, size;
    enum rt_type type;
    enum rt_op op;
};

/* `first` and `count` are of one step. */
static void reduce_step(const struct part *p, uint64_t first, uint64_t count)
{
    void *mine = rt_at_mutable(p->reach[p->rank].out, first, p->type);
    const void *sum = rt_at(p->reach[p->rank].in, first, p->type);
    for (int i = 1; i < p->size; i++) {
        const struct rt_reach *peer = &p->reach[(p->rank + i) % p->size];
        rt_reduce(mine, sum, rt_at(peer->in, first, p->type), count, p->type, p->op);
        sum = mine;
    }
    rt_average_end(mine, count, p->type, p->op, p->size);
    for (int i = 1; i < p->size; i++)
        rt_copy(rt_at_mutable(p->reach[(p->rank + i) % p->size].out, first, p->type), mine, count,
                p->type);
}

static void reduce_part(const struct part *p, uint64_t count)
{
    const uint64_t step = STEP_BYTES / rt_type_bytes(p->type);
    const uint64_t end = rt_part_first(count, p->size, p->rank + 1);
    for (uint64_t at = rt_part_first(count, p->size, p->rank); at < end; at += step)
        reduce_step(p, at, rt_min_u64(step, end - at));
}

int rt_allreduce_direct(struct rt_transport *t, const void *in, void *out, uint64_t count,
                        enum rt_type type, enum rt_op op)
{
    if (t->size == 1) {
        rt_copy(out, in, count, type);
        return 0;
    }
    rt_allreduce_fn *other = rt_allreduce_choice(t->size, count * rt_type_bytes(type));
    if (!t->ops->meet || t->size > RT_DIRECT_RANKS_MAX || count == 0)
        return other(t, in, out, count, type, op);

    struct rt_reach reach[RT_DIRECT_RANKS_MAX];
    in = rt_average_begin(out, in, count, type, op, t->size);
    int met = t->ops->meet(t, in, out, count * rt_type_bytes(type), reach);
    if (met > 0) {
        reduce_part(&(struct part){reach, t->rank, t->size, type, op}, count);
        return t->ops->part(t);
    }
    if (!met) {
        met = other(t, in, out, count, type, rt_partial_op(type, op));
        rt_average_end(out, count, type, op, t->size);
    }
    return met;
}
