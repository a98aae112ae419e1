/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reduction kernels. Each loop may be vectorised without a check for overlap: `out` is one of
 * the operands or apart from both, never shifted against them.
 */
#include "rt-coll.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

typedef void reduce_fn(void *out, const void *a, const void *b, uint64_t count);

/* Defines reduce_<name>: z[i] = expression over x[i] and y[i]. */
#define KERNEL(name, T, expression)                                                                \
    static void reduce_##name(void *out, const void *a, const void *b, uint64_t count)             \
    {                                                                                              \
        T *z = out;                                                                                \
        const T *x = a, *y = b;                                                                    \
        INDEPENDENT                                                                                \
        for (uint64_t i = 0; i < count; i++)                                                       \
            z[i] = (expression);                                                                   \
    }

/* unsigned: sums and products of integers wrap */
KERNEL(sum_f32, float, x[i] + y[i])
KERNEL(prod_f32, float, x[i] * y[i])
KERNEL(max_f32, float, x[i] < y[i] ? y[i] : x[i])
KERNEL(min_f32, float, y[i] < x[i] ? y[i] : x[i])
KERNEL(sum_i32, uint32_t, x[i] + y[i])
KERNEL(prod_i32, uint32_t, x[i] * y[i])
KERNEL(max_i32, int32_t, x[i] < y[i] ? y[i] : x[i])
KERNEL(min_i32, int32_t, y[i] < x[i] ? y[i] : x[i])

static reduce_fn *const kernels[RT_TYPE_COUNT][RT_OP_COUNT] = {
    [RT_FLOAT32] = {[RT_SUM] = reduce_sum_f32,
                    [RT_PROD] = reduce_prod_f32,
                    [RT_MAX] = reduce_max_f32,
                    [RT_MIN] = reduce_min_f32,
                    [RT_AVG] = reduce_sum_f32},
    [RT_INT32] = {[RT_SUM] = reduce_sum_i32,
                  [RT_PROD] = reduce_prod_i32,
                  [RT_MAX] = reduce_max_i32,
                  [RT_MIN] = reduce_min_i32,
                  [RT_AVG] = reduce_sum_i32},
};

void rt_reduce(void *out, const void *a, const void *b, uint64_t count, enum rt_type type,
               enum rt_op op)
{
    kernels[type][op](out, a, b, count);
}

static void divide_f32(float *data, uint64_t count, float n)
{
    for (uint64_t i = 0; i < count; i++)
        data[i] /= n;
}

static void divide_i32(int32_t *data, uint64_t count, int32_t n)
{
    for (uint64_t i = 0; i < count; i++)
        data[i] /= n;
}

void rt_divide(void *data, uint64_t count, enum rt_type type, int n)
{
    if (type == RT_FLOAT32)
        divide_f32(data, count, (float)n);
    else
        divide_i32(data, count, n);
}
