/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When gradients are handed over and by what they are divided. The runtime is one of this file:
 * three ranks, of which the others bring what OTHERS says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "../near.h"
#include "rt-train.h"

#define RANKS 3
static double others;         /* the other ranks' sum, of every element */
static uint64_t others_rows;  /* ... of their counts of rows */
static double others_metrics; /* ... of float64 tensors */
static int begun, waited, fail_at;
static char last_name[64];

int rt_allreduce_async(const char *name, const void *in, void *out, uint64_t count,
                       enum rt_type type, enum rt_op op, double prescale, double postscale,
                       const struct rt_options *options)
{
    if (begun == fail_at)
        return -EINVAL;
    strncpy(last_name, name, sizeof last_name - 1);
    /* RT_COMPRESSION may say so of all floats for which no options say otherwise */
    const bool is_compressed = !options || options->compression != RT_COMPRESSION_NONE;
    for (uint64_t i = 0; i < count; i++) {
        if (type == RT_UINT64)
            ((uint64_t *)out)[i] = ((const uint64_t *)in)[i] + others_rows;
        else if (type == RT_FLOAT64)
            ((double *)out)[i] = is_compressed ? NAN : ((const double *)in)[i] + others_metrics;
        else
            ((float *)out)[i] = (float)((prescale * ((const float *)in)[i] + others) * postscale /
                                        (op == RT_AVG ? RANKS : 1));
    }
    return begun++;
}

int rt_wait(int handle)
{
    waited++;
    return 0;
}

static float first[2], second[1];
static const struct rt_gradient gradients[] = {{"first", first, 2}, {"second", second, 1}};

static void start(struct rt_gradients *g, unsigned passes, bool weighted)
{
    begun = waited = 0;
    fail_at = -1;
    others = others_metrics = 0;
    others_rows = 0;
    assert_int_equal(rt_gradients_init(g, gradients, 2, passes, weighted), 0);
}

static void add(float a, float b, float c)
{
    first[0] += a;
    first[1] += b;
    second[0] += c;
}

static void even_gradients_are_the_mean_over_passes_and_ranks(void **state)
{
    struct rt_gradients g;
    start(&g, 2, false);
    others = 4;
    first[0] = 99; /* of the step before */
    assert_int_equal(rt_gradients_begin(&g, 8), 0);
    add(1, 2, 3);
    assert_int_equal(rt_gradients_ready(&g, 1), 0);
    assert_int_equal(rt_gradients_ready(&g, 0), 0);
    assert_int_equal(begun, 0);
    assert_int_equal(rt_gradients_wait(&g), 0);
    assert_int_equal(rt_gradients_begin(&g, 8), 0);
    add(5, 2, 3);
    assert_int_equal(rt_gradients_ready(&g, 1), 0);
    assert_string_equal(last_name, "second");
    assert_int_equal(rt_gradients_ready(&g, 0), 0);
    assert_int_equal(rt_gradients_wait(&g), 1);
    assert_int_equal(begun, 2);
    assert_int_equal(waited, 2);
    assert_near(first[0], (6.0 + 4) / 2 / 3, 1e-6);
    assert_near(first[1], (4.0 + 4) / 2 / 3, 1e-6);
    assert_near(second[0], (6.0 + 4) / 2 / 3, 1e-6);
    rt_gradients_release(&g);
}

static void weighted_gradients_are_divided_by_all_rows(void **state)
{
    struct rt_gradients g;
    start(&g, 2, true);
    others = 10;
    others_rows = 5;
    for (int step = 0; step < 2; step++) { /* the second like the first */
        for (int pass = 0; pass < 2; pass++) {
            assert_int_equal(rt_gradients_begin(&g, pass == 0 ? 4 : 1), 0);
            add(1, 2, 3);
            rt_gradients_ready(&g, 1);
            rt_gradients_ready(&g, 0);
            assert_int_equal(rt_gradients_wait(&g), pass);
        }
        assert_int_equal(begun, 3 * (step + 1));
        assert_int_equal(waited, begun);
        assert_near(first[0], 12.0 / 10, 1e-6);
        assert_near(first[1], 14.0 / 10, 1e-6);
        assert_near(second[0], 16.0 / 10, 1e-6);
    }
    rt_gradients_release(&g);
}

static void weighted_gradients_of_no_rows_are_zero(void **state)
{
    struct rt_gradients g;
    start(&g, 1, true);
    add(7, 7, 7); /* of the step before */
    assert_int_equal(rt_gradients_begin(&g, 0), 0);
    rt_gradients_ready(&g, 1);
    rt_gradients_ready(&g, 0);
    assert_int_equal(rt_gradients_wait(&g), 1);
    assert_near(first[0], 0, 0);
    assert_near(first[1], 0, 0);
    assert_near(second[0], 0, 0);
    rt_gradients_release(&g);
}

static void failure_is_returned(void **state)
{
    struct rt_gradients g;
    start(&g, 1, false);
    fail_at = 1;
    assert_int_equal(rt_gradients_begin(&g, 1), 0);
    assert_int_equal(rt_gradients_ready(&g, 1), 0);
    assert_int_equal(rt_gradients_ready(&g, 0), -EINVAL);
    rt_gradients_release(&g);
    assert_int_equal(rt_gradients_init(&g, gradients, 2, 0, false), -EINVAL);
    assert_int_equal(rt_gradients_init(&g, gradients, 0, 1, false), -EINVAL);
}

/* What is on its way must still be waited for; what isn't is not all ranks'. */
static void gradient_that_is_ready_twice_or_never_is_refused(void **state)
{
    struct rt_gradients g;
    start(&g, 1, true);
    assert_int_equal(rt_gradients_begin(&g, 1), 0);
    assert_int_equal(rt_gradients_begin(&g, 1), -EALREADY);
    assert_int_equal(rt_gradients_ready(&g, 2), -EINVAL);
    assert_int_equal(rt_gradients_ready(&g, UINT32_MAX), -EINVAL);
    assert_int_equal(rt_gradients_ready(&g, 1), 0);
    assert_int_equal(rt_gradients_ready(&g, 1), -EALREADY);
    assert_int_equal(begun, 2);
    assert_int_equal(rt_gradients_wait(&g), -EINVAL);
    assert_int_equal(waited, 2);
    rt_gradients_release(&g);
    assert_int_equal(rt_gradients_init(&g, NULL, 2, 1, false), -EINVAL);
    assert_int_equal(rt_mean_over_ranks("loss", NULL, 1, 1), -EINVAL);
}

static void mean_counts_each_rank_by_its_weight(void **state)
{
    double values[17] = {2, 5};
    begun = 0;
    fail_at = -1;
    others_metrics = 6; /* of the sums, and of the weights */
    assert_int_equal(rt_mean_over_ranks("loss", values, 2, 4), 0);
    assert_near(values[0], (8.0 + 6) / 10, 1e-12);
    assert_near(values[1], (20.0 + 6) / 10, 1e-12);
    others_metrics = 0;
    values[0] = NAN; /* of no rows */
    assert_int_equal(rt_mean_over_ranks("loss", values, 1, 0), 0);
    assert_near(values[0], 0, 1e-12);
    assert_int_equal(rt_mean_over_ranks("loss", values, 17, 1), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_gradients_are_the_mean_over_passes_and_ranks),
        cmocka_unit_test(weighted_gradients_are_divided_by_all_rows),
        cmocka_unit_test(weighted_gradients_of_no_rows_are_zero),
        cmocka_unit_test(failure_is_returned),
        cmocka_unit_test(gradient_that_is_ready_twice_or_never_is_refused),
        cmocka_unit_test(mean_counts_each_rank_by_its_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
