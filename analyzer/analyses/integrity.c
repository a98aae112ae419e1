/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integrity.c - what the run's data can't tell: findings incomplete-data and clock-untrusted.
 *
 * Rule: a rank without a capture, one whose capture was not closed, and lost events each make the
 * data incomplete; clocks that could not be put on one axis are not trusted. Both cost nothing and
 * come after the findings that do, but a report says the first before everything else.
 * Needs no window: it looks at the model's own account of itself.
 */
#include "analyses.h"
#include "endings.h"

static void add_rank(RsFinding *f, const RsRank *r)
{
    g_array_append_val(f->ranks, r->rank);
}

static gboolean lacks_data(const RsRank *r)
{
    return r->missing || r->dropped || (r->note && !rs_ending_is_early(r));
}

/* Says up to 8 ranks' notes, then how many more. */
static guint say_lacking(const RsModel *m, RsFinding *f)
{
    guint n = 0;
    for (guint i = 0; i < m->ranks->len; i++) {
        const RsRank *r = rs_model_rank(m, i);
        if (!lacks_data(r))
            continue;
        add_rank(f, r);
        if (++n > 8)
            continue;
        if (r->missing)
            rs_finding_say(f, "rank %d has no capture", r->rank);
        else if (r->dropped)
            rs_finding_say(f,
                           "rank %d lost %" G_GUINT64_FORMAT " of its %" G_GUINT64_FORMAT " events",
                           r->rank, r->dropped, r->events + r->dropped);
        else
            rs_finding_say(f, "rank %d: %s", r->rank, rs_model_str(m, r->note));
    }
    if (n > 8)
        rs_finding_say(f, "and %u further ranks", n - 8);
    return n;
}

/* What other tools wrote, not captures. */
static gboolean are_traces(const RsModel *m)
{
    for (guint i = 0; i < m->ranks->len; i++)
        if (rs_ending_is_of_trace(m, rs_model_rank(m, i)))
            return TRUE;
    return FALSE;
}

static void add_incomplete(const RsContext *ctx, RsResults *results)
{
    const RsModel *m = ctx->model;
    RsFinding *f = rs_finding_new("incomplete-data");
    guint n = say_lacking(m, f), missing = 0;
    for (guint i = 0; i < m->ranks->len; i++)
        missing += rs_model_rank(m, i)->missing;
    if (n == 0)
        rs_finding_say(f, "%u warnings were met when the run was read", m->warnings->len);
    if (missing)
        f->title = g_strdup_printf("%u of %d ranks have no capture", missing, m->world_size);
    else if (n)
        f->title =
            g_strdup_printf("the captures of %u of %d ranks are incomplete", n, m->world_size);
    else
        f->title = g_strdup("parts of the captures could not be read");
    f->severity = missing ? "high" : "medium";
    f->confidence = 1;
    f->t_end_s = (gdouble)m->duration_ns / 1e9;
    f->remedy = g_strdup(
        are_traces(m)
            ? "name the other ranks' traces, too, or a folder that holds all of them; where a file "
              "is damaged or cut, let the profiler end and write it again"
            : "collect every host's run folder before merging; where events were lost, trace fewer "
              "kinds of calls, or raise RINGSCOPE_SIZE_LIMIT if that left them out");
    g_ptr_array_add(results->findings, f);
}

static void add_untrusted(const RsContext *ctx, RsResults *results)
{
    const RsModel *m = ctx->model;
    RsFinding *f = rs_finding_new("clock-untrusted");
    f->title = g_strdup_printf("the clocks of %u clock domains could not be put on one axis",
                               m->domains->len);
    f->severity = "high";
    f->confidence = 1;
    f->t_end_s = (gdouble)m->duration_ns / 1e9;
    rs_finding_say(f, "method: %s; uncertainty %.3f ms", m->clock_method,
                   (gdouble)m->clock_uncertainty_ns / 1e6);
    rs_finding_say(f, "nothing is concluded from time differences between ranks of different "
                      "domains");
    f->remedy = g_strdup(
        are_traces(m)
            ? "profile steps that have at least 3 collectives of all ranks, the same steps on each "
              "rank: clocks of traces are aligned by the ends of collectives alone"
            : "trace the whole run, so that the exchanges at its start and end are recorded, or "
              "let the program call a synchronising collective now and then");
    g_ptr_array_add(results->findings, f);
}

/* Ranks that did not come to their own end, where no analysis before this one names the cause. */
static void add_killed(const RsContext *ctx, RsResults *results)
{
    const RsModel *m = ctx->model;
    RsFinding *f = rs_finding_new("incomplete-data");
    guint n = 0, aborted = 0, exited = 0;
    f->t_start_s = (gdouble)m->duration_ns / 1e9;
    for (guint32 i = 0; i < m->ranks->len; i++) {
        const RsRank *r = rs_model_rank(m, i);
        if (!rs_ending_is_early(r))
            continue;
        add_rank(f, r);
        exited += r->ending == RS_ENDING_EXITED;
        f->t_start_s = MIN(f->t_start_s, (gdouble)r->last_ns / 1e9);
        aborted += r->ending == RS_ENDING_ABORTED;
        if (++n > 8)
            continue;
        g_autofree gchar *end = rs_ending_dup_text(m, i);
        rs_finding_say(f, "rank %d %s", r->rank, end);
    }
    if (n > 8)
        rs_finding_say(f, "and %u further ranks", n - 8);
    if (!ctx->whole)
        rs_finding_say(f, "who ended it is looked for in the whole run alone: leave out --from, "
                          "--to and --steps");
    f->title = g_strdup_printf("%u of %d ranks %s killed%s at %.3f s: the run did not come to its "
                               "end",
                               n, m->world_size, n == 1 ? "was" : "were",
                               aborted && exited ? ", aborted or exited"
                               : aborted         ? " or aborted"
                               : exited          ? " or exited"
                                                 : "",
                               f->t_start_s);
    f->fatal = TRUE;
    f->severity = "high";
    f->confidence = 1;
    f->t_end_s = (gdouble)m->duration_ns / 1e9;
    f->remedy = g_strdup("look at the launcher's and the scheduler's output for who ended the run "
                         "(a limit, a cancelled job, memory); if it hung, what its ranks were in "
                         "is above");
    g_ptr_array_add(results->findings, f);
}

static void finish(gpointer state, const RsContext *ctx, RsResults *results)
{
    const RsModel *m = ctx->model;
    gboolean killed = FALSE, whole = TRUE;
    for (guint i = 0; i < m->ranks->len; i++) {
        killed |= rs_ending_is_early(rs_model_rank(m, i));
        whole &= !lacks_data(rs_model_rank(m, i));
    }
    if (killed && !rs_results_have_fatal(results))
        add_killed(ctx, results);
    if (m->incomplete && !(killed && whole))
        add_incomplete(ctx, results);
    if (!ctx->model->clock_trusted)
        add_untrusted(ctx, results);
}

static const gchar *const kinds[] = {"incomplete-data", "clock-untrusted", NULL};

const RsAnalysis rs_analysis_integrity = {
    .name = "integrity",
    .help = "missing captures, lost events, clocks that can't be trusted",
    .kinds = kinds,
    .finish = finish,
};
