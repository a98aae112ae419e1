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

guint32 *rs_gatherings_previous_dup(const RsModel *m)
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

/* How much more own time the last rank spent since `since_ns` than the median other. One who had
 * come before that has spent less than none: an overlapped chain keeps its lateness. */
static gint64 find_own(const RsContext *ctx, Members *mb, guint32 last, gint64 since_ns)
{
    g_autofree gint64 *own = g_new(gint64, mb->n + 1);
    for (guint32 k = 0; k < mb->n; k++) {
        const RsTimeline *t = &ctx->timelines[mb->ranks[k]];
        own[k] = rs_timeline_own_ns(t, mb->arrivals[k]) - rs_timeline_own_ns(t, since_ns);
    }
    return own[last] - median_of_others(mb, own, last);
}

static void add_gathering(GArray *array, const RsContext *ctx, Members *mb, RsGathering g,
                          gint64 since_ns)
{
    guint32 last = find_last(mb);
    gint64 median = median_of_others(mb, mb->arrivals, last);
    g.last_rank = mb->ranks[last];
    g.n_members = mb->n;
    g.late_ns = mb->arrivals[last] - median;
    g.spread_ns = spread_of_others(mb, median, last);
    if (since_ns >= 0)
        g.own_ns = CLAMP(find_own(ctx, mb, last, since_ns), 0, g.late_ns);
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

static void collect_instance(GArray *array, const RsContext *ctx, Members *mb, guint32 i,
                             guint32 previous)
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
    gint64 since = -1;
    if (previous != RS_NONE)
        since = g_array_index(m->instances, RsInstance, previous).last_arrival_ns;
    add_gathering(array, ctx, mb, g, since);
}

static void collect_rendezvous(GArray *array, const RsContext *ctx, Members *mb, guint32 i)
{
    const RsModel *m = ctx->model;
    const RsRendezvous *v = &g_array_index(m->rendezvous, RsRendezvous, i);
    members_fill(mb, m, v->first_member, m->ranks->len);
    if (mb->n < 2 || (gint32)mb->n < m->world_size || !any_in_scope(ctx, mb))
        return;
    RsGathering g = {.stream = RS_STREAM_RENDEZVOUS, .index = i, .step = v->step};
    g.first_arrival_ns = v->first_arrival_ns;
    g.last_arrival_ns = v->last_arrival_ns;
    gint64 since = -1;
    if (i > 0)
        since = g_array_index(m->rendezvous, RsRendezvous, i - 1).last_arrival_ns;
    add_gathering(array, ctx, mb, g, since);
}

void rs_gatherings_collect(GArray *array, const RsWindow *w, const guint32 *previous)
{
    const RsModel *m = w->ctx->model;
    guint32 most = m->ranks->len;
    for (guint i = 0; i < m->comms->len; i++)
        most = MAX(most, g_array_index(m->comms, RsComm, i).n_members);
    Members mb;
    members_init(&mb, most);
    for (guint32 i = w->first_instance; i < w->last_instance; i++)
        collect_instance(array, w->ctx, &mb, i, previous[i]);
    for (guint32 i = w->first_rendezvous; i < w->last_rendezvous; i++)
        collect_rendezvous(array, w->ctx, &mb, i);
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
