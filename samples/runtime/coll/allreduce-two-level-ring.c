/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce over hosts by two levels of rings: round the host's ring, each part round a ring of its
 * owners on all hosts, round the host's ring again. Long buffers go through in rounds, so that a
 * part is still in the cache when it goes on to the next level.
 *
 * Cost: with m ranks a host, h hosts: 2 (m-1) a + 2 (m-1)/m S b + (m-1)/m S g inside, and
 * 2 (h-1) a + (2 (h-1)/h b + (h-1)/h g) S/m between hosts, where each host sends 2 (h-1)/h S in
 * place of one ring's 2 (n-1)/n S, in m + h steps for m h: for long buffers on several hosts.
 *
 * Bits: depend on the layout, the count and the transport's block.
 */
#include "rt-step.h"

int rt_allreduce_two_level_ring(const struct rt_hosts *hosts, const void *in, void *out,
                                uint64_t count, enum rt_type type, enum rt_op op)
{
    const uint64_t round = rt_block_count(hosts->all, type) * (uint64_t)hosts->all->size;
    for (uint64_t first = 0; first < count; first += round) {
        int error = rt_allreduce_hierarchical(hosts, rt_allreduce_ring, rt_at(in, first, type),
                                              rt_at_mutable(out, first, type),
                                              rt_min_u64(round, count - first), type, op);
        if (error)
            return error;
    }
    return 0;
}
