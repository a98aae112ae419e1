/* SPDX-License-Identifier: Apache-2.0 */
#include "export.h"

#include <string.h>

#include "trace-sql.h"

const RsExportFormat rs_export_formats[] = {
    {"chrome", "JSON for chrome://tracing and ui.perfetto.dev", rs_export_chrome},
    {"sqlite", "a database; its tables stand in schemas/trace.sql", rs_export_sqlite},
    {"csv", "one line an event", rs_export_csv},
    {NULL, NULL, NULL},
};

const RsExportFormat *rs_export_format_find(const gchar *name)
{
    for (const RsExportFormat *f = rs_export_formats; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

gchar *rs_trace_sql_dup_section(const gchar *name)
{
    g_autofree gchar *head = g_strdup_printf("-- ## %s\n", name);
    const gchar *begin = strstr(rs_trace_sql, head);
    g_assert(begin);
    begin += strlen(head);
    const gchar *end = strstr(begin, "-- ## ");
    return end ? g_strndup(begin, (gsize)(end - begin)) : g_strdup(begin);
}
