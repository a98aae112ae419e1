/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-fold.h - algorithms for a power of two of ranks, made to work for any number.
 *
 * Within rt_coll only. Of n = p + e ranks, p the largest power of two, the first 2 e pair up: the
 * even one of a pair gives its data to the odd one and sits out; at the end it gets the result. The
 * p ranks that work are numbered anew, 0 to p - 1. Cost: 2 a + 2 S b + S g where e > 0.
 */
#ifndef RT_FOLD_H
#define RT_FOLD_H

#include "rt-coll.h"
#include "rt-cost.h"

struct rt_fold {
    int working; /* p */
    int extra;   /* e */
    int number;  /* of this rank among those that work, -1 sits out */
    int partner; /* the other of the pair, -1 none */
};

struct rt_fold rt_fold_of(int rank, int size);
double rt_cost_fold(const struct rt_cost *c, int n, double bytes);
/* Rank of the one that works as `number`. */
int rt_fold_rank(const struct rt_fold *f, int number);

/* Start: gives `in` to the partner, or receives the partner's: out = op(in, received). Returns 0
 * and sets *ret_source to where this rank's data now is: `in` or `out`. At most a block. */
int rt_fold_in(struct rt_transport *t, const struct rt_fold *f, const void *in, void *out,
               uint64_t count, enum rt_type type, enum rt_op op, const void **ret_source);
/* End: the result in `out` goes to the partner that sat out. */
int rt_fold_out(struct rt_transport *t, const struct rt_fold *f, void *out, uint64_t count,
                enum rt_type type);

#endif
