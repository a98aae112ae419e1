/* SPDX-License-Identifier: Apache-2.0 */
/* rt-bench's numbers: what ranks bring gives what is expected, and any wrong element is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "bench-values.h"
#include "rt-coll.h"

#define COUNT 5000
#define RANKS 5

static const enum rt_type types[] = {RT_INT8,    RT_UINT8,    RT_INT32,       RT_UINT32,
                                     RT_INT64,   RT_UINT64,   RT_FLOAT16,     RT_FLOAT32,
                                     RT_FLOAT64, RT_BFLOAT16, RT_FLOAT8_E4M3, RT_FLOAT8_E5M2};
static char sum[COUNT * 8], other[COUNT * 8];

/* By rt_coll's own kernels. */
static void reduce(enum rt_type type, enum rt_op op, uint64_t first)
{
    values_fill(sum, COUNT, type, op, 0, first);
    const void *begun = rt_average_begin(sum, sum, COUNT, type, op, RANKS);
    assert_ptr_equal(begun, sum);
    for (int r = 1; r < RANKS; r++) {
        values_fill(other, COUNT, type, op, r, first);
        rt_average_begin(other, other, COUNT, type, op, RANKS);
        rt_reduce(sum, sum, other, COUNT, type, rt_partial_op(type, op));
    }
    rt_average_end(sum, COUNT, type, op, RANKS);
}

static void reduced_values_are_expected_and_wrong_ones_counted(void **state)
{
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int op = 0; op < RT_OP_COUNT; op++)
            for (uint64_t first = 0; first < 9000; first += 1237) {
                enum rt_type type = types[t];
                uint64_t bytes = rt_type_bytes(type);
                reduce(type, (enum rt_op)op, first);
                assert_int_equal(values_wrong(sum, COUNT, type, (enum rt_op)op, RANKS, first), 0);
                for (int k = 0; k < 3; k++) /* the sign, or much of the number */
                    sum[(uint64_t)(1 + k * 2111) * bytes + bytes - 1] ^= 0x40;
                assert_int_equal(values_wrong(sum, COUNT, type, (enum rt_op)op, RANKS, first), 3);
            }
}

static void ranks_and_places_can_be_told_apart(void **state)
{
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (uint64_t first = 0; first < 100; first += 7) {
            values_fill(sum, COUNT, types[t], RT_SUM, 3, first);
            assert_int_equal(values_wrong_of_rank(sum, COUNT, types[t], RT_SUM, 3, first), 0);
            assert_true(values_wrong_of_rank(sum, COUNT, types[t], RT_SUM, 2, first) > COUNT / 3);
            assert_true(values_wrong_of_rank(sum, COUNT, types[t], RT_SUM, 3, first + 1) >
                        COUNT / 4);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduced_values_are_expected_and_wrong_ones_counted),
        cmocka_unit_test(ranks_and_places_can_be_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
