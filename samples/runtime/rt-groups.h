/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-groups.h - the transports that the data of some ranks moves in: between all of them, and
 * inside each host.
 *
 * Ranks are numbered by their place among those given. Threads: the background thread alone.
 * Errors: negative errno and a message.
 */
#ifndef RT_GROUPS_H
#define RT_GROUPS_H

#include <stdbool.h>
#include <stddef.h>

#include "rt-coll.h"
#include "rt-fabric.h"
#include "rt-inside.h"
#include "rt-topology.h"

struct rt_groups {
    struct rt_topology topology;
    struct rt_layout layout;
    int *ranks;               /* of the job, by place; owned */
    int device;               /* for NCCL: this rank's number among all ranks of its host */
    struct rt_fabric *fabric; /* borrowed */
    struct rt_transport *all; /* every rank */
    struct rt_inside *inside; /* ranks of this host; NULL: alone on it, or not hierarchical */
};

/* Tags that one rt_groups takes, from `tag` on. */
#define RT_GROUPS_TAGS 2

/* The names of all ranks' hosts: RT_HOST, else the host's own. Collective. Free *ret. */
int rt_groups_hosts(struct rt_fabric *f, char (**ret)[RT_HOST_MAX]);

/* Of the job's ranks ranks[0] < ranks[1] < ..., this one among them, which call it together;
 * hosts[r] is that of rank r of the job. */
int rt_groups_init(struct rt_groups *g, struct rt_fabric *f, const int *ranks, int n,
                   const char (*hosts)[RT_HOST_MAX], int tag, bool hierarchical, char *message,
                   size_t message_bytes);
/* The place of that rank of the job, which is among them. */
int rt_groups_place(const struct rt_groups *g, int rank);
void rt_groups_release(struct rt_groups *g);

#endif
