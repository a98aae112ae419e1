/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breakdown.c - where the time of every rank went, for the run and for each step.
 *
 * Rule: timeline.h says what each moment is; here they are only summed. The parts of a row add up
 * to its wall time exactly, as they are a partition of it: the time while capture was switched off
 * is not in it.
 */
#include "analyses.h"
#include "timeline.h"

#define ROWS_MAX (1u << 20)

typedef struct {
    gint64 parts[RS_PART_COUNT];
    gint64 hidden_ns;
} Sum;

typedef struct {
    const RsContext *ctx;
    guint32 n_ranks, n_steps;
    guint32 *ranks; /* RsRank indices of those in scope that have a capture */
    Sum *sums;      /* in their order: the run, then its steps */
} State;

static Sum *sum_of(const State *st, guint32 i, guint32 row)
{
    return &st->sums[(gsize)i * (st->n_steps + 1) + row];
}

static void choose_ranks(State *st, const RsContext *ctx)
{
    guint n = ctx->model->ranks->len;
    st->ranks = g_new(guint32, n + 1);
    for (guint32 r = 0; r < n; r++)
        if (ctx->rank_in[r] && !rs_model_rank(ctx->model, r)->missing)
            st->ranks[st->n_ranks++] = r;
}

static void init(gpointer state, const RsContext *ctx)
{
    State *st = state;
    st->ctx = ctx;
    choose_ranks(st, ctx);
    st->n_steps = ctx->model->steps->len;
    if ((guint64)st->n_ranks * st->n_steps > ROWS_MAX)
        st->n_steps = 0;
    st->sums = g_new0(Sum, (gsize)st->n_ranks * (st->n_steps + 1) + 1);
}

/* The steps of the i-th rank in the window; a rank's steps are in order of time. */
static void feed_steps(State *st, guint32 i, const RsWindow *w)
{
    const RsModel *m = st->ctx->model;
    guint32 rank = st->ranks[i];
    for (guint32 s = rs_model_first_step(m, rank, w->from_ns); s < st->n_steps; s++) {
        const RsStep *step = &g_array_index(m->steps, RsStep, s);
        const RsSpan *span = &g_array_index(m->step_spans, RsSpan, step->first_span + rank);
        gint64 from = MAX(span->start_ns, w->from_ns), to = MIN(span->end_ns, w->to_ns);
        if (span->end_ns > span->start_ns && span->start_ns >= w->to_ns)
            return;
        Sum *sum = sum_of(st, i, s + 1);
        if (to > from)
            rs_timeline_sum(&st->ctx->timelines[rank], from, to, sum->parts, &sum->hidden_ns);
    }
}

static void feed(gpointer state, const RsWindow *w)
{
    State *st = state;
    for (guint32 i = 0; i < st->n_ranks; i++) {
        Sum *run = sum_of(st, i, 0);
        rs_timeline_sum(&st->ctx->timelines[st->ranks[i]], w->from_ns, w->to_ns, run->parts,
                        &run->hidden_ns);
        feed_steps(st, i, w);
    }
}

static void merge(gpointer state, gconstpointer other)
{
    State *st = state;
    const State *o = other;
    for (gsize i = 0; i < (gsize)st->n_ranks * (st->n_steps + 1); i++) {
        for (guint k = 0; k < RS_PART_COUNT; k++)
            st->sums[i].parts[k] += o->sums[i].parts[k];
        st->sums[i].hidden_ns += o->sums[i].hidden_ns;
    }
}

static void add_row(RsResults *results, guint32 rank, guint32 step, const Sum *sum)
{
    RsBreakdown b = {.rank = rank, .step = step};
    b.compute_ns = sum->parts[RS_PART_COMPUTE];
    b.comm_exposed_ns = sum->parts[RS_PART_EXPOSED];
    b.wait_ns = sum->parts[RS_PART_WAIT];
    b.io_ns = sum->parts[RS_PART_IO];
    b.idle_ns = sum->parts[RS_PART_IDLE];
    b.comm_hidden_ns = sum->hidden_ns;
    b.wall_ns = b.compute_ns + b.comm_exposed_ns + b.wait_ns + b.io_ns + b.idle_ns;
    if (step == RS_NONE || b.wall_ns > 0)
        g_array_append_val(results->breakdown, b);
}

static gboolean has_io(const RsModel *m)
{
    for (guint i = 0; i < m->sigs->len; i++)
        if (g_array_index(m->sigs, RsSig, i).kind == RS_KIND_IO)
            return TRUE;
    return FALSE;
}

static void finish(gpointer state, const RsContext *ctx, RsResults *results)
{
    State *st = state;
    for (guint32 row = 0; row <= st->n_steps; row++)
        for (guint32 i = 0; i < st->n_ranks; i++)
            add_row(results, st->ranks[i], row == 0 ? RS_NONE : row - 1, sum_of(st, i, row));
    if (st->n_steps < ctx->model->steps->len)
        rs_results_not_applicable(
            results, "breakdown per step",
            "%u ranks times %u steps are too many rows: --ranks gives those of "
            "some ranks",
            st->n_ranks, ctx->model->steps->len);
    if (has_io(ctx->model))
        rs_results_not_applicable(
            results, "all file I/O",
            "file I/O counts where one call on a file takes 100 us or longer; page faults of "
            "mapped "
            "files, io_uring, and programs that make system calls by themselves are not seen");
    for (guint32 i = 0; i < st->n_ranks; i++)
        if (ctx->timelines[st->ranks[i]].blind) {
            rs_results_not_applicable(
                results, "exposed communication",
                "threads or devices communicate behind rank %d's main thread, and nothing recorded "
                "tells when that thread waits for them: its communication is shown as hidden",
                rs_model_rank(ctx->model, st->ranks[i])->rank);
            break;
        }
}

static void release(gpointer state)
{
    g_free(((State *)state)->ranks);
    g_free(((State *)state)->sums);
}

const RsAnalysis rs_analysis_breakdown = {
    .name = "breakdown",
    .help = "compute, communication, wait, I/O and idle of each rank and step",
    .state_size = sizeof(State),
    .init = init,
    .feed = feed,
    .merge = merge,
    .finish = finish,
    .release = release,
};
