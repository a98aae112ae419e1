/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcast along a chain from the root: a rank passes one segment on while it receives the next.
 *
 * Cost, in segments of s bytes: (n - 2 + S/s) (a + s b). For long buffers, whatever n.
 */
#include "rt-step.h"

#define SEGMENT_BYTES (256u << 10)

int rt_broadcast_chain(struct rt_transport *t, void *data, uint64_t count, enum rt_type type,
                       int root)
{
    const int n = t->size, number = (t->rank - root + n) % n;
    const int from = number == 0 ? -1 : (t->rank + n - 1) % n;
    const int to = number == n - 1 ? -1 : (t->rank + 1) % n;
    const uint64_t segment = rt_min_u64(t->block_bytes, SEGMENT_BYTES) / rt_type_bytes(type);

    /* Step i: segment i comes in, segment i - 1 goes out; the root has them all. */
    uint64_t out_first = 0, out_count = 0;
    for (uint64_t first = 0; first < count; first += segment) {
        uint64_t now = rt_min_u64(segment, count - first);
        int error = rt_exchange(t, to, rt_at(data, out_first, type), out_count, from,
                                rt_at_mutable(data, first, type), now, type);
        if (error)
            return error;
        out_first = first;
        out_count = now;
    }
    return rt_exchange(t, to, rt_at(data, out_first, type), out_count, -1, NULL, 0, type);
}
