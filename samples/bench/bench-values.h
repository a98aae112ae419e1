/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-values.h - what rt-bench's ranks bring, and what must come out. Small whole numbers, so
 * that sums are exact in every type as long as they are small.
 */
#ifndef BENCH_VALUES_H
#define BENCH_VALUES_H

#include <stdint.h>

#include "rt-types.h"

/* Elements `first` to first + count - 1 of what `rank` brings. */
void values_fill(void *data, uint64_t count, enum rt_type type, enum rt_op op, int rank,
                 uint64_t first);
/* How many of these elements, reduced over `size` ranks, are wrong. */
uint64_t values_wrong(const void *data, uint64_t count, enum rt_type type, enum rt_op op, int size,
                      uint64_t first);
/* ... brought by `rank`, and not reduced. */
uint64_t values_wrong_of_rank(const void *data, uint64_t count, enum rt_type type, enum rt_op op,
                              int rank, uint64_t first);

#endif
