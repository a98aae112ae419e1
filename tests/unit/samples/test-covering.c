/* SPDX-License-Identifier: Apache-2.0 */
/* Every two values of every two parameters meet, in few rows; the same seed gives the same rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "covering.h"

static bool meet(const struct covering *c, unsigned p, unsigned a, unsigned q, unsigned b)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->rows[i][p] == a && c->rows[i][q] == b)
            return true;
    return false;
}

static void make_lets_all_pairs_meet(void **state)
{
    static const unsigned levels[] = {15, 5, 11, 7, 1, 2};
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct covering c;
        assert_int_equal(covering_make(&c, levels, 6, seed), 0);
        for (unsigned p = 0; p < 6; p++)
            for (unsigned q = p + 1; q < 6; q++)
                for (unsigned a = 0; a < levels[p]; a++)
                    for (unsigned b = 0; b < levels[q]; b++)
                        assert_true(meet(&c, p, a, q, b));
        assert_in_range(c.count, 15 * 11, 15 * 11 * 3 / 2);
        covering_free(&c);
    }
}

static void make_with_the_same_seed_gives_the_same_rows(void **state)
{
    static const unsigned levels[] = {4, 3, 5};
    struct covering a, b, other;
    assert_int_equal(covering_make(&a, levels, 3, 7), 0);
    assert_int_equal(covering_make(&b, levels, 3, 7), 0);
    assert_int_equal(covering_make(&other, levels, 3, 8), 0);
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.rows, b.rows, a.count * sizeof *a.rows);
    assert_true(a.count != other.count ||
                memcmp(a.rows, other.rows, a.count * sizeof *a.rows) != 0);
    covering_free(&a);
    covering_free(&b);
    covering_free(&other);
}

static void make_of_what_it_cannot_do_is_refused(void **state)
{
    static const unsigned levels[] = {4, 0, 100};
    struct covering c;
    assert_int_equal(covering_make(&c, levels, 1, 0), -EINVAL);
    assert_int_equal(covering_make(&c, levels, 2, 0), -EINVAL);
    assert_int_equal(covering_make(&c, levels + 2, 9, 0), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(make_lets_all_pairs_meet),
        cmocka_unit_test(make_with_the_same_seed_gives_the_same_rows),
        cmocka_unit_test(make_of_what_it_cannot_do_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
