/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command-query.c - `ringscope query RUN SQL`: read-only SQL over a run.
 *
 * Asks the run's .sqlite file; of captures and traces one is made for the time of the question.
 */
#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "escape.h"
#include "export/export.h"
#include "export/sqlite-open.h"
#include "export/trace-sql.h"

#define CELL_MAX       60
#define TIMEOUT_MOST_S 1e6

typedef struct {
    gchar *format;
    gdouble timeout_s;
    gboolean schema;
} Options;

typedef struct {
    sqlite3_stmt *st;
    int columns;
    GString *out;
} Answer;

static void put_json_cell(GString *out, sqlite3_stmt *st, int i)
{
    switch (sqlite3_column_type(st, i)) {
    case SQLITE_INTEGER:
        g_string_append_printf(out, "%lld", (long long)sqlite3_column_int64(st, i));
        break;
    case SQLITE_FLOAT:
        rs_escape_json_double(out, sqlite3_column_double(st, i));
        break;
    case SQLITE_NULL:
        g_string_append(out, "null");
        break;
    default:
        rs_escape_json(out, (const gchar *)sqlite3_column_text(st, i));
    }
}

static int print_json(Answer *a)
{
    int rc;
    gboolean first = TRUE;
    fputs("[", stdout);
    while ((rc = sqlite3_step(a->st)) == SQLITE_ROW) {
        g_string_assign(a->out, first ? "\n{" : ",\n{");
        first = FALSE;
        for (int i = 0; i < a->columns; i++) {
            if (i)
                g_string_append_c(a->out, ',');
            rs_escape_json(a->out, sqlite3_column_name(a->st, i));
            g_string_append_c(a->out, ':');
            put_json_cell(a->out, a->st, i);
        }
        g_string_append_c(a->out, '}');
        fwrite(a->out->str, 1, a->out->len, stdout);
    }
    fputs("\n]\n", stdout);
    return rc;
}

/* SQLite's own text of a number has 15 digits: not all that it has. */
static void put_csv_cell(GString *out, sqlite3_stmt *st, int i)
{
    if (sqlite3_column_type(st, i) == SQLITE_FLOAT && isfinite(sqlite3_column_double(st, i)))
        rs_escape_json_double(out, sqlite3_column_double(st, i));
    else
        rs_escape_csv(out, (const gchar *)sqlite3_column_text(st, i));
}

static int print_csv(Answer *a)
{
    int rc = SQLITE_ROW;
    for (gboolean head = TRUE; head || rc == SQLITE_ROW; head = FALSE) {
        if (!head && (rc = sqlite3_step(a->st)) != SQLITE_ROW)
            break;
        g_string_truncate(a->out, 0);
        for (int i = 0; i < a->columns; i++) {
            if (i)
                g_string_append_c(a->out, ',');
            if (head)
                rs_escape_csv(a->out, sqlite3_column_name(a->st, i));
            else
                put_csv_cell(a->out, a->st, i);
        }
        g_string_append_c(a->out, '\n');
        fwrite(a->out->str, 1, a->out->len, stdout);
    }
    return rc;
}

static void print_table_row(const gchar *const *cells, const gboolean *number, const guint *width,
                            int n, GString *out)
{
    g_string_truncate(out, 0);
    for (int i = 0; i < n; i++) {
        gint w = (gint)width[i];
        g_string_append(out, i ? "  " : "");
        rs_text_pad(out, cells[i], number[i] ? -w : w);
    }
    while (out->len && out->str[out->len - 1] == ' ')
        g_string_truncate(out, out->len - 1);
    g_string_append_c(out, '\n');
    fwrite(out->str, 1, out->len, stdout);
}

/* Widths need all rows: those are kept, as text. */
static int print_table(Answer *a)
{
    int rc, n = a->columns;
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
    g_autofree guint *width = g_new0(guint, n + 1);
    g_autofree gboolean *number = g_new(gboolean, n + 1);
    for (int i = 0; i < n; i++) {
        number[i] = TRUE;
        g_ptr_array_add(cells, rs_escape_dup_text(sqlite3_column_name(a->st, i)));
    }
    while ((rc = sqlite3_step(a->st)) == SQLITE_ROW)
        for (int i = 0; i < n; i++) {
            int type = sqlite3_column_type(a->st, i);
            number[i] = number[i] && type != SQLITE_TEXT && type != SQLITE_BLOB;
            g_ptr_array_add(cells,
                            rs_escape_dup_text((const gchar *)sqlite3_column_text(a->st, i)));
        }
    for (guint i = 0; i < cells->len; i++) {
        guint w = rs_text_width(g_ptr_array_index(cells, i));
        width[i % (guint)n] = MAX(width[i % (guint)n], MIN(w, CELL_MAX));
    }
    for (guint i = 0; i < cells->len; i += (guint)n)
        print_table_row((const gchar *const *)cells->pdata + i, number, width, n, a->out);
    return rc;
}

static int answer(const RsCommand *self, RsSqlite *s, const gchar *sql, const Options *o)
{
    Answer a = {.out = g_string_new(NULL)};
    const char *rest = "";
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &a.st, &rest);
    int status = 0;
    while (g_ascii_isspace(*rest) || *rest == ';')
        rest++;
    if (rc != SQLITE_OK)
        status = rs_command_usage(self, "%s; --schema shows a run's tables and views",
                                  sqlite3_errmsg(s->db));
    else if (!a.st)
        status = rs_command_usage(self, "no SQL given, such as \"SELECT * FROM last_arrivals\"");
    else if (*rest)
        status = rs_command_usage(self, "one statement at a time");
    else if (!sqlite3_stmt_readonly(a.st) || sqlite3_column_count(a.st) == 0)
        status = rs_command_usage(self, "only statements that read, such as SELECT");
    if (status == 0) {
        a.columns = sqlite3_column_count(a.st);
        const gchar *format = o->format ? o->format : "table";
        rc = strcmp(format, "json") == 0  ? print_json(&a)
             : strcmp(format, "csv") == 0 ? print_csv(&a)
                                          : print_table(&a);
        if (rc == SQLITE_INTERRUPT)
            status =
                rs_command_usage(self, "stopped after %g s: --timeout gives it more", o->timeout_s);
        else if (rc != SQLITE_DONE)
            status = rs_command_usage(self, "%s", sqlite3_errmsg(s->db));
    }
    sqlite3_finalize(a.st);
    g_string_free(a.out, TRUE);
    return status;
}

/* The file to ask. *ret_made: it was made for this, to be removed. NULL: failed, and said so. */
static gchar *find_database(char **argv, gboolean *ret_made)
{
    *ret_made = FALSE;
    if (rs_sqlite_is_one(argv[1]))
        return g_strdup(argv[1]);
    g_autofree gchar *merged = g_build_filename(argv[1], "run.sqlite", NULL);
    if (rs_sqlite_is_one(merged))
        return g_steal_pointer(&merged);
    g_autoptr(RsModel) m = rs_command_open(2, argv);
    if (!m)
        return NULL;
    g_autoptr(GError) error = NULL;
    g_autofree gchar *folder = g_dir_make_tmp("ringscope-XXXXXX", &error);
    if (!folder) {
        rs_command_fail(error);
        return NULL;
    }
    g_autoptr(RsResults) results = rs_analyze(m, NULL);
    RsExport x = {m, results, rs_command_progress, NULL};
    g_autofree gchar *path = g_build_filename(folder, "run.sqlite", NULL);
    *ret_made = TRUE;
    gboolean good = rs_export_sqlite(&x, path, &error);
    rs_command_progress(1, "", NULL);
    if (good)
        return g_steal_pointer(&path);
    rs_command_fail(error);
    g_rmdir(folder);
    return NULL;
}

int rs_command_query(const RsCommand *self, int argc, char **argv)
{
    static Options o = {.timeout_s = 60};
    const GOptionEntry entries[] = {
        {"format", 0, 0, G_OPTION_ARG_STRING, &o.format, "table (default), csv or json", "FORMAT"},
        {"timeout", 0, 0, G_OPTION_ARG_DOUBLE, &o.timeout_s, "stop after S seconds (60)", "S"},
        {"schema", 0, 0, G_OPTION_ARG_NONE, &o.schema,
         "print tables, columns and views of a run (schemas/trace.sql), and ask nothing", NULL},
        RS_COMMAND_RUN_ENTRIES,
        G_OPTION_ENTRY_NULL,
    };
    static const gchar *const formats[] = {"table", "csv", "json", NULL};
    int status;
    if (!rs_command_parse(self, entries, FALSE, &argc, &argv, &status))
        return status;
    if (o.schema && argc <= 2) { /* the same for all runs: one that is named is not asked */
        fputs(rs_trace_sql, stdout);
        return 0;
    }
    if (o.schema)
        return rs_command_usage(self, "--schema asks nothing: leave the SQL away");
    if (argc != 3)
        return rs_command_usage(self, "give one run and one SQL statement in quotes");
    if (o.format && !g_strv_contains(formats, o.format))
        return rs_command_usage(self, "no format '%s': table, csv or json", o.format);
    if (!(o.timeout_s > 0 && o.timeout_s <= TIMEOUT_MOST_S))
        return rs_command_usage(self, "--timeout %g: expected seconds above 0, at most %g",
                                o.timeout_s, TIMEOUT_MOST_S);
    gboolean made;
    g_autofree gchar *path = find_database(argv, &made);
    if (!path)
        return RS_EXIT_FAILED;
    RsSqlite sql;
    g_autoptr(GError) error = NULL;
    if (rs_sqlite_open(&sql, path, o.timeout_s, &error)) {
        status = answer(self, &sql, argv[2], &o);
        rs_sqlite_close(&sql);
    } else {
        status = rs_command_fail(error);
    }
    if (made) {
        g_autofree gchar *folder = g_path_get_dirname(path);
        g_unlink(path);
        g_rmdir(folder);
    }
    return status;
}
