/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-small-float.h - the floats of 16 and 8 bits that C has no type for: to float, and back.
 *
 * Model: sign, exponent, mantissa, with subnormals. float16 is IEEE's, bfloat16 the upper half of a
 * float, float8_e4m3 and float8_e5m2 are those of the Open Compute Project. Back from float rounds
 * to nearest, ties to even. What is too large becomes infinity; in float8 the largest finite
 * number, as the vendor's conversions do it (e4m3 has no infinity). Every NaN becomes the same one.
 *
 * No branches and no tables, so that loops over these are vectorised.
 */
#ifndef RT_SMALL_FLOAT_H
#define RT_SMALL_FLOAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct rt_small_float {
    uint32_t bits, mantissa_bits, bias;
    uint32_t special; /* without its sign, the first pattern that is no finite number */
    uint32_t largest; /* what numbers that are too large become */
    uint32_t nan;
};

static const struct rt_small_float rt_float16 = {16, 10, 15, 0x7c00, 0x7c00, 0x7e00};
static const struct rt_small_float rt_bfloat16 = {16, 7, 127, 0x7f80, 0x7f80, 0x7fc0};
static const struct rt_small_float rt_float8_e4m3 = {8, 3, 7, 0x7f, 0x7e, 0x7f};
static const struct rt_small_float rt_float8_e5m2 = {8, 2, 15, 0x7c, 0x7b, 0x7f};

static inline float rt_float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static inline uint32_t rt_bits_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* 2^n as a float, -126 <= n <= 127. */
static inline float rt_power_of_two(int n)
{
    return rt_float_of_bits((uint32_t)(n + 127) << 23);
}

static inline bool rt_small_is_nan(uint32_t small, struct rt_small_float f)
{
    const uint32_t sign = 1u << (f.bits - 1);
    return (small & (sign - 1)) > f.special - (f.special == f.nan);
}

static inline float rt_small_to_float(uint32_t small, struct rt_small_float f)
{
    const uint32_t sign = 1u << (f.bits - 1), magnitude = small & (sign - 1);
    const uint32_t placed = magnitude << (23 - f.mantissa_bits);
    uint32_t bits = placed + ((127 - f.bias) << 23);
    if (f.bias != 127) { /* else subnormal and special ones lie as a float's */
        float subnormal =
            (float)(int32_t)magnitude * rt_power_of_two(1 - (int)f.bias - (int)f.mantissa_bits);
        bits = magnitude >> f.mantissa_bits == 0 ? rt_bits_of_float(subnormal) : bits;
        bits = magnitude >= f.special ? placed | 0x7f800000u : bits;
    }
    return rt_float_of_bits(bits | (small & sign) << (32 - f.bits));
}

static inline uint32_t rt_small_of_float(float number, struct rt_small_float f)
{
    const uint32_t all = rt_bits_of_float(number), magnitude = all & 0x7fffffffu;
    const uint32_t shift = 23 - f.mantissa_bits, odd = magnitude >> shift & 1;
    uint32_t small = (magnitude + (1u << (shift - 1)) - 1 + odd) >> shift;
    if (f.bias != 127) {
        /* adding it leaves no bits below the smallest subnormal: the processor rounds */
        float large = rt_power_of_two(23 + 1 - (int)f.bias - (int)f.mantissa_bits);
        uint32_t subnormal =
            rt_bits_of_float(rt_float_of_bits(magnitude) + large) - rt_bits_of_float(large);
        small = magnitude < (128 - f.bias) << 23 ? subnormal
                                                 : small - ((127 - f.bias) << f.mantissa_bits);
    }
    small = small > f.largest ? f.largest : small;
    small |= (all & 0x80000000u) >> (32 - f.bits);
    return magnitude > 0x7f800000u ? f.nan : small;
}

static inline double rt_double_of_bits(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* Rounded once: what a float can't hold stays as an odd last bit on the way; what will be
 * subnormal, and might be for a float too, is rounded by the addition of a number that has no bits
 * below. */
static inline uint32_t rt_small_of_double(double number, struct rt_small_float f)
{
    const uint64_t low = ((uint64_t)1 << 29) - 1; /* a double's bits below a float's */
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    const uint64_t sign = bits & (uint64_t)1 << 63;
    const double magnitude = rt_double_of_bits(bits ^ sign);
    const double large = rt_double_of_bits((uint64_t)(1023 + 53 - f.bias - f.mantissa_bits) << 52);
    const double tiny = magnitude + large - large;
    memcpy(&bits, magnitude < (double)rt_power_of_two(1 - (int)f.bias) ? &tiny : &magnitude,
           sizeof bits);
    bits = sign | (bits & ~low) | (((bits & low) + low) & (low + 1));
    return rt_small_of_float((float)rt_double_of_bits(bits), f);
}

#endif
