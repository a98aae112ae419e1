/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses.h"

#include "timeline.h"

const RsAnalysis *const rs_analyses[] = {
    /* what ended the run: the first that knows */
    &rs_analysis_deadlock_cycle,
    &rs_analysis_missing_rank,
    &rs_analysis_integrity,
    &rs_analysis_unobserved,
    /* what it spent its time on */
    &rs_analysis_breakdown,
    &rs_analysis_collectives,
    &rs_analysis_links,
    /* why, and what is wrong */
    &rs_analysis_mismatch,
    &rs_analysis_straggler,
    &rs_analysis_slow_link,
    NULL,
};

gint64 rs_uncertainty_between_ns(const RsModel *m, guint32 a, guint32 b)
{
    guint32 x = rs_model_rank(m, a)->domain, y = rs_model_rank(m, b)->domain;
    if (x == y)
        return 0;
    gint64 ux = g_array_index(m->domains, RsDomain, x).uncertainty_ns;
    gint64 uy = g_array_index(m->domains, RsDomain, y).uncertainty_ns;
    return MAX(ux + uy, m->clock_uncertainty_ns);
}

/* ---- what the scope selects ---- */

static guint8 *select_ranks(const RsModel *m, const RsScope *scope)
{
    guint8 *in = g_new0(guint8, m->ranks->len + 1);
    for (guint32 r = 0; r < m->ranks->len; r++) {
        in[r] = !scope || !scope->ranks;
        for (guint i = 0; !in[r] && i < scope->ranks->len; i++)
            in[r] = g_array_index(scope->ranks, gint32, i) == rs_model_rank(m, r)->rank;
    }
    return in;
}

/* First instance, rendezvous or message whose time is `ns` or later; all are sorted by it. */
#define LOWER_BOUND(array, type, field, ns)                                                        \
    ({                                                                                             \
        guint32 low = 0, high = (array)->len;                                                      \
        while (low < high) {                                                                       \
            guint32 mid = low + (high - low) / 2;                                                  \
            if (g_array_index((array), type, mid).field < (ns))                                    \
                low = mid + 1;                                                                     \
            else                                                                                   \
                high = mid;                                                                        \
        }                                                                                          \
        low;                                                                                       \
    })

static RsWindow window_of(const RsContext *ctx, gint64 from_ns, gint64 to_ns)
{
    const RsModel *m = ctx->model;
    RsWindow w = {.ctx = ctx, .from_ns = from_ns, .to_ns = to_ns};
    w.first_instance = LOWER_BOUND(m->instances, RsInstance, last_arrival_ns, from_ns);
    w.last_instance = LOWER_BOUND(m->instances, RsInstance, last_arrival_ns, to_ns);
    w.first_rendezvous = LOWER_BOUND(m->rendezvous, RsRendezvous, last_arrival_ns, from_ns);
    w.last_rendezvous = LOWER_BOUND(m->rendezvous, RsRendezvous, last_arrival_ns, to_ns);
    w.first_message = LOWER_BOUND(m->messages, RsMessage, both_ns, from_ns);
    w.last_message = LOWER_BOUND(m->messages, RsMessage, both_ns, to_ns);
    return w;
}

static void add_window(GArray *windows, RsContext *ctx, gint64 from_ns, gint64 to_ns)
{
    if (windows->len > 0)
        from_ns = MAX(from_ns, g_array_index(windows, RsWindow, windows->len - 1).to_ns);
    if (to_ns <= from_ns)
        return;
    RsWindow w = window_of(ctx, from_ns, to_ns);
    ctx->span_ns += to_ns - from_ns;
    g_array_append_val(windows, w);
}

static GHashTable *numbers_of(const GArray *list)
{
    GHashTable *set = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < list->len; i++)
        g_hash_table_add(set, GUINT_TO_POINTER(g_array_index(list, guint32, i)));
    return set;
}

/* One window for all of [from, to), or one for each of the steps wanted in it. Steps whose spans
 * overlap between ranks share the time; what lies in it counts once. */
static GArray *select_windows(RsContext *ctx, const RsScope *scope)
{
    const RsModel *m = ctx->model;
    GArray *windows = g_array_new(FALSE, FALSE, sizeof(RsWindow));
    gint64 from = scope ? (gint64)(scope->from_s * 1e9) : 0;
    gint64 to = m->duration_ns;
    if (scope && scope->to_s > 0)
        to = MIN(to, (gint64)(scope->to_s * 1e9));
    gboolean by_step = scope && scope->steps;
    if (!by_step)
        add_window(windows, ctx, from, to);
    g_autoptr(GHashTable) wanted = by_step ? numbers_of(scope->steps) : NULL;
    for (guint i = 0; i < m->steps->len; i++) {
        const RsStep *s = &g_array_index(m->steps, RsStep, i);
        gint64 start = MAX(from, s->start_ns), end = MIN(to, s->end_ns);
        if (end <= start ||
            (by_step && !g_hash_table_contains(wanted, GUINT_TO_POINTER(s->number))))
            continue;
        ctx->n_steps++;
        if (by_step)
            add_window(windows, ctx, start, end);
    }
    return windows;
}

/* What lies outside every time, as a run of length 0 has it, is in the whole run. */
static void cover_whole(GArray *windows, const RsContext *ctx)
{
    const RsModel *m = ctx->model;
    RsWindow w = {.ctx = ctx, .to_ns = m->duration_ns};
    w.last_instance = m->instances->len;
    w.last_rendezvous = m->rendezvous->len;
    w.last_message = m->messages->len;
    g_array_set_size(windows, 0);
    g_array_append_val(windows, w);
}

/* ---- running ---- */

static guint32 part_of(guint32 first, guint32 last, guint piece, guint pieces)
{
    return first + (guint32)((guint64)(last - first) * piece / pieces);
}

/* Time and index ranges are cut independently: an analysis depends on none of them together. */
static RsWindow cut_window(const RsWindow *w, guint piece, guint pieces)
{
    RsWindow p = *w;
    gint64 length = (w->to_ns - w->from_ns) / pieces;
    p.from_ns = w->from_ns + length * piece;
    p.to_ns = piece + 1 == pieces ? w->to_ns : p.from_ns + length;
#define CUT(what)                                                                                  \
    p.first_##what = part_of(w->first_##what, w->last_##what, piece, pieces);                      \
    p.last_##what = part_of(w->first_##what, w->last_##what, piece + 1, pieces)
    CUT(instance);
    CUT(rendezvous);
    CUT(message);
#undef CUT
    return p;
}

typedef struct {
    const RsContext *ctx;
    const GArray *windows;
    gpointer *states; /* by analysis */
    guint piece, pieces;
} Worker;

static gpointer work(gpointer data)
{
    Worker *wk = data;
    for (guint a = 0; rs_analyses[a]; a++) {
        for (guint i = 0; rs_analyses[a]->feed && i < wk->windows->len; i++) {
            RsWindow p =
                cut_window(&g_array_index(wk->windows, RsWindow, i), wk->piece, wk->pieces);
            rs_analyses[a]->feed(wk->states[a], &p);
        }
    }
    return NULL;
}

static gpointer *new_states(const RsContext *ctx)
{
    gpointer *states = g_new0(gpointer, G_N_ELEMENTS(rs_analyses));
    for (guint a = 0; rs_analyses[a]; a++) {
        if (!rs_analyses[a]->feed)
            continue;
        states[a] = g_malloc0(rs_analyses[a]->state_size);
        rs_analyses[a]->init(states[a], ctx);
    }
    return states;
}

static void free_states(gpointer *states)
{
    for (guint a = 0; rs_analyses[a]; a++) {
        if (rs_analyses[a]->feed)
            rs_analyses[a]->release(states[a]);
        g_free(states[a]);
    }
    g_free(states);
}

static RsResults *results_new(void)
{
    RsResults *r = g_new0(RsResults, 1);
    r->findings = g_ptr_array_new_with_free_func((GDestroyNotify)rs_finding_free);
    r->not_applicable = g_ptr_array_new();
    r->breakdown = g_array_new(FALSE, TRUE, sizeof(RsBreakdown));
    r->collectives = g_array_new(FALSE, TRUE, sizeof(RsCollMetric));
    r->links = g_array_new(FALSE, TRUE, sizeof(RsLinkMetric));
    return r;
}

/* What communication and waiting cost the rank that spends most on them: all else is work that has
 * to be done. Where nothing tells how much of a rank's communication is hidden, all may be exposed.
 * 0 where no communication of any rank is known, as in Horovod's timelines: nothing is told then.
 */
static gint64 most_lost_ns(const RsContext *ctx, const RsResults *results)
{
    gint64 most = 0, known = 0;
    for (guint i = 0; i < results->breakdown->len; i++) {
        const RsBreakdown *b = &g_array_index(results->breakdown, RsBreakdown, i);
        known += b->comm_exposed_ns + b->comm_hidden_ns + b->wait_ns;
        gint64 unsure = ctx->timelines[b->rank].blind ? b->comm_hidden_ns : 0;
        if (b->step == RS_NONE)
            most = MAX(most, b->wall_ns - b->compute_ns - b->io_ns + unsure);
    }
    return known ? most : 0;
}

/* Costs of causes that overlap may add up to more than could be saved: then all shrink alike. */
static void cap_costs(const RsContext *ctx, RsResults *results)
{
    gdouble sum = 0, most = (gdouble)most_lost_ns(ctx, results) / 1e9;
    for (guint i = 0; i < results->findings->len; i++)
        sum += ((RsFinding *)g_ptr_array_index(results->findings, i))->cost_s;
    for (guint i = 0; i < results->findings->len && sum > most && most > 0; i++) {
        RsFinding *f = g_ptr_array_index(results->findings, i);
        if (f->cost_s <= 0)
            continue;
        rs_finding_say(
            f,
            "alone its cost would be %.3f s, but causes overlap: together they can't cost "
            "more than the %.3f s that communication and waiting take",
            f->cost_s, most);
        rs_finding_cost(f, ctx, (gint64)(f->cost_s * 1e9 * most / sum));
    }
}

/* Titles name the cost that counts in the end. */
static void tell_costs(RsResults *results)
{
    for (guint i = 0; i < results->findings->len; i++) {
        RsFinding *f = g_ptr_array_index(results->findings, i);
        if (f->cost_s <= 0)
            continue;
        g_autofree gchar *what = f->title;
        f->title = g_strdup_printf("%s and costs %.3f s (%.1f %% of the run)", what, f->cost_s,
                                   f->cost_percent);
    }
}

static gint compare_findings(gconstpointer a, gconstpointer b)
{
    const RsFinding *x = *(const RsFinding *const *)a, *y = *(const RsFinding *const *)b;
    if (x->fatal != y->fatal)
        return x->fatal ? -1 : 1;
    if (x->wrong != y->wrong)
        return x->wrong ? -1 : 1;
    if (x->cost_s != y->cost_s)
        return x->cost_s > y->cost_s ? -1 : 1;
    return g_strcmp0(x->title, y->title);
}

static RsResults *run_pieces(const RsContext *ctx, const GArray *windows, guint pieces,
                             gboolean threads)
{
    Worker *workers = g_new0(Worker, pieces);
    GThread **thread = g_new0(GThread *, pieces);
    for (guint i = 0; i < pieces; i++) {
        workers[i] = (Worker){ctx, windows, new_states(ctx), i, pieces};
        if (threads && i > 0)
            thread[i] = g_thread_new("analysis", work, &workers[i]);
    }
    for (guint i = 0; i < pieces; i++)
        if (!thread[i])
            work(&workers[i]);
    for (guint i = 0; i < pieces; i++)
        if (thread[i])
            g_thread_join(thread[i]);
    /* last to first: an analysis that depends on the order would show it */
    for (guint i = pieces; i-- > 1;)
        for (guint a = 0; rs_analyses[a]; a++)
            if (rs_analyses[a]->feed)
                rs_analyses[a]->merge(workers[i - 1].states[a], workers[i].states[a]);
    RsResults *results = results_new();
    for (guint a = 0; rs_analyses[a]; a++)
        rs_analyses[a]->finish(workers[0].states[a], ctx, results);
    for (guint i = 0; i < pieces; i++)
        free_states(workers[i].states);
    g_free(workers);
    g_free(thread);
    return results;
}

static RsResults *analyze(const RsModel *m, const RsScope *scope, guint pieces, gboolean threads)
{
    RsContext ctx = {.model = m};
    g_autofree guint8 *rank_in = select_ranks(m, scope);
    ctx.rank_in = rank_in;
    ctx.timelines = rs_timelines_new(m);
    g_autoptr(GArray) windows = select_windows(&ctx, scope);
    ctx.whole = !scope || (scope->from_s <= 0 && scope->to_s <= 0 && !scope->steps);
    if (ctx.whole) {
        cover_whole(windows, &ctx);
        ctx.span_ns = m->duration_ns;
    }
    RsResults *results = run_pieces(&ctx, windows, pieces, threads);
    cap_costs(&ctx, results);
    tell_costs(results);
    g_ptr_array_sort(results->findings, compare_findings);
    rs_timelines_free((RsTimeline *)ctx.timelines, m->ranks->len);
    return results;
}

RsResults *rs_analyze_pieces(const RsModel *m, const RsScope *scope, guint pieces)
{
    return analyze(m, scope, pieces, FALSE);
}

#define THREADS_FROM_EVENTS 500000

RsResults *rs_analyze(const RsModel *m, const RsScope *scope)
{
    gboolean two = m->events.n >= THREADS_FROM_EVENTS && g_get_num_processors() > 1;
    return analyze(m, scope, two ? 2 : 1, two);
}

/* ---- results ---- */

void rs_results_free(RsResults *r)
{
    if (!r)
        return;
    for (guint i = 0; i < r->not_applicable->len; i++) {
        RsNotApplicable *n = g_ptr_array_index(r->not_applicable, i);
        g_free(n->reason);
        g_free(n);
    }
    g_ptr_array_unref(r->findings);
    g_ptr_array_unref(r->not_applicable);
    g_array_unref(r->breakdown);
    g_array_unref(r->collectives);
    g_array_unref(r->links);
    g_free(r);
}

RsFinding *rs_finding_new(const gchar *kind)
{
    RsFinding *f = g_new0(RsFinding, 1);
    f->kind = kind;
    f->severity = "low";
    f->ranks = g_array_new(FALSE, FALSE, sizeof(gint32));
    f->hosts = g_ptr_array_new_with_free_func(g_free);
    f->communicators = g_array_new(FALSE, FALSE, sizeof(guint64));
    f->steps = g_array_new(FALSE, FALSE, sizeof(guint32));
    f->evidence = g_ptr_array_new_with_free_func(g_free);
    return f;
}

void rs_finding_free(RsFinding *f)
{
    if (!f)
        return;
    g_free(f->title);
    g_free(f->remedy);
    g_array_unref(f->ranks);
    g_ptr_array_unref(f->hosts);
    g_array_unref(f->communicators);
    g_array_unref(f->steps);
    g_ptr_array_unref(f->evidence);
    g_free(f);
}

void rs_finding_say(RsFinding *f, const gchar *format, ...)
{
    va_list args;
    va_start(args, format);
    g_ptr_array_add(f->evidence, g_strdup_vprintf(format, args));
    va_end(args);
}

gboolean rs_results_have_fatal(const RsResults *r)
{
    for (guint i = 0; i < r->findings->len; i++)
        if (((const RsFinding *)g_ptr_array_index(r->findings, i))->fatal)
            return TRUE;
    return FALSE;
}

void rs_finding_place(RsFinding *f, const RsModel *m, guint32 rank)
{
    const RsRank *r = rs_model_rank(m, rank);
    g_array_append_val(f->ranks, r->rank);
    const gchar *host = rs_model_host_name(m, r->host);
    if (rs_model_host_is_known(m, r->host) &&
        !g_ptr_array_find_with_equal_func(f->hosts, host, g_str_equal, NULL))
        g_ptr_array_add(f->hosts, g_strdup(host));
}

void rs_finding_cost(RsFinding *f, const RsContext *ctx, gint64 cost_ns)
{
    f->cost_s = (gdouble)cost_ns / 1e9;
    f->cost_percent = ctx->span_ns > 0 ? 100.0 * (gdouble)cost_ns / (gdouble)ctx->span_ns : 0;
    f->severity = f->fatal || f->wrong || f->cost_percent >= 10 ? "high"
                  : f->cost_percent >= 3                        ? "medium"
                                                                : "low";
}

void rs_results_not_applicable(RsResults *r, const gchar *analysis, const gchar *format, ...)
{
    va_list args;
    va_start(args, format);
    RsNotApplicable *n = g_new0(RsNotApplicable, 1);
    n->analysis = analysis;
    n->reason = g_strdup_vprintf(format, args);
    va_end(args);
    g_ptr_array_add(r->not_applicable, n);
}
