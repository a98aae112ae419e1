/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of rt_coll: rounding of small floats, NaN and infinity, zeros, wrapping, truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "rt-coll.h"
#include "rt-reference.h"
#include "rt-small-float.h"

static const struct {
    enum rt_type type;
    struct rt_small_float format;
} small[] = {
    {RT_FLOAT16, {16, 10, 15, 0x7c00, 0x7c00, 0x7e00}},
    {RT_BFLOAT16, {16, 7, 127, 0x7f80, 0x7f80, 0x7fc0}},
    {RT_FLOAT8_E4M3, {8, 3, 7, 0x7f, 0x7e, 0x7f}},
    {RT_FLOAT8_E5M2, {8, 2, 15, 0x7c, 0x7b, 0x7f}},
};
#define SMALL_COUNT (sizeof small / sizeof *small)

static const enum rt_type floats[] = {RT_FLOAT32,  RT_FLOAT64,     RT_FLOAT16,
                                      RT_BFLOAT16, RT_FLOAT8_E4M3, RT_FLOAT8_E5M2};
#define FLOAT_COUNT (sizeof floats / sizeof *floats)

static bool same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

static double value_of_bits(uint32_t bits, enum rt_type type)
{
    uint16_t two = (uint16_t)bits;
    uint8_t one = (uint8_t)bits;
    return rt_type_bytes(type) == 2 ? element(&two, 0, type) : element(&one, 0, type);
}

/* ---- small floats ---- */

static void small_to_float_gives_every_pattern_its_value(void **state)
{
    for (unsigned k = 0; k < SMALL_COUNT; k++)
        for (uint32_t bits = 0; bits < 1u << small[k].format.bits; bits++) {
            double value = value_of_bits(bits, small[k].type);
            assert_true(same_number((double)rt_small_to_float(bits, small[k].format), value));
            assert_true(rt_small_is_nan(bits, small[k].format) == isnan(value));
        }
}

static void check_rounding(unsigned k, double value)
{
    double want = nearest_small(value, small[k].type);
    uint32_t got = rt_small_of_double(value, small[k].format);
    if (!same_number(value_of_bits(got, small[k].type), want))
        fail_msg("type %d: %a became %a, expected %a", (int)small[k].type, value,
                 value_of_bits(got, small[k].type), want);
    if ((double)(float)value == value)
        assert_int_equal(rt_small_of_float((float)value, small[k].format), got);
}

/* Each pattern, what lies halfway to the next, and what lies just beside that. */
static void small_of_float_rounds_to_nearest_even(void **state)
{
    for (unsigned k = 0; k < SMALL_COUNT; k++)
        for (uint32_t bits = 0; bits < small[k].format.special; bits++) {
            double value = value_of_bits(bits, small[k].type);
            double next = bits + 1 < small[k].format.special
                              ? value_of_bits(bits + 1, small[k].type)
                              : 2 * value - value_of_bits(bits - 1, small[k].type);
            const double between[] = {value,
                                      (value + next) / 2,
                                      nextafter((value + next) / 2, 0),
                                      nextafter((value + next) / 2, INFINITY),
                                      (double)nextafterf((float)((value + next) / 2), 0),
                                      value * 0.75 + next * 0.25};
            for (unsigned i = 0; i < sizeof between / sizeof *between; i++) {
                check_rounding(k, between[i]);
                check_rounding(k, -between[i]);
            }
        }
}

static void small_of_float_keeps_nan_and_too_large(void **state)
{
    for (unsigned k = 0; k < SMALL_COUNT; k++) {
        check_rounding(k, NAN);
        check_rounding(k, INFINITY);
        check_rounding(k, -INFINITY);
        check_rounding(k, 3e38);
        check_rounding(k, -1e300);
        check_rounding(k, 0x1p-149);
        check_rounding(k, -0x1p-1060);
    }
}

static void check_pairs(enum rt_type type, enum rt_op op, const void *x, const void *y)
{
    const uint64_t each = rt_type_bytes(type);
    uint16_t together[8], alone;
    rt_reduce(together, x, y, 8, type, op);
    for (uint64_t i = 0; i < 8; i++) {
        double v = element(x, i, type), w = element(y, i, type);
        double want = nearest_small(op == RT_SUM ? v + w : v * w, type);
        rt_reduce(&alone, (const char *)x + i * each, (const char *)y + i * each, 1, type, op);
        if (!same_number(element(together, i, type), want) ||
            !same_number(element(&alone, 0, type), want))
            fail_msg("type %d, op %d: of %a and %a %a, alone %a, expected %a", (int)type, (int)op,
                     v, w, element(together, i, type), element(&alone, 0, type), want);
    }
}

/* Sums and products of pairs, all patterns on one side: rounded once, one as many. */
static void reduce_of_small_floats_rounds_once(void **state)
{
    enum { STEP = 4051 };
    for (unsigned k = 0; k < SMALL_COUNT; k++) {
        const enum rt_type type = small[k].type;
        const uint32_t patterns = 1u << small[k].format.bits;
        for (uint32_t a = 0; a < patterns; a++) {
            uint16_t x[8], y[8];
            for (uint32_t turn = 0; turn < 8; turn++) {
                uint32_t b = (a * 7 + turn * STEP) % patterns;
                if (rt_type_bytes(type) == 2) {
                    x[turn] = (uint16_t)a;
                    y[turn] = (uint16_t)b;
                } else {
                    ((uint8_t *)x)[turn] = (uint8_t)a;
                    ((uint8_t *)y)[turn] = (uint8_t)b;
                }
            }
            check_pairs(type, RT_SUM, x, y);
            check_pairs(type, RT_PROD, x, y);
        }
    }
}

/* ---- all floats ---- */

/* The operation on arrays long enough for the vectorised part of the loop, all the same. */
static double reduce_one(enum rt_type type, enum rt_op op, double a, double b)
{
    enum { MANY = 67 };
    uint64_t x[MANY], y[MANY], z[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        set_element(x, i, type, a);
        set_element(y, i, type, b);
    }
    rt_reduce(z, x, y, MANY, type, op);
    double first = element(z, 0, type);
    for (unsigned i = 1; i < MANY; i++)
        assert_true(same_number(element(z, i, type), first));
    return first;
}

static void check_both_ways(enum rt_type type, enum rt_op op, double a, double b, double want)
{
    if (!same_number(reduce_one(type, op, a, b), want) ||
        !same_number(reduce_one(type, op, b, a), want))
        fail_msg("type %d, op %d: of %g and %g %g, and %g", (int)type, (int)op, a, b,
                 reduce_one(type, op, a, b), reduce_one(type, op, b, a));
}

static void reduce_of_nan_is_nan(void **state)
{
    static const double others[] = {1, -2, 0, -0.0};
    for (unsigned k = 0; k < FLOAT_COUNT; k++)
        for (int op = 0; op < RT_OP_COUNT; op++) {
            for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
                check_both_ways(floats[k], (enum rt_op)op, NAN, others[i], NAN);
                check_both_ways(floats[k], (enum rt_op)op, -NAN, others[i], NAN);
            }
            check_both_ways(floats[k], (enum rt_op)op, NAN, NAN, NAN);
            if (floats[k] != RT_FLOAT8_E4M3)
                check_both_ways(floats[k], (enum rt_op)op, NAN, INFINITY, NAN);
        }
}

static void reduce_keeps_infinity(void **state)
{
    for (unsigned k = 0; k < FLOAT_COUNT; k++) {
        const enum rt_type type = floats[k];
        if (rt_type_bytes(type) == 1)
            continue; /* float8 has none, or loses it */
        check_both_ways(type, RT_SUM, INFINITY, 1, INFINITY);
        check_both_ways(type, RT_SUM, INFINITY, -INFINITY, NAN);
        check_both_ways(type, RT_PROD, INFINITY, -2, -INFINITY);
        check_both_ways(type, RT_PROD, INFINITY, 0, NAN);
        check_both_ways(type, RT_MAX, INFINITY, 1, INFINITY);
        check_both_ways(type, RT_MAX, -INFINITY, 1, 1);
        check_both_ways(type, RT_MIN, -INFINITY, 1, -INFINITY);
        check_both_ways(type, RT_MIN, INFINITY, -1, -1);
    }
}

static void max_and_min_order_zeros_and_signs(void **state)
{
    for (unsigned k = 0; k < FLOAT_COUNT; k++) {
        check_both_ways(floats[k], RT_MAX, 0, -0.0, 0);
        check_both_ways(floats[k], RT_MIN, 0, -0.0, -0.0);
        check_both_ways(floats[k], RT_MAX, -1, -2, -1);
        check_both_ways(floats[k], RT_MIN, -1, -2, -2);
        check_both_ways(floats[k], RT_MAX, -1, 1, 1);
        check_both_ways(floats[k], RT_MIN, -1, 1, -1);
        check_both_ways(floats[k], RT_MAX, 2, 2, 2);
    }
}

/* ---- integers and truth ---- */

static void integers_wrap_and_compare_in_full_width(void **state)
{
    const int8_t a8 = 127, b8 = 2;
    const uint16_t a16 = 65535;
    const int64_t a64 = INT64_MAX, b64 = INT64_MAX - 1, c64 = INT64_MIN;
    const uint64_t u64 = UINT64_MAX, v64 = UINT64_MAX - 1;
    int8_t r8;
    uint16_t r16;
    int64_t r64;
    uint64_t s64;
    rt_reduce(&r8, &a8, &b8, 1, RT_INT8, RT_SUM);
    assert_int_equal(r8, -127);
    rt_reduce(&r8, &a8, &b8, 1, RT_INT8, RT_PROD);
    assert_int_equal(r8, -2);
    rt_reduce(&r16, &a16, &a16, 1, RT_UINT16, RT_PROD);
    assert_int_equal(r16, 1);
    rt_reduce(&r64, &a64, &b64, 1, RT_INT64, RT_MIN);
    assert_true(r64 == b64);
    rt_reduce(&r64, &b64, &a64, 1, RT_INT64, RT_MAX);
    assert_true(r64 == a64);
    rt_reduce(&r64, &c64, &a64, 1, RT_INT64, RT_MAX);
    assert_true(r64 == a64);
    rt_reduce(&r64, &a64, &a64, 1, RT_INT64, RT_SUM);
    assert_true(r64 == -2);
    rt_reduce(&s64, &u64, &v64, 1, RT_UINT64, RT_MAX);
    assert_true(s64 == u64);
    rt_reduce(&s64, &u64, &v64, 1, RT_UINT64, RT_PROD);
    assert_true(s64 == 2);
    rt_average_end(&r64, 1, RT_INT64, RT_AVG, 2);
    assert_true(r64 == -1);
    s64 = UINT64_MAX;
    rt_average_end(&s64, 1, RT_UINT64, RT_AVG, 3);
    assert_true(s64 == UINT64_MAX / 3);
}

static void bool_is_logical_and_any_byte_but_0_is_true(void **state)
{
    static const uint8_t a[4] = {0, 0, 2, 255}, b[4] = {0, 4, 0, 1};
    static const uint8_t any[4] = {0, 1, 1, 1}, all[4] = {0, 0, 0, 1};
    for (int op = 0; op < RT_OP_COUNT; op++) {
        uint8_t z[4];
        rt_reduce(z, a, b, 4, RT_BOOL, (enum rt_op)op);
        assert_memory_equal(z, op == RT_SUM || op == RT_MAX ? any : all, 4);
        rt_average_end(z, 4, RT_BOOL, (enum rt_op)op, 2);
        assert_memory_equal(z, op == RT_SUM || op == RT_MAX ? any : all, 4);
    }
}

/* ---- averages ---- */

/* `n` ranks of `value`, added up one after the other as an algorithm does. */
static double average_of_equal(enum rt_type type, int n, double value)
{
    uint64_t in, sum, scaled, one;
    set_element(&in, 0, type, value);
    one = *(const uint64_t *)rt_average_begin(&scaled, &in, 1, type, RT_AVG, n);
    sum = one;
    /* pairs of pairs, so that nothing is lost to rounding on the way */
    for (int k = 1; k < n; k *= 2)
        rt_reduce(&sum, &sum, &sum, 1, type, RT_AVG);
    rt_average_end(&sum, 1, type, RT_AVG, n);
    return element(&sum, 0, type);
}

static void average_of_512_large_ones_is_finite(void **state)
{
    assert_true(average_of_equal(RT_FLOAT16, 512, 200) == 200);
    assert_true(average_of_equal(RT_FLOAT16, 512, 65504) == 65504);
    assert_true(average_of_equal(RT_BFLOAT16, 512, 200) == 200);
    assert_true(average_of_equal(RT_FLOAT8_E4M3, 512, 448) == 448);
    assert_true(average_of_equal(RT_FLOAT8_E5M2, 512, 57344) == 57344);
}

static void average_begin_changes_nothing_where_it_need_not(void **state)
{
    float in[3] = {1, 2, 3}, out[3];
    uint16_t half[2] = {1, 2}, other[2];
    assert_ptr_equal(rt_average_begin(out, in, 3, RT_FLOAT32, RT_AVG, 7), in);
    assert_ptr_equal(rt_average_begin(other, half, 2, RT_FLOAT16, RT_SUM, 7), half);
    assert_ptr_equal(rt_average_begin(other, half, 2, RT_FLOAT16, RT_AVG, 1), half);
    assert_ptr_equal(rt_average_begin(other, half, 2, RT_FLOAT16, RT_AVG, 7), other);
    rt_average_end(in, 3, RT_FLOAT32, RT_SUM, 7);
    assert_true(in[2] == 3);
}

/* What a sum was divided by on the way is made good in the same rounding. */
static void average_by_no_power_of_two_rounds_once(void **state)
{
    for (unsigned k = 0; k < SMALL_COUNT; k++)
        for (double sum = 1; sum <= 16; sum++) {
            const enum rt_type type = small[k].type;
            const double whole = nearest_small(sum, type), on_the_way = type == RT_BFLOAT16 ? 1 : 8;
            uint64_t data;
            set_element(&data, 0, type, whole / on_the_way);
            rt_average_end(&data, 1, type, RT_AVG, 6);
            assert_true(element(&data, 0, type) == nearest_small(whole / 6, type));
        }
}

/* ---- scaling ---- */

static double scaled(enum rt_type type, double value, double factor)
{
    uint64_t data, out;
    set_element(&data, 0, type, value);
    rt_scale(&out, &data, 1, type, factor);
    rt_scale(&data, &data, 1, type, factor);
    assert_memory_equal(&out, &data, rt_type_bytes(type));
    return element(&out, 0, type);
}

static void scale_rounds_once_and_saturates_integers(void **state)
{
    assert_true(scaled(RT_FLOAT32, 3, 1.0 / 3) == 1);
    assert_true(scaled(RT_FLOAT64, 3, 0.1) == 3 * 0.1);
    /* a float would make a tie of it */
    assert_true(scaled(RT_FLOAT16, 1, 1 + 0x1p-11 + 0x1p-40) == 1 + 0x1p-10);
    assert_true(scaled(RT_FLOAT16, 1, 1 + 0x1p-11) == 1);
    assert_true(scaled(RT_BFLOAT16, 1, 1 + 0x1p-8 + 0x1p-40) == 1 + 0x1p-7);
    assert_true(scaled(RT_FLOAT16, 60000, 2) == INFINITY);
    assert_true(scaled(RT_INT32, -7, 0.5) == -3);
    assert_true(scaled(RT_INT8, 100, 2) == 127);
    assert_true(scaled(RT_INT8, -100, 2) == -128);
    assert_true(scaled(RT_UINT8, 100, -1) == 0);
    assert_true(scaled(RT_UINT32, 4000000000, 2) == UINT32_MAX);
    assert_true(scaled(RT_INT32, 1, NAN) == INT32_MIN);
    assert_true(scaled(RT_BOOL, 1, 0.25) == 1);
    assert_true(scaled(RT_BOOL, 1, 0) == 0);
    int64_t big = ((int64_t)1 << 53) + 1, huge = INT64_MAX;
    rt_scale(&big, &big, 1, RT_INT64, 2);
    assert_true(sizeof(long double) == 8 || big == ((int64_t)1 << 54) + 2);
    rt_scale(&huge, &huge, 1, RT_INT64, 2);
    assert_true(huge == INT64_MAX);
}

static void multiply_by_a_scalar_is_the_product_whatever_the_length(void **state)
{
    enum { MOST = 3000 };
    static const unsigned lengths[] = {0, 1, 127, 128, 129, 1024, 1025, MOST};
    for (int type = 0; type < RT_TYPE_COUNT; type++)
        for (unsigned k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            uint64_t in[MOST + 1] = {0}, out[MOST + 1] = {0}, scalar = 0;
            set_element(&scalar, 0, (enum rt_type)type, 2);
            fill(in, lengths[k], (enum rt_type)type, 1, 2, RT_PROD);
            rt_multiply(out, in, lengths[k], (enum rt_type)type, &scalar);
            for (unsigned i = 0; i < lengths[k]; i++)
                assert_true(element(out, i, (enum rt_type)type) ==
                            (type == RT_BOOL ? 1 : 2) * element(in, i, (enum rt_type)type));
            assert_int_equal(((uint8_t *)out)[lengths[k] * rt_type_bytes((enum rt_type)type)], 0);
        }
}

/* What a byte string gives at aligned addresses it gives at any, beside and in place. */
static void check_anywhere(enum rt_type type, enum rt_op op, unsigned shift)
{
    enum { COUNT = 75, ROOM = COUNT * 8 + 8 }; /* no multiple of what goes at once */
    static _Alignas(64) unsigned char a[ROOM], b[ROOM], want[ROOM], x[ROOM], y[ROOM], out[ROOM];
    const uint64_t bytes = COUNT * rt_type_bytes(type);
    for (unsigned i = 0; i < ROOM; i++) {
        a[i] = (unsigned char)(i * 37 + 11);
        b[i] = (unsigned char)(i * 101 + 5);
    }
    memcpy(x + shift, a, bytes);
    memcpy(y + shift, b, bytes);

    rt_reduce(want, a, b, COUNT, type, op);
    rt_reduce(out + shift, x + shift, y + shift, COUNT, type, op);
    assert_memory_equal(out + shift, want, bytes);
    rt_reduce(y + shift, x + shift, y + shift, COUNT, type, op);
    assert_memory_equal(y + shift, want, bytes);

    const void *from = rt_average_begin(want, a, COUNT, type, op, 3);
    if (from == want) {
        rt_average_begin(out + shift, x + shift, COUNT, type, op, 3);
        assert_memory_equal(out + shift, want, bytes);
    }
    memcpy(want, a, bytes);
    memcpy(out + shift, a, bytes);
    rt_average_end(want, COUNT, type, op, 3);
    rt_average_end(out + shift, COUNT, type, op, 3);
    assert_memory_equal(out + shift, want, bytes);

    rt_scale(want, a, COUNT, type, 0.3);
    rt_scale(out + shift, x + shift, COUNT, type, 0.3);
    assert_memory_equal(out + shift, want, bytes);
    rt_multiply(want, a, COUNT, type, b);
    memcpy(y + shift, b, 8);
    rt_multiply(out + shift, x + shift, COUNT, type, y + shift);
    assert_memory_equal(out + shift, want, bytes);
}

static void kernels_take_any_address(void **state)
{
    for (int type = 0; type < RT_TYPE_COUNT; type++)
        for (int op = RT_SUM; op <= RT_AVG; op++)
            for (unsigned shift = 1; shift < 8; shift++)
                check_anywhere((enum rt_type)type, (enum rt_op)op, shift);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_to_float_gives_every_pattern_its_value),
        cmocka_unit_test(small_of_float_rounds_to_nearest_even),
        cmocka_unit_test(small_of_float_keeps_nan_and_too_large),
        cmocka_unit_test(reduce_of_small_floats_rounds_once),
        cmocka_unit_test(reduce_of_nan_is_nan),
        cmocka_unit_test(reduce_keeps_infinity),
        cmocka_unit_test(max_and_min_order_zeros_and_signs),
        cmocka_unit_test(integers_wrap_and_compare_in_full_width),
        cmocka_unit_test(bool_is_logical_and_any_byte_but_0_is_true),
        cmocka_unit_test(average_of_512_large_ones_is_finite),
        cmocka_unit_test(average_begin_changes_nothing_where_it_need_not),
        cmocka_unit_test(average_by_no_power_of_two_rounds_once),
        cmocka_unit_test(scale_rounds_once_and_saturates_integers),
        cmocka_unit_test(kernels_take_any_address),
        cmocka_unit_test(multiply_by_a_scalar_is_the_product_whatever_the_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
