/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks by the names of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace-ranks.h"

static void rank_of_name_is_the_number_behind_the_word(void **state)
{
    assert_int_equal(rs_trace_rank_of_name("a/rank-0.json.gz"), 0);
    assert_int_equal(rs_trace_rank_of_name("a/trace_rank12.json"), 12);
    assert_int_equal(rs_trace_rank_of_name("a/Rank[3].json"), 3);
    assert_int_equal(rs_trace_rank_of_name("worker7.pt.trace.json"), 7);
    assert_int_equal(rs_trace_rank_of_name("nccl_trace_rank_node-0_3.json"), 3);
    assert_int_equal(rs_trace_rank_of_text("crank5"), -1);
    assert_int_equal(rs_trace_rank_of_name("step-12.json"), -1);
    assert_int_equal(rs_trace_rank_of_name("rank99999999999.json"), -1);
    assert_int_equal(rs_trace_rank_of_text("rank 2 (host1:4242)"), 2);
}

static void check(const gchar *const *paths, guint n, const gint32 *expected)
{
    g_autofree gint32 *ranks = rs_trace_ranks_new(paths, n);
    for (guint i = 0; i < n; i++)
        assert_int_equal(ranks[i], expected[i]);
}

static void ranks_are_the_one_number_that_differs(void **state)
{
    static const gchar *const plain[] = {"2024-01/t_0.json", "2024-01/t_3.json",
                                         "2024-01/t_1.json"};
    check(plain, 3, (const gint32[]){0, 3, 1});
    static const gchar *const two[] = {"host_12.99.json", "host_13.98.json"};
    check(two, 2, (const gint32[]){-1, -1});
    static const gchar *const years[] = {"2021.json", "2022.json"};
    check(years, 2, (const gint32[]){-1, -1});
    static const gchar *const mixed[] = {"config.json", "t1.json", "t2.json"};
    check(mixed, 3, (const gint32[]){-1, 1, 2});
    static const gchar *const folders[] = {"rank1/trace.json", "rank0/trace.json"};
    check(folders, 2, (const gint32[]){1, 0});
    static const gchar *const later[] = {"a/t0.json", "a/t1.json", "b/t0.json", "b/t1.json"};
    check(later, 4, (const gint32[]){0, 1, 0, 1});
    static const gchar *const same[] = {"rank1/a.json", "rank1/b.json"};
    check(same, 2, (const gint32[]){-1, -1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_of_name_is_the_number_behind_the_word),
        cmocka_unit_test(ranks_are_the_one_number_that_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
