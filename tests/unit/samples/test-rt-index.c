/* SPDX-License-Identifier: Apache-2.0 */
/* The index against a list, with names that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rt-index.h"

enum { NAMES = 300, SETS = 3, STEPS = 20000 };

static char names[NAMES][16];
static bool in[SETS][NAMES];

static void index_holds_what_a_list_would(void **state)
{
    struct rt_index index = {0};
    const char *given = getenv("RT_TEST_SEED");
    unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    uint32_t count = 0, at = 0, seen = 0;
    print_message("seed: RT_TEST_SEED=%u\n", seed);
    for (int i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof names[i], "layer%d.w", i);
    for (int i = 0; i < STEPS; i++) {
        int set = rand_r(&seed) % SETS, n = rand_r(&seed) % NAMES;
        assert_ptr_equal(rt_index_find(&index, set, names[n]), in[set][n] ? &in[set][n] : NULL);
        if (in[set][n])
            rt_index_remove(&index, set, names[n]);
        else if (i < STEPS / 2 || rand_r(&seed) % 3 == 0)
            assert_int_equal(rt_index_add(&index, set, names[n], &in[set][n]), 0);
        else
            continue;
        in[set][n] = !in[set][n];
        count += in[set][n] ? 1 : UINT32_MAX;
        assert_int_equal(index.count, count);
    }
    for (bool *thing; (thing = rt_index_next(&index, &at)); seen++)
        assert_true(*thing);
    assert_int_equal(seen, count);
    rt_index_release(&index);
}

static void index_that_is_empty_finds_nothing(void **state)
{
    struct rt_index index = {0};
    uint32_t at = 0;
    assert_null(rt_index_find(&index, 0, "a"));
    assert_null(rt_index_next(&index, &at));
    rt_index_remove(&index, 0, "a");
    rt_index_release(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_holds_what_a_list_would),
        cmocka_unit_test(index_that_is_empty_finds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
