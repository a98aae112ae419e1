/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rt_tune makes of the times it sees: one rank, whose allreduces take what COST_NS says on a
 * clock that nothing else moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../near.h"
#include "rt-tune.h"

enum { ROUNDS = 12, SHORT = 64, LONG = 1 << 20 };

static struct rt_tune tune;
static uint64_t now_ns, (*cost_ns)(unsigned plan, int round);
static unsigned runs[RT_TUNE_PLANS]; /* of each plan */

int clock_gettime(clockid_t id, struct timespec *ret)
{
    *ret = (struct timespec){(time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000)};
    return 0;
}

/* Plan p is tune.plans[p]; rounds count from 0. */
int rt_execute(struct rt_executor *e, struct rt_operation **operations, unsigned n)
{
    const struct rt_plan plan = rt_choice_at(&e->choice, operations[0]->tensor.count * 4);
    unsigned p = 0;
    while (memcmp(&tune.plans[p], &plan, sizeof plan) != 0)
        p++;
    runs[p]++;
    now_ns += cost_ns(p, tune.round_count - 1);
    return 0;
}

static int set_up(void **state)
{
    static struct rt_transport alone = {.size = 1};
    static struct rt_fabric fabric = {.size = 1};
    memset(&tune, 0, sizeof tune);
    memset(runs, 0, sizeof runs);
    tune.fabric = &fabric;
    tune.groups.all = &alone;
    tune.options.rounds = ROUNDS;
    tune.operation = rt_operation_new(RT_ALLREDUCE, "tune");
    for (unsigned p = 0; p < 3; p++)
        tune.plans[p] = (struct rt_plan){RT_PLAN_FLAT, p};
    tune.plan_count = 3;
    tune.sizes[0] = SHORT;
    tune.size_count = 1;
    tune.pass_count = RT_TUNE_PASSES;
    return tune.operation ? 0 : -1;
}

static int tear_down(void **state)
{
    rt_operation_free(tune.operation);
    return 0;
}

/* ---- what is measured ---- */

static uint64_t plain_ns(unsigned plan, int round)
{
    static const uint64_t ns[] = {10000, 15000, 100000};
    return ns[plan];
}

static uint64_t long_ns(unsigned plan, int round)
{
    return 1000 * plain_ns(plan, round);
}

/* Others take the machine in every fourth round, and once a plan is quick by chance. */
static uint64_t disturbed_ns(unsigned plan, int round)
{
    if (plan == 1 && round == 6)
        return 1000;
    return plain_ns(plan, round) * (round % 4 == 3 ? 5 : 1);
}

static void each_plan_has_what_it_takes_undisturbed(void **state)
{
    double seconds[RT_TUNE_PLANS];
    cost_ns = disturbed_ns;
    assert_int_equal(rt_tune_measure_size(&tune, 0, seconds), 0);
    assert_int_equal(tune.round_count, ROUNDS);
    for (unsigned p = 0; p < 3; p++)
        assert_near(seconds[p], (double)plain_ns(p, 0) / 1e9, 1e-12);
}

static void hopeless_plan_is_left_out_soon_and_keeps_its_time(void **state)
{
    double seconds[RT_TUNE_PLANS];
    cost_ns = plain_ns;
    assert_int_equal(rt_tune_measure_size(&tune, 0, seconds), 0);
    assert_near(seconds[2], 100e-6, 1e-12);
    assert_in_range(runs[2], 1, runs[1] * 3 / 4); /* short: in some rounds it might be others */
    memset(runs, 0, sizeof runs);
    cost_ns = long_ns;
    tune.sizes[0] = LONG;
    memset(tune.is_out, 0, sizeof tune.is_out);
    assert_int_equal(rt_tune_measure_size(&tune, 0, seconds), 0);
    assert_near(seconds[2], 100e-3, 1e-12);
    assert_near(seconds[1], 15e-3, 1e-12);
    assert_in_range(runs[2], 1, runs[1] / 4);
}

static uint64_t endless_ns(unsigned plan, int round)
{
    return 100 * long_ns(plan, round);
}

static void without_a_number_it_ends_by_the_time(void **state)
{
    double seconds[RT_TUNE_PLANS];
    cost_ns = plain_ns;
    tune.options.rounds = 0;
    now_ns = 0;
    assert_int_equal(rt_tune_measure_size(&tune, 0, seconds), 0);
    assert_in_range(tune.round_count, 8 / RT_TUNE_PASSES, RT_TUNE_ROUNDS);
    assert_in_range(now_ns, 1000000000 / RT_TUNE_PASSES, 1020000000 / RT_TUNE_PASSES);
    cost_ns = endless_ns;
    assert_int_equal(rt_tune_measure_size(&tune, 0, seconds), 0);
    assert_int_equal(tune.round_count, 8 / RT_TUNE_PASSES);
}

/* ---- passes ---- */

static int the_pass;

/* Plan 1 is the quickest in one pass and the slowest in another, and 2 comes near nothing. */
static uint64_t passing_ns(unsigned plan, int round)
{
    if (plan == 1)
        return the_pass == 1 ? 8000 : the_pass == 3 ? 18000 : 15000;
    return plain_ns(plan, round) + (the_pass == 2 ? 2000 : 0);
}

static void one_lucky_pass_says_nothing(void **state)
{
    cost_ns = passing_ns;
    for (the_pass = 0; the_pass < RT_TUNE_PASSES; the_pass++) {
        assert_int_equal(rt_tune_pass_size(&tune, 0, the_pass), 0);
        if (the_pass == 0)
            memset(runs, 0, sizeof runs);
    }
    assert_near(tune.seconds[0][0], 10e-6, 1e-12);
    assert_near(tune.seconds[0][1], 15e-6, 1e-12);
    assert_near(tune.seconds[0][2], 100e-6, 1e-12);
    assert_int_equal(runs[2], 0); /* hopeless in the first pass */
}

/* ---- the check of a table ---- */

static uint64_t nearly_ns(unsigned plan, int round)
{
    static const uint64_t ns[] = {10000, 10500, 100000};
    return ns[plan];
}

static uint64_t worse_ns(unsigned plan, int round)
{
    return plain_ns(plan, round) * (plan == 1 ? 2 : 1);
}

/* The second is quick where it is chosen, and isn't where it is compared. */
static uint64_t lucky_ns(unsigned plan, int round)
{
    return plan == 1 ? (round % 2 == 0 ? 6000 : 19000) : plain_ns(plan, round);
}

static void check_with(uint64_t (*ns)(unsigned plan, int round), int pass)
{
    cost_ns = ns;
    assert_int_equal(rt_tune_check_size(&tune, 0, pass), 0);
}

static void table_is_wrong_only_where_it_stays_so(void **state)
{
    tune.table = rt_choice_of(tune.plans[1]);
    check_with(plain_ns, 0);
    assert_int_equal(tune.asked[0], 1);
    assert_int_equal(tune.found[0], 0);
    assert_near(tune.ratio[0], 1.5, 1e-9);
    assert_int_equal(rt_tune_print_check(&tune), 1);
    check_with(worse_ns, 1); /* the better one counts */
    assert_near(tune.ratio[0], 1.5, 1e-9);
    assert_near(tune.seconds[0][1], 15e-6, 1e-12);
    check_with(nearly_ns, 1);
    assert_near(tune.ratio[0], 1.05, 1e-9);
    assert_int_equal(rt_tune_print_check(&tune), 0);
    memset(runs, 0, sizeof runs);
    check_with(plain_ns, 1); /* what was right is not asked again */
    assert_int_equal(runs[0], 0);
    assert_near(tune.ratio[0], 1.05, 1e-9);
}

static void lucky_plan_makes_no_table_wrong(void **state)
{
    tune.table = rt_choice_of(tune.plans[0]);
    check_with(lucky_ns, 0);
    assert_int_equal(tune.found[0], 1);
    assert_near(tune.ratio[0], 10.0 / 19, 1e-9);
}

static void plan_of_the_table_alone_is_measured_with_the_others(void **state)
{
    tune.plan_count = 2;
    tune.table = rt_choice_of((struct rt_plan){RT_PLAN_HIERARCHICAL, 1});
    for (int pass = 0; pass < 2; pass++) {
        check_with(plain_ns, pass);
        assert_int_equal(tune.plan_count, 3);
        assert_int_equal(tune.asked[0], 2);
        assert_near(tune.ratio[0], 10, 1e-9);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_plan_has_what_it_takes_undisturbed),
        TEST(hopeless_plan_is_left_out_soon_and_keeps_its_time),
        TEST(without_a_number_it_ends_by_the_time),
        TEST(one_lucky_pass_says_nothing),
        TEST(table_is_wrong_only_where_it_stays_so),
        TEST(lucky_plan_makes_no_table_wrong),
        TEST(plan_of_the_table_alone_is_measured_with_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
