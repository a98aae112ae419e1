/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <math.h>
#include <string.h>

const RsReportFormat rs_report_formats[] = {
    {"text", rs_report_text},
    {"json", rs_report_json},
    {NULL, NULL},
};

const RsReportFormat *rs_report_format_find(const gchar *name)
{
    for (const RsReportFormat *f = rs_report_formats; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

RsPop rs_report_pop(const RsResults *r)
{
    gint64 sum = 0, most = 0, wall = 0;
    guint n = 0;
    for (guint i = 0; i < r->breakdown->len; i++) {
        const RsBreakdown *b = &g_array_index(r->breakdown, RsBreakdown, i);
        if (b->step != RS_NONE)
            continue;
        sum += b->compute_ns;
        most = MAX(most, b->compute_ns);
        wall = MAX(wall, b->wall_ns);
        n++;
    }
    if (most == 0 || wall == 0)
        return (RsPop){NAN, NAN, NAN};
    RsPop p = {.load_balance = (gdouble)sum / n / (gdouble)most};
    p.communication = (gdouble)most / (gdouble)wall;
    p.parallel = p.load_balance * p.communication;
    return p;
}

gboolean rs_report_is_standin(const RsModel *m)
{
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, m->meta);
    while (g_hash_table_iter_next(&it, &key, &value)) {
        const gchar *v = value;
        if (g_str_has_suffix(key, "nccl.standin") && *v && strcmp(v, "0") != 0 &&
            strcmp(v, "no") != 0)
            return TRUE;
    }
    return FALSE;
}
