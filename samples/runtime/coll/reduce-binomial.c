/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduce to a root by a binomial tree: in step k, of the ranks still in, those with bit k set give
 * what they have to the rank without it and are done.
 *
 * Cost: ceil(log2 n) (a + S b + S g).
 *
 * Bits: an element's order is a tree over the ranks from the root on, whatever the count, its place
 * and the transport.
 */
#include <errno.h>

#include "rt-step.h"

/* `sum` takes what this rank gives on, where that isn't `in`. */
static int reduce_block(struct rt_transport *t, const void *in, void *sum, uint64_t count,
                        enum rt_type type, enum rt_op op, int root)
{
    const int n = t->size, number = (t->rank - root + n) % n;
    const void *have = rt_average_begin(sum, in, count, type, op, n);
    for (int bit = 1; bit < n; bit *= 2) {
        if (number & bit)
            return rt_exchange(t, (number - bit + root) % n, have, count, -1, NULL, 0, type);
        if (number + bit >= n)
            continue;
        int error = rt_exchange_reduce(t, -1, NULL, 0, (number + bit + root) % n, sum, have, count,
                                       type, op);
        if (error)
            return error;
        have = sum;
    }
    rt_copy(sum, have, count, type); /* the root, alone */
    rt_average_end(sum, count, type, op, n);
    return 0;
}

int rt_reduce_binomial(struct rt_transport *t, const void *in, void *out, uint64_t count,
                       enum rt_type type, enum rt_op op, int root)
{
    const uint64_t block = rt_block_count(t, type);
    void *partial = NULL;
    if (t->rank != root) {
        partial = rt_scratch(t, RT_SCRATCH_A, rt_min_u64(block, count) * rt_type_bytes(type));
        if (!partial && count > 0)
            return -ENOMEM;
    }
    for (uint64_t first = 0; first < count; first += block) {
        void *sum = t->rank == root ? rt_at_mutable(out, first, type) : partial;
        int error = reduce_block(t, rt_at(in, first, type), sum, rt_min_u64(block, count - first),
                                 type, op, root);
        if (error)
            return error;
    }
    return 0;
}
