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

static void add_hole(RsLimited *l, const RsModel *m, guint32 rank, guint32 hole)
{
    gint32 number = rs_model_rank(m, rank)->rank;
    l->from_ns = l->events ? MIN(l->from_ns, m->events.start_ns[hole]) : m->events.start_ns[hole];
    l->to_ns = MAX(l->to_ns, m->events.end_ns[hole]);
    l->events += rs_model_sig(m, hole)->count;
    if (l->ranks->len == 0 || g_array_index(l->ranks, gint32, l->ranks->len - 1) != number)
        g_array_append_val(l->ranks, number);
}

void rs_report_limited(const RsModel *m, RsLimited *ret)
{
    *ret = (RsLimited){.ranks = g_array_new(FALSE, FALSE, sizeof(gint32))};
    for (guint t = 0; m->dropped && t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            if (rs_model_is_left_out(m, i))
                add_hole(ret, m, track->rank, i);
        }
    }
}

void rs_limited_clear(RsLimited *l)
{
    g_array_unref(l->ranks);
}

void rs_report_off(const RsModel *m, RsOff *ret)
{
    *ret = (RsOff){.ranks = g_array_new(FALSE, FALSE, sizeof(gint32))};
    for (guint i = 0; i < m->ranks->len; i++) {
        const RsRank *r = rs_model_rank(m, i);
        if (!r->off_count)
            continue;
        ret->least_ns = ret->times ? MIN(ret->least_ns, r->off_ns) : r->off_ns;
        ret->most_ns = MAX(ret->most_ns, r->off_ns);
        ret->times += r->off_count;
        g_array_append_val(ret->ranks, r->rank);
    }
}

void rs_off_clear(RsOff *off)
{
    g_array_unref(off->ranks);
}

/* NAN where the rank does not say so. */
static gdouble meta_number(const RsModel *m, gint32 rank, const gchar *key)
{
    g_autofree gchar *name = g_strdup_printf("%d/%s", rank, key);
    const gchar *text = g_hash_table_lookup(m->meta, name);
    gchar *end;
    gdouble v = text ? g_ascii_strtod(text, &end) : NAN;
    return text && end != text && isfinite(v) && v >= 0 ? v : NAN;
}

RsTracing rs_report_tracing(const RsReport *r)
{
    const RsModel *m = r->model;
    RsTracing t = {.event_ns = NAN, .percent = NAN};
    gdouble events = 0;
    guint n = 0;
    for (guint i = 0; i < m->ranks->len; i++) {
        const RsRank *rank = rs_model_rank(m, i);
        gdouble ns = meta_number(m, rank->rank, "cost.event_ns");
        if (isnan(ns) || r->cut)
            continue;
        events += (gdouble)(rank->events + rank->dropped);
        t.total_ns += ns * (gdouble)(rank->events + rank->dropped);
        t.drain_ns += meta_number(m, rank->rank, "cost.drain_ns");
        t.bytes += meta_number(m, rank->rank, "cost.bytes");
        n++;
    }
    if (events > 0 && m->duration_ns > 0) {
        t.event_ns = t.total_ns / events;
        t.percent = 100 * t.total_ns / ((gdouble)m->duration_ns * n);
    }
    return t;
}
