/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcast by a binomial tree: whoever has the data gives it to one more rank in each step.
 *
 * Cost: ceil(log2 n) (a + S b). For short buffers.
 */
#include "rt-step.h"

static int broadcast_block(struct rt_transport *t, void *data, uint64_t count, enum rt_type type,
                           int root)
{
    const int n = t->size, number = (t->rank - root + n) % n;
    int bit = 1;
    while (bit < n && !(number & bit))
        bit *= 2;
    if (number != 0) {
        int error = rt_exchange(t, -1, NULL, 0, (number - bit + root) % n, data, count, type);
        if (error)
            return error;
    }
    /* the farthest first: it has the most ranks behind it */
    for (bit /= 2; bit > 0; bit /= 2) {
        if (number + bit >= n)
            continue;
        int error = rt_exchange(t, (number + bit + root) % n, data, count, -1, NULL, 0, type);
        if (error)
            return error;
    }
    return 0;
}

int rt_broadcast_binomial(struct rt_transport *t, void *data, uint64_t count, enum rt_type type,
                          int root)
{
    const uint64_t block = rt_block_count(t, type);
    for (uint64_t first = 0; first < count; first += block) {
        int error = broadcast_block(t, rt_at_mutable(data, first, type),
                                    rt_min_u64(block, count - first), type, root);
        if (error)
            return error;
    }
    return 0;
}
