/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite-open.h - SQLite files that may be anybody's: read-only, and nothing in them is believed.
 *
 * Opened without writing, defensive, with an untrusted schema (views and triggers can call nothing
 * that touches the outside), no ATTACH, no extensions, and a limit on the time that statements may
 * take altogether.
 */
#ifndef RS_EXPORT_SQLITE_OPEN_H
#define RS_EXPORT_SQLITE_OPEN_H

#include <glib.h>
#include <sqlite3.h>

G_BEGIN_DECLS

typedef struct {
    sqlite3 *db;
    gint64 until_us; /* monotonic time at which statements are stopped */
} RsSqlite;

/* FALSE and `error` where it is no SQLite file. `s` must stay where it is until closed. */
gboolean rs_sqlite_open(RsSqlite *s, const gchar *path, gdouble limit_s, GError **error);
void rs_sqlite_close(RsSqlite *s);

/* `path` as SQLite takes for a path and never for a URI. Returned: free it. */
gchar *rs_sqlite_dup_name(const gchar *path);

/* True where the file begins like an SQLite file. */
gboolean rs_sqlite_is_one(const gchar *path);

G_END_DECLS
#endif
