/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinators of process sets: whom each waits for, which goes first, how one ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-coordinator.h"

#define S UINT64_C(1000000000)

static struct rt_coordinator *of_two_and_five(void)
{
    static const int ranks[] = {2, 5};
    struct rt_coordinator *c = rt_coordinator_new_of(ranks, 2, 7, 1024, 16);
    assert_non_null(c);
    return c;
}

static struct rt_tensor tensor(enum rt_kind kind, const char *name)
{
    struct rt_tensor t = {
        .kind = (uint8_t)kind, .set = 3, .count = 1, .prescale = 1, .postscale = 1};
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

static int announce(struct rt_coordinator *c, int rank, const char *name)
{
    struct rt_tensor t = tensor(RT_ALLREDUCE, name);
    return rt_coordinator_announce(c, rank, &t);
}

static void expect_order(struct rt_coordinator *c, const char *name)
{
    struct rt_order order;
    assert_int_equal(rt_coordinator_next(c, &order), *name ? 1 : 0);
    if (!*name)
        return;
    assert_int_equal(order.error, 0);
    assert_string_equal(order.tensors[0].name, name);
    rt_order_clear(&order);
}

static void expect_refusal(struct rt_coordinator *c, int error, const char *text, uint32_t to)
{
    struct rt_order order;
    assert_int_equal(rt_coordinator_next(c, &order), 1);
    assert_string_equal(order.text, text);
    assert_int_equal(order.error, error);
    assert_int_equal(order.addressee_count, to);
    rt_order_clear(&order);
}

static void next_waits_for_the_ranks_of_the_set_alone(void **state)
{
    struct rt_coordinator *c = of_two_and_five();
    assert_int_equal(announce(c, 5, "a"), 0);
    expect_order(c, "");
    assert_int_equal(announce(c, 3, "a"), -EPROTO);
    assert_int_equal(announce(c, 2, "a"), 0);
    expect_order(c, "a");
    rt_coordinator_free(c);
}

static void texts_name_the_set_and_ranks_of_the_job(void **state)
{
    struct rt_coordinator *c = of_two_and_five();
    struct rt_tensor longer = tensor(RT_ALLREDUCE, "a");
    struct rt_bytes text = {0};
    longer.count = 9;
    announce(c, 5, "a");
    assert_int_equal(rt_coordinator_say_stalled(c, 0, &text), 1);
    assert_string_equal((char *)text.data, "  a of process set 3: for 0.0 s for rank 2\n");
    free(text.data);
    rt_coordinator_announce(c, 2, &longer);
    expect_refusal(c, -EINVAL,
                   "ranks disagree about tensor a of process set 3; shape: rank 2 [9], rank 5 [1]",
                   0);
    rt_coordinator_free(c);
}

static void root_is_a_rank_of_the_job(void **state)
{
    struct rt_coordinator *c = of_two_and_five();
    struct rt_tensor t = tensor(RT_BROADCAST, "b"), join = tensor(RT_JOIN, "rt.join");
    t.root = 5;
    rt_coordinator_announce(c, 5, &t);
    rt_coordinator_announce(c, 2, &t);
    expect_order(c, "b");
    rt_coordinator_announce(c, 5, &join);
    rt_coordinator_announce(c, 2, &t);
    expect_refusal(c, -EINVAL, "tensor b of process set 3: its root, rank 5, has joined", 1);
    rt_coordinator_free(c);
}

static void what_one_has_that_leaves_fails_and_no_last_order_comes(void **state)
{
    struct rt_coordinator *c = of_two_and_five();
    announce(c, 5, "a");
    assert_int_equal(rt_coordinator_leave(c, 3), 0);
    expect_order(c, "");
    assert_int_equal(rt_coordinator_leave(c, 2), 0);
    assert_int_equal(rt_coordinator_leave(c, 2), 0);
    expect_refusal(c, -ESHUTDOWN,
                   "tensor a of process set 3 will not be ready: shut down without it: rank 2", 1);
    assert_int_equal(rt_coordinator_leave(c, 5), 0);
    expect_order(c, "");
    rt_coordinator_free(c);
}

static void close_fails_what_waits_after_what_is_ready(void **state)
{
    struct rt_coordinator *c = of_two_and_five();
    announce(c, 5, "a");
    announce(c, 2, "ready");
    announce(c, 5, "ready");
    assert_int_equal(rt_coordinator_close(c), 0);
    expect_order(c, "ready");
    expect_refusal(c, -ENOENT,
                   "tensor a of process set 3: the process set was removed before all its ranks "
                   "had it",
                   1);
    expect_order(c, "");
    rt_coordinator_free(c);
}

static void first_of_two_has_the_higher_priority_or_has_waited_longer(void **state)
{
    struct rt_coordinator *a = of_two_and_five(), *b = of_two_and_five();
    struct rt_tensor high = tensor(RT_ALLREDUCE, "high");
    assert_null(rt_coordinator_first_of(a, b));
    rt_coordinator_set_time(b, 1 * S);
    announce(b, 2, "old");
    announce(b, 5, "old");
    assert_ptr_equal(rt_coordinator_first_of(a, b), b);
    assert_ptr_equal(rt_coordinator_first_of(b, NULL), b);
    rt_coordinator_set_time(a, 2 * S);
    announce(a, 2, "young");
    announce(a, 5, "young");
    assert_ptr_equal(rt_coordinator_first_of(a, b), b);
    high.priority = 1;
    rt_coordinator_announce(a, 2, &high);
    rt_coordinator_announce(a, 5, &high);
    assert_ptr_equal(rt_coordinator_first_of(a, b), a);
    rt_coordinator_free(a);
    rt_coordinator_free(b);
}

static void changes_of_sets_are_refused_with_each_ranks_values(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(2, 0, 16);
    struct rt_tensor add = tensor(RT_ADD_SET, "rt.process-set"), other = add;
    struct rt_tensor join = tensor(RT_JOIN, "rt.join");
    add.set = other.set = join.set = 0;
    strcpy(add.shape, "ranks 0-1");
    strcpy(other.shape, "rank 1");
    rt_coordinator_announce(c, 1, &other);
    rt_coordinator_announce(c, 0, &add);
    expect_refusal(c, -EINVAL,
                   "ranks disagree about a process set; process set: rank 0 ranks 0-1, rank 1 "
                   "rank 1",
                   0);
    other = tensor(RT_REMOVE_SET, "rt.process-set");
    strcpy(other.shape, "3");
    rt_coordinator_announce(c, 1, &other);
    rt_coordinator_announce(c, 0, &add);
    expect_refusal(c, -EINVAL,
                   "ranks disagree about a process set; operation: rank 0 ADD_PROCESS_SET, rank 1 "
                   "REMOVE_PROCESS_SET; process set: rank 0 ranks 0-1, rank 1 3",
                   0);
    rt_coordinator_announce(c, 1, &join);
    rt_coordinator_announce(c, 0, &add);
    expect_refusal(c, -EINVAL, "process sets change where no rank has joined; have joined: rank 1",
                   1);
    rt_coordinator_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_waits_for_the_ranks_of_the_set_alone),
        cmocka_unit_test(texts_name_the_set_and_ranks_of_the_job),
        cmocka_unit_test(root_is_a_rank_of_the_job),
        cmocka_unit_test(what_one_has_that_leaves_fails_and_no_last_order_comes),
        cmocka_unit_test(close_fails_what_waits_after_what_is_ready),
        cmocka_unit_test(first_of_two_has_the_higher_priority_or_has_waited_longer),
        cmocka_unit_test(changes_of_sets_are_refused_with_each_ranks_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
