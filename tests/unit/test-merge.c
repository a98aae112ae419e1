/* SPDX-License-Identifier: Apache-2.0 */
/* Captures to run.json and run.sqlite, of a folder and of one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture-writer.h"
#include "merge.h"

static int make_run(void **state)
{
    gchar *folder = cw_make_folder();
    for (gint32 rank = 0; rank < 2; rank++) {
        g_autoptr(CwFile) f = cw_new();
        cw_process(f, rank, 2, "alpha", "alpha", 500 + rank, "2000000000");
        cw_anchor(f, 1000, 500, 1700000000000000500, 40);
        cw_block(f, RS_BLOCK_CLOCK, 0, 0);
        cw_standard_defs(f, rank, 2);
        for (guint i = 0; i < 6; i++) {
            struct rs_event e = {.op = CW_ALLREDUCE, .peer = -1, .comm = 1, .dtype = 1};
            e.start = 10000 + 3000 * i + 700 * (guint)rank;
            e.end = 10000 + 3000 * i + 1500;
            e.count = 256;
            e.seq = i;
            cw_event(f, e);
        }
        cw_block(f, RS_BLOCK_EVENTS, 0, 0);
        cw_end(f, RS_END_FINALIZE, 40000, 6, 0);
        g_autofree gchar *name = g_strdup_printf("alpha-%d.rsc", 500 + rank);
        g_free(cw_save(f, folder, name));
    }
    *state = folder;
    return 0;
}

static gboolean exists(const gchar *folder, const gchar *name)
{
    g_autofree gchar *path = g_build_filename(folder, name, NULL);
    return g_file_test(path, G_FILE_TEST_IS_REGULAR);
}

static RsModel *merge(const gchar *path, const gchar *prefix, const gchar *formats)
{
    const RsMerge what = {.path = path, .prefix = prefix, .formats = formats};
    g_autoptr(GError) error = NULL;
    RsModel *m = rs_merge(&what, NULL, &error);
    if (!m)
        fail_msg("%s", error->message);
    return m;
}

static void folder_gives_one_file_of_each_format_that_reads_back(void **state)
{
    g_autoptr(RsModel) m = merge(*state, NULL, NULL);
    assert_int_equal(m->instances->len, 6);
    assert_true(exists(*state, "run.json"));
    g_autofree gchar *sqlite = g_build_filename(*state, "run.sqlite", NULL);
    const gchar *paths[] = {sqlite, NULL};
    g_autoptr(RsModel) again = rs_run_open(paths, NULL, NULL, NULL);
    assert_non_null(again);
    assert_int_equal(again->events.n, m->events.n);
    assert_int_equal(again->instances->len, 6);
    for (guint i = 0; i < 6; i++) {
        const RsInstance *a = &g_array_index(m->instances, RsInstance, i);
        const RsInstance *b = &g_array_index(again->instances, RsInstance, i);
        assert_int_equal(a->last_arrival_ns, b->last_arrival_ns);
        assert_int_equal(a->last_rank, b->last_rank);
        assert_int_equal(a->step, b->step);
    }
}

static void one_capture_gives_files_of_its_name(void **state)
{
    g_autofree gchar *path = g_build_filename(*state, "alpha-501.rsc", NULL);
    g_autoptr(RsModel) m = merge(path, NULL, NULL);
    assert_int_equal(m->ranks->len, 1); /* nobody asked for rank 0 */
    assert_int_equal(m->warnings->len, 0);
    assert_false(m->incomplete);
    assert_true(exists(*state, "alpha-501.json"));
    assert_true(exists(*state, "alpha-501.sqlite"));
    assert_false(exists(*state, "run.json"));
}

static void prefix_and_formats_are_obeyed(void **state)
{
    g_autofree gchar *prefix = g_build_filename(*state, "mine", NULL);
    rs_model_free(merge(*state, prefix, "chrome"));
    assert_true(exists(*state, "mine.json"));
    assert_false(exists(*state, "mine.sqlite"));
    const RsMerge wrong = {.path = *state, .formats = "chrome,pdf"};
    g_autoptr(GError) error = NULL;
    assert_null(rs_merge(&wrong, NULL, &error));
    assert_true(g_error_matches(error, RS_ERROR, RS_ERROR_USAGE));
}

static void merged_folder_without_captures_says_there_is_nothing_to_merge(void **state)
{
    rs_model_free(merge(*state, NULL, "sqlite"));
    g_autofree gchar *sqlite = g_build_filename(*state, "run.sqlite", NULL);
    const RsMerge what = {.path = sqlite};
    g_autoptr(GError) error = NULL;
    assert_null(rs_merge(&what, NULL, &error));
    assert_non_null(strstr(error->message, "nothing to merge"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_run, cw_teardown)
    const struct CMUnitTest tests[] = {
        TEST(folder_gives_one_file_of_each_format_that_reads_back),
        TEST(one_capture_gives_files_of_its_name),
        TEST(prefix_and_formats_are_obeyed),
        TEST(merged_folder_without_captures_says_there_is_nothing_to_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
