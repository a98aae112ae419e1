/* SPDX-License-Identifier: Apache-2.0 */
/* The response cache: which slot goes next, and what a slot meant to a rank that is behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#include "rt-cache.h"

static void store(struct rt_cache *c, uint32_t slot, const char *name, uint64_t count,
                  uint64_t order)
{
    struct rt_tensor t = {.count = count};
    snprintf(t.name, sizeof t.name, "%s", name);
    assert_int_equal(rt_cache_store(c, slot, &t, order), 0);
}

static void expect(const struct rt_cache *c, uint32_t slot, uint64_t order, const char *name,
                   uint64_t count)
{
    const struct rt_tensor *t = rt_cache_at_order(c, slot, order);
    assert_non_null(t);
    assert_string_equal(t->name, name);
    assert_int_equal(t->count, count);
}

static void choose_takes_the_least_recently_used_once_all_are_full(void **state)
{
    struct rt_cache *c = rt_cache_new(true);
    assert_int_equal(rt_cache_choose(c, 0), RT_SLOT_NONE);
    assert_int_equal(rt_cache_choose(c, 3), 0);
    store(c, 0, "a", 1, 1);
    store(c, 1, "b", 1, 2);
    assert_int_equal(rt_cache_choose(c, 3), 2);
    store(c, 2, "c", 1, 3);
    assert_int_equal(rt_cache_choose(c, 3), 0);
    rt_cache_touch(c, 0);
    assert_int_equal(rt_cache_choose(c, 3), 1);
    rt_cache_touch(c, 1);
    rt_cache_touch(c, 1);
    assert_int_equal(rt_cache_choose(c, 3), 2);
    store(c, 2, "d", 1, 4);
    assert_int_equal(rt_cache_choose(c, 3), 0);
    assert_int_equal(rt_cache_find(c, "c"), RT_SLOT_NONE);
    assert_int_equal(rt_cache_find(c, "d"), 2);
    rt_cache_free(c);
}

static void store_of_a_name_that_is_elsewhere_is_refused(void **state)
{
    struct rt_cache *c = rt_cache_new(false);
    const struct rt_tensor a = {.name = "a"};
    store(c, 4, "a", 1, 1);
    assert_null(rt_cache_at(c, 3));
    assert_null(rt_cache_at(c, 5));
    assert_int_equal(rt_cache_store(c, 3, &a, 2), -EPROTO);
    assert_int_equal(rt_cache_store(c, RT_CACHE_CAPACITY_MAX, &a, 2), -EPROTO);
    rt_cache_free(c);
    rt_cache_free(NULL);
}

static void past_stays_until_all_have_read_its_end(void **state)
{
    struct rt_cache *c = rt_cache_new(true);
    store(c, 0, "a", 1, 2);
    store(c, 0, "a", 5, 4);
    store(c, 0, "b", 1, 7);
    store(c, 1, "a", 6, 7);
    expect(c, 0, 2, "a", 1);
    expect(c, 0, 3, "a", 1);
    expect(c, 0, 4, "a", 5);
    expect(c, 0, 6, "a", 5);
    expect(c, 0, 7, "b", 1);
    expect(c, 0, 100, "b", 1);
    assert_null(rt_cache_at_order(c, 0, 1));
    assert_null(rt_cache_at_order(c, 1, 6));
    rt_cache_forget_past(c, 3); /* some rank hasn't read the fourth */
    expect(c, 0, 3, "a", 1);
    rt_cache_forget_past(c, 4);
    assert_null(rt_cache_at_order(c, 0, 3));
    expect(c, 0, 6, "a", 5);
    rt_cache_forget_past(c, 7);
    assert_null(rt_cache_at_order(c, 0, 6));
    store(c, 0, "c", 1, 8); /* the list goes on after its end was taken */
    expect(c, 0, 7, "b", 1);
    rt_cache_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choose_takes_the_least_recently_used_once_all_are_full),
        cmocka_unit_test(store_of_a_name_that_is_elsewhere_is_refused),
        cmocka_unit_test(past_stays_until_all_have_read_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
