/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce over hosts: reduce-scatter inside a host, allreduce of each part between hosts,
 * allgather inside. Every rank of a host works on the network at once, each with its own part.
 *
 * Cost: with m ranks a host, h hosts: 2 (m-1) a + 2 (m-1)/m S b + (m-1)/m S g inside, and that of
 * an allreduce of S/m over h between hosts: a ring sends 2 (h-1)/h S from each host, and less than
 * that can't be. Hosts with different numbers of ranks: allreduce-across.c.
 *
 * Bits: depend on the layout, the count, and as the algorithm between hosts says.
 */
#include "rt-cost.h"
#include "rt-step.h"
#include "rt-two-hosts.h"
#include "rt-view.h"

/* The m ranks of a host share its link: each has an m-th of it. */
double rt_cost_hierarchical(const struct rt_cost *inside, const struct rt_cost *across,
                            rt_cost_fn *fn, int hosts, int per_host, double bytes)
{
    struct rt_cost shared = *across;
    shared.b *= per_host;
    const double share = (per_host - 1) / (double)per_host * bytes;
    return 2 * (per_host - 1) * inside->a + 2 * share * inside->b + share * inside->g +
           (hosts > 1 ? fn(&shared, hosts, bytes / per_host) : 0);
}

/* The ranks of this host: a transport of theirs, or a view of the one of all, whose scratch the
 * next level needs: it is closed in between. */
static struct rt_transport *open_inside(const struct rt_hosts *hosts, struct rt_view *view)
{
    const struct rt_layout *l = hosts->layout;
    const int rank = hosts->all->rank, host = l->host[rank];
    if (hosts->inside)
        return hosts->inside;
    rt_view_begin(view, hosts->all, l->ranks + l->first[host], rt_layout_local_size(l, host),
                  l->local[rank]);
    return &view->base;
}

static void close_inside(const struct rt_hosts *hosts, struct rt_view *view)
{
    if (!hosts->inside)
        rt_view_end(view);
}

static int reduce_scatter_inside(void *data, const void *in, void *part, uint64_t count,
                                 enum rt_type type, enum rt_op op)
{
    struct rt_view view;
    int error = rt_reduce_scatter_ring(open_inside(data, &view), in, part, count, type, op);
    close_inside(data, &view);
    return error;
}

static int allgather_inside(void *data, const void *part, void *out, uint64_t count,
                            enum rt_type type)
{
    struct rt_view view;
    int error = rt_allgather_ring(open_inside(data, &view), part, out, count, type);
    close_inside(data, &view);
    return error;
}

int rt_allreduce_hierarchical(const struct rt_hosts *hosts, rt_allreduce_fn *across, const void *in,
                              void *out, uint64_t count, enum rt_type type, enum rt_op op)
{
    const int size = hosts->all->size;
    /* an average is one over all ranks: the parts only add */
    const enum rt_op partial = rt_partial_op(type, op);
    struct rt_hosts data = *hosts;
    const struct rt_inside_way inside = {reduce_scatter_inside, allgather_inside, &data};
    if (across == rt_allreduce &&
        rt_two_hosts_fits(hosts->all, hosts->layout, count * rt_type_bytes(type)))
        return rt_allreduce_two_hosts(hosts->all, hosts->layout, &inside, in, out, count, type, op);

    /* 1. This rank's part, of the ranks of its host. */
    const struct rt_layout *l = hosts->layout;
    const int host = l->host[hosts->all->rank], local = l->local[hosts->all->rank];
    const int m = rt_layout_local_size(l, host);
    void *part = rt_at_mutable(out, rt_part_first(count, m, local), type);
    in = rt_average_begin(out, in, count, type, op, size);
    int error = reduce_scatter_inside(&data, in, part, count, type, partial);

    /* 2. Of all ranks. */
    if (!error)
        error = rt_allreduce_across(hosts->all, hosts->layout, RT_CUT_FAIR, across, out, count,
                                    type, partial);
    if (error)
        return error;
    rt_average_end(part, rt_part_count(count, m, local), type, op, size);

    /* 3. The others' parts. */
    return allgather_inside(&data, part, out, count, type);
}
