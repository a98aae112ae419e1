/* SPDX-License-Identifier: Apache-2.0 */
/* What goes on the wire for a tensor: compression, scales, averages; conversions of floats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "rt-convert.h"
#include "rt-reference.h"
#include "rt-wire.h"

static const enum rt_type floats[] = {RT_FLOAT32,  RT_FLOAT64,     RT_FLOAT16,
                                      RT_BFLOAT16, RT_FLOAT8_E4M3, RT_FLOAT8_E5M2};
enum { FLOATS = sizeof floats / sizeof *floats };

static bool same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

static double nearest(double value, enum rt_type type)
{
    return type == RT_FLOAT64   ? value
           : type == RT_FLOAT32 ? (double)(float)value
           : isnan(value)       ? value
                                : nearest_small(value, type);
}

/* ---- conversions ---- */

/* Of every exponent, near ties, and what is not finite. */
static unsigned interesting(double *ret, unsigned room, enum rt_type type)
{
    static const double near[] = {1, 1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-8, 1.5 - 0x1p-9};
    unsigned n = 0;
    for (int e = -160; e <= 140 && n + 10 < room; e++)
        for (int k = 0; k < 5; k++) {
            ret[n] = nearest(ldexp(near[k], e), type);
            ret[n + 1] = -ret[n];
            n += 2;
        }
    ret[n++] = 0;
    ret[n++] = -0.0;
    if (type != RT_FLOAT8_E4M3)
        ret[n++] = INFINITY;
    ret[n++] = NAN;
    return n;
}

static void check_conversion(enum rt_type to, enum rt_type from, double factor, double divisor)
{
    enum { MOST = 4000 };
    static double values[MOST], in[MOST], out[MOST];
    unsigned n = interesting(values, MOST - 8, from);
    for (unsigned i = 0; i < n; i++)
        set_element(in, i, from, values[i]);
    rt_convert(out, to, in, from, n, factor, divisor);
    for (unsigned i = 0; i < n; i++) {
        double want = nearest(values[i] * factor / divisor, to), got = element(out, i, to);
        if (!same_number(got, want))
            fail_msg("%g of type %d, times %g, by %g, is %g of type %d, expected %g", values[i],
                     (int)from, factor, divisor, got, (int)to, want);
    }
}

static void convert_rounds_once_whatever_the_types_and_scales(void **state)
{
    static const double factors[] = {1, 0.5, 0x1p-9, 0x1p20, 1.0 / 3, 3, -1, 0x1.000002p0};
    for (int to = 0; to < FLOATS; to++)
        for (int from = 0; from < FLOATS; from++)
            for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
                check_conversion(floats[to], floats[from], factors[k], 1);
                check_conversion(floats[to], floats[from], factors[k], 7);
            }
}

static void convert_takes_any_address(void **state)
{
    enum { COUNT = 75, ROOM = COUNT * 8 + 8 };
    static _Alignas(64) unsigned char in[ROOM], want[ROOM], x[ROOM], out[ROOM];
    static const double factors[][2] = {{1, 1}, {0.5, 1}, {1, 7}, {1.0 / 3, 7}};
    for (unsigned i = 0; i < ROOM; i++)
        in[i] = (unsigned char)(i * 37 + 11);
    for (int to = 0; to < FLOATS; to++)
        for (int from = 0; from < FLOATS; from++)
            for (unsigned k = 0; k < 4; k++)
                for (unsigned shift = 1; shift < 8; shift++) {
                    const double factor = factors[k][0], divisor = factors[k][1];
                    memcpy(x + shift, in, COUNT * 8);
                    rt_convert(want, floats[to], in, floats[from], COUNT, factor, divisor);
                    rt_convert(out + shift, floats[to], x + shift, floats[from], COUNT, factor,
                               divisor);
                    assert_memory_equal(out + shift, want, COUNT * rt_type_bytes(floats[to]));
                }
}

static void convert_leaves_what_is_no_float_alone(void **state)
{
    int32_t in = 5, out = 7;
    rt_convert(&out, RT_INT32, &in, RT_INT32, 1, 2, 1);
    assert_int_equal(out, 7);
    assert_false(rt_type_is_float(RT_BOOL));
}

/* ---- what goes on the wire ---- */

static struct rt_tensor tensor(enum rt_type type, enum rt_op op, enum rt_compression compression)
{
    return (struct rt_tensor){.type = (uint8_t)type,
                              .op = (uint8_t)op,
                              .compression = (uint8_t)compression,
                              .prescale = 1,
                              .postscale = 1};
}

static void wire_without_compression_leaves_float32_as_it_is(void **state)
{
    struct rt_tensor t = tensor(RT_FLOAT32, RT_AVG, RT_COMPRESSION_DEFAULT);
    struct rt_wire w = rt_wire_of(&t, 512);
    assert_true(w.type == RT_FLOAT32 && w.op == RT_AVG && w.before == 1 && w.after == 1 &&
                w.divisor == 1 && rt_wire_is_plain(&w));
}

static void wire_of_an_average_to_float16_divides_before(void **state)
{
    struct rt_tensor t = tensor(RT_FLOAT32, RT_AVG, RT_COMPRESSION_FP16);
    t.prescale = 3;
    t.postscale = 5;
    struct rt_wire w = rt_wire_of(&t, 300);
    assert_true(w.type == RT_FLOAT16 && w.op == RT_SUM && w.before == 3.0 / 512 &&
                w.after == 5 * 512 && w.divisor == 300 && !rt_wire_is_plain(&w));
    t.op = RT_SUM;
    w = rt_wire_of(&t, 300);
    assert_true(w.op == RT_SUM && w.before == 3 && w.after == 5 && w.divisor == 1);
    t.op = RT_AVG;
    t.compression = RT_COMPRESSION_BF16; /* has a float's exponents: nothing to fear */
    w = rt_wire_of(&t, 300);
    assert_true(w.type == RT_BFLOAT16 && w.op == RT_SUM && w.before == 3 && w.divisor == 300);
    w = rt_wire_of(&t, 512);
    assert_true(w.before == 3 && w.after == 5.0 / 512 && w.divisor == 1);
}

/* The rest of an average and the postscale: also of tensors that have 16 bits from the start. */
static void unpack_of_an_average_rounds_once(void **state)
{
    static const enum rt_type types[] = {RT_FLOAT16, RT_BFLOAT16, RT_FLOAT8_E5M2};
    for (int k = 0; k < 3; k++) {
        struct rt_tensor t = tensor(types[k], RT_AVG, RT_COMPRESSION_DEFAULT);
        t.postscale = 0.7;
        const struct rt_wire w = rt_wire_of(&t, 3);
        for (int sum = 1; sum < 256; sum++) {
            uint16_t data = 0;
            const double on_wire = nearest_small(sum * w.before, types[k]);
            set_element(&data, 0, types[k], on_wire);
            rt_wire_unpack(&w, &data, &data, 1);
            const double want = nearest_small(on_wire / w.before * 0.7 / 3, types[k]);
            if (element(&data, 0, types[k]) != want)
                fail_msg("%d of type %d: %g, expected %g", sum, (int)types[k],
                         element(&data, 0, types[k]), want);
        }
    }
}

/* ---- many ranks, as the runtime reduces them, one after the other ---- */

enum { RANKS = 512, WIDTH = 40 };
struct job {
    const struct rt_wire *wire;
    char *parts; /* WIDTH numbers of each rank, as on the wire */
};

static char *part(const struct job *j, int rank)
{
    return j->parts + (uint64_t)rank * WIDTH * RT_TYPE_BYTES_MAX;
}

static void add(const struct job *j, int into, int rank)
{
    rt_reduce(part(j, into), part(j, into), part(j, rank), WIDTH, j->wire->type, j->wire->op);
}

/* As a ring does it: one after the other. */
static void by_chain(const struct job *j)
{
    for (int r = 1; r < RANKS; r++)
        add(j, 0, r);
}

/* As trees, recursive doubling, and hosts of some ranks do it. */
static void by_tree(const struct job *j)
{
    for (int apart = 1; apart < RANKS; apart *= 2)
        for (int r = 0; r + apart < RANKS; r += 2 * apart)
            add(j, r, r + apart);
}

static void reduce_all(const struct rt_tensor *t, double (*value)(int rank, int i),
                       void (*way)(const struct job *j), void *out)
{
    const struct rt_wire w = rt_wire_of(t, RANKS);
    const struct job j = {&w, calloc(RANKS, (size_t)WIDTH * RT_TYPE_BYTES_MAX)};
    for (int r = 0; r < RANKS; r++) {
        double in[WIDTH];
        for (uint64_t i = 0; i < WIDTH; i++)
            set_element(in, i, w.own_type, value(r, (int)i));
        rt_wire_pack(&w, part(&j, r), in, WIDTH);
    }
    way(&j);
    rt_wire_unpack(&w, out, part(&j, 0), WIDTH);
    free(j.parts);
}

static double two_hundred(int rank, int i)
{
    (void)rank, (void)i;
    return 200;
}

/* Rank 77 brings what isn't finite. */
static double odd_one(int rank, int i)
{
    return rank != 77 ? 1 : i == 3 ? (double)NAN : i == 4 ? INFINITY : i == 5 ? -INFINITY : 1;
}

static void (*const ways[])(const struct job *) = {by_chain, by_tree};

static const struct {
    enum rt_type type;
    enum rt_compression compression;
} narrow[] = {
    {RT_FLOAT32, RT_COMPRESSION_FP16},    {RT_FLOAT64, RT_COMPRESSION_FP16},
    {RT_FLOAT32, RT_COMPRESSION_BF16},    {RT_FLOAT64, RT_COMPRESSION_BF16},
    {RT_FLOAT16, RT_COMPRESSION_DEFAULT},
};
enum { NARROW = sizeof narrow / sizeof *narrow };

/* A chain adds small to large: 11 bits lose some of it, 8 bits most (that is what they hold). */
static void average_of_512_ranks_of_200_stays_finite(void **state)
{
    for (int k = 0; k < NARROW; k++)
        for (int way = 0; way < 2; way++) {
            const bool bfloat16 = narrow[k].compression == RT_COMPRESSION_BF16;
            struct rt_tensor t = tensor(narrow[k].type, RT_AVG, narrow[k].compression);
            double out[WIDTH];
            reduce_all(&t, two_hundred, ways[way], out);
            for (uint64_t i = 0; i < WIDTH; i++) {
                double got = element(out, i, narrow[k].type);
                if (!isfinite(got) || (way == 1 && got != 200) ||
                    (!bfloat16 && fabs(got - 200) > 8))
                    fail_msg("%d by %s: %g", k, way ? "tree" : "chain", got);
            }
        }
}

static double only_one(int rank, int i)
{
    (void)i;
    return rank == 5 ? 200 : 0;
}

/* Prescale and what the average divides by are one step: 200 * 512 is none of float16's. */
static void prescale_does_not_overflow_where_the_average_does_not(void **state)
{
    for (int k = 0; k < NARROW; k++) {
        struct rt_tensor t = tensor(narrow[k].type, RT_AVG, narrow[k].compression);
        double out[WIDTH];
        t.prescale = 512;
        t.postscale = 0.25;
        reduce_all(&t, only_one, by_tree, out);
        assert_true(element(out, 0, narrow[k].type) == 50);
        t.prescale = 0x1p-10;
        t.postscale = 0x1p10;
        reduce_all(&t, two_hundred, by_tree, out);
        assert_true(element(out, 0, narrow[k].type) == 200);
    }
}

static void a_sum_too_large_for_float16_is_infinite(void **state)
{
    double out[WIDTH];
    struct rt_tensor t = tensor(RT_FLOAT32, RT_SUM, RT_COMPRESSION_FP16);
    reduce_all(&t, two_hundred, by_tree, out);
    assert_true(isinf(element(out, 0, RT_FLOAT32)) && element(out, 0, RT_FLOAT32) > 0);
    t.prescale = 0x1p-9; /* moved to where it fits, and back */
    t.postscale = 0x1p9;
    reduce_all(&t, two_hundred, by_tree, out);
    assert_true(element(out, 0, RT_FLOAT32) == 200.0 * RANKS);
    t.compression = RT_COMPRESSION_BF16;
    t.prescale = t.postscale = 1;
    reduce_all(&t, two_hundred, by_tree, out);
    assert_true(element(out, 0, RT_FLOAT32) == 200.0 * RANKS);
}

static void nan_and_infinity_pass_through(void **state)
{
    static const enum rt_op ops[] = {RT_SUM, RT_AVG};
    for (int k = 0; k < NARROW; k++)
        for (int op = 0; op < 2; op++) {
            double out[WIDTH];
            struct rt_tensor t = tensor(narrow[k].type, ops[op], narrow[k].compression);
            reduce_all(&t, odd_one, by_tree, out);
            assert_true(isnan(element(out, 3, narrow[k].type)));
            assert_true(element(out, 4, narrow[k].type) == INFINITY);
            assert_true(element(out, 5, narrow[k].type) == -INFINITY);
            assert_true(element(out, 6, narrow[k].type) == (ops[op] == RT_SUM ? RANKS : 1));
        }
}

static double small_one(int rank, int i)
{
    (void)rank;
    return ldexp(1, -i);
}

/* As rt.h says it: in float16 an average over n ranks loses everything below n * 2^-25. */
static void underflow_begins_where_the_manual_says(void **state)
{
    double out[WIDTH];
    struct rt_tensor t = tensor(RT_FLOAT32, RT_AVG, RT_COMPRESSION_FP16);
    reduce_all(&t, small_one, by_tree, out);
    for (uint64_t i = 0; i < WIDTH; i++)
        assert_true(element(out, i, RT_FLOAT32) == (i <= 15 ? ldexp(1, -(int)i) : 0));
    t.op = RT_MAX;
    reduce_all(&t, small_one, by_tree, out);
    for (uint64_t i = 0; i < WIDTH; i++)
        assert_true(element(out, i, RT_FLOAT32) == (i <= 24 ? ldexp(1, -(int)i) : 0));
    t.op = RT_AVG;
    t.compression = RT_COMPRESSION_BF16;
    reduce_all(&t, small_one, by_tree, out);
    for (uint64_t i = 0; i < WIDTH; i++)
        assert_true(element(out, i, RT_FLOAT32) == ldexp(1, -(int)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convert_rounds_once_whatever_the_types_and_scales),
        cmocka_unit_test(convert_takes_any_address),
        cmocka_unit_test(convert_leaves_what_is_no_float_alone),
        cmocka_unit_test(wire_without_compression_leaves_float32_as_it_is),
        cmocka_unit_test(wire_of_an_average_to_float16_divides_before),
        cmocka_unit_test(unpack_of_an_average_rounds_once),
        cmocka_unit_test(average_of_512_ranks_of_200_stays_finite),
        cmocka_unit_test(prescale_does_not_overflow_where_the_average_does_not),
        cmocka_unit_test(a_sum_too_large_for_float16_is_infinite),
        cmocka_unit_test(nan_and_infinity_pass_through),
        cmocka_unit_test(underflow_begins_where_the_manual_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
