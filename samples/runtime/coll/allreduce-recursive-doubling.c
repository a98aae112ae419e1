/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce by recursive doubling: in step k a rank exchanges everything it has with the rank whose
 * number differs in bit k.
 *
 * Cost: log2(n) (a + S b + S g), n a power of two; else rt-fold.h adds 2 a + 2 S b + S g. The
 * fewest steps: for short buffers.
 *
 * Bits: an element's order is a tree over the ranks alone, so they are the same whatever the count,
 * the element's place, the transport and its block; and the same as halving-doubling's.
 */
#include <errno.h>

#include "rt-cost.h"
#include "rt-fold.h"
#include "rt-step.h"

double rt_cost_recursive_doubling(const struct rt_cost *c, int n, double bytes)
{
    const int working = rt_fold_of(0, n).working;
    return rt_ceil_log2(working) * (c->a + bytes * (c->b + c->g)) + rt_cost_fold(c, n, bytes);
}

/* What is sent may not be written meanwhile: results go to `out` and to scratch in turn, so that
 * the last one goes to `out`. */
static int doubling_steps(struct rt_transport *t, const struct rt_fold *f, const void *source,
                          void *out, uint64_t count, enum rt_type type, enum rt_op op)
{
    void *other = rt_scratch(t, RT_SCRATCH_A, count * rt_type_bytes(type));
    if (!other)
        return -ENOMEM;
    int steps = __builtin_ctz((unsigned)f->working);
    if (source == out && steps % 2 == 1) {
        rt_copy(other, source, count, type);
        source = other;
    }
    for (int k = 0; k < steps; k++) {
        int peer = rt_fold_rank(f, f->number ^ (1 << k));
        void *target = (steps - 1 - k) % 2 == 0 ? out : other;
        int error =
            rt_exchange_reduce(t, peer, source, count, peer, target, source, count, type, op);
        if (error)
            return error;
        source = target;
    }
    return 0;
}

static int doubling_block(struct rt_transport *t, const struct rt_fold *f, const void *in,
                          void *out, uint64_t count, enum rt_type type, enum rt_op op)
{
    const void *source = rt_average_begin(out, in, count, type, op, t->size);
    int error = rt_fold_in(t, f, source, out, count, type, op, &source);
    if (!error && f->number >= 0) {
        error = doubling_steps(t, f, source, out, count, type, op);
        if (!error)
            rt_average_end(out, count, type, op, t->size);
    }
    return error ? error : rt_fold_out(t, f, out, count, type);
}

int rt_allreduce_recursive_doubling(struct rt_transport *t, const void *in, void *out,
                                    uint64_t count, enum rt_type type, enum rt_op op)
{
    if (t->size == 1) {
        rt_copy(out, in, count, type);
        return 0;
    }
    const struct rt_fold f = rt_fold_of(t->rank, t->size);
    const uint64_t block = rt_block_count(t, type);
    for (uint64_t first = 0; first < count; first += block) {
        int error = doubling_block(t, &f, rt_at(in, first, type), rt_at_mutable(out, first, type),
                                   rt_min_u64(block, count - first), type, op);
        if (error)
            return error;
    }
    return 0;
}
