/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-fold.h"

#include "rt-step.h"

struct rt_fold rt_fold_of(int rank, int size)
{
    struct rt_fold f = {.working = 1, .partner = -1};
    while (f.working * 2 <= size)
        f.working *= 2;
    f.extra = size - f.working;
    if (rank >= 2 * f.extra) {
        f.number = rank - f.extra;
    } else {
        f.partner = rank ^ 1;
        f.number = rank % 2 == 0 ? -1 : rank / 2;
    }
    return f;
}

double rt_cost_fold(const struct rt_cost *c, int n, double bytes)
{
    return rt_fold_of(0, n).extra > 0 ? 2 * c->a + bytes * (2 * c->b + c->g) : 0;
}

int rt_fold_rank(const struct rt_fold *f, int number)
{
    return number < f->extra ? 2 * number + 1 : number + f->extra;
}

int rt_fold_in(struct rt_transport *t, const struct rt_fold *f, const void *in, void *out,
               uint64_t count, enum rt_type type, enum rt_op op, const void **ret_source)
{
    *ret_source = in;
    if (f->partner < 0)
        return 0;
    if (f->number < 0)
        return rt_exchange(t, f->partner, in, count, -1, NULL, 0, type);
    *ret_source = out;
    return rt_exchange_reduce(t, -1, NULL, 0, f->partner, out, in, count, type, op);
}

int rt_fold_out(struct rt_transport *t, const struct rt_fold *f, void *out, uint64_t count,
                enum rt_type type)
{
    if (f->partner < 0)
        return 0;
    if (f->number < 0)
        return rt_exchange(t, -1, NULL, 0, f->partner, out, count, type);
    return rt_exchange(t, f->partner, out, count, -1, NULL, 0, type);
}
