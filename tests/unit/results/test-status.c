/* SPDX-License-Identifier: Apache-2.0 */
/* Who is told to be missing from a run that is still alive. Times in seconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "scene.h"
#include "status/status.h"

#define S   1e6
#define NOW (20 * S)

/* 8 ranks that were in an allreduce up to 1 s. */
static void begin(Scene *s)
{
    scene_init(s, 8, 2);
    for (guint r = 0; r < 8; r++)
        scene_collective(s, r, RS_COLL_ALLREDUCE, 0, 64, 0, 0.5 * S, 1 * S);
}

static RsModel *finish(Scene *s, RsStatus *ret)
{
    for (guint r = 0; r < 8; r++)
        scene_end(s, r, RS_ENDING_RUNNING, NOW);
    RsModel *m = scene_finish(s);
    rs_status_init(ret, m, "a run");
    return m;
}

static void rank_that_does_not_come_is_missing(void **state)
{
    Scene s;
    RsStatus t;
    begin(&s);
    for (guint r = 0; r < 8; r++)
        if (r != 5)
            scene_open_collective(&s, r, RS_COLL_ALLREDUCE, 1, (2 + r) * S, NOW);
    G_GNUC_UNUSED g_autoptr(RsModel) m = finish(&s, &t);
    assert_int_equal(t.n_roots, 1);
    assert_true(t.roots[5]);
    assert_null(t.cycle);
    guint n;
    assert_int_equal(rs_status_longest_wait(&t, 5, &n), 0);
    assert_int_equal(n, 7);
    assert_int_equal(t.ranks[0].call_ns, 18000000000);
    assert_int_equal(t.ranks[5].call, RS_NONE);
    assert_int_equal(t.ranks[5].last_ns, 19000000000);
    g_autofree gchar *text = rs_status_text(&t, FALSE);
    assert_non_null(strstr(text,
                           "MISSING   rank 5 (host1, pid 105) is in no recorded call, for 19.000 s "
                           "since MPI_Op, number 0 on world"));
    assert_non_null(strstr(text, "7 ranks wait for it, the longest rank 0, for 18.000 s in MPI_Op, "
                                 "number 1 on world"));
    assert_non_null(strstr(text, "0-4, 6, 7               ")); /* one line for all of them */
    assert_non_null(strstr(text, "in MPI_Op, number 1 on world, for 11.000 s to 18.000 s"));
    assert_non_null(strstr(text, "world (8 ranks): number 0: rank 5; number 1: ranks 0-4, 6, 7"));
    g_autofree gchar *each = rs_status_text(&t, TRUE);
    assert_non_null(strstr(each, "\n3                       "));
    rs_status_release(&t);
}

/* Every run is like that at some moment. */
static void short_wait_is_no_hang(void **state)
{
    Scene s;
    RsStatus t;
    begin(&s);
    for (guint r = 0; r < 8; r++)
        if (r != 5)
            scene_open_collective(&s, r, RS_COLL_ALLREDUCE, 1, NOW - 0.9 * S, NOW);
    G_GNUC_UNUSED g_autoptr(RsModel) m = finish(&s, &t);
    assert_int_equal(t.n_roots, 0);
    assert_null(t.cycle);
    g_autofree gchar *text = rs_status_text(&t, FALSE);
    assert_non_null(strstr(text, "OK "));
    assert_null(strstr(text, "MISSING"));
    rs_status_release(&t);
}

static void ranks_that_wait_for_each_other_are_a_deadlock(void **state)
{
    Scene s;
    RsStatus t;
    begin(&s);
    scene_open_receive(&s, 2, 6, 3 * S, NOW);
    scene_open_receive(&s, 6, 2, 4 * S, NOW);
    for (guint r = 0; r < 8; r++)
        if (r != 2 && r != 6)
            scene_open_collective(&s, r, RS_COLL_BARRIER, 1, 2 * S, NOW);
    G_GNUC_UNUSED g_autoptr(RsModel) m = finish(&s, &t);
    assert_int_equal(t.n_roots, 0);
    assert_int_equal(t.cycle->len, 2);
    g_autofree gchar *text = rs_status_text(&t, FALSE);
    assert_non_null(
        strstr(text, "rank 2 is in MPI_Recv from rank 6, for 17.000 s: it waits for rank 6"));
    assert_non_null(
        strstr(text, "rank 6 is in MPI_Recv from rank 2, for 16.000 s: it waits for rank 2"));
    rs_status_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_that_does_not_come_is_missing),
        cmocka_unit_test(short_wait_is_no_hang),
        cmocka_unit_test(ranks_that_wait_for_each_other_are_a_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
