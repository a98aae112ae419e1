/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes.h"

gint64 rs_lanes_end_ns(const RsModel *m, guint32 event)
{
    gint64 end = m->events.end_ns[event];
    if (!(m->events.flags[event] & RS_FLAG_OPEN) ||
        rs_model_rank(m, rs_model_rank_of(m, event))->ending >= RS_ENDING_EXITED)
        return end;
    return MAX(m->duration_ns, end);
}

/* The ends of what is open in a lane, innermost last. */
typedef GArray Lane; /* gint64 */

static gboolean fits(Lane *lane, gint64 start, gint64 end)
{
    while (lane->len && g_array_index(lane, gint64, lane->len - 1) <= start)
        g_array_set_size(lane, lane->len - 1);
    return lane->len == 0 || g_array_index(lane, gint64, lane->len - 1) >= end;
}

static guint32 place(GPtrArray *lanes, gint64 start, gint64 end)
{
    guint32 i = 0;
    while (i < lanes->len && !fits(g_ptr_array_index(lanes, i), start, end))
        i++;
    if (i == lanes->len)
        g_ptr_array_add(lanes, g_array_new(FALSE, FALSE, sizeof(gint64)));
    Lane *lane = g_ptr_array_index(lanes, i);
    g_array_append_val(lane, end);
    return i;
}

static GPtrArray *lanes_new(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
}

/* Numbers within the track: spans have their top bit set until the others are counted. */
#define SPAN_BIT 0x80000000u

static void lay_track(RsLanes *l, const RsModel *m, guint32 track, guint32 first)
{
    const RsTrack *t = &g_array_index(m->tracks, RsTrack, track);
    g_autoptr(GPtrArray) calls = lanes_new();
    g_autoptr(GPtrArray) spans = lanes_new();
    for (guint32 i = t->first; i < t->first + t->n; i++) {
        gint64 start = m->events.start_ns[i], end = rs_lanes_end_ns(m, i);
        switch (rs_model_sig(m, i)->kind) {
        case RS_KIND_SPAN:
            l->of_event[i] = place(spans, start, end) | SPAN_BIT;
            break;
        case RS_KIND_MARK: /* no length: they don't disturb */
        case RS_KIND_COUNTER:
            l->of_event[i] = 0;
            break;
        default:
            l->of_event[i] = place(calls, start, end);
        }
    }
    RsTrackLanes *r = &l->tracks[track];
    *r = (RsTrackLanes){first, MAX(calls->len, spans->len ? 0 : 1), spans->len};
    for (guint32 i = t->first; i < t->first + t->n; i++) {
        guint32 lane = l->of_event[i];
        l->of_event[i] = first + (lane & SPAN_BIT ? r->n + (lane & ~SPAN_BIT) : lane);
    }
}

void rs_lanes_init(RsLanes *l, const RsModel *m)
{
    l->tracks = g_new0(RsTrackLanes, m->tracks->len + 1);
    l->of_event = g_new0(guint32, (gsize)m->events.n + 1);
    guint32 next = 1, rank = RS_NONE;
    for (guint32 t = 0; t < m->tracks->len; t++) {
        guint32 of = g_array_index(m->tracks, RsTrack, t).rank;
        if (of != rank)
            next = 1;
        rank = of;
        lay_track(l, m, t, next);
        next += l->tracks[t].n + l->tracks[t].n_span;
    }
}

void rs_lanes_release(RsLanes *l)
{
    g_free(l->tracks);
    g_free(l->of_event);
}
