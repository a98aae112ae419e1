/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allgather of parts of any lengths, round a ring: in each step a rank passes on the part that it
 * got in the step before.
 *
 * Cost: (n-1) (a + P b), P the bytes of the longest part: every step waits for it somewhere on the
 * ring. Parts longer than a block go round block by block.
 */
#include "rt-step.h"

static uint64_t count_in_block(uint64_t part, uint64_t offset, uint64_t block)
{
    return offset >= part ? 0 : rt_min_u64(block, part - offset);
}

static uint64_t sum_before(const uint64_t *counts, int end)
{
    uint64_t sum = 0;
    for (int r = 0; r < end; r++)
        sum += counts[r];
    return sum;
}

static int allgatherv_block(struct rt_transport *t, void *out, const uint64_t *counts,
                            uint64_t offset, uint64_t block, enum rt_type type)
{
    const int n = t->size, to = (t->rank + 1) % n, from = (t->rank + n - 1) % n;
    int give = t->rank;
    uint64_t give_first = sum_before(counts, give);
    for (int s = 0; s < n - 1; s++) {
        int take = (give + n - 1) % n;
        uint64_t take_first = give > 0 ? give_first - counts[take] : sum_before(counts, take);
        int error = rt_exchange(t, to, rt_at(out, give_first + offset, type),
                                count_in_block(counts[give], offset, block), from,
                                rt_at_mutable(out, take_first + offset, type),
                                count_in_block(counts[take], offset, block), type);
        if (error)
            return error;
        give = take;
        give_first = take_first;
    }
    return 0;
}

int rt_allgatherv_ring(struct rt_transport *t, const void *in, void *out, const uint64_t *counts,
                       enum rt_type type)
{
    const uint64_t block = rt_block_count(t, type);
    uint64_t longest = 0;
    for (int r = 0; r < t->size; r++)
        longest = counts[r] > longest ? counts[r] : longest;
    rt_copy(rt_at_mutable(out, sum_before(counts, t->rank), type), in, counts[t->rank], type);
    for (uint64_t offset = 0; offset < longest; offset += block) {
        int error = allgatherv_block(t, out, counts, offset, block, type);
        if (error)
            return error;
    }
    return 0;
}
