/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-operation.h - what one rank has handed over: a tensor, or a group of them, and its buffers.
 *
 * Memory: data is the caller's; lists of it are copied. A stand-in is what a rank that has joined
 * takes part with where it has handed over nothing: zeros, or no rows; its data is its own.
 */
#ifndef RT_OPERATION_H
#define RT_OPERATION_H

#include <stdbool.h>

#include "rt-message.h"
#include "rt-phase.h"

#define RT_JOIN_NAME "rt.join"

/* One tensor of a group. */
struct rt_member {
    const void *in;
    void *out;
    uint64_t count;
};

struct rt_operation {
    struct rt_tensor tensor;
    const void *in;
    void *out;
    struct rt_member *members; /* tensor.members of them */
    uint64_t rows;             /* allgather, alltoall: of this rank */
    uint64_t *splits;          /* alltoall: rows to each rank */
    struct rt_parts *parts;    /* allgather, alltoall: what comes of it */
    int *ranks;                /* of a process set that is added, ascending; NULL: it can't be */
    int rank_count;
    bool stand_in;
    struct rt_phases phases;
    /* the table's */
    int handle;
    bool announced;
    struct rt_operation *next, *before; /* in the order they were added */
};

/* NULL: no memory. */
struct rt_operation *rt_operation_new(enum rt_kind kind, const char *name);
struct rt_operation *rt_operation_stand_in(const struct rt_tensor *tensor, int ranks);
void rt_operation_free(struct rt_operation *o); /* NULL-safe */

#endif
