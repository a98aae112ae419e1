/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-two-hosts.h - the hierarchical allreduce's way between two hosts, piece by piece, whatever it
 * is that ranks of a host work together by.
 *
 * Threads and errors: rt-coll.h's.
 */
#ifndef RT_TWO_HOSTS_H
#define RT_TWO_HOSTS_H

#include <stdbool.h>

#include "rt-coll.h"

/* How the ranks of a host, by their number there, work on a piece of `count` elements, which they
 * cut by rt_part_first: a multiple of their number, but for the last piece where that of the whole
 * isn't one. 0 or a negative errno. */
struct rt_inside_way {
    /* `part`: this rank's place in `out`, where `in` may be, too. */
    int (*reduce_scatter)(void *data, const void *in, void *part, uint64_t count, enum rt_type type,
                          enum rt_op op);
    int (*allgather)(void *data, const void *part, void *out, uint64_t count, enum rt_type type);
    void *data;
};

/* Of a rank, in the first piece and the last. Shorter than two such pieces nothing is cut. */
#define RT_TWO_HOSTS_SHORT_BYTES ((uint64_t)60 << 10)

/* Two hosts, alike, and enough to cut into pieces? */
bool rt_two_hosts_fits(const struct rt_transport *all, const struct rt_layout *layout,
                       uint64_t bytes);
/* Where it fits. in may equal out. */
int rt_allreduce_two_hosts(struct rt_transport *all, const struct rt_layout *layout,
                           const struct rt_inside_way *inside, const void *in, void *out,
                           uint64_t count, enum rt_type type, enum rt_op op);

#endif
