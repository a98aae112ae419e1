/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce in one step: everyone sends everything to all, and reduces what has come.
 *
 * Cost: a + (n-1) S (b + g). One wait where others have log2(n), which is what counts where ranks
 * share processors: for few ranks and few bytes.
 *
 * Bits: every rank reduces in the order of ranks.
 */
#include <errno.h>

#include "rt-cost.h"
#include "rt-step.h"

#define BLOCK_BYTES (64u << 10) /* of which each rank keeps one from every other */

double rt_cost_flat(const struct rt_cost *c, int n, double bytes)
{
    return c->a + (n - 1) * bytes * (c->b + c->g);
}

static int exchange_all(struct rt_transport *t, const void *in, char *received, uint64_t bytes,
                        struct rt_request *requests)
{
    int error = 0;
    unsigned n = 0;
    for (int i = 1; i < t->size && !error; i++) {
        const int to = (t->rank + i) % t->size, from = (t->rank + t->size - i) % t->size;
        error = t->ops->recv(t, received + (uint64_t)from * bytes, bytes, from, &requests[n++]);
        if (!error)
            error = t->ops->send(t, in, bytes, to, &requests[n++]);
    }
    return error ? error : t->ops->wait(t, requests, n);
}

/* Its own elements are kept among those that came: `out` may be where they are. */
static int flat_block(struct rt_transport *t, const void *in, void *out, uint64_t count,
                      enum rt_type type, enum rt_op op)
{
    const uint64_t bytes = count * rt_type_bytes(type);
    char *received = rt_scratch(t, RT_SCRATCH_A, (uint64_t)t->size * bytes);
    struct rt_request *requests =
        rt_scratch(t, RT_SCRATCH_B, 2 * (uint64_t)t->size * sizeof *requests);
    if (!received || !requests)
        return -ENOMEM;
    in = rt_average_begin(out, in, count, type, op, t->size);
    int error = exchange_all(t, in, received, bytes, requests);
    if (error)
        return error;
    rt_copy(received + (uint64_t)t->rank * bytes, in, count, type);
    const char *sum = received;
    for (int r = 1; r < t->size; r++, sum = out)
        rt_reduce(out, sum, received + (uint64_t)r * bytes, count, type, op);
    rt_average_end(out, count, type, op, t->size);
    return 0;
}

int rt_allreduce_flat(struct rt_transport *t, const void *in, void *out, uint64_t count,
                      enum rt_type type, enum rt_op op)
{
    if (t->size == 1) {
        rt_copy(out, in, count, type);
        return 0;
    }
    const uint64_t block = rt_min_u64(BLOCK_BYTES / rt_type_bytes(type), rt_block_count(t, type));
    for (uint64_t first = 0; first < count; first += block) {
        int error = flat_block(t, rt_at(in, first, type), rt_at_mutable(out, first, type),
                               rt_min_u64(block, count - first), type, op);
        if (error)
            return error;
    }
    return 0;
}
