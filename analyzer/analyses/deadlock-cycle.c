/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock-cycle.c - ranks that waited for each other when the run was ended from outside.
 *
 * Rule: each of them was in a call that can't go on without the next (endings.h), the last without
 * the first, and all of them at once for a second or more before one of them died: shorter cycles
 * are messages on their way, and one that closed later is what the death left behind.
 * Cost: from when the last of them came to when the first of them died.
 */
#include "analyses.h"
#include "endings.h"

#define STUCK_NS 1000000000
#define SAID_MAX 16

static gchar *dup_title(const RsModel *m, const GArray *cycle, const RsWait *waits)
{
    GString *s = g_string_new(NULL);
    if (cycle->len > 2) {
        g_string_printf(s, "%u ranks waited for each other in a circle", cycle->len);
        return g_string_free(s, FALSE);
    }
    for (guint i = 0; i < cycle->len; i++) {
        guint32 rank = g_array_index(cycle, guint32, i);
        g_autofree gchar *call = rs_ending_dup_call(m, waits[rank].event);
        g_string_append_printf(s, "%srank %d in %s", i ? " and " : "", rs_model_rank(m, rank)->rank,
                               call);
    }
    g_string_append(s, " waited for each other");
    return g_string_free(s, FALSE);
}

static void say(const RsModel *m, RsFinding *f, const GArray *cycle, const RsWait *waits)
{
    for (guint i = 0; i < cycle->len; i++) {
        guint32 rank = g_array_index(cycle, guint32, i);
        guint32 next = g_array_index(cycle, guint32, (i + 1) % cycle->len);
        rs_finding_place(f, m, rank);
        if (i >= SAID_MAX)
            continue;
        g_autofree gchar *call = rs_ending_dup_call(m, waits[rank].event);
        rs_finding_say(f, "rank %d waited for rank %d in %s, since %.3f s",
                       rs_model_rank(m, rank)->rank, rs_model_rank(m, next)->rank, call,
                       (gdouble)m->events.start_ns[waits[rank].event] / 1e9);
    }
    if (cycle->len > SAID_MAX)
        rs_finding_say(f, "and so on, over %u further ranks", cycle->len - SAID_MAX);
}

static void look(const RsContext *ctx, const GArray *cycle, const RsWait *waits, RsResults *results)
{
    const RsModel *m = ctx->model;
    gint64 closed = 0, died = G_MAXINT64;
    for (guint i = 0; i < cycle->len; i++) {
        guint32 rank = g_array_index(cycle, guint32, i);
        closed = MAX(closed, m->events.start_ns[waits[rank].event]);
        died = MIN(died, rs_model_rank(m, rank)->last_ns);
    }
    if (died - closed < STUCK_NS)
        return;
    RsFinding *f = rs_finding_new("deadlock-cycle");
    f->fatal = TRUE;
    f->confidence = 0.95;
    f->t_start_s = (gdouble)closed / 1e9;
    f->t_end_s = (gdouble)died / 1e9;
    f->title = dup_title(m, cycle, waits);
    say(m, f, cycle, waits);
    rs_finding_cost(f, ctx, died - closed);
    f->remedy = g_strdup("make the ranks agree on the order of their calls: receives that are "
                         "posted before sends (MPI_Irecv, MPI_Sendrecv), and the same collectives "
                         "in the same order on all ranks");
    g_ptr_array_add(results->findings, f);
}

static void finish(gpointer state, const RsContext *ctx, RsResults *results)
{
    const RsModel *m = ctx->model;
    if (!ctx->whole || !rs_ending_any_early(m))
        return;
    RsWait *waits = rs_waits_new(m);
    g_autoptr(GArray) cycle = rs_waits_find_cycle(m, waits);
    if (cycle)
        look(ctx, cycle, waits, results);
    rs_waits_free(waits, m->ranks->len);
}

static const gchar *const kinds[] = {"deadlock-cycle", NULL};

const RsAnalysis rs_analysis_deadlock_cycle = {
    .name = "deadlock-cycle",
    .help = "ranks that wait for each other",
    .kinds = kinds,
    .finish = finish,
};
