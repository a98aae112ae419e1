/* SPDX-License-Identifier: Apache-2.0 */
#include "gatherings.h"

#include "analyses.h"
#include "stats.h"
#include "timeline.h"

/* Who came when. */
typedef struct {
    guint32 *ranks;
    gint64 *arrivals;
    gint64 *scratch;
    guint32 n;
} Members;

static void members_init(Members *mb, guint32 n)
{
    mb->ranks = g_new(guint32, n + 1);
    mb->arrivals = g_new(gint64, n + 1);
    mb->scratch = g_new(gint64, n + 1);
    mb->n = 0;
}

static void members_release(Members *mb)
{
    g_free(mb->ranks);
    g_free(mb->arrivals);
    g_free(mb->scratch);
}

static void members_fill(Members *mb, const RsModel *m, guint32 first, guint32 n)
{
    mb->n = 0;
    for (guint32 k = 0; k < n; k++) {
        guint32 e = g_array_index(m->member_events, guint32, first + k);
        if (e == RS_NONE)
            continue;
        mb->ranks[mb->n] = rs_model_rank_of(m, e);
        mb->arrivals[mb->n++] = rs_model_arrival_ns(m, e);
    }
}

static gboolean useful(const RsInstance *inst)
{
    return inst->complete && inst->timed && !inst->mismatched;
}

struct _RsGatheringIndex {
    guint32 n_ranks;
    guint32 *previous; /* by instance: the last useful one before it on its communicator, RS_NONE */
    GArray **held;     /* by RsRank index: Held, by end */
};

/* A message for which one side stood blocked until the other came. */
typedef struct {
    gint64 from_ns, both_ns, end_ns;
    guint32 by; /* RsRank index: the other side */
} Held;

static guint32 *find_previous(const RsModel *m)
{
    guint32 *previous = g_new(guint32, m->instances->len + 1);
    g_autofree guint32 *last = g_new(guint32, m->comms->len + 1);
    for (guint i = 0; i < m->comms->len; i++)
        last[i] = RS_NONE;
    for (guint i = 0; i < m->instances->len; i++) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        previous[i] = last[inst->comm];
        if (useful(inst))
            last[inst->comm] = i;
    }
    return previous;
}

/* From when the message's side that made `event` stands in a call that completes it. */
static gint64 blocked_from(const RsModel *m, guint32 event)
{
    guint32 done = m->events.link[event];
    guint8 klass = rs_model_sig(m, event)->klass;
    gboolean started = klass == RS_CLASS_RECV_START || klass == RS_CLASS_SEND_START;
    return m->events.start_ns[started && done != RS_NONE ? done : event];
}

static gint compare_held(gconstpointer a, gconstpointer b)
{
    const Held *x = a, *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return x->both_ns < y->both_ns ? -1 : x->both_ns > y->both_ns;
}

static void add_held(RsGatheringIndex *x, const RsModel *m, const RsMessage *msg, guint32 event,
                     gint64 end_ns)
{
    gboolean sends = event == msg->send;
    Held h = {blocked_from(m, event), msg->both_ns, end_ns, sends ? msg->dst : msg->src};
    if (h.both_ns > h.from_ns && h.both_ns <= h.end_ns)
        g_array_append_val(x->held[sends ? msg->src : msg->dst], h);
}

RsGatheringIndex *rs_gathering_index_new(const RsModel *m)
{
    RsGatheringIndex *x = g_new0(RsGatheringIndex, 1);
    x->n_ranks = m->ranks->len;
    x->previous = find_previous(m);
    x->held = g_new0(GArray *, x->n_ranks + 1);
    for (guint32 r = 0; r < x->n_ranks; r++)
        x->held[r] = g_array_new(FALSE, FALSE, sizeof(Held));
    for (guint i = 0; i < m->messages->len; i++) {
        const RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        if (!msg->timed || msg->src == RS_NONE || msg->dst == RS_NONE)
            continue;
        add_held(x, m, msg, msg->recv, msg->end_ns);
        add_held(x, m, msg, msg->send, rs_model_done_ns(m, msg->send));
    }
    for (guint32 r = 0; r < x->n_ranks; r++)
        g_array_sort(x->held[r], compare_held);
    return x;
}

void rs_gathering_index_free(RsGatheringIndex *x)
{
    if (!x)
        return;
    for (guint32 r = 0; r < x->n_ranks; r++)
        g_array_unref(x->held[r]);
    g_free(x->held);
    g_free(x->previous);
    g_free(x);
}

/* The last to come; of equals the lowest rank. */
static guint32 find_last(const Members *mb)
{
    guint32 last = 0;
    for (guint32 k = 1; k < mb->n; k++)
        if (mb->arrivals[k] > mb->arrivals[last])
            last = k;
    return last;
}

static gint64 median_of_others(Members *mb, const gint64 *values, guint32 without)
{
    guint n = 0;
    for (guint32 k = 0; k < mb->n; k++)
        if (k != without)
            mb->scratch[n++] = values[k];
    return rs_median_ns(mb->scratch, n);
}

static gint64 spread_of_others(Members *mb, gint64 median, guint32 without)
{
    guint n = 0;
    for (guint32 k = 0; k < mb->n; k++)
        if (k != without)
            mb->scratch[n++] = ABS(mb->arrivals[k] - median);
    return rs_median_ns(mb->scratch, n);
}

/* How many of the list ended by `ns`. */
static guint count_ended(const GArray *list, gint64 ns)
{
    guint low = 0, high = list->len;
    while (low < high) {
        guint mid = low + (high - low) / 2;
        if (g_array_index(list, Held, mid).end_ns <= ns)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static gboolean holds_main_thread(const RsContext *ctx, guint32 rank, const Held *h)
{
    RsPart part = rs_timeline_part_at(&ctx->timelines[rank], h->both_ns - 1);
    return part == RS_PART_WAIT || part == RS_PART_EXPOSED;
}

/* The last message of `rank` that ended by `ns`, after `since_ns`, and held its main thread up. */
static const Held *find_blocking(const RsContext *ctx, const RsGatheringIndex *x, guint32 rank,
                                 gint64 since_ns, gint64 ns)
{
    const GArray *list = x->held[rank];
    for (guint i = count_ended(list, ns); i-- > 0;) {
        const Held *h = &g_array_index(list, Held, i);
        if (h->end_ns <= since_ns)
            return NULL;
        if (h->both_ns > since_ns && holds_main_thread(ctx, rank, h))
            return h;
    }
    return NULL;
}

/* For how long messages held up the main thread of `rank` between `since_ns` and `ns`. */
static gint64 held_ns(const RsContext *ctx, const RsGatheringIndex *x, guint32 rank,
                      gint64 since_ns, gint64 ns)
{
    const GArray *list = x->held[rank];
    gint64 sum = 0, counted_from = ns;
    for (guint i = count_ended(list, ns); i-- > 0;) {
        const Held *h = &g_array_index(list, Held, i);
        if (h->end_ns <= since_ns)
            break;
        gint64 from = MAX(h->from_ns, since_ns), to = MIN(h->both_ns, counted_from);
        if (to <= from || !holds_main_thread(ctx, rank, h))
            continue;
        sum += to - from;
        counted_from = from;
    }
    return sum;
}

#define PATH_MAX_HOPS 256

/* Own time since `since_ns` of each member. One who had come before that has spent less than none:
 * an overlapped chain keeps its lateness. */
static gint64 *own_times(const RsContext *ctx, const Members *mb, gint64 since_ns)
{
    gint64 *own = g_new(gint64, mb->n + 1);
    for (guint32 k = 0; k < mb->n; k++) {
        const RsTimeline *t = &ctx->timelines[mb->ranks[k]];
        own[k] = rs_timeline_own_ns(t, mb->arrivals[k]) - rs_timeline_own_ns(t, since_ns);
    }
    return own;
}

static guint32 member_of(const Members *mb, guint32 rank)
{
    for (guint32 k = 0; k < mb->n; k++)
        if (mb->ranks[k] == rank)
            return k;
    return RS_NONE;
}

/* Follows the path back from the last arrival; returns the member on it with the most own time. */
static guint32 find_culprit(const RsContext *ctx, const RsGatheringIndex *x, const Members *mb,
                            guint32 last, gint64 since_ns, const gint64 *own)
{
    guint32 best = last, rank = mb->ranks[last];
    gint64 ns = mb->arrivals[last];
    for (guint hop = 0; hop < PATH_MAX_HOPS; hop++) {
        const Held *h = find_blocking(ctx, x, rank, since_ns, ns);
        if (!h)
            break;
        rank = h->by;
        ns = h->both_ns;
        guint32 k = member_of(mb, rank);
        if (k != RS_NONE && own[k] > own[best])
            best = k;
    }
    return best;
}

/* When each member would have come had no message held it up. */
static gint64 *free_arrivals(const RsContext *ctx, const RsGatheringIndex *x, const Members *mb,
                             gint64 since_ns)
{
    gint64 *arrivals = g_new(gint64, mb->n + 1);
    for (guint32 k = 0; k < mb->n; k++)
        arrivals[k] = mb->arrivals[k] - held_ns(ctx, x, mb->ranks[k], since_ns, mb->arrivals[k]);
    return arrivals;
}

static void add_gathering(GArray *array, const RsContext *ctx, const RsGatheringIndex *x,
                          Members *mb, RsGathering g, gint64 since_ns)
{
    guint32 last = find_last(mb);
    gint64 median = median_of_others(mb, mb->arrivals, last);
    g.last_rank = mb->ranks[last];
    g.culprit = RS_NONE;
    g.n_members = mb->n;
    g.late_ns = mb->arrivals[last] - median;
    g.spread_ns = spread_of_others(mb, median, last);
    if (since_ns >= 0) {
        g_autofree gint64 *unheld = free_arrivals(ctx, x, mb, since_ns);
        g.late_ns = mb->arrivals[last] - median_of_others(mb, unheld, last);
        g_autofree gint64 *own = own_times(ctx, mb, since_ns);
        guint32 k = find_culprit(ctx, x, mb, last, since_ns, own);
        g.own_ns = CLAMP(own[k] - median_of_others(mb, own, k), 0, g.late_ns);
        if (g.own_ns > 0)
            g.culprit = mb->ranks[k];
    }
    g_array_append_val(array, g);
}

static gboolean any_in_scope(const RsContext *ctx, const Members *mb)
{
    for (guint32 k = 0; k < mb->n; k++)
        if (ctx->rank_in[mb->ranks[k]])
            return TRUE;
    return FALSE;
}

static gboolean by_main_threads(const RsContext *ctx, const RsInstance *inst, const Members *mb)
{
    const RsModel *m = ctx->model;
    for (guint32 k = 0, i = 0; i < mb->n; k++) {
        guint32 e = g_array_index(m->member_events, guint32, inst->first_member + k);
        if (e == RS_NONE)
            continue;
        if (rs_model_track_of(m, e) != ctx->timelines[mb->ranks[i]].main_track)
            return FALSE;
        i++;
    }
    return TRUE;
}

/* From when own time counts where no gathering came before; -1 unknown. */
static gint64 step_start(const RsModel *m, guint32 step)
{
    return step == RS_NONE ? -1 : g_array_index(m->steps, RsStep, step).start_ns;
}

static void collect_instance(GArray *array, const RsContext *ctx, const RsGatheringIndex *x,
                             Members *mb, guint32 i)
{
    const RsModel *m = ctx->model;
    const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
    const RsComm *c = &g_array_index(m->comms, RsComm, inst->comm);
    if (!useful(inst))
        return;
    members_fill(mb, m, inst->first_member, c->n_members);
    if (mb->n < 2 || !any_in_scope(ctx, mb))
        return;
    if (m->rendezvous->len > 0 && !by_main_threads(ctx, inst, mb))
        return;
    RsGathering g = {.stream = inst->comm, .index = i, .step = inst->step};
    g.first_arrival_ns = inst->first_arrival_ns;
    g.last_arrival_ns = inst->last_arrival_ns;
    gint64 since = step_start(m, inst->step);
    if (x->previous[i] != RS_NONE)
        since = g_array_index(m->instances, RsInstance, x->previous[i]).last_arrival_ns;
    add_gathering(array, ctx, x, mb, g, since);
}

static void collect_rendezvous(GArray *array, const RsContext *ctx, const RsGatheringIndex *x,
                               Members *mb, guint32 i)
{
    const RsModel *m = ctx->model;
    const RsRendezvous *v = &g_array_index(m->rendezvous, RsRendezvous, i);
    members_fill(mb, m, v->first_member, m->ranks->len);
    if (mb->n < 2 || (gint32)mb->n < m->world_size || !any_in_scope(ctx, mb))
        return;
    RsGathering g = {.stream = RS_STREAM_RENDEZVOUS, .index = i, .step = v->step};
    g.first_arrival_ns = v->first_arrival_ns;
    g.last_arrival_ns = v->last_arrival_ns;
    gint64 since = step_start(m, v->step);
    if (i > 0)
        since = g_array_index(m->rendezvous, RsRendezvous, i - 1).last_arrival_ns;
    add_gathering(array, ctx, x, mb, g, since);
}

void rs_gatherings_collect(GArray *array, const RsWindow *w, const RsGatheringIndex *x)
{
    const RsModel *m = w->ctx->model;
    guint32 most = m->ranks->len;
    for (guint i = 0; i < m->comms->len; i++)
        most = MAX(most, g_array_index(m->comms, RsComm, i).n_members);
    Members mb;
    members_init(&mb, most);
    for (guint32 i = w->first_instance; i < w->last_instance; i++)
        collect_instance(array, w->ctx, x, &mb, i);
    for (guint32 i = w->first_rendezvous; i < w->last_rendezvous; i++)
        collect_rendezvous(array, w->ctx, x, &mb, i);
    members_release(&mb);
}

static gint compare_gatherings(gconstpointer a, gconstpointer b)
{
    const RsGathering *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->last_arrival_ns != y->last_arrival_ns)
        return x->last_arrival_ns < y->last_arrival_ns ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

void rs_gatherings_sort(GArray *array)
{
    g_array_sort(array, compare_gatherings);
}
