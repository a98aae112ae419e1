/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-export [STEPS] - events per second to Chrome JSON and to SQLite, each beside the least that
 * could do it: fwrite of the same bytes, and a prepared insert of one integer a row for as many
 * rows. Also what the report's analyses and reading the SQLite file back take. Best of three, on
 * the folder that TMPDIR names. Prints; asserts nothing.
 */
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "export/export.h"
#include "export/sqlite-read.h"
#include "synthetic-run.h"

#define ROUNDS 3

typedef struct {
    const RsModel *model;
    RsExport what;
    gchar *json, *sqlite, *plain;
    gchar *bytes; /* of the JSON */
    gsize n_bytes;
} Bench;

static void must(gboolean good, const gchar *what)
{
    if (good)
        return;
    fprintf(stderr, "bench-export: %s failed\n", what);
    exit(1);
}

static void to_json(Bench *b)
{
    must(rs_export_chrome(&b->what, b->json, NULL), "JSON");
}

static void to_sqlite(Bench *b)
{
    must(rs_export_sqlite(&b->what, b->sqlite, NULL), "SQLite");
}

static void write_plain(Bench *b)
{
    FILE *f = g_fopen(b->plain, "wb");
    must(f && fwrite(b->bytes, 1, b->n_bytes, f) == b->n_bytes && fclose(f) == 0, "fwrite");
}

static void insert_plain(Bench *b)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    g_unlink(b->plain);
    must(sqlite3_open(b->plain, &db) == SQLITE_OK &&
             sqlite3_exec(db,
                          "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                          "CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER); BEGIN",
                          NULL, NULL, NULL) == SQLITE_OK &&
             sqlite3_prepare_v2(db, "INSERT INTO t VALUES (?, ?)", -1, &st, NULL) == SQLITE_OK,
         "plain SQLite");
    for (guint32 i = 0; i < b->model->events.n; i++) {
        sqlite3_bind_int64(st, 1, i);
        sqlite3_bind_int64(st, 2, b->model->events.start_ns[i]);
        sqlite3_step(st);
        sqlite3_reset(st);
    }
    sqlite3_finalize(st);
    must(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK, "plain SQLite");
    sqlite3_close(db);
}

static void read_back(Bench *b)
{
    RsModel *m = rs_sqlite_read(b->sqlite, NULL, NULL, NULL);
    must(m != NULL, "reading SQLite");
    rs_model_free(m);
}

static void analyze(Bench *b)
{
    rs_results_free(rs_analyze(b->model, NULL));
}

static gdouble best_of(Bench *b, void (*work)(Bench *))
{
    gdouble best = 0;
    for (guint i = 0; i < ROUNDS; i++) {
        gint64 begin = g_get_monotonic_time();
        work(b);
        gdouble s = (gdouble)(g_get_monotonic_time() - begin) / 1e6;
        best = i == 0 ? s : MIN(best, s);
    }
    return best;
}

static void print_row(const Bench *b, const gchar *what, gdouble seconds, gdouble plain_s)
{
    printf("%-22s %8.3f s %10.0f events/s", what, seconds, b->model->events.n / seconds);
    if (plain_s > 0)
        printf("   %5.2f x its baseline (%.3f s)", seconds / plain_s, plain_s);
    printf("\n");
}

static void run(Bench *b)
{
    gdouble json = best_of(b, to_json);
    must(g_file_get_contents(b->json, &b->bytes, &b->n_bytes, NULL), "reading JSON");
    gdouble plain = best_of(b, write_plain);
    print_row(b, "Chrome JSON", json, plain);
    printf("%-22s %.1f bytes an event, baseline: fwrite of the same bytes\n", "",
           (gdouble)b->n_bytes / b->model->events.n);
    gdouble sqlite = best_of(b, to_sqlite);
    gdouble rows = best_of(b, insert_plain);
    print_row(b, "SQLite", sqlite, rows);
    printf("%-22s baseline: prepared insert of one integer a row\n", "");
    print_row(b, "reading SQLite", best_of(b, read_back), 0);
    print_row(b, "analyses", best_of(b, analyze), 0);
}

int main(int argc, char **argv)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.n_ranks = 8;
    spec.n_steps = argc > 1 ? (guint)strtoul(argv[1], NULL, 10) : 10000;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    g_autoptr(RsResults) results = rs_analyze(m, NULL);
    g_autofree gchar *folder = g_dir_make_tmp("bench-export-XXXXXX", NULL);
    must(folder != NULL, "a temporary folder");
    Bench b = {.model = m, .what = {.model = m, .results = results}};
    b.json = g_build_filename(folder, "run.json", NULL);
    b.sqlite = g_build_filename(folder, "run.sqlite", NULL);
    b.plain = g_build_filename(folder, "plain", NULL);
    printf("%u events, %u collectives, %u messages\n", m->events.n, m->instances->len,
           m->messages->len);
    run(&b);
    gchar *files[] = {b.json, b.sqlite, b.plain};
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_unlink(files[i]);
        g_free(files[i]);
    }
    g_rmdir(folder);
    g_free(b.bytes);
    return 0;
}
