/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-describe.h - a tensor's shape, as the text that ranks compare.
 */
#ifndef RT_DESCRIBE_H
#define RT_DESCRIBE_H

#include "rt-operation.h"

/* Writes tensor->shape; its kind and counts stand already, `rows` where they are none of its own.
 * `options` may be NULL. -EINVAL: the dimensions are too many, or don't give the count. */
int rt_describe_shape(struct rt_tensor *tensor, const struct rt_options *options, uint64_t rows);
/* The same of a group: all members' counts; of many, the first and a number made of all. */
void rt_describe_group(struct rt_tensor *tensor, const struct rt_member *members, unsigned n);
/* "ranks 0-3,7" of numbers that ascend; of many, the first and a number made of all. */
void rt_describe_ranks(const int *ranks, int n, char *ret, size_t bytes);

#endif
