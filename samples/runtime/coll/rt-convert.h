/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-convert.h - floats of one type made of those of another, scaled on the way.
 *
 * Arithmetic: out = in * factor / divisor in double, then rounded to the type once, to nearest,
 * ties to even. What is too large becomes infinity (in float8 the largest finite number), what is
 * too small a subnormal or zero of its sign. A NaN stays a NaN, an infinity an infinity. Only
 * floats: other types are left alone. `out` may be `in` where the types' sizes are the same.
 */
#ifndef RT_CONVERT_H
#define RT_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "rt-types.h"

bool rt_type_is_float(enum rt_type type);

void rt_convert(void *out, enum rt_type out_type, const void *in, enum rt_type in_type,
                uint64_t count, double factor, double divisor);

/* `count` numbers of any float type as doubles, and back. */
void rt_to_doubles(double *out, const void *in, uint64_t count, enum rt_type type);
void rt_of_doubles(void *out, const double *in, uint64_t count, enum rt_type type);

#endif
