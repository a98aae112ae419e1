/* SPDX-License-Identifier: Apache-2.0 */
/* trace-sql.h - schemas/trace.sql, as it is built into the tool. */
#ifndef RS_EXPORT_TRACE_SQL_H
#define RS_EXPORT_TRACE_SQL_H

#include <glib.h>

extern const char rs_trace_sql[]; /* the whole text */

#define RS_TRACE_SQL_APPLICATION 1381188428 /* as PRAGMA application_id there */
#define RS_TRACE_SQL_VERSION     1          /* as PRAGMA user_version there */

/* The statements under "-- ## name". Returned: free it. */
gchar *rs_trace_sql_dup_section(const gchar *name);

#endif
