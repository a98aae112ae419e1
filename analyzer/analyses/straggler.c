/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straggler.c - a rank for which the others wait, because it takes longer for its own work.
 *
 * Rule, per stream of gatherings (gatherings.h) and rank. Each chain has at most one culprit: that
 * of its gathering with the most lateness of somebody's own doing. Samples are steps, each with the
 * rank that costs most in it as its culprit; in a run without steps, the chains that are late at
 * all. A rank is a straggler where
 *   - at least 5 samples outside the first step could show it;
 *   - it is the culprit in clearly more than its share: above 1/n by a quarter of the rest, and by
 *     4 standard deviations of chance (2.2 where it is in nine of ten);
 *   - its typical lateness is above 3 times the spread of the others' arrivals, which balanced runs
 *     show by jitter alone, and above twice the clock uncertainty between the members;
 *   - of two ranks, where others have no spread: at least 8 samples, and its typical lateness is
 *     above 3 times its own spread;
 *   - it passes that threshold not only now and then: in two samples of five, where several
 *     stragglers share the blame in fewer;
 *   - the others' lateness together shows it is no general noise: it costs 3 times what the median
 *     other rank costs, and 0.5 % of the run.
 * The rank with the longest collectives is the one that waits, not the one that is late.
 * Cost: definitions.md section 13; the sum over chains of the culprit's lateness that is its own
 * doing, once for each chain (gatherings one after the other add up, overlapping ones don't). The
 * first step counts as an ordinary one. Evidence adds in which phase, if the program names phases,
 * the rank's own time is longer.
 */
#include "analyses.h"
#include "gatherings.h"
#include "phases.h"
#include "plural.h"
#include "stats.h"
#include "timeline.h"

#include <math.h>
#include <string.h>

#define SAMPLES_MIN          5
#define SURE                 4.0 /* standard deviations of chance */
#define SURE_MOSTLY          2.2 /* where nine samples of ten agree: five of five, of two ranks */
#define COST_MIN_SHARE       0.005
#define PAIR_SAMPLES_MIN     8
#define FROM_MEDIAN_DISTANCE 1.4826 /* to a standard deviation */

typedef struct {
    RsGatheringIndex *index;
    GArray *gatherings; /* RsGathering */
} State;

static void init(gpointer state, const RsContext *ctx)
{
    State *st = state;
    st->index = rs_gathering_index_new(ctx->model);
    st->gatherings = g_array_new(FALSE, FALSE, sizeof(RsGathering));
}

static void feed(gpointer state, const RsWindow *w)
{
    State *st = state;
    rs_gatherings_collect(st->gatherings, w, st->index);
}

static void merge(gpointer state, gconstpointer other)
{
    const State *o = other;
    g_array_append_vals(((State *)state)->gatherings, o->gatherings->data, o->gatherings->len);
}

static void release(gpointer state)
{
    State *st = state;
    rs_gathering_index_free(st->index);
    g_array_unref(st->gatherings);
}

/* ---- chains, and samples of them ---- */

/* The gatherings of a stream, sorted, to chains: of each the gathering that tells most. */
static GArray *find_chains(const RsGathering *g, guint n)
{
    GArray *chains = g_array_new(FALSE, FALSE, sizeof(RsGathering));
    for (guint from = 0, to; from < n; from = to) {
        RsGathering c = g[from];
        for (to = from + 1; to < n && g[to].step == g[from].step &&
                            g[to].first_arrival_ns < g[to - 1].last_arrival_ns;
             to++)
            if (g[to].own_ns > c.own_ns)
                c = g[to];
        g_array_append_val(chains, c);
    }
    return chains;
}

/* What can show a culprit: a step, or, outside steps, a chain in which somebody is late. */
typedef struct {
    RsGathering g; /* its largest lateness */
    guint32 culprit;
    gint64 own_ns; /* the culprit's, over all chains of the sample */
    gboolean warmup;
} Sample;

typedef struct {
    guint32 stream;
    GArray *chains;   /* RsGathering */
    GArray *samples;  /* Sample */
    gboolean stepped; /* some of its gatherings are in steps: the rest tell nothing */
    guint counted;    /* samples that are not warm-ups */
    guint32 n_members;
    gint64 noise_ns, unsure_ns, threshold_ns;
    gint64 *cost_ns; /* by RsRank index */
    guint8 *member;
} Stream;

typedef struct {
    guint32 rank;
    const Stream *stream;
    guint culprit_of, last_in, above; /* samples; of them where it was last; above the threshold */
    gint64 typical_ns, spread_ns, cost_ns, others_ns;
    gdouble share;
} Suspect;

/* The rank that costs most in chains [c, c + n), of equals the lowest. */
static Sample sample_of(const RsGathering *c, guint n)
{
    Sample s = {.g = c[0], .culprit = RS_NONE};
    for (guint i = 0; i < n; i++) {
        gint64 sum = 0;
        guint most = i;
        for (guint k = 0; k < n; k++) {
            if (c[k].culprit != c[i].culprit)
                continue;
            sum += c[k].own_ns;
            if (c[k].own_ns > c[most].own_ns)
                most = k;
        }
        if (c[i].culprit == RS_NONE || sum < s.own_ns ||
            (sum == s.own_ns && c[i].culprit >= s.culprit))
            continue;
        s.culprit = c[i].culprit;
        s.own_ns = sum;
        s.g = c[most];
    }
    return s;
}

static void find_samples(const RsModel *m, Stream *s)
{
    s->samples = g_array_new(FALSE, FALSE, sizeof(Sample));
    const RsGathering *c = (const RsGathering *)(void *)s->chains->data;
    for (guint i = 0; i < s->chains->len && !s->stepped; i++)
        s->stepped = c[i].step != RS_NONE;
    for (guint from = 0, to; from < s->chains->len; from = to) {
        to = from + 1;
        while (to < s->chains->len && c[to].step == c[from].step && c[from].step != RS_NONE)
            to++;
        if (c[from].step == RS_NONE && (s->stepped || c[from].own_ns <= s->threshold_ns))
            continue;
        Sample x = sample_of(c + from, to - from);
        x.warmup = c[from].step == 0 && m->steps->len > 1;
        s->counted += !x.warmup;
        g_array_append_val(s->samples, x);
    }
}

/* ---- a stream, and each rank in it ---- */

static void mark_members(const RsModel *m, Stream *s)
{
    s->member = g_new0(guint8, m->ranks->len + 1);
    if (s->stream == RS_STREAM_RENDEZVOUS) {
        memset(s->member, 1, m->ranks->len);
        return;
    }
    const RsComm *c = &g_array_index(m->comms, RsComm, s->stream);
    for (guint32 k = 0; k < c->n_members; k++)
        if (c->members[k] != RS_NONE)
            s->member[c->members[k]] = 1;
}

static gint64 find_uncertainty(const RsModel *m, const Stream *s)
{
    guint32 first = RS_NONE;
    gint64 most = 0;
    for (guint32 r = 0; r < m->ranks->len; r++) {
        if (!s->member[r])
            continue;
        if (first == RS_NONE)
            first = r;
        most = MAX(most, rs_uncertainty_between_ns(m, first, r));
    }
    return most;
}

static gint64 find_noise(const GArray *chains)
{
    g_autofree gint64 *spreads = g_new(gint64, chains->len + 1);
    for (guint i = 0; i < chains->len; i++)
        spreads[i] = g_array_index(chains, RsGathering, i).spread_ns;
    return chains->len
               ? (gint64)(FROM_MEDIAN_DISTANCE * (gdouble)rs_median_ns(spreads, chains->len))
               : 0;
}

/* Adds up what each rank costs; the first step is taken to cost no more than a typical one of that
 * rank, as much else is late in it. */
static void sum_costs(const RsModel *m, Stream *s)
{
    guint n = m->ranks->len;
    g_autofree gint64 *first = g_new0(gint64, n + 1);
    g_autofree guint *steps = g_new0(guint, n + 1);
    g_autofree guint32 *last_step = g_new(guint32, n + 1); /* that the rank was counted for */
    s->cost_ns = g_new0(gint64, n + 1);
    memset(last_step, 0xff, n * sizeof *last_step);
    for (guint i = 0; i < s->chains->len; i++) {
        const RsGathering *c = &g_array_index(s->chains, RsGathering, i);
        if (c->culprit == RS_NONE)
            continue;
        if (c->step == 0 && m->steps->len > 1) {
            first[c->culprit] += c->own_ns;
            continue;
        }
        s->cost_ns[c->culprit] += c->own_ns;
        steps[c->culprit] += c->step != last_step[c->culprit];
        last_step[c->culprit] = c->step;
    }
    for (guint r = 0; r < n; r++)
        if (steps[r])
            s->cost_ns[r] += MIN(first[r], s->cost_ns[r] / steps[r]);
}

static void stream_init(Stream *s, const RsModel *m, const RsGathering *g, guint n)
{
    memset(s, 0, sizeof *s);
    s->stream = g->stream;
    s->n_members = g->n_members;
    s->chains = find_chains(g, n);
    mark_members(m, s);
    s->unsure_ns = find_uncertainty(m, s);
    s->noise_ns = find_noise(s->chains);
    s->threshold_ns = MAX(3 * s->noise_ns, 2 * s->unsure_ns);
    find_samples(m, s);
    sum_costs(m, s);
}

static void stream_clear(gpointer data)
{
    Stream *s = data;
    g_array_unref(s->chains);
    g_array_unref(s->samples);
    g_free(s->cost_ns);
    g_free(s->member);
}

/* ---- is it one? ---- */

static gint64 cost_of_others(const RsModel *m, const Stream *s, guint32 rank)
{
    g_autofree gint64 *costs = g_new(gint64, m->ranks->len + 1);
    guint n = 0;
    for (guint32 r = 0; r < m->ranks->len; r++)
        if (s->member[r] && r != rank)
            costs[n++] = s->cost_ns[r];
    return n ? rs_median_ns(costs, n) : 0;
}

static void count_lateness(Suspect *x)
{
    const GArray *samples = x->stream->samples;
    g_autofree gint64 *late = g_new(gint64, samples->len + 1);
    guint n = 0;
    for (guint i = 0; i < samples->len; i++) {
        const Sample *s = &g_array_index(samples, Sample, i);
        if (s->culprit != x->rank || s->warmup)
            continue;
        late[n++] = s->own_ns;
        x->above += s->own_ns > x->stream->threshold_ns;
        x->last_in += s->g.last_rank == x->rank;
    }
    x->culprit_of = n;
    x->typical_ns = rs_median_ns(late, n);
    for (guint i = 0; i < n; i++)
        late[i] = ABS(late[i] - x->typical_ns);
    x->spread_ns = n ? (gint64)(FROM_MEDIAN_DISTANCE * (gdouble)rs_median_ns(late, n)) : 0;
}

static gboolean beats_chance(const Suspect *x)
{
    gdouble n = x->stream->counted, p = 1.0 / x->stream->n_members;
    gdouble z = (x->culprit_of - n * p) / sqrt(n * p * (1 - p));
    return x->share >= p + (1 - p) / 4 && z >= (x->share >= 0.9 ? SURE_MOSTLY : SURE);
}

static Suspect suspect_of(const RsModel *m, const Stream *s, guint32 rank)
{
    Suspect x = {.rank = rank, .stream = s, .cost_ns = s->cost_ns[rank]};
    count_lateness(&x);
    x.share = s->counted ? (gdouble)x.culprit_of / s->counted : 0;
    x.others_ns = cost_of_others(m, s, rank);
    return x;
}

/* Of two ranks one is always the last. */
static gboolean stands_out_of_two(const Suspect *x)
{
    return x->stream->n_members > 2 ||
           (x->stream->counted >= PAIR_SAMPLES_MIN && x->typical_ns > 3 * x->spread_ns);
}

static gboolean is_straggler(const RsContext *ctx, const Suspect *x)
{
    const Stream *s = x->stream;
    if (s->counted < SAMPLES_MIN || x->culprit_of == 0 || !beats_chance(x) || !stands_out_of_two(x))
        return FALSE;
    gdouble often = MAX(0.2, MIN(0.4, 2.0 / s->n_members));
    return x->typical_ns > s->threshold_ns && x->above >= often * s->counted &&
           x->cost_ns > 3 * x->others_ns &&
           (gdouble)x->cost_ns >= COST_MIN_SHARE * (gdouble)ctx->span_ns;
}

/* ---- words ---- */

static void add_steps(const RsModel *m, const Suspect *x, RsFinding *f)
{
    gint64 from = G_MAXINT64, to = 0;
    for (guint i = 0; i < x->stream->samples->len; i++) {
        const Sample *s = &g_array_index(x->stream->samples, Sample, i);
        if (s->culprit != x->rank)
            continue;
        from = MIN(from, s->g.last_arrival_ns - s->g.late_ns);
        to = MAX(to, s->g.last_arrival_ns);
        if (s->g.step != RS_NONE)
            g_array_append_val(f->steps, g_array_index(m->steps, RsStep, s->g.step).number);
    }
    f->t_start_s = (gdouble)from / 1e9;
    f->t_end_s = (gdouble)to / 1e9;
}

/* NULL: nobody knows. */
static const gchar *host_of(const RsModel *m, guint32 rank)
{
    guint32 host = rs_model_rank(m, rank)->host;
    return rs_model_host_is_known(m, host) ? rs_model_host_name(m, host) : NULL;
}

static void say_lateness(const RsContext *ctx, const Suspect *x, RsFinding *f)
{
    const Stream *s = x->stream;
    gboolean rendezvous = s->stream == RS_STREAM_RENDEZVOUS;
    rs_finding_say(
        f,
        "its own time made it late for %s of %u ranks in %u of %u %s, typically by %.3f ms"
        "; it was the last to %s in %u of them",
        rendezvous ? "agreements on tensors" : "collectives", s->n_members, x->culprit_of,
        s->counted, s->stepped ? "steps after the first" : "in which anybody was late",
        (gdouble)x->typical_ns / 1e6, rendezvous ? "be ready" : "arrive", x->last_in);
    if (x->last_in < x->culprit_of)
        rs_finding_say(f,
                       "in the other %u the last rank had waited for a message that this one sent "
                       "late, directly or over others",
                       x->culprit_of - x->last_in);
    rs_finding_say(f,
                   "the others' arrivals spread by %.3f ms, their clocks are sure to %.3f ms; "
                   "lateness adds up to %.3f s for this rank and %.3f s for the median other",
                   (gdouble)s->noise_ns / 1e6, (gdouble)s->unsure_ns / 1e6,
                   (gdouble)x->cost_ns / 1e9, (gdouble)x->others_ns / 1e9);
    if (f->steps->len > 0)
        rs_finding_say(f, "seen in %u of %u step%s, from step %u to step %u", f->steps->len,
                       ctx->n_steps, rs_plural(ctx->n_steps), g_array_index(f->steps, guint32, 0),
                       g_array_index(f->steps, guint32, f->steps->len - 1));
}

/* All it did in its own time, beside what the others did. */
static void say_work(const RsContext *ctx, const Suspect *x, RsFinding *f)
{
    guint32 n = ctx->model->ranks->len, k = 0;
    g_autofree gint64 *others = g_new(gint64, n + 1);
    gint64 own = 0;
    for (guint32 r = 0; r < n; r++) {
        gint64 ns = rs_timeline_own_ns(&ctx->timelines[r], ctx->model->duration_ns);
        if (r == x->rank)
            own = ns;
        else if (x->stream->member[r] && !rs_model_rank(ctx->model, r)->missing)
            others[k++] = ns;
    }
    const gint64 all = ctx->model->duration_ns;
    gboolean blank = own >= all && k > 0 && rs_median_ns(others, k) >= all; /* no wait is known */
    if (k > 0 && !blank)
        rs_finding_say(f,
                       "over the run it works %.3f s without waiting for anybody, the median other "
                       "rank %.3f s",
                       (gdouble)own / 1e9, (gdouble)rs_median_ns(others, k) / 1e9);
}

static void say_phase(const RsContext *ctx, const Suspect *x, RsFinding *f)
{
    RsPhaseExcess e;
    if (!rs_phases_excess(ctx, x->stream->member, x->rank, &e))
        return;
    rs_finding_say(f, "%s its own time in \"%s\" is %.3f ms %s, %.3f ms on the median other rank",
                   e.share >= 0.5 ? "that is where it is slow:" : "the largest difference:", e.name,
                   (gdouble)e.own_ns / 1e6, e.per_step ? "a step" : "each time",
                   (gdouble)e.others_ns / 1e6);
}

static gdouble find_confidence(const RsModel *m, const Suspect *x)
{
    gdouble dropped = rs_model_lost_share(m);
    gdouble clock = 1 - (gdouble)x->stream->unsure_ns / (gdouble)x->typical_ns;
    return x->share * (1 - dropped) * MAX(0, clock);
}

static void report(const RsContext *ctx, const Suspect *x, RsResults *results)
{
    const RsModel *m = ctx->model;
    RsFinding *f = rs_finding_new("straggler");
    rs_finding_cost(f, ctx, x->cost_ns);
    f->confidence = find_confidence(m, x);
    gint32 rank = rs_model_rank(m, x->rank)->rank;
    const gchar *host = host_of(m, x->rank);
    rs_finding_place(f, m, x->rank);
    if (x->stream->stream != RS_STREAM_RENDEZVOUS) {
        guint64 identity = g_array_index(m->comms, RsComm, x->stream->stream).identity;
        g_array_append_val(f->communicators, identity);
    }
    add_steps(m, x, f);
    f->title = g_strdup_printf("rank %d%s%s is late", rank, host ? " on " : "", host ? host : "");
    say_lateness(ctx, x, f);
    say_work(ctx, x, f);
    say_phase(ctx, x, f);
    f->remedy = g_strdup_printf(
        "look at what only rank %d does or what only %s has: more or larger input, extra code on "
        "that rank, a throttled or shared processor, a slower disk; move the rank to another host "
        "to tell the two apart",
        rank, host ? host : "its host");
    g_ptr_array_add(results->findings, f);
}

/* ---- all streams ---- */

/* The stream in which a rank costs most stands for it: the same delay shows in several. */
static void judge_rank(const RsContext *ctx, const GArray *streams, guint32 rank,
                       RsResults *results)
{
    Suspect best = {.rank = RS_NONE};
    for (guint i = 0; i < streams->len; i++) {
        const Stream *s = &g_array_index(streams, Stream, i);
        if (!s->member[rank])
            continue;
        Suspect x = suspect_of(ctx->model, s, rank);
        if (is_straggler(ctx, &x) && (best.rank == RS_NONE || x.cost_ns > best.cost_ns))
            best = x;
    }
    if (best.rank != RS_NONE)
        report(ctx, &best, results);
}

static GArray *find_streams(const RsModel *m, GArray *gatherings)
{
    GArray *streams = g_array_new(FALSE, FALSE, sizeof(Stream));
    g_array_set_clear_func(streams, stream_clear);
    const RsGathering *g = (const RsGathering *)(void *)gatherings->data;
    for (guint from = 0, to; from < gatherings->len; from = to) {
        for (to = from + 1; to < gatherings->len && g[to].stream == g[from].stream; to++)
            ;
        Stream s;
        stream_init(&s, m, g + from, to - from);
        if (s.unsure_ns > 0 && !m->clock_trusted)
            stream_clear(&s);
        else
            g_array_append_val(streams, s);
    }
    return streams;
}

static guint most_samples(const GArray *streams)
{
    guint most = 0;
    for (guint i = 0; i < streams->len; i++)
        most = MAX(most, g_array_index(streams, Stream, i).counted);
    return most;
}

static guint count_nonblocking(const RsModel *m)
{
    guint n = 0;
    for (guint i = 0; i < m->instances->len; i++) {
        guint32 first = g_array_index(m->instances, RsInstance, i).first_member;
        guint32 e = g_array_index(m->member_events, guint32, first);
        n += e != RS_NONE && rs_model_sig(m, e)->klass == RS_CLASS_COLL_START &&
             rs_model_sig(m, e)->kind == RS_KIND_CALL;
    }
    return n;
}

static void say_limits(const RsContext *ctx, const GArray *streams, guint gatherings,
                       RsResults *results)
{
    const RsModel *m = ctx->model;
    guint most = most_samples(streams);
    if (gatherings == 0)
        rs_results_not_applicable(
            results, "straggler",
            "no collective or agreement whose members' arrivals are all known");
    else if (streams->len == 0)
        rs_results_not_applicable(results, "straggler",
                                  "the clocks of the hosts could not be put on one axis");
    else if (most < SAMPLES_MIN)
        rs_results_not_applicable(
            results, "straggler", "only %u %s that could show it; at least %d are needed", most,
            m->steps->len ? "steps after the first" : "late collectives", SAMPLES_MIN);
    guint nonblocking = count_nonblocking(m);
    if (nonblocking)
        rs_results_not_applicable(
            results, "straggler",
            "%u nonblocking collective%s: a rank counts as come when it starts one; whether the "
            "others wait for one that completes it late, or for the transfer, can't be told",
            nonblocking, rs_plural(nonblocking));
    for (guint32 r = 0; r < m->ranks->len; r++)
        if (rs_model_rank(m, r)->missing) {
            rs_results_not_applicable(results, "straggler",
                                      "rank %d has no capture: whether it, or another rank without "
                                      "one, is late can't be told",
                                      rs_model_rank(m, r)->rank);
            break;
        }
}

static void finish(gpointer state, const RsContext *ctx, RsResults *results)
{
    State *st = state;
    rs_gatherings_sort(st->gatherings);
    g_autoptr(GArray) streams = find_streams(ctx->model, st->gatherings);
    for (guint32 r = 0; r < ctx->model->ranks->len; r++)
        if (ctx->rank_in[r])
            judge_rank(ctx, streams, r, results);
    say_limits(ctx, streams, st->gatherings->len, results);
}

static const gchar *const kinds[] = {"straggler", NULL};

const RsAnalysis rs_analysis_straggler = {
    .name = "straggler",
    .help = "ranks that others wait for, because their own work takes longer",
    .kinds = kinds,
    .state_size = sizeof(State),
    .init = init,
    .feed = feed,
    .merge = merge,
    .finish = finish,
    .release = release,
};
