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

/* `fn` for each rank, at once; the results are as run_ranks's. */
typedef int one_rank_fn(int rank, int size, void *data);
int run_each(int size, bool processes, one_rank_fn *fn, void *data);

/* 0, or what the lowest rank that failed returned, or -errno. */
int run_ranks(int size, bool processes, rank_fn *fn, void *argument);

#endif
