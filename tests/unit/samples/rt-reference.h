/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-reference.h - what collectives must give, computed one rank after the other, in double, by
 * no code of rt_coll.
 *
 * For tests. Inputs are integers that encode rank, tensor and index, so small for each type that
 * what 8 ranks make of them is exact, whatever the order (float32, float64 and integers of 32 and
 * 64 bits: 64 ranks); only averages are rounded.
 */
#ifndef RT_REFERENCE_H
#define RT_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "rt-types.h"

/* The value that rank `rank` puts at `index` of tensor `tensor`. */
double rank_value(int rank, int tensor, uint64_t index, enum rt_type type, enum rt_op op);
/* What reducing them over ranks 0 .. size - 1 gives. */
double reduced_value(int size, int tensor, uint64_t index, enum rt_type type, enum rt_op op);

void fill(void *data, uint64_t count, enum rt_type type, int rank, int tensor, enum rt_op op);
/* Elements [first, first + count) of the reduced tensor lie at `data`; of very many, samples. */
bool holds_reduced(const void *data, uint64_t first, uint64_t count, int size, int tensor,
                   enum rt_type type, enum rt_op op);
/* Elements [first, first + count) of what `rank` put in lie at `data`. */
bool holds_values(const void *data, uint64_t first, uint64_t count, int rank, int tensor,
                  enum rt_type type, enum rt_op op);

double element(const void *data, uint64_t index, enum rt_type type);
/* `value` must be one of the type's, or a NaN. */
void set_element(void *data, uint64_t index, enum rt_type type, double value);

/* The nearest number of a small float's type, ties to even; too large: infinity, or float8's
 * largest. */
double nearest_small(double value, enum rt_type type);

#endif
