/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-layout.h - which ranks share a host: any number on each, laid on them in any way.
 *
 * Hosts are numbered by their lowest rank; ranks of a host by their order. Memory: one block, the
 * layout's own.
 */
#ifndef RT_LAYOUT_H
#define RT_LAYOUT_H

#include <stdint.h>

struct rt_layout {
    int size, host_count;
    int *host;  /* of each rank */
    int *local; /* each rank's number on its host */
    int *first; /* of each host: where its ranks begin in `ranks`; one more, the end */
    int *ranks; /* host by host */
};

/* `name` has a number for each rank, the same for those of one host. -ENOMEM, -EINVAL: no rank. */
int rt_layout_init(struct rt_layout *ret, const int *name, int size);
void rt_layout_release(struct rt_layout *l);

static inline int rt_layout_local_size(const struct rt_layout *l, int host)
{
    return l->first[host + 1] - l->first[host];
}
/* Ranks of the hosts with most and with fewest. */
int rt_layout_most(const struct rt_layout *l);
int rt_layout_fewest(const struct rt_layout *l);

/* How the ranks of a host cut a buffer: by rt_part_first, or in parts of one length, which end with
 * the buffer (the last are shorter, or none). */
enum rt_cut { RT_CUT_FAIR, RT_CUT_EQUAL };

/* First element of the part of rank number `local` of `host`; that number may be the number of its
 * ranks: then `count`. */
uint64_t rt_layout_cut(const struct rt_layout *l, enum rt_cut cut, uint64_t count, int host,
                       int local);

#endif
