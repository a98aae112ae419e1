/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reduction kernels. Each loop may be vectorised without a check for overlap: `out` is one of
 * the operands or apart from both, never shifted against them.
 *
 * op(a, b) and op(b, a) are the same bits (but for which of two NaNs a sum is): ranks that combine
 * the same two in turn must agree. So max and min of floats order -0 before +0, and are NaN where
 * one of them is.
 *
 * Buffers may begin at any byte; on x86-64 that is the same code.
 *
 * What compilers make of the small floats for any processor of x86-64 costs some thirty times the
 * sum of floats; float16 and bfloat16, which training is full of, are done eight at once.
 */
#include <stdbool.h>
#include <string.h>

#include "rt-coll.h"
#include "rt-small-float.h"
#include "rt-vector.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

typedef void reduce_fn(void *out, const void *a, const void *b, uint64_t count);
typedef void scale_fn(void *out, const void *in, uint64_t count, double factor);
typedef void divide_fn(void *data, uint64_t count, int power, int n);

/* Defines reduce_<name>: z[i] = expression over x[i] and y[i]. */
#define KERNEL(name, T, expression)                                                                \
    static void reduce_##name(void *out, const void *a, const void *b, uint64_t count)             \
    {                                                                                              \
        typedef RT_LOOSE T element;                                                                \
        element *z = out;                                                                          \
        const element *x = a, *y = b;                                                              \
        INDEPENDENT                                                                                \
        for (uint64_t i = 0; i < count; i++)                                                       \
            z[i] = (T)(expression);                                                                \
    }

/* Defines scale_<name>: z[i] = expression over x[i] and factor. */
#define SCALE(name, T, expression)                                                                 \
    static void scale_##name(void *out, const void *in, uint64_t count, double factor)             \
    {                                                                                              \
        typedef RT_LOOSE T element;                                                                \
        element *z = out;                                                                          \
        const element *x = in;                                                                     \
        INDEPENDENT                                                                                \
        for (uint64_t i = 0; i < count; i++)                                                       \
            z[i] = (T)(expression);                                                                \
    }

/* Defines divide_<name>: z[i] = expression over z[i], power and n. */
#define DIVIDE(name, T, expression)                                                                \
    static void divide_##name(void *data, uint64_t count, int power, int n)                        \
    {                                                                                              \
        typedef RT_LOOSE T element;                                                                \
        element *z = data;                                                                         \
        for (uint64_t i = 0; i < count; i++)                                                       \
            z[i] = (T)(expression);                                                                \
    }

/* ---- integers ---- */

/* Sums and products are of unsigned ones, which wrap; `1u *`, as short ones would become int, whose
 * products don't. Scaled ones are cut toward zero; what doesn't fit becomes the nearest that does.
 */
#define INTEGER(name, T, U, min, max, wide)                                                        \
    KERNEL(sum_##name, U, x[i] + y[i])                                                             \
    KERNEL(prod_##name, U, 1u * x[i] * y[i])                                                       \
    KERNEL(max_##name, T, x[i] < y[i] ? y[i] : x[i])                                               \
    KERNEL(min_##name, T, y[i] < x[i] ? y[i] : x[i])                                               \
    static inline T cut_##name(wide number)                                                        \
    {                                                                                              \
        return number >= (wide)(max) ? (max) : number > (wide)(min) ? (T)number : (min);           \
    }                                                                                              \
    SCALE(name, T, cut_##name((wide)x[i] * (wide)factor))                                          \
    DIVIDE(name, T, z[i] / n)

INTEGER(i8, int8_t, uint8_t, INT8_MIN, INT8_MAX, double)
INTEGER(i16, int16_t, uint16_t, INT16_MIN, INT16_MAX, double)
INTEGER(i32, int32_t, uint32_t, INT32_MIN, INT32_MAX, double)
INTEGER(i64, int64_t, uint64_t, INT64_MIN, INT64_MAX, long double)
INTEGER(u8, uint8_t, uint8_t, 0, UINT8_MAX, double)
INTEGER(u16, uint16_t, uint16_t, 0, UINT16_MAX, double)
INTEGER(u32, uint32_t, uint32_t, 0, UINT32_MAX, double)
INTEGER(u64, uint64_t, uint64_t, 0, UINT64_MAX, long double)

/* ---- truth values: any byte but 0 is true ---- */

KERNEL(or_bool, uint8_t, (x[i] != 0) | (y[i] != 0))
KERNEL(and_bool, uint8_t, (x[i] != 0) & (y[i] != 0))
SCALE(bool, uint8_t, (x[i] != 0) & (factor != 0))

/* ---- floats ---- */

/* Where neither is greater: equal numbers, zeros of unequal sign, or a NaN, which `|` keeps. */
#define EXTREMES(name, T, U)                                                                       \
    static inline T merge_##name(T x, T y, U flip)                                                 \
    {                                                                                              \
        U a, b;                                                                                    \
        memcpy(&a, &x, sizeof a);                                                                  \
        memcpy(&b, &y, sizeof b);                                                                  \
        a = ((a ^ flip) | (b ^ flip)) ^ flip;                                                      \
        memcpy(&x, &a, sizeof x);                                                                  \
        return x;                                                                                  \
    }                                                                                              \
    KERNEL(max_##name, T,                                                                          \
           x[i] > y[i]   ? x[i]                                                                    \
           : y[i] > x[i] ? y[i]                                                                    \
                         : merge_##name(x[i], y[i], (U)1 << (8 * sizeof(U) - 1)))                  \
    KERNEL(min_##name, T, x[i] < y[i] ? x[i] : y[i] < x[i] ? y[i] : merge_##name(x[i], y[i], 0))

#define FLOAT(name, T, U)                                                                          \
    KERNEL(sum_##name, T, x[i] + y[i])                                                             \
    KERNEL(prod_##name, T, x[i] * y[i])                                                            \
    EXTREMES(name, T, U)                                                                           \
    SCALE(name, T, x[i] * factor)                                                                  \
    DIVIDE(name, T, z[i] / (T)n)

FLOAT(f32, float, uint32_t)
FLOAT(f64, double, uint64_t)

/* ---- small floats: a float's 24 bits are enough that rounding its result again is harmless ----
 */

/* Bits in the order of the numbers: those of negative ones turned over. */
#define ORDER(name, U, S)                                                                          \
    static inline S order_##name(U number)                                                         \
    {                                                                                              \
        S sign = (S)((S)number >> (8 * sizeof(S) - 1));                                            \
        return (S)(number ^ ((U)sign >> 1));                                                       \
    }

/* Of a NaN and another, `|` is a NaN. */
#define SMALL(name, U, S, f)                                                                       \
    KERNEL(sum_##name, U,                                                                          \
           rt_small_of_float(rt_small_to_float(x[i], f) + rt_small_to_float(y[i], f), f))          \
    KERNEL(prod_##name, U,                                                                         \
           rt_small_of_float(rt_small_to_float(x[i], f) * rt_small_to_float(y[i], f), f))          \
    ORDER(name, U, S)                                                                              \
    static inline bool has_nan_##name(U x, U y)                                                    \
    {                                                                                              \
        return rt_small_is_nan(x, f) || rt_small_is_nan(y, f);                                     \
    }                                                                                              \
    KERNEL(max_##name, U,                                                                          \
           has_nan_##name(x[i], y[i])                ? x[i] | y[i]                                 \
           : order_##name(x[i]) < order_##name(y[i]) ? y[i]                                        \
                                                     : x[i])                                       \
    KERNEL(min_##name, U,                                                                          \
           has_nan_##name(x[i], y[i])                ? x[i] | y[i]                                 \
           : order_##name(x[i]) < order_##name(y[i]) ? x[i]                                        \
                                                     : y[i])                                       \
    SCALE(name, U, rt_small_of_double((double)rt_small_to_float(x[i], f) * factor, f))             \
    DIVIDE(name, U, rt_small_of_float(rt_small_to_float(z[i], f) * (float)power / (float)n, f))

SMALL(f16, uint16_t, int16_t, rt_float16)
SMALL(bf16, uint16_t, int16_t, rt_bfloat16)
SMALL(e4m3, uint8_t, int8_t, rt_float8_e4m3)
SMALL(e5m2, uint8_t, int8_t, rt_float8_e5m2)

/* ---- 16-bit floats where the processor does eight at once ---- */

#if defined(__x86_64__)
/* Defines f16c_<name>: as reduce_<name>_f16, which does what is left of eight. */
#define F16C_KERNEL(name, operation)                                                               \
    RT_F16C static void f16c_##name(void *out, const void *a, const void *b, uint64_t count)       \
    {                                                                                              \
        rt_loose_16 *z = out;                                                                      \
        const rt_loose_16 *x = a, *y = b;                                                          \
        uint64_t i = 0;                                                                            \
        for (; count - i >= 8; i += 8) {                                                           \
            __m256 p = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i)));                 \
            __m256 q = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(y + i)));                 \
            __m128i r = _mm256_cvtps_ph(operation(p, q), _MM_FROUND_TO_NEAREST_INT);               \
            _mm_storeu_si128((__m128i *)(z + i), r);                                               \
        }                                                                                          \
        reduce_##name##_f16(z + i, x + i, y + i, count - i);                                       \
    }
F16C_KERNEL(sum, _mm256_add_ps)
F16C_KERNEL(prod, _mm256_mul_ps)

/* Defines eight_<name>: as reduce_<name>_bf16. */
#define BFLOAT16_KERNEL(name, operation)                                                           \
    static void eight_##name(void *out, const void *a, const void *b, uint64_t count)              \
    {                                                                                              \
        rt_loose_16 *z = out;                                                                      \
        const rt_loose_16 *x = a, *y = b;                                                          \
        uint64_t i = 0;                                                                            \
        for (; count - i >= 8; i += 8) {                                                           \
            const struct rt_eight p = rt_load_bfloat16(x + i), q = rt_load_bfloat16(y + i);        \
            rt_store_bfloat16(                                                                     \
                z + i, (struct rt_eight){operation(p.low, q.low), operation(p.high, q.high)});     \
        }                                                                                          \
        reduce_##name##_bf16(z + i, x + i, y + i, count - i);                                      \
    }
BFLOAT16_KERNEL(sum, _mm_add_ps)
BFLOAT16_KERNEL(prod, _mm_mul_ps)

/* NULL: none. */
static reduce_fn *quicker(enum rt_type type, enum rt_op op)
{
    bool adds = op == RT_SUM || op == RT_AVG;
    if (!adds && op != RT_PROD)
        return NULL;
    if (type == RT_BFLOAT16)
        return adds ? eight_sum : eight_prod;
    if (type != RT_FLOAT16 || !rt_has_f16c())
        return NULL;
    return adds ? f16c_sum : f16c_prod;
}
#else
static reduce_fn *quicker(enum rt_type type, enum rt_op op)
{
    return NULL;
}
#endif

/* ---- all of them ---- */

static const struct {
    reduce_fn *reduce[RT_OP_COUNT];
    scale_fn *scale;
    divide_fn *divide; /* NULL: an average is made by its reduction alone */
    bool narrow;       /* a sum may be too large where the average is not */
} kernels[RT_TYPE_COUNT] = {
#define NUMBER(name, is_narrow)                                                                    \
    {                                                                                              \
        .reduce = {[RT_SUM] = reduce_sum_##name,                                                   \
                   [RT_PROD] = reduce_prod_##name,                                                 \
                   [RT_MAX] = reduce_max_##name,                                                   \
                   [RT_MIN] = reduce_min_##name,                                                   \
                   [RT_AVG] = reduce_sum_##name},                                                  \
        .scale = scale_##name, .divide = divide_##name, .narrow = is_narrow                        \
    }
    [RT_FLOAT32] = NUMBER(f32, false),
    [RT_FLOAT64] = NUMBER(f64, false),
    [RT_FLOAT16] = NUMBER(f16, true),
    [RT_BFLOAT16] = NUMBER(bf16, false),
    [RT_FLOAT8_E4M3] = NUMBER(e4m3, true),
    [RT_FLOAT8_E5M2] = NUMBER(e5m2, true),
    [RT_INT8] = NUMBER(i8, false),
    [RT_INT16] = NUMBER(i16, false),
    [RT_INT32] = NUMBER(i32, false),
    [RT_INT64] = NUMBER(i64, false),
    [RT_UINT8] = NUMBER(u8, false),
    [RT_UINT16] = NUMBER(u16, false),
    [RT_UINT32] = NUMBER(u32, false),
    [RT_UINT64] = NUMBER(u64, false),
    [RT_BOOL] = {.reduce = {[RT_SUM] = reduce_or_bool,
                            [RT_PROD] = reduce_and_bool,
                            [RT_MAX] = reduce_or_bool,
                            [RT_MIN] = reduce_and_bool,
                            [RT_AVG] = reduce_and_bool},
                 .scale = scale_bool},
};

void rt_reduce(void *out, const void *a, const void *b, uint64_t count, enum rt_type type,
               enum rt_op op)
{
    reduce_fn *fn = quicker(type, op);
    (fn ? fn : kernels[type].reduce[op])(out, a, b, count);
}

void rt_scale(void *out, const void *in, uint64_t count, enum rt_type type, double factor)
{
    if (factor != 1)
        kernels[type].scale(out, in, count, factor);
    else if (out != in && count > 0)
        memcpy(out, in, count * rt_type_bytes(type));
}

void rt_multiply(void *out, const void *in, uint64_t count, enum rt_type type, const void *scalar)
{
    const uint64_t bytes = rt_type_bytes(type);
    char many[1024] __attribute__((aligned(64)));
    const uint64_t room = sizeof many / bytes;
    for (uint64_t i = 0; i < room && i < count; i++)
        memcpy(many + i * bytes, scalar, bytes);
    for (uint64_t first = 0; first < count; first += room)
        rt_reduce((char *)out + first * bytes, (const char *)in + first * bytes, many,
                  count - first < room ? count - first : room, type, RT_PROD);
}

/* What sums of narrow types are divided by on the way: a power of two costs no precision. */
int rt_average_power(enum rt_type type, int n)
{
    int power = 1;
    while (kernels[type].narrow && power < n)
        power *= 2;
    return power;
}

const void *rt_average_begin(void *out, const void *in, uint64_t count, enum rt_type type,
                             enum rt_op op, int n)
{
    int power = op == RT_AVG ? rt_average_power(type, n) : 1;
    if (power == 1)
        return in;
    rt_scale(out, in, count, type, 1.0 / power);
    return out;
}

void rt_average_end(void *data, uint64_t count, enum rt_type type, enum rt_op op, int n)
{
    if (op == RT_AVG && n > 1 && kernels[type].divide)
        kernels[type].divide(data, count, rt_average_power(type, n), n);
}
