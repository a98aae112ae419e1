/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce over hosts: reduce-scatter inside a host, allreduce of each part between hosts,
 * allgather inside. Every rank of a host works on the network at once, each with its own part.
 *
 * Cost: with m ranks a host, h hosts, that of a reduce-scatter and an allgather of S over m ranks
 * plus that of an allreduce of S/m over h: between hosts 2 (h-1)/h S/m b a rank.
 */
#include "rt-step.h"

int rt_allreduce_hierarchical(struct rt_transport *inside, struct rt_transport *across,
                              const void *in, void *out, uint64_t count, enum rt_type type,
                              enum rt_op op)
{
    const int size = inside->size * across->size;
    /* an average is one over all ranks: the parts only add */
    const enum rt_op partial = rt_partial_op(type, op);
    const uint64_t first = rt_part_first(count, inside->size, inside->rank);
    const uint64_t mine = rt_part_count(count, inside->size, inside->rank);
    void *part = rt_at_mutable(out, first, type);

    in = rt_average_begin(out, in, count, type, op, size);
    int error = rt_reduce_scatter_ring(inside, in, part, count, type, partial);
    if (!error)
        error = rt_allreduce(across, part, part, mine, type, partial);
    if (error)
        return error;
    rt_average_end(part, mine, type, op, size);
    return rt_allgather_ring(inside, part, out, count, type);
}
