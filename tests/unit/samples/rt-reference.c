/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-reference.h"

#include <math.h>
#include <string.h>

/* ---- the small floats, by the definition of floating point ---- */

struct small {
    int bits, mantissa_bits, least_exponent; /* of a normal number */
    double largest;
    bool has_infinity;
};

static const struct small *small_of(enum rt_type type)
{
    static const struct small float16 = {16, 10, -14, 65504, true};
    static const struct small bfloat16 = {16, 7, -126, 0x1.fep127, true};
    static const struct small e4m3 = {8, 3, -6, 448, false};
    static const struct small e5m2 = {8, 2, -14, 57344, true};
    return type == RT_FLOAT16       ? &float16
           : type == RT_BFLOAT16    ? &bfloat16
           : type == RT_FLOAT8_E4M3 ? &e4m3
           : type == RT_FLOAT8_E5M2 ? &e5m2
                                    : NULL;
}

double nearest_small(double value, enum rt_type type)
{
    const struct small *s = small_of(type);
    if (value == 0 || isnan(value))
        return value;
    int exponent = isinf(value) ? 1000 : ilogb(value);
    double unit =
        ldexp(1, (exponent > s->least_exponent ? exponent : s->least_exponent) - s->mantissa_bits);
    double nearest = nearbyint(value / unit) * unit;
    if (fabs(nearest) <= s->largest && !isinf(value))
        return nearest;
    return copysign(s->bits == 16 ? INFINITY : s->largest, value);
}

static unsigned small_bits(double value, const struct small *s)
{
    unsigned sign = signbit(value) ? 1u << (s->bits - 1) : 0, all = (1u << (s->bits - 1)) - 1;
    unsigned infinity = all >> s->mantissa_bits << s->mantissa_bits;
    if (isnan(value))
        return s->has_infinity ? sign | infinity | 1u << (s->mantissa_bits - 1) : sign | all;
    if (isinf(value))
        return sign | infinity;
    int exponent = value == 0 ? s->least_exponent : ilogb(value);
    exponent = exponent < s->least_exponent ? s->least_exponent : exponent;
    unsigned units = (unsigned)ldexp(fabs(value), s->mantissa_bits - exponent);
    /* a normal number's first bit counts as one more of the exponent */
    return sign + ((unsigned)(exponent - s->least_exponent) << s->mantissa_bits) + units;
}

static double small_value(unsigned bits, const struct small *s)
{
    unsigned all = (1u << (s->bits - 1)) - 1, magnitude = bits & all;
    unsigned exponent = magnitude >> s->mantissa_bits;
    unsigned mantissa = magnitude & ((1u << s->mantissa_bits) - 1);
    double value = ldexp(mantissa, s->least_exponent - s->mantissa_bits);
    if (exponent > 0)
        value = ldexp((double)(mantissa | 1u << s->mantissa_bits),
                      (int)exponent - 1 + s->least_exponent - s->mantissa_bits);
    if (s->has_infinity ? exponent == all >> s->mantissa_bits : magnitude == all)
        value = s->has_infinity && mantissa == 0 ? INFINITY : NAN;
    return bits > all ? -value : value;
}

/* ---- elements ---- */

/* The types that C has. */
#define C_TYPES(X)                                                                                 \
    X(RT_FLOAT32, float)                                                                           \
    X(RT_FLOAT64, double)                                                                          \
    X(RT_INT8, int8_t)                                                                             \
    X(RT_INT16, int16_t)                                                                           \
    X(RT_INT32, int32_t)                                                                           \
    X(RT_INT64, int64_t)                                                                           \
    X(RT_UINT8, uint8_t)                                                                           \
    X(RT_UINT16, uint16_t)                                                                         \
    X(RT_UINT32, uint32_t)                                                                         \
    X(RT_UINT64, uint64_t)                                                                         \
    X(RT_BOOL, uint8_t)

double element(const void *data, uint64_t index, enum rt_type type)
{
    const struct small *small = small_of(type);
    if (small)
        return small_value(small->bits == 16 ? ((const uint16_t *)data)[index]
                                             : ((const uint8_t *)data)[index],
                           small);
    switch (type) {
#define READ(name, T)                                                                              \
    case name:                                                                                     \
        return (double)((const T *)data)[index];
        C_TYPES(READ)
#undef READ
    default:
        return NAN;
    }
}

void set_element(void *data, uint64_t index, enum rt_type type, double value)
{
    const struct small *small = small_of(type);
    if (small && small->bits == 16)
        ((uint16_t *)data)[index] = (uint16_t)small_bits(value, small);
    else if (small)
        ((uint8_t *)data)[index] = (uint8_t)small_bits(value, small);
    switch (type) {
#define WRITE(name, T)                                                                             \
    case name:                                                                                     \
        ((T *)data)[index] = (T)value;                                                             \
        break;
        C_TYPES(WRITE)
#undef WRITE
    default:
        break;
    }
}

/* ---- inputs ---- */

static bool is_unsigned(enum rt_type type)
{
    return type == RT_UINT8 || type == RT_UINT16 || type == RT_UINT32 || type == RT_UINT64;
}

static bool is_integer(enum rt_type type)
{
    return is_unsigned(type) || type == RT_INT8 || type == RT_INT16 || type == RT_INT32 ||
           type == RT_INT64;
}

static bool is_wide(enum rt_type type)
{
    return rt_type_bytes(type) >= 4;
}

/* The largest that 8 ranks can add up exactly. */
static int addend_limit(enum rt_type type)
{
    switch (type) {
    case RT_FLOAT16:
        return 255;
    case RT_BFLOAT16:
        return 31;
    case RT_FLOAT8_E4M3:
        return 2;
    case RT_FLOAT8_E5M2:
        return 1;
    case RT_INT8:
        return 15;
    case RT_UINT8:
        return 31;
    default:
        return 2046;
    }
}

/* Makes an average of numbers that are not to be added up as they are: too large for their type. */
static double average_unit(enum rt_type type)
{
    return type == RT_FLOAT16       ? 256
           : type == RT_FLOAT8_E4M3 ? 128
           : type == RT_FLOAT8_E5M2 ? 32768
                                    : 1;
}

/* Of many ranks now and then all are true, or none. */
static double truth_value(int rank, int tensor, uint64_t index)
{
    uint64_t mixed = (index + 1) * 0x9e3779b97f4a7c15u + (uint64_t)rank * 0xbf58476d1ce4e5b9u +
                     (uint64_t)tensor * 17;
    mixed = (mixed ^ mixed >> 31) * 0x94d049bb133111ebu;
    return mixed >> 60 < (index % 2 ? 3 : 13);
}

double rank_value(int rank, int tensor, uint64_t index, enum rt_type type, enum rt_op op)
{
    const uint64_t mixed = index * 31 + (uint64_t)tensor * 17 + (uint64_t)rank * 7;
    if (type == RT_BOOL)
        return truth_value(rank, tensor, index);
    if (op == RT_PROD && mixed % 5 < 3 && !is_unsigned(type))
        return -1;
    if (op == RT_PROD)
        return (double)(mixed % (is_wide(type) ? 3 : 2) + 1);
    const int limit = addend_limit(type);
    double value = is_unsigned(type) ? (double)(mixed % ((uint64_t)limit + 1))
                                     : (double)(mixed % (2 * (uint64_t)limit + 1)) - limit;
    value *= op == RT_AVG ? average_unit(type) : 1;
    return value + (is_wide(type) ? rank * 4096 : 0);
}

void fill(void *data, uint64_t count, enum rt_type type, int rank, int tensor, enum rt_op op)
{
    for (uint64_t i = 0; i < count; i++)
        set_element(data, i, type, rank_value(rank, tensor, i, type, op));
}

/* ---- results ---- */

static double combine(double a, double b, enum rt_type type, enum rt_op op)
{
    const bool truth = type == RT_BOOL;
    switch (op) {
    case RT_PROD:
        return a * b;
    case RT_MAX:
        return b > a ? b : a;
    case RT_MIN:
        return b < a ? b : a;
    case RT_AVG:
        return truth ? (a && b) : a + b;
    default:
        return truth ? (a || b) : a + b;
    }
}

/* Two's complement of the type's width. */
static double wrap(double value, enum rt_type type)
{
    int64_t wide = (int64_t)value;
    switch (type) {
    case RT_INT8:
        return (int8_t)wide;
    case RT_UINT8:
        return (uint8_t)wide;
    case RT_INT16:
        return (int16_t)wide;
    case RT_UINT16:
        return (uint16_t)wide;
    default:
        return value;
    }
}

static double average(double sum, int size, enum rt_type type)
{
    if (type == RT_BOOL)
        return sum;
    if (type == RT_FLOAT32)
        return (double)((float)sum / (float)size);
    if (small_of(type))
        return nearest_small(sum / size, type);
    return is_integer(type) ? trunc(sum / size) : sum / size;
}

double reduced_value(int size, int tensor, uint64_t index, enum rt_type type, enum rt_op op)
{
    double result = rank_value(0, tensor, index, type, op);
    for (int r = 1; r < size; r++)
        result = combine(result, rank_value(r, tensor, index, type, op), type, op);
    if (is_integer(type))
        result = wrap(result, type);
    return op == RT_AVG ? average(result, size, type) : result;
}

/* All of some thousands; of more, the ends and every so many: what cuts buffers up cuts them at
 * multiples of 64 bytes. */
static uint64_t next_index(uint64_t i, uint64_t count)
{
    return count < 10000 || i < 70 || i + 70 >= count ? i + 1
           : i + 31 < count - 70                      ? i + 31
                                                      : i + 1;
}

bool holds_reduced(const void *data, uint64_t first, uint64_t count, int size, int tensor,
                   enum rt_type type, enum rt_op op)
{
    for (uint64_t i = 0; i < count; i = next_index(i, count))
        if (element(data, i, type) != reduced_value(size, tensor, first + i, type, op))
            return false;
    return true;
}

bool holds_values(const void *data, uint64_t first, uint64_t count, int rank, int tensor,
                  enum rt_type type, enum rt_op op)
{
    for (uint64_t i = 0; i < count; i = next_index(i, count))
        if (element(data, i, type) != rank_value(rank, tensor, first + i, type, op))
            return false;
    return true;
}
