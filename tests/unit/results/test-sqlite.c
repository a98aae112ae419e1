/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite there and back; files of others and damaged ones; parts of runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>

#include "export/export.h"
#include "export/sqlite-read.h"
#include "report/report.h"
#include "scene.h"
#include "synthetic-run.h"

static gchar *folder, *path;

static int make_folder(void **state)
{
    folder = g_dir_make_tmp("test-sqlite-XXXXXX", NULL);
    path = g_build_filename(folder, "run.sqlite", NULL);
    return folder ? 0 : 1;
}

static int remove_folder(void **state)
{
    g_unlink(path);
    g_rmdir(folder);
    g_free(folder);
    g_free(path);
    return 0;
}

static void write_model(const RsModel *m)
{
    RsExport x = {.model = m};
    g_autoptr(GError) error = NULL;
    if (!rs_export_sqlite(&x, path, &error))
        fail_msg("%s", error->message);
}

static gchar *report_of(const RsModel *m)
{
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    RsReport report = {.model = m, .results = r, .name = "x"};
    return rs_report_json(&report);
}

static void assert_same_events(const RsModel *a, const RsModel *b)
{
    assert_int_equal(a->events.n, b->events.n);
    for (guint32 i = 0; i < a->events.n; i++) {
        assert_int_equal(a->events.start_ns[i], b->events.start_ns[i]);
        assert_int_equal(a->events.end_ns[i], b->events.end_ns[i]);
        assert_int_equal(a->events.flags[i], b->events.flags[i]);
        assert_int_equal(a->events.aux[i], b->events.aux[i]);
        assert_int_equal(a->events.seq[i], b->events.seq[i]);
        assert_int_equal(a->events.link[i], b->events.link[i]);
        assert_int_equal(rs_model_rank_of(a, i), rs_model_rank_of(b, i));
        assert_memory_equal(rs_model_sig(a, i), rs_model_sig(b, i), sizeof(RsSig));
    }
}

static void model_from_sqlite_is_the_one_that_was_written(void **state)
{
    for (guint i = 0; i < 8; i++) {
        RsSyntheticRun spec = rs_synthetic_healthy;
        spec.seed = 11 + i;
        spec.n_ranks = 2 + i;
        spec.n_hosts = 1 + i % 3;
        spec.nccl = i % 2;
        spec.negotiate = i % 3 == 1;
        spec.mark_steps = i != 4;
        spec.slow_rank = (gint32)i % 2;
        spec.late_ns = 3000000;
        spec.missing_rank = i == 5 ? 3 : -1;
        g_autoptr(RsModel) m = rs_synthetic_run(&spec);
        write_model(m);
        g_autoptr(GError) error = NULL;
        g_autoptr(RsModel) back = rs_sqlite_read(path, NULL, NULL, &error);
        if (!back)
            fail_msg("%s", error->message);
        assert_same_events(m, back);
        assert_int_equal(m->tracks->len, back->tracks->len);
        assert_int_equal(m->instances->len, back->instances->len);
        assert_int_equal(m->messages->len, back->messages->len);
        assert_int_equal(m->rendezvous->len, back->rendezvous->len);
        assert_int_equal(g_hash_table_size(m->meta), g_hash_table_size(back->meta));
        g_autofree gchar *first = report_of(m), *second = report_of(back);
        assert_string_equal(first, second);
    }
}

static void alter(const gchar *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
}

static void assert_refused(const gchar *words)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(RsModel) m = rs_sqlite_read(path, NULL, NULL, &error);
    assert_null(m);
    assert_true(g_error_matches(error, RS_ERROR, RS_ERROR_UNREADABLE));
    assert_non_null(strstr(error->message, path));
    if (!strstr(error->message, words))
        fail_msg("'%s' does not say '%s'", error->message, words);
}

static void file_of_something_else_is_refused(void **state)
{
    g_unlink(path);
    alter("CREATE TABLE events (id, x); INSERT INTO events VALUES (0, 'y')");
    assert_refused("not a run that Ringscope exported");
    g_assert_true(g_file_set_contents(path, "SQLite format 3", 16, NULL)); /* with its NUL */
    assert_refused("");
    g_assert_true(g_file_set_contents(path, "hello", 5, NULL));
    assert_refused("not an SQLite file");
}

static void newer_schema_is_refused(void **state)
{
    g_autoptr(RsModel) m = rs_synthetic_run(&rs_synthetic_healthy);
    write_model(m);
    alter("PRAGMA user_version = 99");
    assert_refused("newer");
}

/* Each makes one index or order a lie; none may become an access out of bounds. */
static void lying_numbers_are_refused(void **state)
{
    static const gchar *const lies[] = {
        "UPDATE events SET signature_id = 99999 WHERE id = 7",
        "UPDATE events SET track_id = -1 WHERE id = 7",
        "UPDATE events SET track_id = 3 WHERE id = 0",
        "UPDATE events SET end_ns = start_ns - 1 WHERE id = 9",
        "UPDATE events SET start_ns = 'x' WHERE id = 9",
        "UPDATE events SET id = 1000000 WHERE id = 9",
        "DELETE FROM events WHERE id = 3",
        "UPDATE tracks SET rank_id = 77 WHERE id = 1",
        "UPDATE tracks SET rank_id = 0 WHERE id = 3",
        "UPDATE ranks SET host_id = 12 WHERE id = 1",
        "UPDATE ranks SET domain_id = 99 WHERE id = 1",
        "UPDATE signatures SET name_id = 123456 WHERE id = 0",
        "UPDATE signatures SET kind = 200 WHERE id = 0",
        "UPDATE signatures SET collective = 11 WHERE id = 1",
        "UPDATE signatures SET communicator_id = 5 WHERE id = 1",
        "UPDATE instances SET communicator_id = 4 WHERE id = 5",
        "UPDATE instances SET step_id = 4444 WHERE id = 5",
        "UPDATE instance_members SET member = 4 WHERE instance_id = 5 AND member = 3",
        "UPDATE instance_members SET event_id = 1000000 WHERE instance_id = 5",
        "UPDATE communicators SET members = 1000000000",
        "UPDATE communicators SET members = 1000000",
        "UPDATE communicator_members SET rank_id = 9 WHERE member = 2",
        "UPDATE messages SET recv_event_id = 1000000 WHERE id = 2",
        "UPDATE messages SET dst_rank_id = 4 WHERE id = 2",
        "UPDATE step_spans SET rank_id = 44 WHERE step_id = 3 AND rank_id = 1",
        "DELETE FROM strings",
        "DELETE FROM run",
        "DROP VIEW slices; DROP TABLE messages",
        "ALTER TABLE events RENAME COLUMN seq TO sequence",
    };
    g_autoptr(RsModel) m = rs_synthetic_run(&rs_synthetic_healthy);
    for (guint i = 0; i < G_N_ELEMENTS(lies); i++) {
        write_model(m);
        alter("DROP VIEW slices; DROP VIEW collective_waits; DROP VIEW last_arrivals;"
              "DROP VIEW message_list; DROP VIEW time_per_rank; DROP VIEW time_per_name;"
              "CREATE VIEW slices AS SELECT 1");
        alter(lies[i]);
        assert_refused("damaged");
    }
}

/* A view in place of a table may not reach outside, nor run for ever. */
static void table_that_is_a_view_can_do_no_harm(void **state)
{
    g_autoptr(RsModel) m = rs_synthetic_run(&rs_synthetic_healthy);
    write_model(m);
    alter("DROP TABLE warnings; CREATE VIEW warnings AS SELECT 0 AS id, load_extension('/x.so') "
          "AS path, 0 AS offset, '' AS text");
    assert_refused("damaged");
}

/* Every 499th byte flipped, or the file cut there: a model or an error, never a crash. */
static void damaged_bytes_give_a_model_or_an_error(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.n_steps = 3;
    spec.negotiate = TRUE;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    write_model(m);
    g_autofree gchar *bytes = NULL;
    gsize n;
    guint refused = 0, read = 0;
    assert_true(g_file_get_contents(path, &bytes, &n, NULL));
    for (gsize i = 0; i < n; i += 499) {
        gboolean cut = i / 499 % 8 == 0;
        bytes[i] = (gchar)~bytes[i];
        FILE *f = g_fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(bytes, 1, cut ? i : n, f), cut ? i : n);
        fclose(f);
        bytes[i] = (gchar)~bytes[i];
        g_autoptr(GError) error = NULL;
        g_autoptr(RsModel) back = rs_sqlite_read(path, NULL, NULL, &error);
        assert_true((back != NULL) != (error != NULL));
        if (back) {
            g_autofree gchar *report = report_of(back);
            assert_non_null(report);
            read++;
        } else {
            refused++;
        }
    }
    assert_true(refused > 20 && read > 20);
}

static guint32 count_rank(const RsModel *m, guint32 rank)
{
    guint32 n = 0;
    for (guint i = 0; i < m->tracks->len; i++) {
        const RsTrack *t = &g_array_index(m->tracks, RsTrack, i);
        n += t->rank == rank ? t->n : 0;
    }
    return n;
}

static void cut_holds_what_overlaps_and_nothing_else(void **state)
{
    g_autoptr(RsModel) m = rs_synthetic_run(&rs_synthetic_healthy);
    RsScope scope = {
        .from_s = 0.05, .to_s = 0.1, .ranks = g_array_new(FALSE, FALSE, sizeof(gint32))};
    const gint32 ranks[] = {1, 3};
    g_array_append_vals(scope.ranks, ranks, 2);
    g_autoptr(RsModel) part = rs_model_cut(m, &scope, 1u << RS_KIND_CALL);
    guint32 expected = 0;
    for (guint32 i = 0; i < m->events.n; i++) {
        guint32 rank = rs_model_rank_of(m, i);
        expected += (rank == 1 || rank == 3) && rs_model_sig(m, i)->kind == RS_KIND_CALL &&
                    m->events.start_ns[i] < 100000000 && m->events.end_ns[i] > 50000000;
    }
    assert_true(expected > 20);
    assert_int_equal(part->events.n, expected);
    assert_int_equal(count_rank(part, 0) + count_rank(part, 2), 0);
    for (guint i = 0; i < part->instances->len; i++) {
        const RsInstance *inst = &g_array_index(part->instances, RsInstance, i);
        assert_false(inst->complete);
        assert_in_range(inst->n_present, 1, 2);
    }
    write_model(part); /* a part is a run, too */
    g_autoptr(RsModel) back = rs_sqlite_read(path, NULL, NULL, NULL);
    assert_non_null(back);
    assert_same_events(part, back);
    g_array_unref(scope.ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_from_sqlite_is_the_one_that_was_written),
        cmocka_unit_test(file_of_something_else_is_refused),
        cmocka_unit_test(newer_schema_is_refused),
        cmocka_unit_test(lying_numbers_are_refused),
        cmocka_unit_test(table_that_is_a_view_can_do_no_harm),
        cmocka_unit_test(damaged_bytes_give_a_model_or_an_error),
        cmocka_unit_test(cut_holds_what_overlaps_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
