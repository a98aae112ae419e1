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

#include "rt-groups.h"
#include "rt-table.h"

struct rt_executor {
    struct rt_groups *groups;
    rt_allreduce_fn *allreduce; /* by MPI */
    bool hierarchical;          /* NCCL inside hosts, for types it has; else MPI over all */
    char *buffer;               /* for fusion; grows */
    uint64_t buffer_bytes;
};

void rt_executor_release(struct rt_executor *e);

/* The `n` operations of one order. 0 or a negative errno: then the runtime can only end. */
int rt_execute(struct rt_executor *e, struct rt_operation **operations, unsigned n);

#endif
