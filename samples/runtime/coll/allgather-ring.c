/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allgather round a ring: in each step a rank passes on the part that it got in the step before.
 *
 * Cost: (n-1) a + (n-1)/n S b. Parts longer than a block go round block by block.
 */
#include "rt-step.h"

static uint64_t count_in_block(uint64_t count, int n, int i, uint64_t offset, uint64_t block)
{
    uint64_t part = rt_part_count(count, n, i);
    return offset >= part ? 0 : rt_min_u64(block, part - offset);
}

static int allgather_block(struct rt_transport *t, void *out, uint64_t count, uint64_t offset,
                           uint64_t block, enum rt_type type)
{
    const int n = t->size, to = (t->rank + 1) % n, from = (t->rank + n - 1) % n;
    for (int s = 0; s < n - 1; s++) {
        int give = (t->rank - s + n) % n, take = (t->rank - s - 1 + n) % n;
        int error = rt_exchange(t, to, rt_at(out, rt_part_first(count, n, give) + offset, type),
                                count_in_block(count, n, give, offset, block), from,
                                rt_at_mutable(out, rt_part_first(count, n, take) + offset, type),
                                count_in_block(count, n, take, offset, block), type);
        if (error)
            return error;
    }
    return 0;
}

int rt_allgather_ring(struct rt_transport *t, const void *in, void *out, uint64_t count,
                      enum rt_type type)
{
    const int n = t->size;
    rt_copy(rt_at_mutable(out, rt_part_first(count, n, t->rank), type), in,
            rt_part_count(count, n, t->rank), type);
    const uint64_t longest = rt_part_count(count, n, 0), block = rt_block_count(t, type);
    for (uint64_t offset = 0; offset < longest; offset += block) {
        int error = allgather_block(t, out, count, offset, block, type);
        if (error)
            return error;
    }
    return 0;
}
