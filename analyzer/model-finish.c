/* SPDX-License-Identifier: Apache-2.0 */
/* model-finish.c - the passes that make a model of what a builder was given, in their order. */
#include "model-internal.h"

static void find_open_events(RsModel *m)
{
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        RsRank *r = rs_model_rank(m, track->rank);
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            const RsSig *s = rs_model_sig(m, i);
            gboolean waits =
                s->kind == RS_KIND_CALL || (s->kind == RS_KIND_DEVICE && s->klass == RS_CLASS_COLL);
            if (!(m->events.flags[i] & RS_FLAG_OPEN) || !waits)
                continue;
            if (r->open_event == RS_NONE ||
                m->events.start_ns[i] >= m->events.start_ns[r->open_event])
                r->open_event = i;
        }
    }
}

/* Ranks whose older events were left out: what is the first on one is not the first on another. */
static void find_cuts(RsBuilder *b)
{
    RsModel *m = b->model;
    b->whole_ns = g_new0(gint64, m->ranks->len + 1);
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        gint64 *whole = &b->whole_ns[track->rank];
        gint64 hole_end = -1;
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            if (rs_model_is_left_out(m, i))
                hole_end = m->events.end_ns[i];
            else if (hole_end >= 0 && rs_model_sig(m, i)->kind == RS_KIND_CALL)
                *whole = MAX(*whole, hole_end);
        }
        b->cut_in_front |= *whole > 0 || rs_model_rank(m, track->rank)->off_count > 0;
    }
}

static gint compare_off_times(gconstpointer a, gconstpointer b)
{
    const RsOffTime *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

static void find_off_times(RsModel *m)
{
    g_array_set_size(m->offs, 0);
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            RsOffTime off = {track->rank, i, m->events.start_ns[i], m->events.end_ns[i]};
            if (rs_model_is_off(m, i))
                g_array_append_val(m->offs, off);
        }
    }
    g_array_sort(m->offs, compare_off_times);
}

/* What tells that a rank came out of whatever it did while its capture was off is a call later on.
 */
static void find_off(RsModel *m)
{
    find_off_times(m);
    for (guint i = 0; i < m->ranks->len; i++)
        rs_model_rank(m, i)->off_count = 0;
    for (guint i = 0; i < m->offs->len; i++) {
        const RsOffTime *off = &g_array_index(m->offs, RsOffTime, i);
        RsRank *r = rs_model_rank(m, off->rank);
        r->first_off = r->off_count ? r->first_off : i;
        r->off_ns = (r->off_count++ ? r->off_ns : 0) + off->end_ns - off->start_ns;
        r->off_until_ns = off->end_ns;
        r->unseen = TRUE;
    }
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        RsRank *r = rs_model_rank(m, track->rank);
        for (guint32 i = track->first + track->n; r->unseen && i-- > track->first;)
            if (rs_model_sig(m, i)->kind == RS_KIND_CALL)
                r->unseen = m->events.start_ns[i] < r->off_until_ns;
    }
}

/* What was left out is part of the run, not of what is known of a rank. */
static void find_spans(RsModel *m)
{
    g_autofree guint8 *seen = g_new0(guint8, m->ranks->len + 1);
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        RsRank *r = rs_model_rank(m, track->rank);
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            gint64 start = m->events.start_ns[i], end = m->events.end_ns[i];
            m->duration_ns = MAX(m->duration_ns, end);
            if (rs_model_is_left_out(m, i) || rs_model_is_off(m, i))
                continue;
            r->first_ns = seen[track->rank] ? MIN(r->first_ns, start) : start;
            r->last_ns = MAX(r->last_ns, end);
            seen[track->rank] = 1;
        }
    }
}

static void sum_losses(RsModel *m)
{
    for (guint i = 0; i < m->ranks->len; i++) {
        const RsRank *r = rs_model_rank(m, i);
        m->dropped += r->dropped;
        if (r->missing || r->dropped || r->note)
            m->incomplete = TRUE;
    }
    if (m->dropped)
        m->incomplete = TRUE;
}

RsModel *rs_builder_finish(RsBuilder *b, RsFinishFlags flags)
{
    rs_order_ranks(b, flags);
    rs_align_ticks(b);
    rs_order_events(b);
    rs_depths_find(b);
    rs_comms_resolve(b);
    find_off(b->model);
    if (!(flags & RS_FINISH_ORDER_ONLY)) {
        rs_requests_link(b);
        rs_devices_link(b);
        rs_collectives_pair(b);
        rs_messages_pair(b);
        rs_align_domains(b);
        rs_align_base(b);
        find_off(b->model); /* on the axis that all ranks share now */
        find_cuts(b);
        rs_collectives_time(b);
        rs_messages_time(b);
        if (!b->cut_in_front) /* it goes by how often a name came before */
            rs_rendezvous_find(b);
        rs_steps_find(b);
    }
    find_open_events(b->model);
    find_spans(b->model);
    sum_losses(b->model);
    RsModel *m = g_steal_pointer(&b->model);
    rs_builder_free(b);
    return m;
}
