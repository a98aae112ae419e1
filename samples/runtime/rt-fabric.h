/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-fabric.h - what connects the ranks of a job: who is there, the messages of the coordinator,
 * and transports between any of the ranks.
 *
 * Model: a fabric knows its rank and size from the start on. Messages go between any two ranks, in
 * order, of any length. A group is a transport (rt-coll.h) over some ranks, who make it together.
 *
 * Which one: RT_FABRIC=mpi or tcp; unset, TCP where RT_RANK is set (rt-rendezvous.h has its
 * settings) or the program has no MPI, else MPI. A program has MPI where it is linked with
 * rt_openmpi_dep or rt_mpich_dep.
 *
 * Threads: the background thread alone, from rt_fabric_new on. Errors: negative errno, -ECONNRESET
 * a rank is gone.
 */
#ifndef RT_FABRIC_H
#define RT_FABRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "rt-coll.h"
#include "rt-message.h"

struct rt_fabric;
union rt_net_place;

struct rt_fabric_ops {
    /* Every rank's `bytes` bytes, by rank, in `ret`: all ranks call it together. */
    int (*allgather)(struct rt_fabric *f, const void *mine, void *ret, size_t bytes);
    /* Connects ranks[0], ranks[1], ..., this one among them: each is known in the transport by its
     * place. All give the same list and the same tag, which no other group of this rank has. NULL
     * with errno set. */
    struct rt_transport *(*group_new)(struct rt_fabric *f, const int *ranks, int n, int tag);
    void (*group_free)(struct rt_transport *t); /* NULL-safe */
    /* The bytes are copied. */
    int (*send)(struct rt_fabric *f, int to, const struct rt_bytes *message);
    /* Waits until what was sent is on its way without this rank's help. */
    int (*flush)(struct rt_fabric *f);
    /* Does something that was sent go out only while this rank calls `receive` or `flush`? */
    bool (*is_sending)(const struct rt_fabric *f);
    /* 1 and a message (the caller frees its data), 0 none has come. */
    int (*receive)(struct rt_fabric *f, int *ret_from, struct rt_bytes *ret);
    /* From now on a lifeline watches over the ranks: until then waits have a deadline, where this
     * isn't NULL. */
    void (*started)(struct rt_fabric *f);
    /* After a failure, while nobody watches over the ranks yet: says who has ended, or is silent.
     * 1, or 0 nobody. NULL where the launcher ends all, then. */
    int (*find_gone)(struct rt_fabric *f, char *ret, size_t bytes);
    /* Ends it, with what it began; all ranks together, in step. */
    void (*free)(struct rt_fabric *f);
};

/* First member of every fabric. */
struct rt_fabric {
    const struct rt_fabric_ops *ops;
    const char *word; /* of its activities: "MPI" */
    int rank, size;
    const union rt_net_place *root; /* rank 0 as this rank reaches it; NULL: not known */
};

/* NULL: *ret_error, and the message. */
struct rt_fabric *rt_fabric_new(int *ret_error, char *message, size_t message_bytes);

/* One file each. */
typedef struct rt_fabric *rt_fabric_open_fn(int *ret_error, char *message, size_t message_bytes);
rt_fabric_open_fn rt_fabric_mpi_open, rt_fabric_tcp_open;

#endif
