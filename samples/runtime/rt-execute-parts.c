/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-execute-parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rt-fusion.h"

/* ---- what comes out: rows from each rank ---- */

/* Elements that each rank brings, from its rows. */
static void to_elements(uint64_t *counts, const uint64_t *rows, int n, uint64_t row_count)
{
    for (int r = 0; r < n; r++)
        counts[r] = rows[r] * row_count;
}

/* Room for the rows of `p`; the same on all ranks or not, it is not theirs to fail by. */
static int allocate(const struct rt_batch *b, struct rt_parts *p, int n)
{
    rt_batch_activity(b, "ALLOCATE_OUTPUT");
    const uint64_t row = b->like->row_count * rt_type_bytes(b->like->type);
    uint64_t bytes;
    bool too_many = false;
    p->total = 0;
    for (int r = 0; r < n; r++)
        too_many |= __builtin_add_overflow(p->total, p->rows[r], &p->total);
    too_many |= __builtin_mul_overflow(p->total, row, &bytes) || bytes >= SIZE_MAX / 2;
    p->data = too_many ? NULL : malloc(bytes + 1);
    return p->data ? 0 : -ENOMEM;
}

static bool all_alike(const uint64_t *rows, int n)
{
    for (int r = 1; r < n; r++)
        if (rows[r] != rows[0])
            return false;
    return true;
}

static int gather(const struct rt_batch *b, struct rt_parts *p, uint64_t *counts)
{
    struct rt_groups *g = b->e->groups;
    const struct rt_operation *o = b->operations[0];
    const int n = g->topology.size;
    p->rows[g->topology.rank] = o->rows;
    int error = rt_allgather_ring(g->all, &o->rows, p->rows, (uint64_t)n, RT_UINT64);
    if (!error)
        error = allocate(b, p, n);
    if (error)
        return error;
    to_elements(counts, p->rows, n, b->like->row_count);
    if (rt_batch_path(b) == RT_PATH_NCCL && all_alike(p->rows, n)) {
        rt_batch_activity(b, "NCCL_ALLGATHER");
        return counts[0] > 0
                   ? rt_inside_allgather(g->inside, o->in, p->data, counts[0], b->like->type)
                   : 0;
    }
    rt_batch_activity_between(b, "ALLGATHER");
    return rt_allgatherv_ring(g->all, o->in, p->data, counts, b->like->type);
}

static int exchange(const struct rt_batch *b, struct rt_parts *p, uint64_t *give, uint64_t *take)
{
    struct rt_groups *g = b->e->groups;
    const struct rt_operation *o = b->operations[0];
    const int n = g->topology.size;
    for (int r = 0; r < n; r++)
        give[r] = take[r] = 1;
    int error = rt_alltoallv_pairwise(g->all, o->splits, give, p->rows, take, RT_UINT64);
    if (!error)
        error = allocate(b, p, n);
    if (error)
        return error;
    to_elements(give, o->splits, n, b->like->row_count);
    to_elements(take, p->rows, n, b->like->row_count);
    if (rt_batch_path(b) == RT_PATH_NCCL) {
        rt_batch_activity(b, "NCCL_ALLTOALL");
        return rt_inside_alltoall(g->inside, o->in, give, p->data, take, n, b->like->type);
    }
    rt_batch_activity_between(b, "ALLTOALL");
    return rt_alltoallv_pairwise(g->all, o->in, give, p->data, take, b->like->type);
}

/* Gives the caller what came, or nothing. */
static int hand_out(const struct rt_batch *b, struct rt_parts *p, int error)
{
    if (error)
        rt_parts_clear(p);
    else
        *b->operations[0]->parts = *p;
    return error;
}

int rt_execute_allgather(const struct rt_batch *b)
{
    const size_t n = (size_t)b->e->groups->topology.size;
    struct rt_parts p = {.rows = calloc(n, sizeof *p.rows)};
    uint64_t *counts = calloc(n, sizeof *counts);
    int error = p.rows && counts ? gather(b, &p, counts) : -ENOMEM;
    free(counts);
    return hand_out(b, &p, error);
}

int rt_execute_alltoall(const struct rt_batch *b)
{
    const size_t n = (size_t)b->e->groups->topology.size;
    struct rt_parts p = {.rows = calloc(n, sizeof *p.rows)};
    uint64_t *counts = calloc(2 * n, sizeof *counts);
    int error = p.rows && counts ? exchange(b, &p, counts, counts + n) : -ENOMEM;
    free(counts);
    return hand_out(b, &p, error);
}

/* ---- reducescatter ---- */

/* Ranks' rows, each rank's from a multiple of `part` elements on: NCCL's parts are all alike. */
static void copy_parts_in(const struct rt_batch *b, char *buffer, uint64_t part)
{
    const struct rt_tensor *t = b->like;
    const int n = b->e->groups->topology.size;
    const uint64_t each = rt_type_bytes(b->wire.type), own = rt_type_bytes(t->type);
    const char *in = b->operations[0]->in;
    rt_batch_activity(b, "MEMCPY_IN_FUSION_BUFFER");
    for (int r = 0; r < n; r++) {
        uint64_t count = rt_part_count(t->count, n, r) * t->row_count;
        rt_wire_pack(&b->wire, buffer, in, count);
        memset(buffer + count * each, 0, (part - count) * each);
        in += count * own;
        buffer += part * each;
    }
}

static int reduce_scatter(const struct rt_batch *b, char *buffer, uint64_t part)
{
    struct rt_groups *g = b->e->groups;
    const struct rt_wire *w = &b->wire;
    const int n = g->topology.size;
    const uint64_t each = rt_type_bytes(w->type), whole = part * (uint64_t)n;
    /* as in an allreduce: NCCL and MPI round an average alike */
    const enum rt_op op = rt_partial_op(w->type, w->op);
    char *mine = buffer + (uint64_t)g->topology.rank * part * each;
    int error;
    rt_average_begin(buffer, buffer, whole, w->type, w->op, n);
    if (rt_batch_path(b) == RT_PATH_NCCL) {
        rt_batch_activity(b, "NCCL_REDUCESCATTER");
        error = rt_inside_reduce_scatter(g->inside, buffer, mine, part, w->type, op);
    } else {
        rt_batch_activity_between(b, "REDUCESCATTER");
        error = rt_reduce_scatter_ring(g->all, buffer, mine, whole, w->type, op);
    }
    if (!error)
        rt_average_end(mine, part, w->type, w->op, n);
    return error;
}

int rt_execute_reducescatter(const struct rt_batch *b)
{
    const struct rt_tensor *t = b->like;
    const struct rt_topology *at = &b->e->groups->topology;
    const uint64_t part = rt_part_count(t->count, at->size, 0) * t->row_count;
    const uint64_t bytes = part * (uint64_t)at->size * rt_type_bytes(b->wire.type);
    if (bytes == 0)
        return 0;
    int error = rt_executor_grow_buffer(b->e, (bytes + RT_FUSION_UNIT - 1) / RT_FUSION_UNIT *
                                                  RT_FUSION_UNIT);
    if (error)
        return error;
    char *buffer = b->e->buffer;
    copy_parts_in(b, buffer, part);
    error = reduce_scatter(b, buffer, part);
    if (error)
        return error;
    rt_batch_activity(b, "MEMCPY_OUT_FUSION_BUFFER");
    rt_wire_unpack(&b->wire, b->operations[0]->out,
                   buffer + (uint64_t)at->rank * part * rt_type_bytes(b->wire.type),
                   rt_part_count(t->count, at->size, at->rank) * t->row_count);
    return 0;
}
