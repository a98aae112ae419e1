/* SPDX-License-Identifier: Apache-2.0 */
/* What goes together as one, and what doesn't. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rt-fusion.h"

static struct rt_tensor tensor(uint64_t count)
{
    return (struct rt_tensor){.kind = RT_ALLREDUCE, .count = count, .prescale = 1, .postscale = 1};
}

static unsigned plan(const struct rt_tensor *tensors, unsigned n, uint64_t threshold, unsigned *ret)
{
    const struct rt_tensor *ready[16];
    for (unsigned i = 0; i < n; i++)
        ready[i] = &tensors[i];
    return rt_fusion_plan(ready, n, threshold, ret);
}

static void bytes_are_rounded_up_to_the_unit(void **state)
{
    static const uint64_t cases[][2] = {{0, 0}, {1, 64}, {16, 64}, {17, 128}, {1000, 4032}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rt_tensor t = tensor(cases[i][0]);
        assert_int_equal(rt_fusion_bytes(&t), cases[i][1]);
    }
}

static void bytes_are_those_of_the_type(void **state)
{
    static const uint64_t cases[][3] = {
        {RT_FLOAT64, 8, 64},    {RT_FLOAT64, 9, 128}, {RT_FLOAT16, 32, 64},
        {RT_BFLOAT16, 33, 128}, {RT_INT16, 33, 128},  {RT_INT64, 9, 128},
        {RT_UINT8, 64, 64},     {RT_BOOL, 65, 128},   {RT_FLOAT64, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rt_tensor t = tensor(cases[i][1]);
        t.type = (uint8_t)cases[i][0];
        assert_int_equal(rt_fusion_bytes(&t), cases[i][2]);
    }
}

static void plan_at_the_threshold_counts_bytes_not_elements(void **state)
{
    struct rt_tensor t[] = {tensor(32), tensor(32)};
    unsigned taken[2];
    t[0].type = t[1].type = RT_BFLOAT16;
    assert_int_equal(plan(t, 2, 128, taken), 2);
    t[1].count = 33;
    assert_int_equal(plan(t, 2, 128, taken), 1);
    t[1].count = 32;
    t[1].type = RT_FLOAT16; /* of the same size, and yet another */
    assert_int_equal(plan(t, 2, 128, taken), 1);
}

static void plan_takes_what_fits_and_passes_over_what_does_not(void **state)
{
    const struct rt_tensor t[] = {tensor(16), tensor(40), tensor(1000), tensor(30), tensor(17)};
    unsigned taken[5];
    assert_int_equal(plan(t, 5, 64 + 192 + 128, taken), 3);
    assert_int_equal(taken[0], 0);
    assert_int_equal(taken[1], 1);
    assert_int_equal(taken[2], 3);
}

static void plan_exactly_at_the_threshold_fits(void **state)
{
    const struct rt_tensor t[] = {tensor(16), tensor(16)};
    unsigned taken[2];
    assert_int_equal(plan(t, 2, 128, taken), 2);
    assert_int_equal(plan(t, 2, 127, taken), 1);
}

static void plan_without_threshold_takes_one(void **state)
{
    const struct rt_tensor t[] = {tensor(16), tensor(0), tensor(16)};
    unsigned taken[3];
    assert_int_equal(plan(t, 3, 0, taken), 1);
    assert_int_equal(taken[0], 0);
}

static void plan_of_a_tensor_over_the_threshold_takes_it_alone(void **state)
{
    const struct rt_tensor t[] = {tensor(1000), tensor(1)};
    unsigned taken[2];
    assert_int_equal(plan(t, 2, 128, taken), 1);
}

static void plan_keeps_different_ones_apart(void **state)
{
    struct rt_tensor t[7];
    unsigned taken[7];
    for (int i = 0; i < 7; i++)
        t[i] = tensor(16);
    t[1].type = RT_INT32;
    t[2].op = RT_MAX;
    t[3].kind = RT_BROADCAST;
    t[4].prescale = 0.5;
    t[5].postscale = 2;
    assert_int_equal(plan(t, 7, 1 << 20, taken), 2);
    assert_int_equal(taken[1], 6);
    assert_int_equal(plan(t + 3, 4, 1 << 20, taken), 1); /* a broadcast goes alone */
    assert_int_equal(plan(t, 0, 1 << 20, taken), 0);
}

static void compressed_tensors_count_as_on_the_wire_and_go_with_their_like(void **state)
{
    struct rt_tensor t[] = {tensor(64), tensor(64), tensor(64)};
    unsigned taken[3];
    for (int i = 0; i < 3; i++)
        t[i].compression = i == 1 ? RT_COMPRESSION_BF16 : RT_COMPRESSION_FP16;
    assert_int_equal(rt_fusion_bytes(&t[0]), 128);
    assert_int_equal(plan(t, 3, 256, taken), 2);
    assert_int_equal(taken[1], 2);
    t[0].type = t[2].type = RT_FLOAT64;
    assert_int_equal(rt_fusion_bytes(&t[0]), 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_rounded_up_to_the_unit),
        cmocka_unit_test(bytes_are_those_of_the_type),
        cmocka_unit_test(plan_at_the_threshold_counts_bytes_not_elements),
        cmocka_unit_test(plan_takes_what_fits_and_passes_over_what_does_not),
        cmocka_unit_test(plan_exactly_at_the_threshold_fits),
        cmocka_unit_test(plan_without_threshold_takes_one),
        cmocka_unit_test(plan_of_a_tensor_over_the_threshold_takes_it_alone),
        cmocka_unit_test(plan_keeps_different_ones_apart),
        cmocka_unit_test(compressed_tensors_count_as_on_the_wire_and_go_with_their_like),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
