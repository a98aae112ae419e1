/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow-link.c - a path between two hosts that gives less than its peers, or than a network should.
 *
 * Rule: a direction of a host pair is slow where its bandwidth is below 0.8 of its reference, and
 * its best tenth below 0.9: a link that is only sometimes disturbed keeps its best tenth. Two paths
 * within 20 % are no finding: so much two cables of one batch may differ. The reference is
 *   - the median bandwidth over the other host pairs;
 *   - with one pair alone, the nominal speed of the slower network card, of which the best tenth
 *     must stay below a tenth (not between logical hosts of one machine, whose clock domain is
 *     one: their cards carry none of it);
 *   - where that is unknown, 10 Gbit/s, the least that a training cluster's network gives, of
 *     which the best tenth must stay below 6 %.
 * A single TCP stream on a busy machine reaches more than these shares of a healthy path.
 * Confidence is lower without peers.
 * Cost: of each step, the time in which a transfer of the pair was under way and a receiving rank
 * had nothing to do but wait for communication (the longest over its receiving ranks, not the sum)
 * times the share of it that the reference would save (1 - bandwidth / reference, where one
 * direction is busy at a time): definitions.md section 13. A step can't become shorter than
 * the own time (timeline.h) of the rank that works longest in it, so it costs no more than the
 * rest.
 */
#include "analyses.h"
#include "plural.h"
#include "stats.h"
#include "timeline.h"
#include "transfers.h"

#include <math.h>

#define SLOW_SHARE      0.8
#define SLOW_BEST_SHARE 0.9
#define NIC_SHARE       0.1
#define FLOOR_MBPS      10000.0
#define FLOOR_SHARE     0.06
#define COST_MIN_SHARE  0.005

typedef struct {
    GArray *transfers; /* RsTransfer */
} State;

typedef enum { BY_PEERS, BY_NIC, BY_FLOOR } RefKind;

typedef struct {
    RsLinkMetric metric;
    guint from, to; /* of the sorted transfers */
    guint back;     /* the pair's other direction, RS_NONE */
    gboolean slow;
    gdouble reference; /* bytes/s */
    RefKind by;
    guint peers;
} Direction;

static void init(gpointer state, const RsContext *ctx)
{
    ((State *)state)->transfers = g_array_new(FALSE, FALSE, sizeof(RsTransfer));
}

static void feed(gpointer state, const RsWindow *w)
{
    rs_transfers_collect(((State *)state)->transfers, w);
}

static void merge(gpointer state, gconstpointer other)
{
    const State *o = other;
    g_array_append_vals(((State *)state)->transfers, o->transfers->data, o->transfers->len);
}

static gint compare_directions(gconstpointer a, gconstpointer b)
{
    const RsLinkMetric *x = &((const Direction *)a)->metric, *y = &((const Direction *)b)->metric;
    if (x->src_host != y->src_host)
        return x->src_host < y->src_host ? -1 : 1;
    return x->dst_host < y->dst_host ? -1 : x->dst_host > y->dst_host;
}

/* By source, then destination. */
static GArray *find_directions(GArray *transfers)
{
    GArray *all = g_array_new(FALSE, TRUE, sizeof(Direction));
    const RsTransfer *t = (const RsTransfer *)(void *)transfers->data;
    for (guint from = 0, to; from < transfers->len; from = to) {
        to = rs_transfers_link_end(transfers, from);
        Direction d = {.from = from, .to = to};
        d.metric.src_host = t[from].src_host;
        d.metric.dst_host = t[from].dst_host;
        rs_transfers_measure(t + from, to - from, &d.metric);
        g_array_append_val(all, d);
    }
    for (guint i = 0; i < all->len; i++) {
        Direction *d = &g_array_index(all, Direction, i);
        const Direction back = {
            .metric = {.src_host = d->metric.dst_host, .dst_host = d->metric.src_host}};
        if (!g_array_binary_search(all, &back, compare_directions, &d->back))
            d->back = RS_NONE;
    }
    return all;
}

static gboolean one_machine(const RsModel *m, const Direction *d)
{
    guint32 src = RS_NONE, dst = RS_NONE;
    for (guint32 r = 0; r < m->ranks->len; r++) {
        const RsRank *rank = rs_model_rank(m, r);
        if (rank->missing)
            continue;
        if (rank->host == d->metric.src_host)
            src = rank->domain;
        if (rank->host == d->metric.dst_host)
            dst = rank->domain;
    }
    return src == dst;
}

static gint compare_bandwidths(gconstpointer a, gconstpointer b)
{
    const gdouble x = *(const gdouble *)a, y = *(const gdouble *)b;
    return x < y ? -1 : x > y;
}

/* Bandwidths of all directions that were measured, sorted. */
static GArray *sort_bandwidths(const GArray *all)
{
    GArray *sorted = g_array_new(FALSE, FALSE, sizeof(gdouble));
    for (guint i = 0; i < all->len; i++)
        if (g_array_index(all, Direction, i).metric.big_from_bytes)
            g_array_append_val(sorted, g_array_index(all, Direction, i).metric.bandwidth);
    g_array_sort(sorted, compare_bandwidths);
    return sorted;
}

/* Number `k` of the sorted, those of the pair `own` (1 or 2, ascending) left out. */
static gdouble nth_of_others(const GArray *sorted, const gdouble *own, guint n_own, guint k)
{
    for (guint i = 0; i < n_own; i++) {
        guint at;
        if (g_array_binary_search((GArray *)sorted, &own[i], compare_bandwidths, &at) &&
            g_array_index(sorted, gdouble, k) >= own[i])
            k++;
    }
    return g_array_index(sorted, gdouble, k);
}

/* Those of its own pair, ascending. */
static guint own_bandwidths(const GArray *all, const Direction *d, gdouble ret[2])
{
    const Direction *back = d->back == RS_NONE ? NULL : &g_array_index(all, Direction, d->back);
    ret[0] = d->metric.bandwidth;
    if (!back || !back->metric.big_from_bytes)
        return 1;
    ret[1] = MAX(ret[0], back->metric.bandwidth);
    ret[0] = MIN(ret[0], back->metric.bandwidth);
    return 2;
}

static void find_reference(const RsModel *m, const GArray *all, const GArray *sorted, Direction *d)
{
    gdouble own[2];
    guint n_own = own_bandwidths(all, d, own);
    d->peers = sorted->len - n_own;
    if (d->peers > 0) {
        d->by = BY_PEERS;
        d->reference = (nth_of_others(sorted, own, n_own, (d->peers - 1) / 2) +
                        nth_of_others(sorted, own, n_own, d->peers / 2)) /
                       2;
        return;
    }
    gdouble src = g_array_index(m->hosts, RsHost, d->metric.src_host).nic_mbps;
    gdouble dst = g_array_index(m->hosts, RsHost, d->metric.dst_host).nic_mbps;
    gdouble nominal = src > 0 && dst > 0 ? MIN(src, dst) : 0;
    /* logical hosts of one machine: their cards carry none of it */
    if (one_machine(m, d))
        nominal = 0;
    d->by = nominal > 0 ? BY_NIC : BY_FLOOR;
    d->reference = (nominal > 0 ? nominal : FLOOR_MBPS) * 1e6 / 8;
}

static gboolean beyond_clock(const RsModel *m, const RsTransfer *t, const Direction *d)
{
    gint64 unsure = rs_uncertainty_between_ns(m, t[d->from].src, t[d->from].dst);
    gdouble typical = (gdouble)d->metric.big_from_bytes * 1e9 / d->metric.bandwidth;
    return typical > 2 * (gdouble)unsure && (unsure == 0 || m->clock_trusted);
}

static void judge(const RsModel *m, const GArray *all, const GArray *sorted, const RsTransfer *t,
                  Direction *d)
{
    if (!d->metric.big_from_bytes || !beyond_clock(m, t, d))
        return;
    find_reference(m, all, sorted, d);
    gdouble bw = d->metric.bandwidth, best = d->metric.best_bandwidth;
    switch (d->by) {
    case BY_PEERS:
        d->slow = bw < SLOW_SHARE * d->reference && best < SLOW_BEST_SHARE * d->reference;
        break;
    case BY_NIC:
        d->slow = best < NIC_SHARE * d->reference;
        break;
    case BY_FLOOR:
        d->slow = best < FLOOR_SHARE * d->reference;
        break;
    }
}

/* ---- cost ---- */

/* One slow pair: one direction or both. */
typedef struct {
    const Direction *d[2];
    guint n;
    const Direction *worst;
} Pair;

static gint compare_by_step(gconstpointer a, gconstpointer b)
{
    const RsTransfer *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->from_ns != y->from_ns)
        return x->from_ns < y->from_ns ? -1 : 1;
    return x->message < y->message ? -1 : x->message > y->message;
}

static GArray *pair_transfers(const Pair *p, const RsTransfer *t)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(RsTransfer));
    for (guint i = 0; i < p->n; i++)
        for (guint k = p->d[i]->from; k < p->d[i]->to; k++)
            if (t[k].bytes >= p->d[i]->metric.big_from_bytes)
                g_array_append_val(list, t[k]);
    g_array_sort(list, compare_by_step);
    return list;
}

static gint64 exposed_ns(const RsTimeline *line, const GArray *spells)
{
    if (line->blind)
        return rs_spells_length_ns(spells);
    gint64 parts[RS_PART_COUNT] = {0}, hidden = 0;
    for (guint i = 0; i < spells->len; i++) {
        const RsSpell *s = &g_array_index(spells, RsSpell, i);
        rs_timeline_sum(line, s->from_ns, s->to_ns, parts, &hidden);
    }
    return parts[RS_PART_EXPOSED] + parts[RS_PART_WAIT];
}

/* Exposed time of one step's transfers: of the receiving rank that it held up longest. */
static gint64 step_exposed_ns(const RsContext *ctx, const RsTransfer *t, guint n)
{
    g_autoptr(GArray) spells = rs_transfers_spells(t, n, 0);
    g_autofree guint8 *seen = g_new0(guint8, ctx->model->ranks->len + 1);
    gint64 longest = 0;
    for (guint i = 0; i < n; i++) {
        if (seen[t[i].dst])
            continue;
        seen[t[i].dst] = 1;
        longest = MAX(longest, exposed_ns(&ctx->timelines[t[i].dst], spells));
    }
    return longest;
}

/* What of a step is not the work of the rank that works longest in it. */
static gint64 step_slack_ns(const RsContext *ctx, guint32 step)
{
    if (step == RS_NONE)
        return G_MAXINT64;
    const RsModel *m = ctx->model;
    const RsStep *s = &g_array_index(m->steps, RsStep, step);
    gint64 most = 0;
    for (guint32 r = 0; r < m->ranks->len; r++) {
        const RsSpan *span = &g_array_index(m->step_spans, RsSpan, s->first_span + r);
        const RsTimeline *t = &ctx->timelines[r];
        if (!t->blind)
            most = MAX(most,
                       rs_timeline_own_ns(t, span->end_ns) - rs_timeline_own_ns(t, span->start_ns));
    }
    return MAX(s->end_ns - s->start_ns - most, 0);
}

/* The share of the pair's busy time in one step that its reference would save: of the time covered
 * by its transfers, how much less they would cover if each took what its direction's reference
 * gives. */
static gdouble lost_share(const Pair *p, const RsTransfer *t, guint n)
{
    g_autofree RsTransfer *fast = g_memdup2(t, n * sizeof *t);
    for (guint i = 0; i < n; i++) {
        const Direction *d = p->d[p->n == 2 && t[i].src_host != p->d[0]->metric.src_host];
        gdouble share = d->metric.bandwidth / d->reference;
        fast[i].to_ns = t[i].from_ns + (gint64)((gdouble)(t[i].to_ns - t[i].from_ns) * share);
    }
    g_autoptr(GArray) now = rs_transfers_spells(t, n, 0), then = rs_transfers_spells(fast, n, 0);
    gint64 busy = rs_spells_length_ns(now);
    return busy > 0 ? 1 - (gdouble)rs_spells_length_ns(then) / (gdouble)busy : 0;
}

static gint64 find_cost(const RsContext *ctx, const Pair *p, const GArray *list, RsFinding *f)
{
    const RsTransfer *t = (const RsTransfer *)(void *)list->data;
    gint64 cost = 0;
    for (guint from = 0, to; from < list->len; from = to) {
        for (to = from + 1; to < list->len && t[to].step == t[from].step; to++)
            ;
        gint64 exposed = step_exposed_ns(ctx, t + from, to - from);
        gdouble lost = lost_share(p, t + from, to - from);
        gint64 ns = (gint64)((gdouble)MIN(exposed, step_slack_ns(ctx, t[from].step)) * lost);
        cost += ns;
        if (ns > 0 && t[from].step != RS_NONE)
            g_array_append_val(f->steps,
                               g_array_index(ctx->model->steps, RsStep, t[from].step).number);
    }
    return cost;
}

/* ---- words ---- */

static gchar *dup_rate(gdouble bytes_per_s)
{
    gdouble mbit = bytes_per_s * 8 / 1e6;
    return mbit < 10000 ? g_strdup_printf("%.0f Mbit/s", mbit)
                        : g_strdup_printf("%.2f GB/s", bytes_per_s / 1e9);
}

static void say_measure(const RsModel *m, const Direction *d, RsFinding *f)
{
    g_autofree gchar *rate = dup_rate(d->metric.bandwidth);
    g_autofree gchar *best = dup_rate(d->metric.best_bandwidth);
    rs_finding_say(f,
                   "%s -> %s: %s over %" G_GUINT64_FORMAT " messages of %" G_GUINT64_FORMAT
                   " KiB or more, best tenth %s; timed at the receivers from when both sides were "
                   "there, so a late rank does not count",
                   rs_model_host_name(m, d->metric.src_host),
                   rs_model_host_name(m, d->metric.dst_host), rate, d->metric.big_messages,
                   d->metric.big_from_bytes >> 10, best);
}

static void say_reference(const Direction *d, RsFinding *f)
{
    g_autofree gchar *rate = dup_rate(d->reference);
    if (d->by == BY_PEERS)
        rs_finding_say(f, "the other host pairs reach %s (median of %u directions): %.1f times it",
                       rate, d->peers, d->reference / d->metric.bandwidth);
    else if (d->by == BY_NIC)
        rs_finding_say(f,
                       "there is no other host pair to compare with; the network cards' nominal "
                       "speed is %s, %.0f times it",
                       rate, d->reference / d->metric.bandwidth);
    else
        rs_finding_say(f,
                       "there is no other host pair to compare with, and the cards' speed is not "
                       "known: judged against %s, the least that a training cluster's network "
                       "gives; where less was bought, this is no fault",
                       rate);
}

static void add_places(const RsModel *m, const Pair *p, const GArray *list, RsFinding *f)
{
    const RsLinkMetric *w = &p->worst->metric;
    g_ptr_array_add(f->hosts, g_strdup(rs_model_host_name(m, w->src_host)));
    g_ptr_array_add(f->hosts, g_strdup(rs_model_host_name(m, w->dst_host)));
    g_autofree guint8 *in = g_new0(guint8, m->ranks->len + 1);
    gint64 from = G_MAXINT64, to = 0;
    for (guint i = 0; i < list->len; i++) {
        const RsTransfer *t = &g_array_index(list, RsTransfer, i);
        in[t->src] = in[t->dst] = 1;
        from = MIN(from, t->from_ns);
        to = MAX(to, t->to_ns);
    }
    for (guint32 r = 0; r < m->ranks->len; r++)
        if (in[r])
            g_array_append_val(f->ranks, rs_model_rank(m, r)->rank);
    f->t_start_s = (gdouble)from / 1e9;
    f->t_end_s = (gdouble)to / 1e9;
}

/* Share of spells that are slow, less what was dropped, less what the clock leaves open. */
static gdouble find_confidence(const RsContext *ctx, const Direction *d, const RsTransfer *t)
{
    static const gdouble by[] = {[BY_PEERS] = 1.0, [BY_NIC] = 0.85, [BY_FLOOR] = 0.7};
    const RsModel *m = ctx->model;
    g_autoptr(GArray) spells =
        rs_transfers_spells(t + d->from, d->to - d->from, d->metric.big_from_bytes);
    guint slow = 0;
    for (guint i = 0; i < spells->len; i++) {
        const RsSpell *s = &g_array_index(spells, RsSpell, i);
        slow +=
            (gdouble)s->bytes * 1e9 / (gdouble)(s->to_ns - s->from_ns) < SLOW_SHARE * d->reference;
    }
    gdouble effect = (gdouble)rs_spells_length_ns(spells) / spells->len *
                     (1 - d->metric.bandwidth / d->reference);
    gdouble unsure = (gdouble)rs_uncertainty_between_ns(m, t[d->from].src, t[d->from].dst);
    gdouble dropped = rs_model_lost_share(m);
    return by[d->by] * slow / spells->len * (1 - dropped) * MAX(0, 1 - unsure / effect);
}

static void report(const RsContext *ctx, const Pair *p, const RsTransfer *t, RsResults *results)
{
    const RsModel *m = ctx->model;
    const RsLinkMetric *w = &p->worst->metric;
    RsFinding *f = rs_finding_new("slow-link");
    g_autoptr(GArray) list = pair_transfers(p, t);
    gint64 cost = find_cost(ctx, p, list, f);
    if ((gdouble)cost < COST_MIN_SHARE * (gdouble)ctx->span_ns) {
        rs_finding_free(f);
        return;
    }
    rs_finding_cost(f, ctx, cost);
    f->confidence = find_confidence(ctx, p->worst, t);
    add_places(m, p, list, f);
    g_autofree gchar *rate = dup_rate(w->bandwidth);
    f->title = g_strdup_printf("the link %s %s %s gives %s", rs_model_host_name(m, w->src_host),
                               p->n == 2 ? "-" : "->", rs_model_host_name(m, w->dst_host), rate);
    for (guint i = 0; i < p->n; i++)
        say_measure(m, p->d[i], f);
    say_reference(p->worst, f);
    if (f->steps->len)
        rs_finding_say(f, "it holds ranks up in %u of %u step%s, %.2f ms a step", f->steps->len,
                       ctx->n_steps, rs_plural(ctx->n_steps), (gdouble)cost / 1e6 / f->steps->len);
    f->remedy = g_strdup("check that path's cable, port errors, negotiated speed and routing, and "
                         "what else uses it; until it is repaired, leave one of the two hosts out "
                         "or give them neighbouring work that exchanges less");
    g_ptr_array_add(results->findings, f);
}

static void finish(gpointer state, const RsContext *ctx, RsResults *results)
{
    State *st = state;
    rs_transfers_sort(st->transfers);
    const RsTransfer *t = (const RsTransfer *)(void *)st->transfers->data;
    g_autoptr(GArray) all = find_directions(st->transfers);
    g_autoptr(GArray) sorted = sort_bandwidths(all);
    for (guint i = 0; i < all->len; i++)
        judge(ctx->model, all, sorted, t, &g_array_index(all, Direction, i));
    for (guint i = 0; i < all->len; i++) {
        Direction *d = &g_array_index(all, Direction, i);
        if (!d->slow)
            continue;
        Pair p = {.d = {d}, .n = 1, .worst = d};
        Direction *o = d->back == RS_NONE ? NULL : &g_array_index(all, Direction, d->back);
        if (o && o->slow) {
            p.d[p.n++] = o;
            p.worst = o->metric.bandwidth < d->metric.bandwidth ? o : d;
            o->slow = FALSE; /* told with its other direction */
        }
        report(ctx, &p, t, results);
    }
    if (all->len > 0 && sorted->len == 0)
        rs_results_not_applicable(results, "slow-link",
                                  "fewer than %d messages of %u KiB or more between any two hosts: "
                                  "small ones tell latency, not bandwidth",
                                  RS_BIG_MIN_COUNT, RS_BIG_FLOOR_BYTES >> 10);
}

static void release(gpointer state)
{
    g_array_unref(((State *)state)->transfers);
}

static const gchar *const kinds[] = {"slow-link", NULL};

const RsAnalysis rs_analysis_slow_link = {
    .name = "slow-link",
    .help = "a path between two hosts that gives less than its peers",
    .kinds = kinds,
    .state_size = sizeof(State),
    .init = init,
    .feed = feed,
    .merge = merge,
    .finish = finish,
    .release = release,
};
