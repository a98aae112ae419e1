/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-execute.h - carries out one order on the data of this rank.
 *
 * All ranks call it with the same orders in the same sequence. Tensors that go as one are copied
 * into the fusion buffer, each from a multiple of RT_FUSION_UNIT on; one alone goes without a copy
 * where its length allows. Threads: the background thread alone.
 */
#ifndef RT_EXECUTE_H
#define RT_EXECUTE_H

#include "rt-choice.h"
#include "rt-config.h"
#include "rt-groups.h"
#include "rt-table.h"
#include "rt-wire.h"

struct rt_executor {
    struct rt_groups *groups;
    struct rt_choice choice; /* of allreduces, by size; the same on all ranks */
    bool hierarchical;       /* there is NCCL inside hosts, for types it has */
    bool refused;            /* why it failed rank 0 has told all */
    char *buffer;            /* for fusion; grows */
    uint64_t buffer_bytes;
};

/* All ranks together; their choice is rank 0's. */
int rt_executor_init(struct rt_executor *e, struct rt_groups *g, const struct rt_config *config,
                     char *message, size_t message_bytes);
void rt_executor_release(struct rt_executor *e);

/* The `n` operations of one order. 0 or a negative errno: then the runtime can only end. */
int rt_execute(struct rt_executor *e, struct rt_operation **operations, unsigned n);

/* ---- for the files that carry out one kind ---- */

/* The operations of one order. */
struct rt_batch {
    struct rt_executor *e;
    struct rt_operation **operations;
    unsigned n;
    const struct rt_tensor *like; /* type, operation and scales of all */
    struct rt_wire wire;          /* what moves */
};

/* What all of them now do, as a profiler shows it; NULL: nothing. */
void rt_batch_activity(const struct rt_batch *b, const char *name);

/* The same of `what` goes on between hosts: "ALLREDUCE" becomes MPI_ALLREDUCE. */
void rt_batch_activity_between(const struct rt_batch *b, const char *what);

/* By what anything but an allreduce goes: NCCL where all ranks are on one host and it has the type.
 */
enum rt_path { RT_PATH_FABRIC, RT_PATH_NCCL };
enum rt_path rt_batch_path(const struct rt_batch *b);

/* At least so many bytes in e->buffer: a multiple of RT_FUSION_UNIT; what it held is lost. */
int rt_executor_grow_buffer(struct rt_executor *e, uint64_t bytes);

#endif
