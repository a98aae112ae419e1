/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduce-scatter round a ring: a part's sum starts one after its owner, passes all ranks, which add
 * theirs, and ends at its owner.
 *
 * Cost: (n-1) a + (n-1)/n S (b + g). The input is only read: sums on their way lie in scratch.
 * Parts longer than a block go round block by block.
 *
 * Bits: an element's order of ranks begins after its part's owner, so they depend on the count and
 * the element's place.
 */
#include <errno.h>

#include "rt-step.h"

/* Elements of part `i` that lie in the block that starts `offset` into every part. */
static uint64_t count_in_block(uint64_t count, int n, int i, uint64_t offset, uint64_t block)
{
    uint64_t part = rt_part_count(count, n, i);
    return offset >= part ? 0 : rt_min_u64(block, part - offset);
}

static int reduce_scatter_block(struct rt_transport *t, const void *in, void *out, uint64_t count,
                                uint64_t offset, uint64_t block, void *const partial[2],
                                enum rt_type type, enum rt_op op)
{
    const int n = t->size, to = (t->rank + 1) % n, from = (t->rank + n - 1) % n;
    int give = from;
    uint64_t given = count_in_block(count, n, give, offset, block);
    const void *sum = rt_average_begin(
        partial[1], rt_at(in, rt_part_first(count, n, give) + offset, type), given, type, op, n);
    for (int s = 0; s < n - 1; s++) {
        int take = (give + n - 1) % n;
        void *target = take == t->rank ? rt_at_mutable(out, offset, type) : partial[s % 2];
        uint64_t taken = count_in_block(count, n, take, offset, block);
        const void *mine = rt_average_begin(
            target, rt_at(in, rt_part_first(count, n, take) + offset, type), taken, type, op, n);
        int error = rt_exchange_reduce(t, to, sum, given, from, target, mine, taken, type, op);
        if (error)
            return error;
        sum = target;
        give = take;
        given = taken;
    }
    return 0;
}

int rt_reduce_scatter_ring(struct rt_transport *t, const void *in, void *out, uint64_t count,
                           enum rt_type type, enum rt_op op)
{
    if (t->size == 1) {
        rt_copy(out, in, count, type);
        return 0;
    }
    const uint64_t longest = rt_part_count(count, t->size, 0);
    const uint64_t block = rt_min_u64(rt_block_count(t, type), longest);
    void *partial[2] = {rt_scratch(t, RT_SCRATCH_A, block * rt_type_bytes(type)),
                        rt_scratch(t, RT_SCRATCH_B, block * rt_type_bytes(type))};
    if (count > 0 && (!partial[0] || !partial[1]))
        return -ENOMEM;
    for (uint64_t offset = 0; offset < longest; offset += block) {
        int error = reduce_scatter_block(t, in, out, count, offset, block, partial, type, op);
        if (error)
            return error;
    }
    rt_average_end(out, rt_part_count(count, t->size, t->rank), type, op, t->size);
    return 0;
}
