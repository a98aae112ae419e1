/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator: what is ordered, in which sequence, and what is refused with whose values. */
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

static struct rt_tensor tensor(const char *name, uint64_t count)
{
    struct rt_tensor t = {.kind = RT_ALLREDUCE, .count = count, .prescale = 1, .postscale = 1};
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

static void announce(struct rt_coordinator *c, int rank, const char *name, uint64_t count)
{
    struct rt_tensor t = tensor(name, count);
    assert_int_equal(rt_coordinator_announce(c, rank, &t), 0);
}

static void leave(struct rt_coordinator *c, int rank)
{
    struct rt_tensor t = {.kind = RT_SHUTDOWN, .name = "rt.shutdown"};
    assert_int_equal(rt_coordinator_announce(c, rank, &t), 0);
}

/* The next order's tensors, as "a+b"; "" where there is none. */
static void expect_order(struct rt_coordinator *c, const char *names)
{
    struct rt_order order;
    char text[1024] = "";
    int got = rt_coordinator_next(c, &order);
    assert_in_range(got, 0, 1);
    if (got)
        assert_int_equal(order.error, 0);
    for (uint32_t i = 0; got && i < order.n; i++) {
        strcat(text, i ? "+" : "");
        strcat(text, order.tensors[i].name);
    }
    if (got)
        rt_order_clear(&order);
    assert_string_equal(text, names);
}

static void expect_refusal(struct rt_coordinator *c, const char *name, int error, const char *text)
{
    struct rt_order order;
    assert_int_equal(rt_coordinator_next(c, &order), 1);
    assert_int_equal(order.error, error);
    assert_int_equal(order.n, 1);
    assert_string_equal(order.tensors[0].name, name);
    assert_string_equal(order.text, text);
    rt_order_clear(&order);
}

static void next_waits_for_every_rank_whatever_their_sequence(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(3, 0, 0);
    announce(c, 2, "a", 8);
    announce(c, 0, "b", 8);
    announce(c, 0, "a", 8);
    announce(c, 1, "b", 8);
    expect_order(c, "");
    announce(c, 2, "b", 8); /* b is complete before a */
    announce(c, 1, "a", 8);
    expect_order(c, "b");
    expect_order(c, "a");
    expect_order(c, "");
    rt_coordinator_free(c);
}

static void next_fuses_what_is_ready_together(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(2, 192, 0);
    static const struct {
        const char *name;
        uint64_t count;
    } given[] = {{"a", 16}, {"long", 100}, {"b", 10}, {"c", 16}, {"d", 16}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        announce(c, 1, given[i].name, given[i].count);
        announce(c, 0, given[i].name, given[i].count);
    }
    expect_order(c, "a+b+c");
    expect_order(c, "long");
    expect_order(c, "d");
    expect_order(c, "");
    announce(c, 0, "a", 16); /* the queue still works after its end was taken */
    announce(c, 1, "a", 16);
    expect_order(c, "a");
    rt_coordinator_free(c);
}

static void announce_twice_is_refused_until_it_is_ordered(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(2, 0, 0);
    struct rt_tensor a = tensor("a", 3);
    announce(c, 1, "a", 3);
    assert_int_equal(rt_coordinator_announce(c, 1, &a), -EPROTO);
    announce(c, 0, "a", 3);
    announce(c, 1, "a", 3); /* the next one of that name, before this one was told */
    expect_order(c, "a");
    expect_order(c, "");
    announce(c, 0, "a", 3);
    expect_order(c, "a");
    rt_coordinator_free(c);
}

static void next_refuses_differing_counts_naming_each_rank(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(3, 1 << 20, 0);
    announce(c, 0, "w", 5);
    announce(c, 2, "w", 7);
    announce(c, 1, "w", 5);
    announce(c, 0, "ok", 5);
    announce(c, 1, "ok", 5);
    announce(c, 2, "ok", 5);
    expect_refusal(c, "w", -EINVAL,
                   "ranks disagree about tensor w; shape: rank 0 [5], rank 1 [5], rank 2 [7]");
    expect_order(c, "ok");
    rt_coordinator_free(c);
}

static void next_refuses_every_difference(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(2, 0, 0);
    struct rt_tensor base = tensor("t", 4), other = base;
    other.type = RT_INT32;
    rt_coordinator_announce(c, 0, &base);
    rt_coordinator_announce(c, 1, &other);
    expect_refusal(c, "t", -EINVAL,
                   "ranks disagree about tensor t; type: rank 0 float32, rank 1 int32");
    other.type = RT_BFLOAT16;
    rt_coordinator_announce(c, 0, &base);
    rt_coordinator_announce(c, 1, &other);
    expect_refusal(c, "t", -EINVAL,
                   "ranks disagree about tensor t; type: rank 0 float32, rank 1 bfloat16");
    other = base;
    other.op = RT_AVG;
    rt_coordinator_announce(c, 1, &other);
    rt_coordinator_announce(c, 0, &base);
    expect_refusal(c, "t", -EINVAL,
                   "ranks disagree about tensor t; reduction: rank 0 sum, rank 1 average");
    other = base;
    other.kind = RT_BROADCAST;
    other.root = 1;
    rt_coordinator_announce(c, 0, &base);
    rt_coordinator_announce(c, 1, &other);
    expect_refusal(c, "t", -EINVAL,
                   "ranks disagree about tensor t; operation: rank 0 ALLREDUCE, rank 1 BROADCAST; "
                   "root: rank 0 0, rank 1 1");
    other = base;
    other.prescale = 0.5;
    rt_coordinator_announce(c, 0, &base);
    rt_coordinator_announce(c, 1, &other);
    expect_refusal(c, "t", -EINVAL,
                   "ranks disagree about tensor t; pre- and postscale: rank 0 1 and 1, rank 1 0.5 "
                   "and 1");
    expect_order(c, "");
    rt_coordinator_free(c);
}

static void expect_shapes(const struct rt_tensor *zero, const struct rt_tensor *one,
                          const char *text)
{
    struct rt_coordinator *c = rt_coordinator_new(2, 0, 0);
    char whole[256];
    rt_coordinator_announce(c, 1, one);
    rt_coordinator_announce(c, 0, zero);
    snprintf(whole, sizeof whole, "ranks disagree about tensor t; shape: %s", text);
    expect_refusal(c, "t", -EINVAL, whole);
    rt_coordinator_free(c);
}

static void next_prints_shapes_whether_said_or_not(void **state)
{
    struct rt_tensor a = tensor("t", 6), b = a;
    strcpy(a.shape, "[2,3]");
    expect_shapes(&a, &b, "rank 0 [2,3], rank 1 [6]");
    strcpy(b.shape, "[3,2]");
    expect_shapes(&a, &b, "rank 0 [2,3], rank 1 [3,2]");
    b = tensor("t", (uint64_t)3 << 40);
    expect_shapes(&a, &b, "rank 0 [2,3], rank 1 [3298534883328]");
    a = b = tensor("t", 0);
    a.kind = b.kind = RT_ALLGATHER;
    a.row_count = 7;
    b.row_count = 8;
    strcpy(b.shape, "[*,2,4]");
    expect_shapes(&a, &b, "rank 0 [*,7], rank 1 [*,2,4]");
    a = b = tensor("t", 5);
    a.kind = b.kind = RT_REDUCESCATTER;
    a.row_count = 7;
    b.row_count = 8;
    expect_shapes(&a, &b, "rank 0 [5,7], rank 1 [5,8]");
}

static void announce_priority(struct rt_coordinator *c, int rank, const char *name, int priority)
{
    struct rt_tensor t = tensor(name, 16);
    t.priority = priority;
    assert_int_equal(rt_coordinator_announce(c, rank, &t), 0);
}

static void next_takes_the_highest_priority_first(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(2, 0, 0);
    static const struct {
        const char *name;
        int priorities[2];
    } given[] = {{"a", {0, 0}}, {"b", {-3, -3}}, {"c", {7, 7}}, {"d", {0, 0}}, {"e", {-9, 8}}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        for (int r = 0; r < 2; r++)
            announce_priority(c, r, given[i].name, given[i].priorities[r]);
    expect_order(c, "e"); /* the highest that any rank gave */
    expect_order(c, "c");
    announce_priority(c, 0, "f", INT32_MAX);
    announce_priority(c, 1, "f", INT32_MAX);
    expect_order(c, "f");
    expect_order(c, "a");
    expect_order(c, "d");
    expect_order(c, "b");
    rt_coordinator_free(c);
}

static void next_fuses_from_the_highest_priority_on(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(1, 128, 0);
    for (int i = 0; i < 5; i++)
        announce_priority(c, 0, (const char *[]){"a", "b", "c", "d", "e"}[i], i);
    expect_order(c, "e+d");
    expect_order(c, "c+b");
    expect_order(c, "a");
    rt_coordinator_free(c);
}

static void next_names_every_rank_of_many(void **state)
{
    enum { RANKS = 300 };
    struct rt_coordinator *c = rt_coordinator_new(RANKS, 0, 0);
    struct rt_order order;
    for (int r = 0; r < RANKS; r++)
        announce(c, r, "wide", r == 299 ? 123456789 : 987654321);
    assert_int_equal(rt_coordinator_next(c, &order), 1);
    assert_non_null(strstr(order.text, ", rank 150 [987654321], "));
    assert_non_null(strstr(order.text, ", rank 299 [123456789]"));
    rt_order_clear(&order);
    rt_coordinator_free(c);
}

static void next_after_a_rank_left_fails_for_those_that_wait(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(3, 0, 0);
    struct rt_order order;
    announce(c, 1, "announced", 4); /* by the rank that leaves: can still be done */
    announce(c, 0, "missed", 4);
    announce(c, 2, "missed", 4);
    leave(c, 1);
    assert_int_equal(rt_coordinator_next(c, &order), 1);
    assert_int_equal(order.error, -ESHUTDOWN);
    assert_string_equal(order.text,
                        "tensor missed will not be ready: shut down without it: rank 1");
    assert_int_equal(order.addressee_count, 2);
    assert_int_equal(order.addressees[0], 0);
    assert_int_equal(order.addressees[1], 2);
    rt_order_clear(&order);
    announce(c, 0, "late", 4);
    expect_refusal(c, "late", -ESHUTDOWN,
                   "tensor late will not be ready: shut down without it: rank 1");
    announce(c, 0, "announced", 4);
    announce(c, 2, "announced", 4);
    expect_order(c, "announced");
    leave(c, 0);
    expect_order(c, "");
    leave(c, 2);
    expect_order(c, "rt.shutdown");
    expect_order(c, "");
    rt_coordinator_free(c);
}

static void join(struct rt_coordinator *c, int rank)
{
    struct rt_tensor t = {.kind = RT_JOIN, .name = "rt.join"};
    assert_int_equal(rt_coordinator_announce(c, rank, &t), 0);
}

static void next_does_without_ranks_that_joined_until_all_have(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(3, 0, 0);
    struct rt_order order;
    announce(c, 0, "a", 8);
    announce(c, 2, "a", 8);
    expect_order(c, "");
    join(c, 1);
    expect_order(c, "a");
    announce(c, 2, "b", 8);
    join(c, 0);
    expect_order(c, "b");
    join(c, 2);
    assert_int_equal(rt_coordinator_next(c, &order), 1);
    assert_int_equal(order.tensors[0].kind, RT_JOIN);
    assert_int_equal(order.tensors[0].root, 2); /* the last */
    assert_int_equal(order.error, 0);
    rt_order_clear(&order);
    announce(c, 2, "c", 8); /* nobody is joined any more */
    expect_order(c, "");
    announce(c, 0, "c", 8);
    announce(c, 1, "c", 8);
    expect_order(c, "c");
    rt_coordinator_free(c);
}

static void next_takes_what_came_before_a_join_first(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(2, 0, 0);
    join(c, 0);
    announce_priority(c, 1, "a", INT32_MIN);
    join(c, 1);
    expect_order(c, "a");
    expect_order(c, "rt.join");
    rt_coordinator_free(c);
}

static void next_tells_a_refusal_to_those_that_have_not_joined(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(3, 0, 0);
    struct rt_order order;
    join(c, 0);
    announce(c, 1, "a", 8);
    announce(c, 2, "a", 9);
    assert_int_equal(rt_coordinator_next(c, &order), 1);
    assert_int_equal(order.error, -EINVAL);
    assert_string_equal(order.text, "ranks disagree about tensor a; shape: rank 1 [8], rank 2 [9]");
    assert_int_equal(order.addressee_count, 2);
    assert_int_equal(order.addressees[0], 1);
    assert_int_equal(order.addressees[1], 2);
    rt_order_clear(&order);
    leave(c, 1); /* so not all will join */
    assert_int_equal(rt_coordinator_next(c, &order), 1);
    assert_int_equal(order.error, -ESHUTDOWN);
    assert_int_equal(order.addressee_count, 1);
    assert_int_equal(order.addressees[0], 0);
    rt_order_clear(&order);
    rt_coordinator_free(c);
}

static void free_with_tensors_waiting_frees_them(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(2, 0, 0);
    announce(c, 0, "a", 1);
    announce(c, 0, "b", 1);
    announce(c, 1, "b", 1);
    rt_coordinator_free(c); /* the leak sanitizer looks */
    rt_coordinator_free(NULL);
}

#define S ((uint64_t)1000000000)

static void stalled_names_who_is_missing_the_oldest_first(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(3, 0, 0);
    struct rt_bytes text = {0};
    rt_coordinator_set_time(c, 100 * S);
    announce(c, 1, "zebra", 8);
    rt_coordinator_set_time(c, 103 * S);
    announce(c, 0, "ant", 8);
    announce(c, 2, "ant", 8);
    rt_coordinator_set_time(c, 110 * S);
    announce(c, 0, "new", 8);
    assert_int_equal(rt_coordinator_say_stalled(c, 7 * S, &text), 2);
    assert_string_equal((char *)text.data, "  zebra: for 10.0 s for rank 0, rank 2\n"
                                           "  ant: for 7.0 s for rank 1\n");
    free(text.data);
    announce(c, 0, "zebra", 8); /* and it goes on */
    announce(c, 2, "zebra", 8);
    expect_order(c, "zebra");
    rt_coordinator_free(c);
}

static void given_up_tensor_fails_where_it_was_handed_over(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(3, 0, 16);
    struct rt_order order;
    rt_coordinator_set_time(c, 5 * S);
    announce(c, 2, "late", 8);
    announce(c, 0, "late", 8);
    rt_coordinator_set_time(c, 7 * S);
    announce(c, 0, "young", 8);
    assert_int_equal(rt_coordinator_give_up(c, 2 * S), 0);
    assert_int_equal(rt_coordinator_next(c, &order), 1);
    assert_int_equal(order.error, -ETIMEDOUT);
    assert_string_equal(order.text,
                        "tensor late has waited 2.0 s for rank 1 (RT_STALL_SHUTDOWN_TIME)");
    assert_int_equal(order.addressee_count, 2);
    assert_int_equal(order.addressees[0], 0);
    assert_int_equal(order.addressees[1], 2);
    rt_order_clear(&order);
    expect_order(c, "");
    for (int r = 0; r < 3; r++) /* the name may be used again */
        announce(c, r, "late", 8);
    expect_order(c, "late");
    rt_coordinator_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stalled_names_who_is_missing_the_oldest_first),
        cmocka_unit_test(given_up_tensor_fails_where_it_was_handed_over),
        cmocka_unit_test(next_waits_for_every_rank_whatever_their_sequence),
        cmocka_unit_test(next_fuses_what_is_ready_together),
        cmocka_unit_test(announce_twice_is_refused_until_it_is_ordered),
        cmocka_unit_test(next_refuses_differing_counts_naming_each_rank),
        cmocka_unit_test(next_refuses_every_difference),
        cmocka_unit_test(next_prints_shapes_whether_said_or_not),
        cmocka_unit_test(next_takes_the_highest_priority_first),
        cmocka_unit_test(next_fuses_from_the_highest_priority_on),
        cmocka_unit_test(next_names_every_rank_of_many),
        cmocka_unit_test(next_after_a_rank_left_fails_for_those_that_wait),
        cmocka_unit_test(next_does_without_ranks_that_joined_until_all_have),
        cmocka_unit_test(next_takes_what_came_before_a_join_first),
        cmocka_unit_test(next_tells_a_refusal_to_those_that_have_not_joined),
        cmocka_unit_test(free_with_tensors_waiting_frees_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
