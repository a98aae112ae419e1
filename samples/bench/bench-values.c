/* SPDX-License-Identifier: Apache-2.0 */
#include "bench-values.h"

#include <math.h>
#include <string.h>

#include "rt-convert.h"

#define PERIOD 24 /* elements after which values repeat */
#define CHUNK  (40 * PERIOD)

static double value(enum rt_type type, enum rt_op op, int rank, uint64_t i)
{
    if (op == RT_PROD)
        return rank < 2 ? (double)(1 + (i + (uint64_t)rank) % 2) : 1;
    uint64_t range = rt_type_bytes(type) == 1 ? 2 : 4;
    return (double)((i + 3 * (uint64_t)rank + i / 6) % range);
}

static double reduced(enum rt_type type, enum rt_op op, int size, uint64_t i)
{
    double result = value(type, op, 0, i);
    for (int r = 1; r < size; r++) {
        double v = value(type, op, r, i);
        if (op == RT_SUM || op == RT_AVG)
            result += v;
        else if (op == RT_PROD)
            result *= v;
        else
            result = op == RT_MAX ? fmax(result, v) : fmin(result, v);
    }
    result = op == RT_AVG ? result / size : result;
    return rt_type_is_float(type) ? result : trunc(result);
}

#define INTEGERS(X)                                                                                \
    X(INT8, int8_t)                                                                                \
    X(UINT8, uint8_t)                                                                              \
    X(INT16, int16_t)                                                                              \
    X(UINT16, uint16_t)                                                                            \
    X(INT32, int32_t)                                                                              \
    X(UINT32, uint32_t)                                                                            \
    X(INT64, int64_t)                                                                              \
    X(UINT64, uint64_t)

static void of_doubles(void *to, const double *from, uint64_t count, enum rt_type type)
{
    if (rt_type_is_float(type))
        rt_of_doubles(to, from, count, type);
#define PUT(name, c_type)                                                                          \
    for (uint64_t i = 0; type == RT_##name && i < count; i++)                                      \
        ((c_type *)to)[i] = (c_type)from[i];
    INTEGERS(PUT)
}

static void to_doubles(double *to, const void *from, uint64_t count, enum rt_type type)
{
    if (rt_type_is_float(type))
        rt_to_doubles(to, from, count, type);
#define GET(name, c_type)                                                                          \
    for (uint64_t i = 0; type == RT_##name && i < count; i++)                                      \
        to[i] = (double)((const c_type *)from)[i];
    INTEGERS(GET)
}

/* Relative; what an average may lose. Float8 sums of many ranks are not exact, either. */
static double tolerance(enum rt_type type, enum rt_op op)
{
    if (!rt_type_is_float(type) || (op != RT_AVG && rt_type_bytes(type) > 1))
        return 0;
    return rt_type_bytes(type) == 1 ? 0.26 : rt_type_bytes(type) == 2 ? 0x1p-7 : 0x1p-21;
}

void values_fill(void *data, uint64_t count, enum rt_type type, enum rt_op op, int rank,
                 uint64_t first)
{
    const uint64_t bytes = rt_type_bytes(type);
    double numbers[PERIOD];
    uint64_t done = count < PERIOD ? count : PERIOD;
    for (uint64_t i = 0; i < PERIOD; i++)
        numbers[i] = value(type, op, rank, first + i);
    of_doubles(data, numbers, done, type);
    for (uint64_t step; done < count; done += step) { /* a multiple of the period is there */
        step = done < count - done ? done : count - done;
        memcpy((char *)data + done * bytes, data, step * bytes);
    }
}

static uint64_t wrong(const void *data, uint64_t count, enum rt_type type, const double *expected,
                      double by)
{
    double numbers[CHUNK];
    uint64_t bad = 0;
    for (uint64_t at = 0; at < count; at += CHUNK) {
        uint64_t n = count - at < CHUNK ? count - at : CHUNK;
        to_doubles(numbers, (const char *)data + at * rt_type_bytes(type), n, type);
        for (uint64_t i = 0; i < n; i++)
            bad += !(fabs(numbers[i] - expected[i % PERIOD]) <= by * expected[i % PERIOD]);
    }
    return bad;
}

uint64_t values_wrong(const void *data, uint64_t count, enum rt_type type, enum rt_op op, int size,
                      uint64_t first)
{
    double expected[PERIOD];
    for (uint64_t i = 0; i < PERIOD; i++)
        expected[i] = reduced(type, op, size, first + i);
    return wrong(data, count, type, expected, tolerance(type, op));
}

uint64_t values_wrong_of_rank(const void *data, uint64_t count, enum rt_type type, enum rt_op op,
                              int rank, uint64_t first)
{
    double expected[PERIOD];
    for (uint64_t i = 0; i < PERIOD; i++)
        expected[i] = value(type, op, rank, first + i);
    return wrong(data, count, type, expected, 0);
}
