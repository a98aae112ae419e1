/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite-open.h"

#include "run-files.h"
#include "run.h"

#define STEPS_BETWEEN_LOOKS 10000

static int look_at_clock(void *data)
{
    return g_get_monotonic_time() > ((RsSqlite *)data)->until_us;
}

/* Belt and braces: besides being read-only, no statement may reach another file. */
static int authorize(void *data, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    return action == SQLITE_ATTACH || action == SQLITE_DETACH ? SQLITE_DENY : SQLITE_OK;
}

gboolean rs_sqlite_is_one(const gchar *path)
{
    gchar head[RS_RUN_FILE_HEAD];
    return rs_run_file_read_head(path, head, NULL) >= 0 && rs_run_file_head_is_sqlite(head);
}

static void harden(RsSqlite *s)
{
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, 1 << 28);
    sqlite3_set_authorizer(s->db, authorize, NULL);
    sqlite3_progress_handler(s->db, STEPS_BETWEEN_LOOKS, look_at_clock, s);
}

gchar *rs_sqlite_dup_name(const gchar *path)
{
    return g_str_has_prefix(path, "file:") ? g_strconcat("./", path, NULL) : g_strdup(path);
}

gboolean rs_sqlite_open(RsSqlite *s, const gchar *path, gdouble limit_s, GError **error)
{
    *s = (RsSqlite){.until_us = g_get_monotonic_time() + (gint64)(limit_s * 1e6)};
    if (!rs_sqlite_is_one(path)) {
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: not an SQLite file", path);
        return FALSE;
    }
    g_autofree gchar *name = rs_sqlite_dup_name(path);
    int rc = sqlite3_open_v2(name, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        harden(s);
        rc = sqlite3_exec(s->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK)
        return TRUE;
    g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: can't be read as SQLite: %s; %s", path,
                s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc),
                rc == SQLITE_BUSY ? "try again when its writer is done"
                                  : "if it is a run, export it again from its captures");
    rs_sqlite_close(s);
    return FALSE;
}

void rs_sqlite_close(RsSqlite *s)
{
    sqlite3_close(s->db);
    s->db = NULL;
}
