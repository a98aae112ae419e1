/* SPDX-License-Identifier: Apache-2.0 */
/* When a rank announces, and how long it sleeps: times are given, none passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rt-pace.h"

#define MS 1000000u
#define AT ((uint64_t)5000 * MS)

static const struct rt_pace_work nothing, new_ones = {.new_ones = true, .under_way = true},
                                          under_way = {.under_way = true},
                                          sending = {.under_way = true, .sending = true};

static struct rt_pace pace_of(bool crowded, bool rung)
{
    struct rt_pace p;
    rt_pace_init(&p, MS, crowded, rung);
    rt_pace_active(&p, AT);
    return p;
}

/* The first rest that isn't another look. */
static uint64_t sleep_ns(struct rt_pace *p, uint64_t now_ns, struct rt_pace_work work)
{
    uint64_t rest_ns = 0;
    for (int i = 0; i < 100 && rest_ns == 0; i++)
        rest_ns = rt_pace_rest_ns(p, now_ns, work);
    return rest_ns;
}

static void one_tensor_is_never_held_up(void **state)
{
    struct rt_pace p = pace_of(false, true);
    rt_pace_announced(&p, AT);
    assert_true(rt_pace_may_announce(&p, AT, false));
    assert_true(rt_pace_may_announce(&p, AT + 1, false));
}

static void more_wait_until_a_cycle_has_passed(void **state)
{
    struct rt_pace p = pace_of(false, true);
    rt_pace_announced(&p, AT);
    assert_false(rt_pace_may_announce(&p, AT, true));
    assert_false(rt_pace_may_announce(&p, AT + MS - 1, true));
    assert_true(rt_pace_may_announce(&p, AT + MS, true));
    assert_int_equal(sleep_ns(&p, AT + MS / 4, new_ones), MS - MS / 4);
}

static void without_a_cycle_nothing_waits(void **state)
{
    struct rt_pace p;
    rt_pace_init(&p, 0, false, true);
    rt_pace_announced(&p, AT);
    assert_true(rt_pace_may_announce(&p, AT, true));
}

static void it_stays_awake_for_a_while_unless_crowded(void **state)
{
    struct rt_pace p = pace_of(false, true);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(rt_pace_rest_ns(&p, AT + 1000, under_way), 0);
    assert_true(rt_pace_rest_ns(&p, AT + MS, under_way) > 0);
    p = pace_of(true, true);
    int looks = 0;
    while (rt_pace_rest_ns(&p, AT, under_way) == 0)
        looks++;
    assert_in_range(looks, 1, 5);
}

static void with_nothing_to_do_it_sleeps_until_the_bell_rings(void **state)
{
    struct rt_pace p = pace_of(true, true);
    assert_true(sleep_ns(&p, AT + MS, nothing) == RT_PACE_FOREVER);
    p = pace_of(true, false);
    assert_true(sleep_ns(&p, AT + MS, nothing) == RT_PACE_FOREVER);
}

static void naps_grow_to_a_cycle_where_no_bell_rings(void **state)
{
    struct rt_pace p = pace_of(true, false);
    uint64_t first = sleep_ns(&p, AT + MS, under_way), last = first;
    assert_true(first < MS / 10);
    for (int i = 0; i < 20; i++) {
        uint64_t nap = rt_pace_rest_ns(&p, AT + MS, under_way);
        assert_true(nap >= last && nap <= MS);
        last = nap;
    }
    assert_int_equal(last, MS);
    rt_pace_active(&p, AT + 2 * MS);
    assert_int_equal(sleep_ns(&p, AT + 3 * MS, under_way), first);
}

static void a_bell_makes_naps_long_but_not_while_sending(void **state)
{
    struct rt_pace p = pace_of(true, true);
    assert_true(sleep_ns(&p, AT + MS, under_way) >= MS);
    p = pace_of(true, true);
    assert_true(sleep_ns(&p, AT + MS, sending) < MS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_tensor_is_never_held_up),
        cmocka_unit_test(more_wait_until_a_cycle_has_passed),
        cmocka_unit_test(without_a_cycle_nothing_waits),
        cmocka_unit_test(it_stays_awake_for_a_while_unless_crowded),
        cmocka_unit_test(with_nothing_to_do_it_sleeps_until_the_bell_rings),
        cmocka_unit_test(naps_grow_to_a_cycle_where_no_bell_rings),
        cmocka_unit_test(a_bell_makes_naps_long_but_not_while_sending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
