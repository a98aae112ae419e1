/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All pairs of types go by doubles, some at a time, so that they stay in cache. What gradients go
 * through each step, float32 to 16 bits and back without a scale, or with one that a float can hold
 * exactly, needs no double to be rounded once.
 */
#include "rt-convert.h"

#include <string.h>

#include "rt-small-float.h"
#include "rt-vector.h"

#define AT_ONCE 512

#define LOAD(name, T, expression)                                                                  \
    static void load_##name(double *out, const void *in, uint64_t count)                           \
    {                                                                                              \
        typedef RT_LOOSE T element;                                                                \
        const element *x = in;                                                                     \
        for (uint64_t i = 0; i < count; i++)                                                       \
            out[i] = (double)(expression);                                                         \
    }
#define STORE(name, T, expression)                                                                 \
    static void store_##name(void *out, const double *x, uint64_t count)                           \
    {                                                                                              \
        typedef RT_LOOSE T element;                                                                \
        element *z = out;                                                                          \
        for (uint64_t i = 0; i < count; i++)                                                       \
            z[i] = (T)(expression);                                                                \
    }
#define BOTH(name, T)                                                                              \
    LOAD(name, T, x[i])                                                                            \
    STORE(name, T, x[i])
#define SMALL(name, T, f)                                                                          \
    LOAD(name, T, rt_small_to_float(x[i], f))                                                      \
    STORE(name, T, rt_small_of_double(x[i], f))

BOTH(f32, float)
BOTH(f64, double)
SMALL(f16, uint16_t, rt_float16)
SMALL(bf16, uint16_t, rt_bfloat16)
SMALL(e4m3, uint8_t, rt_float8_e4m3)
SMALL(e5m2, uint8_t, rt_float8_e5m2)

static const struct {
    void (*load)(double *out, const void *in, uint64_t count);
    void (*store)(void *out, const double *in, uint64_t count);
} kernels[RT_TYPE_COUNT] = {
    [RT_FLOAT32] = {load_f32, store_f32},       [RT_FLOAT64] = {load_f64, store_f64},
    [RT_FLOAT16] = {load_f16, store_f16},       [RT_BFLOAT16] = {load_bf16, store_bf16},
    [RT_FLOAT8_E4M3] = {load_e4m3, store_e4m3}, [RT_FLOAT8_E5M2] = {load_e5m2, store_e5m2},
};

bool rt_type_is_float(enum rt_type type)
{
    return (unsigned)type < RT_TYPE_COUNT && kernels[type].load;
}

void rt_to_doubles(double *out, const void *in, uint64_t count, enum rt_type type)
{
    if (rt_type_is_float(type))
        kernels[type].load(out, in, count);
}

void rt_of_doubles(void *out, const double *in, uint64_t count, enum rt_type type)
{
    if (rt_type_is_float(type))
        kernels[type].store(out, in, count);
}

/* ---- float32 to 16 bits and back, in floats ---- */

typedef void quick_fn(void *out, const void *in, uint64_t count, float factor);

#define QUICK(name, T, U, expression)                                                              \
    static void name(void *out, const void *in, uint64_t count, float factor)                      \
    {                                                                                              \
        typedef RT_LOOSE T element;                                                                \
        typedef RT_LOOSE U source;                                                                 \
        element *z = out;                                                                          \
        const source *x = in;                                                                      \
        for (uint64_t i = 0; i < count; i++)                                                       \
            z[i] = (T)(expression);                                                                \
    }
QUICK(float_to_f16, uint16_t, float, rt_small_of_float(x[i] * factor, rt_float16))
QUICK(f16_to_float, float, uint16_t, rt_small_to_float(x[i], rt_float16) * factor)
QUICK(float_to_bf16, uint16_t, float, rt_small_of_float(x[i] * factor, rt_bfloat16))
QUICK(bf16_to_float, float, uint16_t, rt_small_to_float(x[i], rt_bfloat16) * factor)

#if defined(__x86_64__)
RT_F16C static void f16c_of_float(void *out, const void *in, uint64_t count, float factor)
{
    rt_loose_16 *z = out;
    const rt_loose_float *x = in;
    const __m256 scale = _mm256_set1_ps(factor);
    uint64_t i = 0;
    for (; count - i >= 8; i += 8)
        _mm_storeu_si128(
            (__m128i *)(z + i),
            _mm256_cvtps_ph(_mm256_mul_ps(_mm256_loadu_ps((const void *)(x + i)), scale),
                            _MM_FROUND_TO_NEAREST_INT));
    float_to_f16(z + i, x + i, count - i, factor);
}

RT_F16C static void f16c_to_float(void *out, const void *in, uint64_t count, float factor)
{
    rt_loose_float *z = out;
    const rt_loose_16 *x = in;
    const __m256 scale = _mm256_set1_ps(factor);
    uint64_t i = 0;
    for (; count - i >= 8; i += 8)
        _mm256_storeu_ps(
            (void *)(z + i),
            _mm256_mul_ps(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))), scale));
    f16_to_float(z + i, x + i, count - i, factor);
}

static void eight_of_float(void *out, const void *in, uint64_t count, float factor)
{
    rt_loose_16 *z = out;
    const rt_loose_float *x = in;
    const __m128 scale = _mm_set1_ps(factor);
    uint64_t i = 0;
    for (; count - i >= 8; i += 8)
        rt_store_bfloat16(
            z + i, (struct rt_eight){_mm_mul_ps(_mm_loadu_ps((const void *)(x + i)), scale),
                                     _mm_mul_ps(_mm_loadu_ps((const void *)(x + i + 4)), scale)});
    float_to_bf16(z + i, x + i, count - i, factor);
}

static void eight_to_float(void *out, const void *in, uint64_t count, float factor)
{
    rt_loose_float *z = out;
    const rt_loose_16 *x = in;
    const __m128 scale = _mm_set1_ps(factor);
    uint64_t i = 0;
    for (; count - i >= 8; i += 8) {
        const struct rt_eight p = rt_load_bfloat16(x + i);
        _mm_storeu_ps((void *)(z + i), _mm_mul_ps(p.low, scale));
        _mm_storeu_ps((void *)(z + i + 4), _mm_mul_ps(p.high, scale));
    }
    bf16_to_float(z + i, x + i, count - i, factor);
}
#else
#define f16c_of_float  float_to_f16
#define f16c_to_float  f16_to_float
#define eight_of_float float_to_bf16
#define eight_to_float bf16_to_float
static bool rt_has_f16c(void)
{
    return false;
}
#endif

static bool is_power_of_two(float factor)
{
    return factor >= 0x1p-64f && factor <= 0x1p64f && (rt_bits_of_float(factor) & 0x7fffffu) == 0;
}

/* Where one rounding to float on the way is none. To 16 bits: a product by a power of two is exact,
 * unless it is so small that float16 makes zero of it; bfloat16 has a float's exponents and would
 * be rounded twice there. Back: 11 bits times a float's 24 fit a double, which is rounded; before a
 * division the product must be exact, and the divisor a float. NULL: none. */
static quick_fn *quick(enum rt_type out, enum rt_type in, double factor, double divisor)
{
    const float narrow = (float)factor;
    const bool divides = divisor != 1;
    if ((double)narrow != factor || (double)(float)divisor != divisor)
        return NULL;
    if (in == RT_FLOAT32 && out == RT_FLOAT16 && is_power_of_two(narrow) && !divides)
        return rt_has_f16c() ? f16c_of_float : float_to_f16;
    if (in == RT_FLOAT32 && out == RT_BFLOAT16 && narrow == 1 && !divides)
        return eight_of_float;
    if (in == RT_FLOAT16 && out == RT_FLOAT32 && (is_power_of_two(narrow) || !divides))
        return rt_has_f16c() ? f16c_to_float : f16_to_float;
    return in == RT_BFLOAT16 && out == RT_FLOAT32 && (narrow == 1 || !divides) ? eight_to_float
                                                                               : NULL;
}

static void divide(void *out, uint64_t count, float divisor)
{
    rt_loose_float *z = out;
    for (uint64_t i = 0; i < count; i++)
        z[i] /= divisor;
}

/* ---- the rest ---- */

static void scale(double *data, uint64_t count, double factor, double divisor)
{
    for (uint64_t i = 0; i < count; i++)
        data[i] *= factor;
    if (divisor != 1)
        for (uint64_t i = 0; i < count; i++)
            data[i] /= divisor;
}

void rt_convert(void *out, enum rt_type out_type, const void *in, enum rt_type in_type,
                uint64_t count, double factor, double divisor)
{
    quick_fn *fn = quick(out_type, in_type, factor, divisor);
    double many[AT_ONCE] __attribute__((aligned(64)));
    if (!rt_type_is_float(out_type) || !rt_type_is_float(in_type))
        return;
    if (fn) {
        fn(out, in, count, (float)factor);
        if (divisor != 1) /* then floats have come out */
            divide(out, count, (float)divisor);
        return;
    }
    for (uint64_t first = 0; first < count; first += AT_ONCE) {
        const uint64_t some = count - first < AT_ONCE ? count - first : AT_ONCE;
        kernels[in_type].load(many, (const char *)in + first * rt_type_bytes(in_type), some);
        scale(many, some, factor, divisor);
        kernels[out_type].store((char *)out + first * rt_type_bytes(out_type), many, some);
    }
}
