/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce by a binomial tree: reduce to rank 0, then broadcast from it.
 *
 * Cost: 2 ceil(log2 n) (a + S b) + ceil(log2 n) S g, blocks overlapping on different levels. Each
 * rank talks to few others, and the result is computed in one place only.
 *
 * Bits: an element's order is a tree over the ranks alone, whatever the count, its place and the
 * transport; for a power of two of ranks the one of recursive doubling.
 */
#include "rt-cost.h"
#include "rt-step.h"

double rt_cost_tree(const struct rt_cost *c, int n, double bytes)
{
    const int levels = rt_ceil_log2(n);
    return 2 * levels * (c->a + bytes * c->b) + levels * bytes * c->g;
}

int rt_allreduce_tree(struct rt_transport *t, const void *in, void *out, uint64_t count,
                      enum rt_type type, enum rt_op op)
{
    const uint64_t block = rt_block_count(t, type);
    for (uint64_t first = 0; first < count; first += block) {
        uint64_t now = rt_min_u64(block, count - first);
        void *target = rt_at_mutable(out, first, type);
        int error = rt_reduce_binomial(t, rt_at(in, first, type), target, now, type, op, 0);
        if (!error)
            error = rt_broadcast_binomial(t, target, now, type, 0);
        if (error)
            return error;
    }
    return 0;
}
