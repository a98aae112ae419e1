/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows each rank has: every item once an epoch, the same in a step for any number of ranks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "rt-train.h"

#define ITEMS_MAX 2000

static struct rt_shard of(uint64_t items, uint64_t batch, int rank, int size)
{
    return (struct rt_shard){
        .items = items, .global_batch = batch, .seed = 7, .rank = rank, .size = size};
}

/* step_of[i]: in which step item i came; each came once. */
static void steps_of_items(uint64_t items, uint64_t batch, int size, uint64_t epoch, int *step_of)
{
    memset(step_of, -1, ITEMS_MAX * sizeof *step_of);
    uint64_t seen = 0;
    for (int rank = 0; rank < size; rank++) {
        struct rt_shard s = of(items, batch, rank, size);
        uint64_t own = rt_shard_own_steps(&s);
        for (uint64_t step = 0; step < rt_shard_steps(&s); step++) {
            uint64_t rows = rt_shard_rows(&s, step);
            assert_true((rows > 0) == (step < own));
            for (uint64_t row = 0; row < rows; row++, seen++) {
                uint64_t item = rt_shard_item(&s, epoch, step, row);
                assert_true(item < items);
                assert_int_equal(step_of[item], -1);
                step_of[item] = (int)step;
            }
        }
        assert_int_equal(rt_shard_rows(&s, rt_shard_steps(&s)), 0);
    }
    assert_int_equal(seen, items);
}

static void items_come_once_and_in_the_same_step_for_any_ranks(void **state)
{
    static int alone[ITEMS_MAX], shared[ITEMS_MAX];
    static const uint64_t items[] = {1, 2, 3, 5, 12, 97, 100, 1000, 1999};
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        for (uint64_t batch = 1; batch < 40; batch += 3) {
            steps_of_items(items[i], batch, 1, 3, alone);
            for (int size = 2; size <= 8; size++) {
                steps_of_items(items[i], batch, size, 3, shared);
                assert_memory_equal(alone, shared, sizeof alone);
            }
        }
}

static void tail_is_uneven_and_some_have_none(void **state)
{
    static const uint64_t last[] = {5, 2, 0, 0}; /* 27 items, 20 a step */
    for (int rank = 0; rank < 4; rank++) {
        struct rt_shard s = of(27, 20, rank, 4);
        assert_int_equal(rt_shard_steps(&s), 2);
        assert_int_equal(rt_shard_rows(&s, 0), 5);
        assert_int_equal(rt_shard_rows(&s, 1), last[rank]);
        assert_int_equal(rt_shard_own_steps(&s), rank < 2 ? 2 : 1);
    }
}

static void batch_that_does_not_divide_is_shared_with_one_more_first(void **state)
{
    static const uint64_t rows[] = {4, 3, 3};
    for (int rank = 0; rank < 3; rank++) {
        struct rt_shard s = of(100, 10, rank, 3);
        assert_int_equal(rt_shard_rows(&s, 4), rows[rank]);
    }
    struct rt_shard none = of(100, 2, 2, 3);
    assert_int_equal(rt_shard_own_steps(&none), 0);
}

static void epochs_differ_and_repeat(void **state)
{
    struct rt_shard s = of(1000, 1000, 0, 1);
    int same = 0, in_place = 0;
    for (uint64_t row = 0; row < 1000; row++) {
        same += rt_shard_item(&s, 0, 0, row) == rt_shard_item(&s, 1, 0, row);
        in_place += rt_shard_item(&s, 0, 0, row) == row;
        assert_int_equal(rt_shard_item(&s, 5, 0, row), rt_shard_item(&s, 5, 0, row));
    }
    assert_true(same < 10 && in_place < 10); /* one on average */
    s.in_order = true;
    for (uint64_t row = 0; row < 1000; row++)
        assert_int_equal(rt_shard_item(&s, 2, 0, row), row);
}

static void items_by_the_billion_take_no_memory(void **state)
{
    struct rt_shard s = of((uint64_t)1 << 40, 4096, 3, 8);
    uint64_t a = rt_shard_item(&s, 0, rt_shard_steps(&s) - 1, 511);
    assert_true(a < s.items);
    assert_true(a != rt_shard_item(&s, 0, rt_shard_steps(&s) - 1, 510));
}

static void what_is_no_shard_has_no_rows(void **state)
{
    const struct rt_shard bad[] = {of(10, 0, 0, 1), of(10, 2, 0, 0),  of(10, 2, -1, 3),
                                   of(10, 2, 3, 3), of(10, 2, 0, -3), of(0, 2, 0, 1)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(rt_shard_steps(&bad[i]), 0);
        assert_int_equal(rt_shard_own_steps(&bad[i]), 0);
        assert_int_equal(rt_shard_rows(&bad[i], 0), 0);
        assert_int_equal(rt_shard_rows(&bad[i], UINT64_MAX), 0);
        assert_int_equal(rt_shard_item(&bad[i], 0, 0, 0), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_once_and_in_the_same_step_for_any_ranks),
        cmocka_unit_test(tail_is_uneven_and_some_have_none),
        cmocka_unit_test(batch_that_does_not_divide_is_shared_with_one_more_first),
        cmocka_unit_test(epochs_differ_and_repeat),
        cmocka_unit_test(items_by_the_billion_take_no_memory),
        cmocka_unit_test(what_is_no_shard_has_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
