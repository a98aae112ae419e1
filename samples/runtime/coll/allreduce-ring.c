/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce by a ring: reduce-scatter round the ring, then allgather round it.
 *
 * Cost: 2 (n-1) a + 2 (n-1)/n S b + (n-1)/n S g. Moves the least data there is to move: for long
 * buffers. Buffers longer than n blocks go through in rounds, so that what a rank has just received
 * is still in its cache when it sends it on.
 *
 * Bits: an element's order of ranks begins at its part's owner, so they depend on the count, the
 * element's place and the transport's block.
 */
#include "rt-cost.h"
#include "rt-step.h"

double rt_cost_ring(const struct rt_cost *c, int n, double bytes)
{
    const double share = (n - 1) / (double)n * bytes;
    return 2 * (n - 1) * c->a + 2 * share * c->b + share * c->g;
}

static int ring_round(struct rt_transport *t, const char *in, char *out, uint64_t count,
                      enum rt_type type, enum rt_op op)
{
    const int n = t->size, to = (t->rank + 1) % n, from = (t->rank + n - 1) % n;

    /* 1. After step s this rank has the sum of s + 2 ranks for part rank - s - 1. */
    for (int s = 0; s < n - 1; s++) {
        int give = (t->rank - s + n) % n, take = (t->rank - s - 1 + n) % n;
        uint64_t give_first = rt_part_first(count, n, give);
        uint64_t take_first = rt_part_first(count, n, take);
        int error = rt_exchange_reduce(
            t, to, rt_at(s == 0 ? in : out, give_first, type), rt_part_count(count, n, give), from,
            rt_at_mutable(out, take_first, type), rt_at(in, take_first, type),
            rt_part_count(count, n, take), type, op);
        if (error)
            return error;
    }

    /* 2. This rank's whole part. */
    rt_average_end(rt_at_mutable(out, rt_part_first(count, n, to), type),
                   rt_part_count(count, n, to), type, op, n);

    /* 3. Whole parts go round. */
    for (int s = 0; s < n - 1; s++) {
        int give = (t->rank + 1 - s + n) % n, take = (t->rank - s + n) % n;
        int error = rt_exchange(t, to, rt_at(out, rt_part_first(count, n, give), type),
                                rt_part_count(count, n, give), from,
                                rt_at_mutable(out, rt_part_first(count, n, take), type),
                                rt_part_count(count, n, take), type);
        if (error)
            return error;
    }
    return 0;
}

int rt_allreduce_ring(struct rt_transport *t, const void *in, void *out, uint64_t count,
                      enum rt_type type, enum rt_op op)
{
    if (t->size == 1) {
        rt_copy(out, in, count, type);
        return 0;
    }
    const uint64_t round = rt_block_count(t, type) * (uint64_t)t->size;
    for (uint64_t first = 0; first < count; first += round) {
        uint64_t now = rt_min_u64(round, count - first);
        void *target = rt_at_mutable(out, first, type);
        const void *source =
            rt_average_begin(target, rt_at(in, first, type), now, type, op, t->size);
        int error = ring_round(t, source, target, now, type, op);
        if (error)
            return error;
    }
    return 0;
}
