/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-execute.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rt-fusion.h"

void rt_executor_release(struct rt_executor *e)
{
    free(e->buffer);
    e->buffer = NULL;
    e->buffer_bytes = 0;
}

/* The operations of one order, as the steps below need them. */
struct batch {
    struct rt_executor *e;
    struct rt_operation **operations;
    unsigned n;
    const struct rt_tensor *like; /* type, operation and scales of all */
};

static void activity(const struct batch *b, const char *name)
{
    for (unsigned i = 0; i < b->n; i++)
        rt_phase_activity(&b->operations[i]->phases, name);
}

/* ---- allreduce of `count` elements: in may equal out ---- */

/* Each rank of a host brings a part between hosts. `count` is a multiple of the ranks of a host. */
static int by_parts(const struct batch *b, const void *in, char *out, uint64_t count, enum rt_op op)
{
    struct rt_groups *g = b->e->groups;
    const enum rt_type type = b->like->type;
    const uint64_t part = count / (uint64_t)g->topology.local_size;
    char *mine = out + (uint64_t)g->topology.local_rank * part * rt_type_bytes(type);

    activity(b, "NCCL_REDUCESCATTER");
    int error = rt_inside_reduce_scatter(g->inside, in, mine, part, type, op);
    if (error)
        return error;
    activity(b, "MPI_ALLREDUCE");
    error = b->e->allreduce(g->across, mine, mine, part, type, op);
    if (error)
        return error;
    activity(b, "NCCL_ALLGATHER");
    return rt_inside_allgather(g->inside, mine, out, part, type);
}

/* Hosts have different numbers of ranks: the first of each brings everything between hosts. */
static int by_leaders(const struct batch *b, const void *in, char *out, uint64_t count,
                      enum rt_op op)
{
    struct rt_groups *g = b->e->groups;
    const enum rt_type type = b->like->type;
    int error = 0;
    if (g->inside) {
        activity(b, "NCCL_REDUCE");
        error = rt_inside_reduce(g->inside, in, out, count, type, op, 0);
        in = out;
    }
    if (!error && g->across) {
        activity(b, "MPI_ALLREDUCE");
        error = b->e->allreduce(g->across, in, out, count, type, op);
    }
    if (!error && g->inside) {
        activity(b, "NCCL_BCAST");
        error = rt_inside_broadcast(g->inside, out, count, type, 0);
    }
    return error;
}

/* Every rank chooses alike: by what all know. */
enum path { PATH_MPI, PATH_NCCL, PATH_PARTS, PATH_LEADERS };

static enum path path_of(const struct batch *b)
{
    const struct rt_topology *t = &b->e->groups->topology;
    if (!b->e->hierarchical || t->host_count == t->size || !rt_inside_has(b->like->type))
        return PATH_MPI;
    if (t->host_count == 1)
        return PATH_NCCL;
    return t->even ? PATH_PARTS : PATH_LEADERS;
}

/* What a length must be a multiple of. */
static uint64_t unit_of(const struct batch *b)
{
    return path_of(b) == PATH_PARTS ? (uint64_t)b->e->groups->topology.local_size : 1;
}

static int reduce(const struct batch *b, const void *in, char *out, uint64_t count)
{
    struct rt_groups *g = b->e->groups;
    const enum rt_type type = b->like->type;
    /* an average is one over all ranks: the steps only add */
    const enum rt_op op = rt_partial_op(type, b->like->op);
    int error = 0;
    in = rt_average_begin(out, in, count, type, b->like->op, g->topology.size);
    switch (path_of(b)) {
    case PATH_MPI:
        activity(b, "MPI_ALLREDUCE");
        error = b->e->allreduce(g->all, in, out, count, type, op);
        break;
    case PATH_NCCL:
        activity(b, "NCCL_ALLREDUCE");
        error = rt_inside_allreduce(g->inside, in, out, count, type, op);
        break;
    case PATH_PARTS:
        error = by_parts(b, in, out, count, op);
        break;
    case PATH_LEADERS:
        error = by_leaders(b, in, out, count, op);
        break;
    }
    if (!error)
        rt_average_end(out, count, type, b->like->op, g->topology.size);
    return error;
}

/* ---- in and out ---- */

static int grow_buffer(struct rt_executor *e, uint64_t bytes)
{
    if (bytes <= e->buffer_bytes)
        return 0;
    free(e->buffer);
    e->buffer = aligned_alloc(RT_FUSION_UNIT, bytes);
    e->buffer_bytes = e->buffer ? bytes : 0;
    return e->buffer ? 0 : -ENOMEM;
}

static void copy_in(const struct batch *b, char *buffer, uint64_t bytes)
{
    activity(b, "MEMCPY_IN_FUSION_BUFFER");
    char *at = buffer;
    for (unsigned i = 0; i < b->n; i++) {
        const struct rt_operation *o = b->operations[i];
        uint64_t used = o->tensor.count * rt_type_bytes(o->tensor.type);
        rt_scale(at, o->in, o->tensor.count, o->tensor.type, o->tensor.prescale);
        memset(at + used, 0, rt_fusion_bytes(&o->tensor) - used);
        at += rt_fusion_bytes(&o->tensor);
    }
    memset(at, 0, (size_t)(buffer + bytes - at));
}

static void copy_out(const struct batch *b, const char *buffer)
{
    activity(b, "MEMCPY_OUT_FUSION_BUFFER");
    for (unsigned i = 0; i < b->n; i++) {
        const struct rt_operation *o = b->operations[i];
        rt_scale(o->out, buffer, o->tensor.count, o->tensor.type, o->tensor.postscale);
        buffer += rt_fusion_bytes(&o->tensor);
    }
}

static int allreduce_in_buffer(const struct batch *b)
{
    struct rt_executor *e = b->e;
    uint64_t bytes = 0, unit = unit_of(b) * RT_FUSION_UNIT;
    for (unsigned i = 0; i < b->n; i++)
        bytes += rt_fusion_bytes(&b->operations[i]->tensor);
    bytes = (bytes + unit - 1) / unit * unit;
    int error = grow_buffer(e, bytes);
    if (error)
        return error;
    copy_in(b, e->buffer, bytes);
    error = reduce(b, e->buffer, e->buffer, bytes / rt_type_bytes(b->like->type));
    if (!error)
        copy_out(b, e->buffer);
    return error;
}

static int allreduce_alone(const struct batch *b)
{
    const struct rt_operation *o = b->operations[0];
    const struct rt_tensor *t = b->like;
    const void *in = o->in;
    if (t->prescale != 1) {
        rt_scale(o->out, in, t->count, t->type, t->prescale);
        in = o->out;
    }
    int error = reduce(b, in, o->out, t->count);
    if (!error)
        rt_scale(o->out, o->out, t->count, t->type, t->postscale);
    return error;
}

static int allreduce(const struct batch *b)
{
    if (b->n == 1 && b->like->count == 0)
        return 0;
    bool alone = b->n == 1 && b->like->count % unit_of(b) == 0;
    return alone ? allreduce_alone(b) : allreduce_in_buffer(b);
}

static int broadcast(const struct batch *b)
{
    struct rt_groups *g = b->e->groups;
    void *data = b->operations[0]->out;
    if (path_of(b) == PATH_NCCL) {
        activity(b, "NCCL_BCAST");
        return rt_inside_broadcast(g->inside, data, b->like->count, b->like->type, b->like->root);
    }
    activity(b, "MPI_BCAST");
    return rt_broadcast(g->all, data, b->like->count, b->like->type, b->like->root);
}

int rt_execute(struct rt_executor *e, struct rt_operation **operations, unsigned n)
{
    const struct batch b = {e, operations, n, &operations[0]->tensor};
    switch (b.like->kind) {
    case RT_ALLREDUCE:
        return allreduce(&b);
    case RT_BROADCAST:
        return broadcast(&b);
    case RT_BARRIER:
        activity(&b, NULL);
        return rt_barrier(e->groups->all);
    default:
        return -EPROTO;
    }
}
