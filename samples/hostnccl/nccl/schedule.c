/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which NCCL runs a group's collectives, and numbers them: not that of the calls.
 *
 * As NCCL 2.28 does it: collectives of one function, operator and type stand together, the smallest
 * first; which of those comes first is decided by the largest. Sizes count by classes, four to a
 * power of two from 1 KiB of traffic on; within a class the order of the calls stays. Sends and
 * receives follow. All ranks make the same order of the same calls.
 */
#include <stddef.h>

#include "internal.h"

#define UNIT_LOG2    10
#define TRAFFIC_MAX  ((uint64_t)1 << 30)
#define CLASSES_LOG2 2 /* to a power of two */

static uint64_t traffic_bytes(const struct hostnccl_op *op)
{
    uint64_t bytes = op->count * rt_type_bytes(op->type);
    if (op->func == FUNC_ALLREDUCE)
        return 2 * bytes;
    if (op->func == FUNC_ALLGATHER || op->func == FUNC_REDUCESCATTER)
        return bytes * (uint64_t)op->comm->size;
    return bytes;
}

/* Grows with the traffic; a float of two mantissa bits, without a sign. */
static int size_class(const struct hostnccl_op *op)
{
    uint64_t bytes = traffic_bytes(op);
    uint64_t units = (bytes < TRAFFIC_MAX ? bytes : TRAFFIC_MAX) >> UNIT_LOG2;
    if (units < 1u << CLASSES_LOG2)
        return (int)units;
    int log2 = 63 - __builtin_clzll(units), shift = log2 - CLASSES_LOG2;
    return (shift << CLASSES_LOG2) + (int)(units >> shift);
}

/* What NCCL runs together. Copies are copies of bytes to it. */
static bool is_alike(const struct hostnccl_op *a, const struct hostnccl_op *b)
{
    bool copies = a->func == FUNC_ALLGATHER || a->func == FUNC_BROADCAST;
    return a->func == b->func &&
           (copies || (a->op == b->op && a->multiplies == b->multiplies && a->type == b->type));
}

static struct hostnccl_op *largest(struct hostnccl_op *ops)
{
    struct hostnccl_op *found = ops;
    for (struct hostnccl_op *op = ops; op; op = op->next)
        if (size_class(op) >=
            size_class(found)) /* the later of equals comes first in NCCL's list */
            found = op;
    return found;
}

/* Takes out of `*from` the first of the smallest that are like `like`; NULL none. */
static struct hostnccl_op *take_smallest(struct hostnccl_op **from, const struct hostnccl_op *like)
{
    struct hostnccl_op **found = NULL;
    for (; *from; from = &(*from)->next)
        if (is_alike(*from, like) && (!found || size_class(*from) < size_class(*found)))
            found = from;
    struct hostnccl_op *op = found ? *found : NULL;
    if (op)
        *found = op->next;
    return op;
}

/* Moves messages (`p2p`), or all others, from `*from` to the end of `*end`, in order. */
static void move(struct hostnccl_op **from, struct hostnccl_op ***end, bool p2p)
{
    while (*from) {
        struct hostnccl_op *op = *from;
        if (hostnccl_is_p2p(op) != p2p) {
            from = &op->next;
            continue;
        }
        *from = op->next;
        op->next = NULL;
        **end = op;
        *end = &op->next;
    }
}

struct hostnccl_op *hostnccl_schedule(struct hostnccl_op *ops)
{
    struct hostnccl_op *collectives = NULL, **collectives_end = &collectives;
    struct hostnccl_op *sorted = NULL, **end = &sorted;
    move(&ops, &collectives_end, false);
    while (collectives) {
        struct hostnccl_op like = *largest(collectives), *op;
        while ((op = take_smallest(&collectives, &like))) {
            op->next = NULL;
            *end = op;
            end = &op->next;
        }
    }
    move(&ops, &end, true);
    return sorted;
}
