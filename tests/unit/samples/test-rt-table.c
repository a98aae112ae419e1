/* SPDX-License-Identifier: Apache-2.0 */
/* Operations and handles, with callers and the background thread at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-table.h"

static struct rt_operation *operation(const char *name)
{
    struct rt_operation *o = calloc(1, sizeof *o);
    snprintf(o->tensor.name, sizeof o->tensor.name, "%s", name);
    return o;
}

static void add_of_a_name_in_use_is_refused_until_it_is_done(void **state)
{
    struct rt_table *t = rt_table_new();
    struct rt_operation *second = operation("a");
    char *text = NULL;
    int first = rt_table_add(t, operation("a"));
    assert_true(first >= 0);
    assert_int_equal(rt_table_add(t, second), -EEXIST);
    rt_table_finish(t, rt_table_take_new(t), 0, NULL);
    int again = rt_table_add(t, second);
    assert_true(again >= 0 && again != first); /* the first wasn't waited for */
    assert_int_equal(rt_table_wait(t, first, &text), 0);
    assert_int_equal(rt_table_wait(t, first, &text), -EINVAL);
    rt_table_free(t);
}

static void add_after_a_join_is_refused_until_it_is_done(void **state)
{
    struct rt_table *t = rt_table_new();
    struct rt_operation *join = operation(RT_JOIN_NAME), *other = operation("a");
    struct rt_operation *end = operation("rt.shutdown");
    char *text = NULL;
    join->tensor.kind = RT_JOIN;
    end->tensor.kind = RT_SHUTDOWN;
    int handle = rt_table_add(t, join);
    assert_true(handle >= 0);
    assert_int_equal(rt_table_add(t, other), -EBUSY);
    assert_true(rt_table_add(t, end) >= 0);
    rt_table_finish(t, rt_table_take_new(t), 0, NULL);
    assert_int_equal(rt_table_wait(t, handle, &text), 0);
    assert_true(rt_table_add(t, other) >= 0);
    rt_table_free(t);
}

static void take_new_gives_each_once_in_the_order_they_came(void **state)
{
    struct rt_table *t = rt_table_new();
    rt_table_add(t, operation("one"));
    rt_table_add(t, operation("two"));
    assert_null(rt_table_find(t, 0, "one")); /* not announced: no order can be about it */
    struct rt_operation *one = rt_table_take_new(t);
    assert_string_equal(one->tensor.name, "one");
    assert_string_equal(rt_table_take_new(t)->tensor.name, "two");
    assert_null(rt_table_take_new(t));
    assert_ptr_equal(rt_table_find(t, 0, "one"), one);
    rt_table_finish(t, one, 0, NULL);
    rt_table_add(t, operation("three"));
    assert_string_equal(rt_table_take_new(t)->tensor.name, "three");
    rt_table_free(t);
}

static void wait_gives_the_result_and_its_text(void **state)
{
    struct rt_table *t = rt_table_new();
    char *text = NULL;
    int handle = rt_table_add(t, operation("a"));
    assert_int_equal(rt_table_poll(t, handle), 0);
    rt_table_finish(t, rt_table_take_new(t), -EIO, "broken");
    assert_int_equal(rt_table_poll(t, handle), 1);
    assert_int_equal(rt_table_wait(t, handle, &text), -EIO);
    assert_string_equal(text, "broken");
    free(text);
    assert_int_equal(rt_table_poll(t, handle), -EINVAL);
    assert_int_equal(rt_table_poll(t, -1), -EINVAL);
    assert_int_equal(rt_table_poll(t, 1000), -EINVAL);
    rt_table_free(t);
}

static void close_finishes_all_and_refuses_more(void **state)
{
    struct rt_table *t = rt_table_new();
    char *text = NULL;
    int a = rt_table_add(t, operation("a")), b = rt_table_add(t, operation("b"));
    rt_table_close(t, -EIO, "gone");
    assert_int_equal(rt_table_wait(t, a, &text), -EIO);
    free(text);
    assert_int_equal(rt_table_wait(t, b, &text), -EIO);
    free(text);
    struct rt_operation *late = operation("c");
    assert_int_equal(rt_table_add(t, late), -ESHUTDOWN);
    free(late);
    rt_table_free(t);
}

static void handle_that_was_waited_for_is_no_later_one(void **state)
{
    struct rt_table *t = rt_table_new();
    char *text = NULL;
    int first = rt_table_add(t, operation("a"));
    rt_table_finish(t, rt_table_take_new(t), 0, NULL);
    assert_int_equal(rt_table_wait(t, first, &text), 0);
    int second = rt_table_add(t, operation("b")); /* in the place of the first */
    assert_true(second >= 0 && second != first);
    assert_int_equal(rt_table_poll(t, first), -EINVAL);
    assert_int_equal(rt_table_wait(t, first, &text), -EINVAL);
    assert_int_equal(rt_table_poll(t, second), 0);
    rt_table_free(t);
}

static void fail_set_ends_those_of_the_set_alone(void **state)
{
    struct rt_table *t = rt_table_new();
    struct rt_operation *told = operation("a"), *of_set = operation("a"), *other = operation("b");
    char *text = NULL;
    of_set->tensor.set = told->tensor.set = 3;
    int a = rt_table_add(t, told);
    rt_table_take_new(t);
    strcpy(of_set->tensor.name, "b");
    int b = rt_table_add(t, of_set);
    int c = rt_table_add(t, other);
    assert_int_equal(rt_table_fail_set(t, 3, -ENOENT, "removed"), 1);
    assert_int_equal(rt_table_wait(t, a, &text), -ENOENT);
    assert_string_equal(text, "removed");
    free(text);
    assert_int_equal(rt_table_wait(t, b, &text), -ENOENT);
    free(text);
    assert_int_equal(rt_table_poll(t, c), 0);
    assert_ptr_equal(rt_table_take_new(t), other); /* the next that nobody was told of */
    assert_false(rt_table_has_new(t));
    of_set = operation("c");
    of_set->tensor.set = 3;
    rt_table_add(t, of_set);
    assert_int_equal(rt_table_fail_set(t, 3, -ENOENT, "removed"), 0);
    assert_false(rt_table_has_new(t));
    rt_table_free(t);
}

static void count(void *data)
{
    ++*(int *)data;
}

static void each_new_one_rings_until_the_table_is_closed(void **state)
{
    struct rt_table *t = rt_table_new();
    int rung = 0;
    rt_table_set_bell(t, count, &rung);
    assert_false(rt_table_has_new(t));
    rt_table_add(t, operation("a"));
    struct rt_operation *again = operation("a");
    assert_int_equal(rt_table_add(t, again), -EEXIST);
    assert_int_equal(rung, 1);
    assert_true(rt_table_has_new(t));
    rt_table_take_new(t);
    assert_false(rt_table_has_new(t));
    rt_table_close(t, -EIO, NULL);
    assert_int_equal(rt_table_add(t, again), -ESHUTDOWN);
    free(again);
    assert_int_equal(rung, 1);
    rt_table_free(t);
}

static void handles_of_a_table_that_is_gone_are_not_the_next_ones(void **state)
{
    struct rt_table *t = rt_table_new();
    char *text = NULL;
    const int first = rt_table_add(t, operation("a"));
    assert_true(first >= 0);
    rt_table_free(t);
    t = rt_table_new();
    const int second = rt_table_add(t, operation("a"));
    assert_true(second >= 0 && second != first);
    assert_int_equal(rt_table_poll(t, first), -EINVAL);
    assert_int_equal(rt_table_wait(t, first, &text), -EINVAL);
    rt_table_free(t);
}

enum { CALLERS = 4, ROUNDS = 200 };

static void *call(void *data)
{
    struct rt_table *t = ((void **)data)[0];
    const char *name = ((void **)data)[1];
    char *text = NULL;
    for (intptr_t i = 0; i < ROUNDS; i++) {
        int handle = rt_table_add(t, operation(name));
        if (handle < 0 || rt_table_wait(t, handle, &text) != 100 + name[0])
            return (void *)(i + 1);
    }
    return NULL;
}

static void *serve(void *data)
{
    struct rt_table *t = data;
    for (int done = 0; done < CALLERS * ROUNDS;) {
        struct rt_operation *o;
        while (!rt_table_has_new(t))
            sched_yield();
        while ((o = rt_table_take_new(t))) {
            o = rt_table_find(t, 0, o->tensor.name);
            rt_table_finish(t, o, 100 + o->tensor.name[0], NULL);
            done++;
        }
    }
    return NULL;
}

static void callers_each_get_their_own_result(void **state)
{
    struct rt_table *t = rt_table_new();
    char names[CALLERS][2] = {"a", "b", "c", "d"};
    void *arguments[CALLERS][2], *failed;
    pthread_t server, callers[CALLERS];
    pthread_create(&server, NULL, serve, t);
    for (int i = 0; i < CALLERS; i++) {
        arguments[i][0] = t;
        arguments[i][1] = names[i];
        pthread_create(&callers[i], NULL, call, arguments[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i], &failed);
        assert_null(failed);
    }
    pthread_join(server, NULL);
    rt_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_of_a_name_in_use_is_refused_until_it_is_done),
        cmocka_unit_test(add_after_a_join_is_refused_until_it_is_done),
        cmocka_unit_test(take_new_gives_each_once_in_the_order_they_came),
        cmocka_unit_test(wait_gives_the_result_and_its_text),
        cmocka_unit_test(close_finishes_all_and_refuses_more),
        cmocka_unit_test(handle_that_was_waited_for_is_no_later_one),
        cmocka_unit_test(fail_set_ends_those_of_the_set_alone),
        cmocka_unit_test(each_new_one_rings_until_the_table_is_closed),
        cmocka_unit_test(handles_of_a_table_that_is_gone_are_not_the_next_ones),
        cmocka_unit_test(callers_each_get_their_own_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
