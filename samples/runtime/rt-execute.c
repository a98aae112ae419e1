/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-execute.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-execute-parts.h"
#include "rt-fault-hooks.h"
#include "rt-fusion.h"

void rt_executor_release(struct rt_executor *e)
{
    free(e->buffer);
    e->buffer = NULL;
    e->buffer_bytes = 0;
}

void rt_batch_activity(const struct rt_batch *b, const char *name)
{
    for (unsigned i = 0; i < b->n; i++)
        rt_phase_activity(&b->operations[i]->phases, name);
}

void rt_batch_activity_between(const struct rt_batch *b, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%s_%s", b->e->groups->fabric->word, what);
    rt_batch_activity(b, name);
}

static void activity(const struct rt_batch *b, const char *name)
{
    rt_batch_activity(b, name);
}

static void between(const struct rt_batch *b, const char *what)
{
    rt_batch_activity_between(b, what);
}

/* ---- allreduce of `count` elements: in may equal out ---- */

/* Each rank of a host brings a part between hosts. `count` is a multiple of the ranks of a host. */
static int by_parts(const struct rt_batch *b, const void *in, char *out, uint64_t count,
                    enum rt_op op)
{
    struct rt_groups *g = b->e->groups;
    const enum rt_type type = b->wire.type;
    const uint64_t part = count / (uint64_t)g->topology.local_size;
    char *mine = out + (uint64_t)g->topology.local_rank * part * rt_type_bytes(type);

    activity(b, "NCCL_REDUCESCATTER");
    int error = rt_inside_reduce_scatter(g->inside, in, mine, part, type, op);
    if (error)
        return error;
    between(b, "ALLREDUCE");
    error = b->e->allreduce(g->across, mine, mine, part, type, op);
    if (error)
        return error;
    activity(b, "NCCL_ALLGATHER");
    return rt_inside_allgather(g->inside, mine, out, part, type);
}

/* Hosts have different numbers of ranks: the first of each brings everything between hosts. */
static int by_leaders(const struct rt_batch *b, const void *in, char *out, uint64_t count,
                      enum rt_op op)
{
    struct rt_groups *g = b->e->groups;
    const enum rt_type type = b->wire.type;
    int error = 0;
    if (g->inside) {
        activity(b, "NCCL_REDUCE");
        error = rt_inside_reduce(g->inside, in, out, count, type, op, 0);
        in = out;
    }
    if (!error && g->across) {
        between(b, "ALLREDUCE");
        error = b->e->allreduce(g->across, in, out, count, type, op);
    }
    if (!error && g->inside) {
        activity(b, "NCCL_BCAST");
        error = rt_inside_broadcast(g->inside, out, count, type, 0);
    }
    return error;
}

enum rt_path rt_batch_path(const struct rt_batch *b)
{
    const struct rt_topology *t = &b->e->groups->topology;
    if (!b->e->hierarchical || t->host_count == t->size || !rt_inside_has(b->wire.type))
        return RT_PATH_FABRIC;
    if (t->host_count == 1)
        return RT_PATH_NCCL;
    return t->even ? RT_PATH_PARTS : RT_PATH_LEADERS;
}

/* What a length must be a multiple of. */
static uint64_t unit_of(const struct rt_batch *b)
{
    return rt_batch_path(b) == RT_PATH_PARTS ? (uint64_t)b->e->groups->topology.local_size : 1;
}

/* The lengths of all tensors as they lie one after the other, a group's too; returns how many. */
static unsigned tensor_counts(const struct rt_batch *b, uint64_t *ret)
{
    unsigned n = 0;
    for (unsigned i = 0; i < b->n; i++) {
        const struct rt_operation *o = b->operations[i];
        struct rt_tensor like = o->tensor;
        for (uint32_t m = 0; m < (o->members ? o->tensor.members : 1); m++) {
            like.count = o->members ? o->members[m].count : o->tensor.count;
            if (ret && o->stand_in && o->members)
                ret[n] = 0;
            else if (ret)
                ret[n] = rt_fusion_bytes(&like) / rt_type_bytes(b->wire.type);
            n++;
        }
    }
    return n;
}

/* By MPI alone. A rank that has joined doesn't know how a group is divided: ranks tell each other.
 */
static int adasum(const struct rt_batch *b, const void *in, char *out, uint64_t count)
{
    struct rt_transport *all = b->e->groups->all;
    const bool alone = b->n == 1 && b->like->members == 0;
    unsigned n = tensor_counts(b, NULL);
    uint64_t *counts = malloc((n + 1) * sizeof *counts);
    if (!counts)
        return -ENOMEM;
    tensor_counts(b, counts);
    int error = 0;
    if (alone)
        counts[0] = count;
    else
        error = rt_allreduce(all, counts, counts, n, RT_UINT64, RT_MAX);
    between(b, "ADASUM_ALLREDUCE");
    if (!error)
        error = rt_allreduce_adasum(all, in, out, counts, n, b->wire.type);
    free(counts);
    return error;
}

static int by_path(const struct rt_batch *b, const void *in, char *out, uint64_t count)
{
    struct rt_groups *g = b->e->groups;
    const enum rt_type type = b->wire.type;
    /* an average is one over all ranks: the steps only add */
    const enum rt_op op = rt_partial_op(type, b->wire.op);
    int error = 0;
    in = rt_average_begin(out, in, count, type, b->wire.op, g->topology.size);
    switch (rt_batch_path(b)) {
    case RT_PATH_FABRIC:
        between(b, "ALLREDUCE");
        error = b->e->allreduce(g->all, in, out, count, type, op);
        break;
    case RT_PATH_NCCL:
        activity(b, "NCCL_ALLREDUCE");
        error = rt_inside_allreduce(g->inside, in, out, count, type, op);
        break;
    case RT_PATH_PARTS:
        error = by_parts(b, in, out, count, op);
        break;
    case RT_PATH_LEADERS:
        error = by_leaders(b, in, out, count, op);
        break;
    }
    if (!error)
        rt_average_end(out, count, type, b->wire.op, g->topology.size);
    return error;
}

static int reduce(const struct rt_batch *b, const void *in, char *out, uint64_t count)
{
    int error = (b->wire.op == RT_ADASUM ? adasum : by_path)(b, in, out, count);
    if (!error)
        RT_FAULT_HOOK(result, out, count * rt_type_bytes(b->wire.type));
    return error;
}

/* ---- in and out ---- */

int rt_executor_grow_buffer(struct rt_executor *e, uint64_t bytes)
{
    if (bytes <= e->buffer_bytes)
        return 0;
    free(e->buffer);
    e->buffer = aligned_alloc(RT_FUSION_UNIT, bytes);
    e->buffer_bytes = e->buffer ? bytes : 0;
    return e->buffer ? 0 : -ENOMEM;
}

/* Calls `copy` for each tensor, and each of a group, with where it lies from `at` on. Returns where
 * they end. */
static char *for_each_tensor(const struct rt_wire *wire, const struct rt_operation *o, char *at,
                             void (*copy)(const struct rt_wire *wire, const struct rt_member *m,
                                          char *at, uint64_t bytes))
{
    const struct rt_member alone = {o->in, o->out, o->tensor.count};
    const struct rt_member *members = o->members ? o->members : &alone;
    struct rt_tensor like = o->tensor;
    for (uint32_t i = 0; i < (o->members ? o->tensor.members : 1); i++) {
        like.count = members[i].count;
        copy(wire, &members[i], at, rt_fusion_bytes(&like));
        at += rt_fusion_bytes(&like);
    }
    return at;
}

static void copy_one_in(const struct rt_wire *wire, const struct rt_member *m, char *at,
                        uint64_t bytes)
{
    uint64_t used = m->count * rt_type_bytes(wire->type);
    rt_wire_pack(wire, at, m->in, m->count);
    memset(at + used, 0, bytes - used);
}

static void copy_one_out(const struct rt_wire *wire, const struct rt_member *m, char *at,
                         uint64_t bytes)
{
    (void)bytes;
    rt_wire_unpack(wire, m->out, at, m->count);
}

static void copy_in(const struct rt_batch *b, char *buffer, uint64_t bytes)
{
    activity(b, "MEMCPY_IN_FUSION_BUFFER");
    char *at = buffer;
    for (unsigned i = 0; i < b->n; i++)
        at = for_each_tensor(&b->wire, b->operations[i], at, copy_one_in);
    memset(at, 0, (size_t)(buffer + bytes - at));
}

static void copy_out(const struct rt_batch *b, char *buffer)
{
    activity(b, "MEMCPY_OUT_FUSION_BUFFER");
    for (unsigned i = 0; i < b->n; i++)
        buffer = for_each_tensor(&b->wire, b->operations[i], buffer, copy_one_out);
}

static int allreduce_in_buffer(const struct rt_batch *b)
{
    struct rt_executor *e = b->e;
    uint64_t bytes = 0, unit = unit_of(b) * RT_FUSION_UNIT;
    for (unsigned i = 0; i < b->n; i++)
        bytes += rt_fusion_bytes(&b->operations[i]->tensor);
    bytes = (bytes + unit - 1) / unit * unit;
    int error = rt_executor_grow_buffer(e, bytes);
    if (error)
        return error;
    copy_in(b, e->buffer, bytes);
    error = reduce(b, e->buffer, e->buffer, bytes / rt_type_bytes(b->wire.type));
    if (!error)
        copy_out(b, e->buffer);
    return error;
}

static int allreduce_alone(const struct rt_batch *b)
{
    const struct rt_operation *o = b->operations[0];
    const uint64_t count = b->like->count;
    const void *in = o->in;
    if (!rt_wire_is_plain(&b->wire)) {
        rt_wire_pack(&b->wire, o->out, in, count);
        in = o->out;
    }
    int error = reduce(b, in, o->out, count);
    if (!error)
        rt_wire_unpack(&b->wire, o->out, o->out, count);
    return error;
}

static int allreduce(const struct rt_batch *b)
{
    if (b->n == 1 && b->like->count == 0)
        return 0;
    bool alone = b->n == 1 && b->like->members == 0 && b->like->count % unit_of(b) == 0 &&
                 b->wire.type == b->wire.own_type;
    return alone ? allreduce_alone(b) : allreduce_in_buffer(b);
}

static int broadcast(const struct rt_batch *b)
{
    struct rt_groups *g = b->e->groups;
    void *data = b->operations[0]->out;
    if (rt_batch_path(b) == RT_PATH_NCCL) {
        activity(b, "NCCL_BCAST");
        return rt_inside_broadcast(g->inside, data, b->like->count, b->like->type, b->like->root);
    }
    between(b, "BCAST");
    return rt_broadcast(g->all, data, b->like->count, b->like->type, b->like->root);
}

static int execute(struct rt_executor *e, struct rt_operation **operations, unsigned n)
{
    const struct rt_tensor *like = &operations[0]->tensor;
    const struct rt_batch b = {e, operations, n, like, rt_wire_of(like, e->groups->topology.size)};
    switch (b.like->kind) {
    case RT_ALLREDUCE:
        return allreduce(&b);
    case RT_BROADCAST:
        return broadcast(&b);
    case RT_ALLGATHER:
        return rt_execute_allgather(&b);
    case RT_REDUCESCATTER:
        return rt_execute_reducescatter(&b);
    case RT_ALLTOALL:
        return rt_execute_alltoall(&b);
    case RT_BARRIER:
        activity(&b, NULL);
        return rt_barrier(e->groups->all);
    case RT_JOIN:
        rt_batch_activity(&b, NULL);
        *(int *)operations[0]->out = operations[0]->tensor.root;
        return 0;
    default:
        return -EPROTO;
    }
}

int rt_execute(struct rt_executor *e, struct rt_operation **operations, unsigned n)
{
    RT_FAULT_HOOK(communicating, true);
    int error = execute(e, operations, n);
    RT_FAULT_HOOK(communicating, false);
    return error;
}
