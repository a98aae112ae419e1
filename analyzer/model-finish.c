/* SPDX-License-Identifier: Apache-2.0 */
/* model-finish.c - the passes that make a model of what a builder was given, in their order. */
#include "model-internal.h"

static void find_open_events(RsModel *m)
{
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        RsRank *r = rs_model_rank(m, track->rank);
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            if (!(m->events.flags[i] & RS_FLAG_OPEN) || rs_model_sig(m, i)->kind != RS_KIND_CALL)
                continue;
            if (r->open_event == RS_NONE ||
                m->events.start_ns[i] >= m->events.start_ns[r->open_event])
                r->open_event = i;
        }
    }
}

static void find_spans(RsModel *m)
{
    g_autofree guint8 *seen = g_new0(guint8, m->ranks->len + 1);
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        RsRank *r = rs_model_rank(m, track->rank);
        if (track->n > 0 && !seen[track->rank]) {
            seen[track->rank] = 1;
            r->first_ns = m->events.start_ns[track->first];
        }
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            gint64 start = m->events.start_ns[i], end = m->events.end_ns[i];
            r->first_ns = MIN(r->first_ns, start);
            r->last_ns = MAX(r->last_ns, end);
        }
    }
    for (guint i = 0; i < m->ranks->len; i++)
        m->duration_ns = MAX(m->duration_ns, rs_model_rank(m, i)->last_ns);
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
    rs_comms_resolve(b);
    if (!(flags & RS_FINISH_ORDER_ONLY)) {
        rs_requests_link(b);
        rs_devices_link(b);
        rs_collectives_pair(b);
        rs_messages_pair(b);
        rs_align_domains(b);
        rs_align_base(b);
        rs_collectives_time(b);
        rs_messages_time(b);
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
