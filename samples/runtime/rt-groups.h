/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-groups.h - MPI's life, and the groups of ranks that data moves in.
 *
 * Threads: the background thread alone. Errors: negative errno and a message.
 */
#ifndef RT_GROUPS_H
#define RT_GROUPS_H

#include <stdbool.h>
#include <stddef.h>

#include "rt-coll.h"
#include "rt-control.h"
#include "rt-inside.h"
#include "rt-topology.h"

struct rt_groups {
    struct rt_topology topology;
    struct rt_control *control;
    struct rt_transport *all;    /* every rank */
    struct rt_transport *across; /* ranks of this local rank, one a host; where hosts have unequal
                                    numbers of ranks: the local ranks 0, NULL on the others */
    struct rt_inside *inside;    /* ranks of this host; NULL: alone on it, or not hierarchical */
    bool owns_mpi;
    void *comms; /* what rt-groups.c keeps */
};

int rt_groups_init(struct rt_groups *g, bool hierarchical, char *message, size_t message_bytes);
/* Ends MPI where rt_groups_init has begun it. All ranks together. */
void rt_groups_release(struct rt_groups *g);

#endif
