/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-execute.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-execute-parts.h"
#include "rt-fault-hooks.h"
#include "rt-fusion.h"
#include "rt-two-hosts.h"

/* Rank 0 decides for all: files, and the environment, may differ. */
struct told {
    int32_t error;
    char message[512];
    struct rt_choice choice;
};

static void decide(struct told *told, const struct rt_config *config, const struct rt_groups *g)
{
    char path[4096], topology[RT_TOPOLOGY_TEXT_MAX];
    bool found, must;
    told->choice = config->is_planned      ? rt_choice_of(config->plan)
                   : config->deterministic ? rt_choice_same_bits()
                                           : rt_choice_default(&g->layout);
    if (config->is_planned || config->deterministic || g->topology.size == 1)
        return;
    rt_choice_path(path, sizeof path, &must);
    if (!*path)
        return;
    rt_topology_text(g->fabric->word, &g->layout, topology);
    told->error = rt_choice_read(path, topology, &g->layout, &told->choice, &found, told->message,
                                 sizeof told->message);
    if (told->error && told->error != -EINVAL && !must)
        told->error = 0;
}

int rt_executor_init(struct rt_executor *e, struct rt_groups *g, const struct rt_config *config,
                     char *message, size_t message_bytes)
{
    struct told told = {0};
    if (g->topology.rank == 0)
        decide(&told, config, g);
    int error = rt_broadcast(g->all, &told, sizeof told, RT_UINT8, 0);
    if (error)
        snprintf(message, message_bytes, "can't agree on how allreduces go: %s", strerror(-error));
    else if (told.error)
        snprintf(message, message_bytes, "%s", told.message);
    *e = (struct rt_executor){.groups = g,
                              .choice = told.choice,
                              .hierarchical = config->hierarchical,
                              .refused = !error && told.error};
    return error ? error : told.error;
}

void rt_executor_release(struct rt_executor *e)
{
    rt_inside_free_memory(e->buffer);
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

/* Every rank chooses alike: by what all know. */
static struct rt_plan plan_of(const struct rt_batch *b, uint64_t count)
{
    return rt_choice_at(&b->e->choice, count * rt_type_bytes(b->wire.type));
}

/* Between two hosts, and long enough for that? */
static bool goes_by_pieces(const struct rt_batch *b, uint64_t count)
{
    const struct rt_groups *g = b->e->groups;
    const struct rt_plan plan = plan_of(b, count);
    return plan.kind == RT_PLAN_HIERARCHICAL &&
           rt_algorithm_at(plan.algorithm)->fn == rt_allreduce &&
           rt_two_hosts_fits(g->all, &g->layout, count * rt_type_bytes(b->wire.type));
}

enum way { FLAT, OVER_HOSTS, BY_NCCL, BY_PARTS };

static enum way way_of(const struct rt_batch *b, uint64_t count)
{
    const struct rt_topology *t = &b->e->groups->topology;
    const bool by_nccl = b->e->hierarchical && rt_inside_has(b->wire.type);
    switch (plan_of(b, count).kind) {
    case RT_PLAN_TWO_LEVEL_RING:
        return OVER_HOSTS;
    case RT_PLAN_HIERARCHICAL:
        if ((t->host_count == t->size && !goes_by_pieces(b, count)) ||
            (t->host_count == 1 && !by_nccl))
            return FLAT;
        return !by_nccl ? OVER_HOSTS : t->host_count == 1 ? BY_NCCL : BY_PARTS;
    default:
        return FLAT;
    }
}

/* NCCL's parts have one length: how many elements there must be room for. */
static uint64_t padded_count(const struct rt_batch *b, uint64_t count)
{
    const uint64_t n = (uint64_t)b->e->groups->topology.local_size;
    return way_of(b, count) == BY_PARTS ? (count + n - 1) / n * n : count;
}

/* ---- piece by piece: NCCL inside hosts while others are between them ---- */

struct piecewise {
    const struct rt_batch *b;
    uint64_t begun, ended, count; /* elements */
};

/* The first piece's is the one that nothing else goes on beside. */
static int reduce_scatter_piece(void *data, const void *in, void *part, uint64_t count,
                                enum rt_type type, enum rt_op op)
{
    struct piecewise *p = data;
    const struct rt_groups *g = p->b->e->groups;
    const bool first = p->begun == 0;
    int error = 0;
    p->begun += count;
    if (first && g->inside)
        activity(p->b, "NCCL_REDUCESCATTER");
    if (g->inside)
        error = rt_inside_reduce_scatter(g->inside, in, part,
                                         count / (uint64_t)g->topology.local_size, type, op);
    else if (part != in)
        memcpy(part, in, count * rt_type_bytes(type));
    if (first)
        between(p->b, "ALLREDUCE");
    return error;
}

/* And the last's. */
static int allgather_piece(void *data, const void *part, void *out, uint64_t count,
                           enum rt_type type)
{
    struct piecewise *p = data;
    const struct rt_groups *g = p->b->e->groups;
    p->ended += count;
    if (!g->inside)
        return 0;
    if (p->ended == p->count)
        activity(p->b, "NCCL_ALLGATHER");
    return rt_inside_allgather(g->inside, part, out, count / (uint64_t)g->topology.local_size,
                               type);
}

static int by_pieces(const struct rt_batch *b, const void *in, char *out, uint64_t count,
                     enum rt_op op)
{
    struct piecewise p = {.b = b, .count = count};
    const struct rt_inside_way inside = {reduce_scatter_piece, allgather_piece, &p};
    return rt_allreduce_two_hosts(b->e->groups->all, &b->e->groups->layout, &inside, in, out, count,
                                  b->wire.type, op);
}

/* Each rank of a host brings a part between hosts. */
static int by_parts(const struct rt_batch *b, const void *in, char *out, uint64_t count,
                    enum rt_op op)
{
    struct rt_groups *g = b->e->groups;
    const enum rt_type type = b->wire.type;
    const uint64_t part = padded_count(b, count) / (uint64_t)g->topology.local_size;
    char *mine = out + (uint64_t)g->topology.local_rank * part * rt_type_bytes(type);
    int error = 0;
    if (goes_by_pieces(b, count))
        return by_pieces(b, in, out, padded_count(b, count), op);
    if (g->inside) {
        activity(b, "NCCL_REDUCESCATTER");
        error = rt_inside_reduce_scatter(g->inside, in, mine, part, type, op);
    } else if (out != in) {
        memcpy(out, in, count * rt_type_bytes(type));
    }
    if (error)
        return error;
    between(b, "ALLREDUCE");
    error =
        rt_allreduce_across(g->all, &g->layout, RT_CUT_EQUAL,
                            rt_algorithm_at(plan_of(b, count).algorithm)->fn, out, count, type, op);
    if (error || !g->inside)
        return error;
    activity(b, "NCCL_ALLGATHER");
    return rt_inside_allgather(g->inside, mine, out, part, type);
}

static int over_hosts(const struct rt_batch *b, const void *in, char *out, uint64_t count,
                      enum rt_op op)
{
    struct rt_groups *g = b->e->groups;
    const struct rt_hosts hosts = {.all = g->all, .layout = &g->layout};
    const struct rt_plan plan = plan_of(b, count);
    if (plan.kind == RT_PLAN_TWO_LEVEL_RING)
        return rt_allreduce_two_level_ring(&hosts, in, out, count, b->wire.type, op);
    return rt_allreduce_hierarchical(&hosts, rt_algorithm_at(plan.algorithm)->fn, in, out, count,
                                     b->wire.type, op);
}

enum rt_path rt_batch_path(const struct rt_batch *b)
{
    const struct rt_topology *t = &b->e->groups->topology;
    return b->e->hierarchical && t->host_count == 1 && t->size > 1 && rt_inside_has(b->wire.type)
               ? RT_PATH_NCCL
               : RT_PATH_FABRIC;
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

static int by_plan(const struct rt_batch *b, const void *in, char *out, uint64_t count)
{
    struct rt_groups *g = b->e->groups;
    const enum rt_type type = b->wire.type;
    /* an average is one over all ranks: the steps only add */
    const enum rt_op op = rt_partial_op(type, b->wire.op);
    int error = 0;
    in = rt_average_begin(out, in, count, type, b->wire.op, g->topology.size);
    switch (way_of(b, count)) {
    case FLAT:
        between(b, "ALLREDUCE");
        error = rt_algorithm_at(plan_of(b, count).algorithm)->fn(g->all, in, out, count, type, op);
        break;
    case OVER_HOSTS:
        between(b, "ALLREDUCE");
        error = over_hosts(b, in, out, count, op);
        break;
    case BY_NCCL:
        activity(b, "NCCL_ALLREDUCE");
        error = rt_inside_allreduce(g->inside, in, out, count, type, op);
        break;
    case BY_PARTS:
        error = by_parts(b, in, out, count, op);
        break;
    }
    if (!error)
        rt_average_end(out, count, type, b->wire.op, g->topology.size);
    return error;
}

static int reduce(const struct rt_batch *b, const void *in, char *out, uint64_t count)
{
    int error = (b->wire.op == RT_ADASUM ? adasum : by_plan)(b, in, out, count);
    if (!error)
        RT_FAULT_HOOK(result, out, count * rt_type_bytes(b->wire.type));
    return error;
}

/* ---- in and out ---- */

int rt_executor_grow_buffer(struct rt_executor *e, uint64_t bytes)
{
    if (bytes <= e->buffer_bytes)
        return 0;
    rt_inside_free_memory(e->buffer);
    e->buffer = rt_inside_alloc(bytes);
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

/* What goes: a tensor as it is, several as they lie in the buffer. */
static uint64_t count_of(const struct rt_batch *b)
{
    uint64_t bytes = 0;
    if (b->n == 1 && b->like->members == 0)
        return b->like->count;
    for (unsigned i = 0; i < b->n; i++)
        bytes += rt_fusion_bytes(&b->operations[i]->tensor);
    return bytes / rt_type_bytes(b->wire.type);
}

static int allreduce_in_buffer(const struct rt_batch *b, uint64_t count)
{
    struct rt_executor *e = b->e;
    uint64_t bytes = padded_count(b, count) * rt_type_bytes(b->wire.type);
    bytes = (bytes + RT_FUSION_UNIT - 1) / RT_FUSION_UNIT * RT_FUSION_UNIT;
    int error = rt_executor_grow_buffer(e, bytes);
    if (error)
        return error;
    copy_in(b, e->buffer, bytes);
    error = reduce(b, e->buffer, e->buffer, count);
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

/* NCCL reduces no others; the rank's own matter, as what goes is the same from the buffer. */
static bool is_aligned(const struct rt_operation *o)
{
    return ((uintptr_t)o->in | (uintptr_t)o->out) % rt_type_bytes(o->tensor.type) == 0;
}

static int allreduce(const struct rt_batch *b)
{
    const uint64_t count = count_of(b);
    if (count == 0)
        return 0;
    bool alone = b->n == 1 && b->like->members == 0 && count == padded_count(b, count) &&
                 b->wire.type == b->wire.own_type && is_aligned(b->operations[0]);
    return alone ? allreduce_alone(b) : allreduce_in_buffer(b, count);
}

static int broadcast(const struct rt_batch *b)
{
    struct rt_groups *g = b->e->groups;
    void *data = b->operations[0]->out;
    const int root = rt_groups_place(g, b->like->root);
    if (rt_batch_path(b) == RT_PATH_NCCL) {
        activity(b, "NCCL_BCAST");
        return rt_inside_broadcast(g->inside, data, b->like->count, b->like->type, root);
    }
    between(b, "BCAST");
    return rt_broadcast(g->all, data, b->like->count, b->like->type, root);
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
