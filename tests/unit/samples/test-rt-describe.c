/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes as text: what is said, what follows from the counts, what doesn't fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "rt-describe.h"

static int describe(struct rt_tensor *t, uint64_t rows, unsigned n, const uint64_t *shape)
{
    const struct rt_options options = {.dimensions = n, .shape = shape};
    memset(t->shape, 0, sizeof t->shape);
    return rt_describe_shape(t, &options, rows);
}

static void shape_is_written_where_it_says_more_than_the_counts(void **state)
{
    struct rt_tensor t = {.kind = RT_ALLREDUCE, .count = 24};
    const uint64_t shape[] = {2, 3, 4}, whole[] = {24};
    assert_int_equal(rt_describe_shape(&t, NULL, 0), 0);
    assert_string_equal(t.shape, "");
    assert_int_equal(describe(&t, 0, 0, NULL), 0);
    assert_string_equal(t.shape, "");
    assert_int_equal(describe(&t, 0, 1, whole), 0);
    assert_string_equal(t.shape, ""); /* the same as unsaid */
    assert_int_equal(describe(&t, 0, 3, shape), 0);
    assert_string_equal(t.shape, "[2,3,4]");
}

static void shape_of_rows_begins_with_them(void **state)
{
    struct rt_tensor t = {.kind = RT_REDUCESCATTER, .count = 2, .row_count = 12};
    const uint64_t shape[] = {2, 3, 4}, alone[] = {5};
    assert_int_equal(describe(&t, 2, 3, shape), 0);
    assert_string_equal(t.shape, "[2,3,4]");
    assert_int_equal(describe(&t, 3, 3, shape), -EINVAL);
    t.kind = RT_ALLGATHER;
    assert_int_equal(describe(&t, 2, 3, shape), 0);
    assert_string_equal(t.shape, "[*,3,4]");
    assert_int_equal(describe(&t, 2, 2, (const uint64_t[]){2, 12}), 0);
    assert_string_equal(t.shape, "");
    t.row_count = 1;
    assert_int_equal(describe(&t, 5, 1, alone), 0);
    assert_string_equal(t.shape, "[*]");
}

static void shape_that_does_not_give_the_count_is_refused(void **state)
{
    struct rt_tensor t = {.kind = RT_ALLREDUCE, .count = 24};
    const uint64_t wrong[] = {5, 5}, nine[9] = {24, 1, 1, 1, 1, 1, 1, 1, 1};
    const uint64_t wraps[] = {(uint64_t)1 << 33, (uint64_t)1 << 33};
    assert_int_equal(describe(&t, 0, 2, wrong), -EINVAL);
    assert_int_equal(describe(&t, 0, 8, nine), 0);
    assert_int_equal(describe(&t, 0, 9, nine), -EINVAL);
    t.count = 0; /* what the product wraps to */
    assert_int_equal(describe(&t, 0, 2, wraps), -EINVAL);
    assert_int_equal(describe(&t, 0, 2, (const uint64_t[]){7, 0}), 0);
    assert_string_equal(t.shape, "[7,0]");
}

static void longest_shape_has_room(void **state)
{
    uint64_t shape[RT_DIMENSIONS_MAX] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                         UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct rt_tensor t = {.kind = RT_ALLREDUCE, .count = UINT64_MAX};
    for (int i = 1; i < RT_DIMENSIONS_MAX; i++)
        shape[i] = 1;
    assert_int_equal(describe(&t, 0, RT_DIMENSIONS_MAX, shape), 0);
    assert_string_equal(t.shape, "[18446744073709551615,1,1,1,1,1,1,1]");
    assert_true((20 + 1) * RT_DIMENSIONS_MAX + 1 <= RT_SHAPE_MAX);
}

static void group_of_many_is_told_apart_by_all_its_counts(void **state)
{
    enum { MANY = 400 };
    static struct rt_member members[MANY];
    struct rt_tensor a = {.members = MANY}, b = a;
    for (int i = 0; i < MANY; i++)
        members[i].count = 1000;
    rt_describe_group(&a, members, MANY);
    members[MANY - 1].count = 1001;
    rt_describe_group(&b, members, MANY);
    assert_string_not_equal(a.shape, b.shape);
    assert_int_equal(strncmp(a.shape, "[1000]+[1000]+", 14), 0);
    rt_describe_group(&a, members, 2);
    assert_string_equal(a.shape, "[1000]+[1000]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape_is_written_where_it_says_more_than_the_counts),
        cmocka_unit_test(shape_of_rows_begins_with_them),
        cmocka_unit_test(shape_that_does_not_give_the_count_is_refused),
        cmocka_unit_test(longest_shape_has_room),
        cmocka_unit_test(group_of_many_is_told_apart_by_all_its_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
