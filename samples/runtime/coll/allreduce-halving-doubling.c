/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce by recursive halving, then doubling (Rabenseifner's algorithm): reduce-scatter with the
 * partner next to this rank, two away, four away, ..., then allgather the same way back.
 *
 * Cost: 2 log2(n) a + 2 (n-1)/n S b + (n-1)/n S g, n a power of two; else rt-fold.h adds
 * 2 a + 2 S b + S g. As little data as the ring in fewer steps: for the middle. The near partners
 * get the long messages, so hosts that have a power of two of neighbouring ranks each send between
 * them what hierarchical sends.
 *
 * Bits: an element's order is a tree over the ranks alone, so they are the same whatever the count,
 * the element's place, the transport and its block; and the same as recursive doubling's.
 */
#include "rt-cost.h"
#include "rt-fold.h"
#include "rt-step.h"

/* Parts [low, high) of the `working` that a block is cut into. */
struct parts {
    int low, high;
};

static uint64_t parts_first(const struct rt_fold *f, uint64_t count, struct parts p)
{
    return rt_part_first(count, f->working, p.low);
}
static uint64_t parts_count(const struct rt_fold *f, uint64_t count, struct parts p)
{
    return rt_part_first(count, f->working, p.high) - rt_part_first(count, f->working, p.low);
}

/* What a rank keeps, and what it leaves to its partner, when it halves `p` at distance `d`. */
static void halve(int number, int d, struct parts p, struct parts *ret_keep, struct parts *ret_give)
{
    const int middle = (p.low + p.high) / 2;
    struct parts lower = {p.low, middle}, upper = {middle, p.high};
    *ret_keep = number & d ? upper : lower;
    *ret_give = number & d ? lower : upper;
}

/* What a rank has before it halves at distance `d`. */
static struct parts parts_before(int number, int d, int working)
{
    struct parts p = {0, working}, give;
    for (int done = 1; done < d; done *= 2)
        halve(number, done, p, &p, &give);
    return p;
}

static int halving_steps(struct rt_transport *t, const struct rt_fold *f, const void *source,
                         void *out, uint64_t count, enum rt_type type, enum rt_op op)
{
    struct parts mine = {0, f->working}, keep, give;

    /* 1. Reduce-scatter: this rank ends with one part. */
    for (int d = 1; d < f->working; d *= 2) {
        int peer = rt_fold_rank(f, f->number ^ d);
        halve(f->number, d, mine, &keep, &give);
        uint64_t first = parts_first(f, count, keep);
        int error =
            rt_exchange_reduce(t, peer, rt_at(source, parts_first(f, count, give), type),
                               parts_count(f, count, give), peer, rt_at_mutable(out, first, type),
                               rt_at(source, first, type), parts_count(f, count, keep), type, op);
        if (error)
            return error;
        mine = keep;
        source = out;
    }

    /* 2. This rank's whole part. */
    rt_average_end(rt_at_mutable(out, parts_first(f, count, mine), type),
                   parts_count(f, count, mine), type, op, t->size);

    /* 3. Allgather: what it has doubles in each step. */
    for (int d = f->working / 2; d > 0; d /= 2) {
        int peer = rt_fold_rank(f, f->number ^ d);
        halve(f->number, d, parts_before(f->number, d, f->working), &keep, &give);
        int error = rt_exchange(t, peer, rt_at(out, parts_first(f, count, keep), type),
                                parts_count(f, count, keep), peer,
                                rt_at_mutable(out, parts_first(f, count, give), type),
                                parts_count(f, count, give), type);
        if (error)
            return error;
    }
    return 0;
}

double rt_cost_halving_doubling(const struct rt_cost *c, int n, double bytes)
{
    const int working = rt_fold_of(0, n).working;
    const double share = (working - 1) / (double)working * bytes;
    return 2 * rt_ceil_log2(working) * c->a + 2 * share * c->b + share * c->g +
           rt_cost_fold(c, n, bytes);
}

int rt_allreduce_halving_doubling(struct rt_transport *t, const void *in, void *out, uint64_t count,
                                  enum rt_type type, enum rt_op op)
{
    if (t->size == 1) {
        rt_copy(out, in, count, type);
        return 0;
    }
    const struct rt_fold f = rt_fold_of(t->rank, t->size);
    const uint64_t block = rt_block_count(t, type);
    for (uint64_t first = 0; first < count; first += block) {
        uint64_t now = rt_min_u64(block, count - first);
        void *target = rt_at_mutable(out, first, type);
        const void *source =
            rt_average_begin(target, rt_at(in, first, type), now, type, op, t->size);
        int error = rt_fold_in(t, &f, source, target, now, type, op, &source);
        if (!error && f.number >= 0)
            error = halving_steps(t, &f, source, target, now, type, op);
        if (!error)
            error = rt_fold_out(t, &f, target, now, type);
        if (error)
            return error;
    }
    return 0;
}
