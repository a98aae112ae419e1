/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-ranks.h - runs a function as the ranks of a shared-memory transport, in threads or processes.
 *
 * For tests. A rank's function returns 0, or a number that says what failed; ranks share `memory`,
 * zeroed, beside the transport's region.
 */
#ifndef RT_RANKS_H
#define RT_RANKS_H

#include <stdbool.h>

#include "rt-coll.h"

typedef int rank_fn(struct rt_transport *t, void *argument);

/* 0, or what the lowest rank that failed returned, or -errno. */
int run_ranks(int size, bool processes, rank_fn *fn, void *argument);

/* The value that rank `rank` puts at `index` of tensor `tensor`: exact in both types, and so are
 * sums of 64 ranks; for RT_PROD small enough that products are exact too. */
double rank_value(int rank, int tensor, uint64_t index, enum rt_op op);
/* What reducing them over ranks 0 .. size - 1 gives, computed one after the other. */
double reduced_value(int size, int tensor, uint64_t index, enum rt_type type, enum rt_op op);

void fill(void *data, uint64_t count, enum rt_type type, int rank, int tensor, enum rt_op op);
double element(const void *data, uint64_t index, enum rt_type type);

#endif
