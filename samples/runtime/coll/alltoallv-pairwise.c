/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchange of parts of any lengths between all pairs: in step s a rank sends to the one s after it,
 * and receives from the one s before it.
 *
 * Cost: (n-1) a + S b where parts are alike; else each step takes as long as its longest part. Data
 * moves once, straight to where it belongs. Parts longer than a block go block by block.
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

static int exchange_step(struct rt_transport *t, int to, const char *send, uint64_t send_count,
                         int from, char *recv, uint64_t recv_count, enum rt_type type)
{
    const uint64_t block = rt_block_count(t, type);
    for (uint64_t offset = 0; offset < send_count || offset < recv_count; offset += block) {
        uint64_t give = count_in_block(send_count, offset, block);
        uint64_t take = count_in_block(recv_count, offset, block);
        int error = rt_exchange(t, to, give ? rt_at(send, offset, type) : NULL, give, from,
                                take ? rt_at_mutable(recv, offset, type) : NULL, take, type);
        if (error)
            return error;
    }
    return 0;
}

int rt_alltoallv_pairwise(struct rt_transport *t, const void *in, const uint64_t *send_counts,
                          void *out, const uint64_t *recv_counts, enum rt_type type)
{
    const int n = t->size;
    rt_copy(rt_at_mutable(out, sum_before(recv_counts, t->rank), type),
            rt_at(in, sum_before(send_counts, t->rank), type), send_counts[t->rank], type);
    for (int s = 1; s < n; s++) {
        int to = (t->rank + s) % n, from = (t->rank + n - s) % n;
        int error = exchange_step(
            t, to, rt_at(in, sum_before(send_counts, to), type), send_counts[to], from,
            rt_at_mutable(out, sum_before(recv_counts, from), type), recv_counts[from], type);
        if (error)
            return error;
    }
    return 0;
}
