/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives.c - how long collectives take and what bandwidth they reach, by operation and size.
 *
 * Rule: definitions.md sections 1 and 13. Of one instance, the call lasts as long as it does for
 * the median member; wait is the members' mean; transfer runs from the last arrival to the last
 * end. Medians are over instances that are not warm-ups. No bandwidth where nothing moves: no
 * bytes, one rank, no duration, a barrier. An NCCL call without device interval has a count and no
 * times: it only enqueues.
 */
#include "analyses.h"
#include "plural.h"
#include "stats.h"

#include <math.h>
#include <string.h>

/* Of one instance. */
typedef struct {
    guint8 coll, api, device, timed, warmup;
    guint32 size_class;
    guint32 members;
    guint64 bytes;
    gint64 call_ns, transfer_ns, wait_ns; /* wait: summed over members */
} Sample;

typedef struct {
    const RsContext *ctx;
    GArray *samples;
} State;

static void init(gpointer state, const RsContext *ctx)
{
    State *st = state;
    st->ctx = ctx;
    st->samples = g_array_new(FALSE, TRUE, sizeof(Sample));
}

gdouble rs_busbw_factor(guint8 coll, guint32 n)
{
    if (n < 2)
        return NAN;
    switch (coll) {
    case RS_COLL_ALLREDUCE:
        return 2.0 * (n - 1) / n;
    case RS_COLL_REDUCE_SCATTER:
    case RS_COLL_ALLGATHER:
    case RS_COLL_ALLTOALL:
    case RS_COLL_GATHER:
    case RS_COLL_SCATTER:
        return (gdouble)(n - 1) / n;
    case RS_COLL_BROADCAST:
    case RS_COLL_REDUCE:
        return 1;
    default: /* barrier, scan: no bandwidth is defined */
        return NAN;
    }
}

static void time_instance(const RsModel *m, const RsInstance *inst, const RsComm *c, Sample *s)
{
    g_autofree gint64 *calls = g_new(gint64, c->n_members + 1);
    guint n = 0;
    for (guint32 k = 0; k < c->n_members; k++) {
        guint32 e = g_array_index(m->member_events, guint32, inst->first_member + k);
        if (e == RS_NONE)
            continue;
        gint64 arrival = rs_model_arrival_ns(m, e);
        calls[n++] = rs_model_done_ns(m, e) - arrival;
        s->wait_ns += MAX(inst->last_arrival_ns - arrival, 0);
    }
    s->call_ns = rs_median_ns(calls, n);
    s->transfer_ns = MAX(inst->last_end_ns - inst->last_arrival_ns, 0);
}

static gboolean in_scope(const RsContext *ctx, const RsInstance *inst, const RsComm *c)
{
    for (guint32 k = 0; k < c->n_members; k++) {
        guint32 e = g_array_index(ctx->model->member_events, guint32, inst->first_member + k);
        if (e != RS_NONE && c->members[k] != RS_NONE && ctx->rank_in[c->members[k]])
            return TRUE;
    }
    return FALSE;
}

static gboolean on_device(const RsModel *m, const RsInstance *inst, const RsComm *c)
{
    for (guint32 k = 0; k < c->n_members; k++) {
        guint32 e = g_array_index(m->member_events, guint32, inst->first_member + k);
        if (e != RS_NONE)
            return rs_model_sig(m, e)->kind == RS_KIND_DEVICE;
    }
    return FALSE;
}

static void feed(gpointer state, const RsWindow *w)
{
    State *st = state;
    const RsModel *m = st->ctx->model;
    for (guint32 i = w->first_instance; i < w->last_instance; i++) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        const RsComm *c = &g_array_index(m->comms, RsComm, inst->comm);
        const RsSig *sig = &g_array_index(m->sigs, RsSig, inst->sig);
        if (!in_scope(st->ctx, inst, c))
            continue;
        Sample s = {.coll = sig->coll, .api = sig->api, .bytes = sig->bytes, .call_ns = -1};
        s.device = (guint8)on_device(m, inst, c);
        s.size_class = sig->coll == RS_COLL_BARRIER ? RS_NONE : rs_size_class(sig->bytes);
        s.members = c->n_members;
        s.timed = inst->complete && inst->timed && !inst->mismatched;
        s.warmup = (guint8)inst->warmup;
        if (s.timed)
            time_instance(m, inst, c, &s);
        g_array_append_val(st->samples, s);
    }
}

static void merge(gpointer state, gconstpointer other)
{
    State *st = state;
    const State *o = other;
    g_array_append_vals(st->samples, o->samples->data, o->samples->len);
}

static gint compare_keys(gconstpointer a, gconstpointer b)
{
    const Sample *x = a, *y = b;
    if (x->api != y->api)
        return x->api < y->api ? -1 : 1;
    if (x->coll != y->coll)
        return x->coll < y->coll ? -1 : 1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    /* RS_NONE, no bytes, stands first */
    return x->size_class + 1 < y->size_class + 1 ? -1 : x->size_class + 1 > y->size_class + 1;
}

/* One column of samples that count for medians. */
typedef struct {
    gint64 *call, *wait, *transfer;
    gdouble *bw[4]; /* algbw call, transfer; busbw call, transfer */
    guint n, n_bw[4];
} Columns;

static void columns_init(Columns *c, guint n)
{
    memset(c, 0, sizeof *c);
    c->call = g_new(gint64, n + 1);
    c->wait = g_new(gint64, n + 1);
    c->transfer = g_new(gint64, n + 1);
    for (guint i = 0; i < 4; i++)
        c->bw[i] = g_new(gdouble, n + 1);
}

static void columns_release(Columns *c)
{
    g_free(c->call);
    g_free(c->wait);
    g_free(c->transfer);
    for (guint i = 0; i < 4; i++)
        g_free(c->bw[i]);
}

static void add_bandwidth(Columns *c, guint alg, const Sample *s, gint64 ns)
{
    gdouble factor = rs_busbw_factor(s->coll, s->members);
    if (s->bytes == 0 || ns <= 0 || isnan(factor))
        return;
    gdouble algbw = (gdouble)s->bytes * 1e9 / (gdouble)ns;
    c->bw[alg][c->n_bw[alg]++] = algbw;
    c->bw[alg + 2][c->n_bw[alg + 2]++] = algbw * factor;
}

static void add_sample(Columns *c, const Sample *s)
{
    c->call[c->n] = s->call_ns;
    c->wait[c->n] = s->members ? s->wait_ns / s->members : 0;
    c->transfer[c->n++] = s->transfer_ns;
    add_bandwidth(c, 0, s, s->call_ns);
    add_bandwidth(c, 1, s, s->transfer_ns);
}

static void summarise(const Sample *s, guint n, RsResults *results)
{
    RsCollMetric r = {.coll = s->coll, .api = s->api, .size_class = s->size_class};
    r.device = s->device;
    r.count = n;
    Columns c;
    columns_init(&c, n);
    for (guint i = 0; i < n; i++) {
        r.bytes += s[i].bytes;
        if (!s[i].timed)
            continue;
        r.timed++;
        r.wait_ns_sum += s[i].wait_ns;
        r.transfer_ns_sum += s[i].transfer_ns;
        if (!s[i].warmup)
            add_sample(&c, &s[i]);
    }
    r.sampled = c.n;
    r.call_ns_median = rs_median_ns(c.call, c.n);
    r.wait_ns_median = rs_median_ns(c.wait, c.n);
    r.transfer_ns_median = rs_median_ns(c.transfer, c.n);
    r.algbw_call = rs_median(c.bw[0], c.n_bw[0]);
    r.algbw_transfer = rs_median(c.bw[1], c.n_bw[1]);
    r.busbw_call = rs_median(c.bw[2], c.n_bw[2]);
    r.busbw_transfer = rs_median(c.bw[3], c.n_bw[3]);
    columns_release(&c);
    g_array_append_val(results->collectives, r);
}

static void say_what_is_missing(const State *st, RsResults *results)
{
    guint64 untimed_nccl = 0, incomplete = 0;
    const Sample *s = (const Sample *)(void *)st->samples->data;
    for (guint i = 0; i < st->samples->len; i++) {
        if (s[i].timed || (s[i].api == RS_API_NCCL && s[i].bytes == 0)) /* no device runs nothing */
            continue;
        if (s[i].api == RS_API_NCCL && !s[i].device)
            untimed_nccl++;
        else
            incomplete++;
    }
    if (st->samples->len == 0)
        rs_results_not_applicable(results, "collectives",
                                  "no collective of two or more recorded ranks was seen");
    if (untimed_nccl)
        rs_results_not_applicable(results, "NCCL wait, transfer and bandwidth",
                                  "%" G_GUINT64_FORMAT
                                  " NCCL collectives have no device interval: the call only "
                                  "enqueues them, and an enqueue is not timed as a collective",
                                  untimed_nccl);
    if (incomplete)
        rs_results_not_applicable(
            results, "wait and transfer of incomplete collectives",
            "%" G_GUINT64_FORMAT " collective%s without a member, without an end, or whose members "
            "do not agree on what it does",
            incomplete, rs_plural(incomplete));
}

static void finish(gpointer state, const RsContext *ctx, RsResults *results)
{
    State *st = state;
    g_array_sort(st->samples, compare_keys);
    const Sample *s = (const Sample *)(void *)st->samples->data;
    for (guint from = 0, to; from < st->samples->len; from = to) {
        for (to = from + 1; to < st->samples->len && compare_keys(&s[from], &s[to]) == 0; to++)
            ;
        summarise(s + from, to - from, results);
    }
    say_what_is_missing(st, results);
}

static void release(gpointer state)
{
    g_array_unref(((State *)state)->samples);
}

const RsAnalysis rs_analysis_collectives = {
    .name = "collectives",
    .help = "wait, transfer, algbw and busbw of collectives by operation and size",
    .state_size = sizeof(State),
    .init = init,
    .feed = feed,
    .merge = merge,
    .finish = finish,
    .release = release,
};
