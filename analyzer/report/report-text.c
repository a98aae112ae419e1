/* SPDX-License-Identifier: Apache-2.0 */
/* report-text.c - the report for people: what was lost first, then findings, then the tables. */
#include "report.h"

#include <math.h>
#include <string.h>

#include "analyses/endings.h"
#include "escape.h"
#include "names.h"
#include "plural.h"

#define COLUMNS  96
#define ROWS_MAX 32

/* One paragraph, its lines no longer than COLUMNS, the first led by `lead`, the others by spaces.
 */
static void wrap(GString *out, const gchar *lead, const gchar *text)
{
    g_autofree gchar *plain = rs_escape_dup_text(text);
    g_auto(GStrv) words = g_strsplit(plain, " ", -1);
    guint indent = rs_text_width(lead), used = indent;
    g_string_append(out, lead);
    for (guint i = 0; words[i]; i++) {
        guint width = rs_text_width(words[i]);
        if (i > 0 && used + 1 + width > COLUMNS) {
            g_string_append_printf(out, "\n%*s", (int)indent, "");
            used = indent;
        } else if (i > 0) {
            g_string_append_c(out, ' ');
            used++;
        }
        g_string_append(out, words[i]);
        used += width;
    }
    g_string_append_c(out, '\n');
}

static void wrap_printf(GString *out, const gchar *lead, const gchar *format, ...)
    G_GNUC_PRINTF(3, 4);
static void wrap_printf(GString *out, const gchar *lead, const gchar *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree gchar *text = g_strdup_vprintf(format, args);
    va_end(args);
    wrap(out, lead, text);
}

static gboolean is_missing(const RsRank *r)
{
    return r->missing;
}

static gchar *dup_ranks(const RsModel *m, gboolean (*belongs)(const RsRank *), guint *ret_n)
{
    GString *s = g_string_new(NULL);
    guint n = 0;
    for (guint i = 0; i < m->ranks->len; i++) {
        if (!belongs(rs_model_rank(m, i)))
            continue;
        if (++n <= 16)
            g_string_append_printf(s, "%s%d", n > 1 ? ", " : "", rs_model_rank(m, i)->rank);
    }
    if (n > 16)
        g_string_append(s, ", ...");
    *ret_n = n;
    return g_string_free(s, FALSE);
}

/* Whether something is missing that the other lines don't tell. */
static gboolean is_damaged(const RsModel *m, guint missing, guint killed)
{
    return m->incomplete && !missing && !killed && !m->dropped;
}

static gchar *dup_numbers(const GArray *ranks)
{
    GString *s = g_string_new(NULL);
    for (guint i = 0; i < ranks->len && i < 16; i++)
        g_string_append_printf(s, "%s%d", i ? ", " : "", g_array_index(ranks, gint32, i));
    if (ranks->len > 16)
        g_string_append(s, ", ...");
    return g_string_free(s, FALSE);
}

static void write_limited(GString *out, const RsModel *m)
{
    g_auto(RsLimited) l;
    rs_report_limited(m, &l);
    g_autofree gchar *ranks = dup_numbers(l.ranks);
    if (l.events)
        wrap_printf(out, "INCOMPLETE  ",
                    "the size limit (RINGSCOPE_SIZE_LIMIT) left out %" G_GUINT64_FORMAT
                    " event%s of rank%s %s, from %.3f s to %.3f s: what these ranks did then is "
                    "unknown",
                    l.events, rs_plural(l.events), rs_plural(l.ranks->len), ranks,
                    (gdouble)l.from_ns / 1e9, (gdouble)l.to_ns / 1e9);
}

static void write_off(GString *out, const RsModel *m)
{
    g_auto(RsOff) off;
    rs_report_off(m, &off);
    if (off.times == 0)
        return;
    g_autofree gchar *ranks = dup_numbers(off.ranks);
    g_autofree gchar *least = off.least_ns < off.most_ns
                                  ? g_strdup_printf("%.3f to ", (gdouble)off.least_ns / 1e9)
                                  : g_strdup("");
    wrap_printf(out, "SWITCHED OFF  ",
                "capture of rank%s %s was off for %s%.3f s%s, %" G_GUINT64_FORMAT
                " time%s in all (RINGSCOPE_START, RINGSCOPE_STEPS, `ringscope control`): that time "
                "is in nothing below; messages after it are not timed",
                rs_plural(off.ranks->len), ranks, least, (gdouble)off.most_ns / 1e9,
                off.ranks->len > 1 ? " each" : "", off.times, rs_plural(off.times));
    g_string_append_c(out, '\n');
}

static void write_incomplete(GString *out, const RsModel *m)
{
    write_off(out, m);
    if (!m->incomplete && m->clock_trusted)
        return;
    write_limited(out, m);
    guint n, killed;
    g_autofree gchar *early = dup_ranks(m, rs_ending_is_early, &killed);
    g_autofree gchar *missing = dup_ranks(m, is_missing, &n);
    if (n)
        wrap_printf(out, "INCOMPLETE  ",
                    "no capture of rank%s %s (%u of %d): what %s did is unknown, and nothing below "
                    "says that %s not late or slow",
                    rs_plural(n), missing, n, m->world_size, n > 1 ? "they" : "it",
                    n > 1 ? "they are" : "it is");
    if (m->dropped)
        wrap_printf(out, "INCOMPLETE  ", "%" G_GUINT64_FORMAT " event%s lost", m->dropped,
                    rs_plural(m->dropped));
    if (killed)
        wrap_printf(out, "INCOMPLETE  ",
                    "rank%s %s %s killed, aborted, or exited inside MPI: the run did not come to "
                    "its end",
                    rs_plural(killed), early, killed > 1 ? "were" : "was");
    if (is_damaged(m, n, killed))
        wrap(out, "INCOMPLETE  ", "captures are damaged or were not closed; see the warnings");
    if (!m->clock_trusted)
        wrap(out, "CLOCKS      ",
             "could not be put on one axis: nothing is concluded from time differences between "
             "hosts");
    g_string_append_c(out, '\n');
}

static void write_tracing(GString *out, const RsReport *r)
{
    RsTracing t = rs_report_tracing(r);
    if (!isfinite(t.event_ns))
        return;
    g_autofree gchar *beside =
        isfinite(t.drain_ns)
            ? g_strdup_printf(", and %.0f us of CPU time beside it", t.drain_ns / 1e3)
            : g_strdup("");
    wrap_printf(out, "        ",
                "tracing cost about %.0f ns an event, %.0f us in all (%.2f %% of the run)%s",
                t.event_ns, t.total_ns / 1e3, t.percent, beside);
}

/* "4 ranks", "1 of 4 ranks", of traces that don't tell ranks "4 processes". */
static gchar *dup_how_many(const RsModel *m)
{
    gint32 read = 0, size = m->world_size;
    gboolean named = m->ranks->len == 0;
    for (guint i = 0; i < m->ranks->len; i++) {
        read += !rs_model_rank(m, i)->missing;
        named |= rs_model_rank(m, i)->rank >= 0;
    }
    if (!named)
        return g_strdup_printf("%d process%s without a rank", read, read == 1 ? "" : "es");
    if (read < size)
        return g_strdup_printf("%d of %d ranks", read, size);
    return g_strdup_printf("%d rank%s", size, rs_plural(size));
}

static gchar *dup_hosts(const RsModel *m)
{
    if (!rs_model_hosts_are_known(m))
        return g_strdup("on hosts that nothing tells");
    GString *s = g_string_new(NULL);
    g_string_append_printf(s, "on %u host%s (", m->hosts->len, rs_plural(m->hosts->len));
    for (guint i = 0; i < m->hosts->len && i < 8; i++)
        g_string_append_printf(s, "%s%s", i ? ", " : "", rs_model_host_name(m, i));
    g_string_append(s, m->hosts->len > 8 ? ", ...)" : ")");
    return g_string_free(s, FALSE);
}

static void write_header(GString *out, const RsReport *r)
{
    const RsModel *m = r->model;
    wrap_printf(out, "Run     ", "%s%s", r->name, r->cut ? " (a part of it)" : "");
    g_autofree gchar *ranks = dup_how_many(m), *hosts = dup_hosts(m);
    wrap_printf(out, "        ", "%s %s, %.3f s, %u step%s (%s)", ranks, hosts,
                (gdouble)m->duration_ns / 1e9, m->steps->len, rs_plural(m->steps->len),
                m->steps->len ? m->step_source : "none found");
    wrap_printf(out, "        ", "%u event%s, %" G_GUINT64_FORMAT " lost", m->events.n,
                rs_plural(m->events.n), m->dropped);
    write_tracing(out, r);
    if (m->domains->len < 2)
        wrap(out, "Clock   ", "one clock for all ranks: differences are exact");
    else
        wrap_printf(out, "Clock   ", "%u clock domains aligned by %s, sure to %.3f us%s",
                    m->domains->len, m->clock_method, (gdouble)m->clock_uncertainty_ns / 1e3,
                    m->clock_trusted ? "" : ": NOT TRUSTED");
    if (rs_report_is_standin(m))
        wrap(out, "NCCL    ",
             "was the stand-in of samples/hostnccl on host memory, not NVIDIA's library: its times "
             "say nothing about GPUs");
    g_string_append_c(out, '\n');
}

static void write_finding(GString *out, guint number, const RsFinding *f)
{
    g_autofree gchar *lead = g_strdup_printf("%3u. ", number);
    wrap_printf(out, lead, "[%s] %s: %s", f->severity, f->kind, f->title);
    if (f->cost_s > 0)
        wrap_printf(out, "     ",
                    "cost %.3f s (%.1f %% of the run), confidence %.2f, seen from %.3f s to %.3f s",
                    f->cost_s, f->cost_percent, f->confidence, f->t_start_s, f->t_end_s);
    for (guint i = 0; i < f->evidence->len; i++)
        wrap(out, "     - ", g_ptr_array_index(f->evidence, i));
    if (f->remedy)
        wrap(out, "     > ", f->remedy);
    g_string_append_c(out, '\n');
}

static void write_findings(GString *out, const RsReport *r)
{
    const GPtrArray *findings = r->results->findings;
    g_string_append(out, "Findings, dearest first\n\n");
    for (guint i = 0; i < findings->len; i++)
        write_finding(out, i + 1, g_ptr_array_index(findings, i));
    if (findings->len == 0)
        wrap(out, "  ", "none: nothing that was looked for costs a notable part of this run");
    if (findings->len == 0)
        g_string_append_c(out, '\n');
}

/* "12.3", "-" where it is unknown. */
static void cell(GString *out, gdouble value, guint decimals, gint width)
{
    gchar text[32] = "-";
    if (isfinite(value))
        g_snprintf(text, sizeof text, "%.*f", (int)decimals, value);
    rs_text_pad(out, text, -width);
}

static void percent_cell(GString *out, gint64 part_ns, gint64 wall_ns)
{
    cell(out, wall_ns > 0 ? 100.0 * (gdouble)part_ns / (gdouble)wall_ns : NAN, 1, 9);
}

static void write_breakdown_row(GString *out, const RsModel *m, const RsBreakdown *b)
{
    gchar rank[16] = "-"; /* it has none */
    if (rs_model_rank(m, b->rank)->rank >= 0)
        g_snprintf(rank, sizeof rank, "%d", rs_model_rank(m, b->rank)->rank);
    rs_text_pad(out, rank, -6);
    g_string_append(out, "  ");
    rs_text_pad(out, rs_model_host_name(m, rs_model_rank(m, b->rank)->host), 16);
    cell(out, (gdouble)b->wall_ns / 1e9, 3, 9);
    percent_cell(out, b->compute_ns, b->wall_ns);
    percent_cell(out, b->comm_exposed_ns, b->wall_ns);
    percent_cell(out, b->wait_ns, b->wall_ns);
    percent_cell(out, b->io_ns, b->wall_ns);
    percent_cell(out, b->idle_ns, b->wall_ns);
    percent_cell(out, b->comm_hidden_ns, b->wall_ns);
    g_string_append_c(out, '\n');
}

static void write_breakdown(GString *out, const RsReport *r)
{
    g_string_append(out, "Where the time went, per rank (% of the wall time; hidden is part of "
                         "compute)\n\n");
    g_string_append(out,
                    "  rank  host               wall s  compute  exposed     wait      I/O     "
                    "idle   hidden\n");
    guint rows = 0;
    for (guint i = 0; i < r->results->breakdown->len; i++) {
        const RsBreakdown *b = &g_array_index(r->results->breakdown, RsBreakdown, i);
        if (b->step == RS_NONE && rows++ < ROWS_MAX)
            write_breakdown_row(out, r->model, b);
    }
    if (rows > ROWS_MAX)
        g_string_append_printf(out, "        ... and %u more rank%s: --ranks, or --format json\n",
                               rows - ROWS_MAX, rs_plural(rows - ROWS_MAX));
    RsPop p = rs_report_pop(r->results);
    if (isfinite(p.parallel))
        g_string_append_printf(out,
                               "\n  POP: parallel efficiency %.2f = load balance %.2f x "
                               "communication efficiency %.2f\n"
                               "       (useful time is the compute above: kernels on a rank that "
                               "has them, else what is left)\n",
                               p.parallel, p.load_balance, p.communication);
    g_string_append_c(out, '\n');
}

static gchar *dup_size(guint32 size_class)
{
    static const gchar *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (size_class == RS_NONE)
        return g_strdup("-");
    return g_strdup_printf("%u %s", 1u << size_class % 10, units[size_class / 10]);
}

static void write_collective(GString *out, const RsCollMetric *c)
{
    g_autofree gchar *size = dup_size(c->size_class);
    g_autofree gchar *count = g_strdup_printf("%" G_GUINT64_FORMAT, c->count);
    gdouble us = 1e-3, gb = 1e-9;
    g_string_append(out, "  ");
    rs_text_pad(out, rs_coll_name(c->coll), 15);
    rs_text_pad(out, rs_api_name(c->api), 6);
    rs_text_pad(out, size, -8);
    rs_text_pad(out, count, -8);
    cell(out, c->call_ns_median < 0 ? NAN : (gdouble)c->call_ns_median * us, 1, 11);
    cell(out, c->wait_ns_median < 0 ? NAN : (gdouble)c->wait_ns_median * us, 1, 11);
    cell(out, c->transfer_ns_median < 0 ? NAN : (gdouble)c->transfer_ns_median * us, 1, 11);
    cell(out, c->busbw_call * gb, 3, 10);
    cell(out, c->busbw_transfer * gb, 3, 10);
    g_string_append_c(out, '\n');
}

static void write_collectives(GString *out, const RsReport *r)
{
    if (r->results->collectives->len == 0)
        return;
    g_string_append(out, "Collectives (medians without warm-ups; wait: mean over members; GB/s)\n\n"
                         "  operation      API    from size   count    call us    wait us   "
                         "transf us busbw/call  /transfer\n");
    for (guint i = 0; i < r->results->collectives->len; i++)
        write_collective(out, &g_array_index(r->results->collectives, RsCollMetric, i));
    g_string_append_c(out, '\n');
}

static void write_link(GString *out, const RsModel *m, const RsLinkMetric *l)
{
    g_autofree gchar *messages = g_strdup_printf("%" G_GUINT64_FORMAT, l->messages);
    g_string_append(out, "  ");
    rs_text_pad(out, rs_model_host_name(m, l->src_host), 16);
    g_string_append(out, " -> ");
    rs_text_pad(out, rs_model_host_name(m, l->dst_host), 16);
    rs_text_pad(out, messages, -9);
    cell(out, (gdouble)l->bytes / 1048576.0, 2, 11);
    cell(out, (gdouble)l->busy_ns / 1e9, 3, 9);
    cell(out, l->bandwidth * 8e-6, 0, 12);
    cell(out, l->best_bandwidth * 8e-6, 0, 12);
    g_string_append_c(out, '\n');
}

static void write_links(GString *out, const RsReport *r)
{
    if (r->results->links->len == 0)
        return;
    g_string_append(out, "Links (from the receivers, once both sides were there; Mbit/s)\n\n"
                         "  from                to               messages        MiB   busy s   "
                         "bandwidth  best tenth\n");
    guint n = r->results->links->len;
    for (guint i = 0; i < n && i < ROWS_MAX; i++)
        write_link(out, r->model, &g_array_index(r->results->links, RsLinkMetric, i));
    if (n > ROWS_MAX)
        g_string_append_printf(out, "  ... and %u more: --format json\n", n - ROWS_MAX);
    g_string_append_c(out, '\n');
}

static void write_not_applicable(GString *out, const RsResults *results)
{
    if (results->not_applicable->len == 0)
        return;
    g_string_append(out, "Not applicable\n\n");
    for (guint i = 0; i < results->not_applicable->len; i++) {
        const RsNotApplicable *n = g_ptr_array_index(results->not_applicable, i);
        wrap_printf(out, "  - ", "%s: %s", n->analysis, n->reason);
    }
    g_string_append_c(out, '\n');
}

static void write_warnings(GString *out, const RsModel *m)
{
    if (m->warnings->len == 0)
        return;
    g_string_append(out, "Warnings\n\n");
    for (guint i = 0; i < m->warnings->len && i < ROWS_MAX; i++) {
        const RsWarning *w = g_ptr_array_index(m->warnings, i);
        if (w->path[0] && w->offset)
            wrap_printf(out, "  - ", "%s, byte %" G_GUINT64_FORMAT ": %s", w->path, w->offset,
                        w->text);
        else
            wrap_printf(out, "  - ", "%s%s%s", w->path, w->path[0] ? ": " : "", w->text);
    }
    if (m->warnings->len > ROWS_MAX)
        g_string_append_printf(out, "  - ... and %u more\n", m->warnings->len - ROWS_MAX);
    g_string_append_c(out, '\n');
}

gchar *rs_report_text(const RsReport *r)
{
    GString *out = g_string_new(NULL);
    write_incomplete(out, r->model);
    write_header(out, r);
    write_findings(out, r);
    write_breakdown(out, r);
    write_collectives(out, r);
    write_links(out, r);
    write_not_applicable(out, r->results);
    write_warnings(out, r->model);
    g_string_truncate(out, out->len - 1);
    return g_string_free(out, FALSE);
}
