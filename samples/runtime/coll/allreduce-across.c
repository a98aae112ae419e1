/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce between hosts: each rank has a part of its host's sum, and reduces it with those ranks
 * of the other hosts that have the same elements. Where hosts have different numbers of ranks their
 * parts don't match: then a rank works with one group of partners after the other, each for the
 * elements that all of a group have.
 *
 * Cost: with h hosts, of which the smallest has k ranks, that of allreduces of S/k in all over h
 * ranks. Hosts alike: of one. Else a rank has as many as others begin parts within its own, at most
 * n - h + 1. Whatever the layout, a host sends what an allreduce of S over h ranks sends.
 *
 * Bits: every element is reduced over the hosts in their order as the algorithm between them does
 * it.
 */
#include <errno.h>
#include <stdlib.h>

#include "rt-step.h"
#include "rt-view.h"

/* Which ranks have the element at `at`, one a host, and where the first of their parts ends. */
static uint64_t find_group(const struct rt_layout *l, enum rt_cut cut, uint64_t count, uint64_t at,
                           int *ret_ranks)
{
    uint64_t end = count;
    for (int h = 0; h < l->host_count; h++) {
        int local = 0;
        while (rt_layout_cut(l, cut, count, h, local + 1) <= at)
            local++;
        end = rt_min_u64(end, rt_layout_cut(l, cut, count, h, local + 1));
        ret_ranks[h] = l->ranks[l->first[h] + local];
    }
    return end;
}

int rt_allreduce_across(struct rt_transport *all, const struct rt_layout *layout, enum rt_cut cut,
                        rt_allreduce_fn *fn, void *data, uint64_t count, enum rt_type type,
                        enum rt_op op)
{
    const int host = layout->host[all->rank], local = layout->local[all->rank];
    const uint64_t end = rt_layout_cut(layout, cut, count, host, local + 1);
    int *group = calloc((size_t)layout->host_count, sizeof *group);
    int error = group ? 0 : -ENOMEM;

    /* All ranks take the pieces in the same order, so that none waits for one that waits for it. */
    uint64_t at = rt_layout_cut(layout, cut, count, host, local), next;
    for (; at < end && !error; at = next) {
        struct rt_view v;
        next = find_group(layout, cut, count, at, group);
        rt_view_begin(&v, all, group, layout->host_count, host);
        void *piece = rt_at_mutable(data, at, type);
        error = fn(&v.base, piece, piece, next - at, type, op);
        rt_view_end(&v);
    }
    free(group);
    return error;
}
