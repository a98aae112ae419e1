/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate over the first steps and after them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rt-train.h"

static void close_to(double value, double expected)
{
    double off = value - expected;
    if (!(off < 1e-12 && off > -1e-12))
        fail_msg("%.15g, expected %.15g", value, expected);
}

static void rate_without_warm_up_is_scaled_at_once(void **state)
{
    struct rt_rate rate = {.base = 0.05, .factor = 8};
    close_to(rt_rate_at(&rate, 0), 0.4);
    close_to(rt_rate_at(&rate, 1e9), 0.4);
}

static void rate_goes_from_base_to_scaled_in_a_line(void **state)
{
    struct rt_rate rate = {.base = 0.1, .factor = 5, .warm_up = 100};
    close_to(rt_rate_at(&rate, 0), 0.1);
    close_to(rt_rate_at(&rate, 25), 0.2);
    close_to(rt_rate_at(&rate, 50), 0.3);
    close_to(rt_rate_at(&rate, 100), 0.5);
    close_to(rt_rate_at(&rate, 101), 0.5);
    close_to(rt_rate_at(&rate, -3), 0.1);
}

static void rate_by_epochs_takes_fractions(void **state)
{
    struct rt_rate rate = {.base = 1, .factor = 3, .warm_up = 2};
    close_to(rt_rate_at(&rate, 0.25), 1.25);
    close_to(rt_rate_at(&rate, 1.5), 2.5);
}

static void rate_of_one_rank_stays(void **state)
{
    struct rt_rate rate = {.base = 0.3, .factor = 1, .warm_up = 10};
    for (int step = 0; step < 20; step++)
        close_to(rt_rate_at(&rate, step), 0.3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_without_warm_up_is_scaled_at_once),
        cmocka_unit_test(rate_goes_from_base_to_scaled_in_a_line),
        cmocka_unit_test(rate_by_epochs_takes_fractions),
        cmocka_unit_test(rate_of_one_rank_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
