/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline.h"

#include <string.h>

#include "endings.h"

/* What can be under way at a moment; a moment is classified by the counts of these. */
typedef enum {
    ON_CALL,    /* the main thread is in a call that communicates */
    ON_BEHIND,  /* another thread is */
    ON_DEVICE,  /* a device runs communication */
    ON_KERNEL,  /* a device computes */
    ON_IO,      /* the main thread does I/O */
    ON_ENV,     /* opening or closing a library */
    ON_WAITING, /* the main thread is in a range, or a call, that waits for a device or a thread */
    ON_STEP,    /* the main thread is in a step's range */
    ON_PHASE,   /* ... and in a range inside it */
    ON_LATE,    /* somebody else has not come yet */
    ON_LATE_DEVICE,
    ON_TRANSFER, /* all have come, data moves */
    ON_OFF,      /* capture is switched off */
    ON_PENDING,  /* an operation given to a runtime's thread is under way */
    ON_COUNT
} On;

typedef struct {
    gint64 ns;
    gint32 delta;
    guint32 on;
} Edge;

typedef struct {
    const RsModel *model;
    GArray **edges; /* Edge, by RsRank index */
} Painter;

static void paint(Painter *p, guint32 rank, On on, gint64 from_ns, gint64 to_ns)
{
    if (to_ns <= from_ns)
        return;
    Edge edges[2] = {{from_ns, 1, on}, {to_ns, -1, on}};
    g_array_append_vals(p->edges[rank], edges, 2);
}

/* ---- whose thread is the main one ---- */

static gboolean has_steps(const RsModel *m, const RsTrack *t)
{
    for (guint32 i = t->first; i < t->first + t->n; i++)
        if (rs_model_sig(m, i)->kind == RS_KIND_RANGE &&
            rs_model_is_step(m, t->rank, m->events.start_ns[i], m->events.end_ns[i]))
            return TRUE;
    return FALSE;
}

static guint32 find_main_track(const RsModel *m, const RsRank *r)
{
    guint32 first_host = RS_NONE, own_tid = RS_NONE;
    for (guint32 i = r->first_track; i < r->first_track + r->n_tracks; i++) {
        const RsTrack *t = &g_array_index(m->tracks, RsTrack, i);
        if (t->device)
            continue;
        if (has_steps(m, t))
            return i;
        if (first_host == RS_NONE)
            first_host = i;
        if (own_tid == RS_NONE && t->tid == (guint64)r->pid)
            own_tid = i;
    }
    return own_tid != RS_NONE ? own_tid : first_host;
}

/* ---- events ---- */

static gboolean names_a_wait(const gchar *name)
{
    static const gchar *const words[] = {"synchronize", "wait", "WAIT", "Synchronize", "Wait"};
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (strstr(name, words[i]))
            return TRUE;
    return FALSE;
}

/* A call that occupies its thread with communication; an NCCL call only enqueues. */
static gboolean communicates(const RsSig *s)
{
    return s->kind == RS_KIND_CALL && s->api != RS_API_NCCL && s->api != RS_API_CUDA &&
           s->klass != RS_CLASS_ENV && s->klass != RS_CLASS_OTHER && s->klass != RS_CLASS_GROUP &&
           s->klass != RS_CLASS_FILE;
}

static gboolean opens_or_closes(const RsSig *s)
{
    return s->kind == RS_KIND_CALL &&
           (s->klass == RS_CLASS_ENV ||
            (s->klass == RS_CLASS_COMM && (s->api == RS_API_NCCL || s->api == RS_API_GLOO)));
}

static void paint_call(Painter *p, guint32 rank, gboolean main, const RsSig *s, gint64 from,
                       gint64 to)
{
    if (opens_or_closes(s)) {
        if (main)
            paint(p, rank, ON_ENV, from, to);
    } else if (s->kind == RS_KIND_CALL && s->klass == RS_CLASS_FILE) {
        if (main)
            paint(p, rank, ON_IO, from, to);
    } else if (communicates(s)) {
        paint(p, rank, main ? ON_CALL : ON_BEHIND, from, to);
    } else if (main && s->api == RS_API_CUDA && s->klass == RS_CLASS_COMPLETE) {
        paint(p, rank, ON_WAITING, from, to);
    }
}

static void paint_range(Painter *p, guint32 rank, guint32 event, gint32 *step_depth)
{
    const RsModel *m = p->model;
    gint64 from = m->events.start_ns[event], to = m->events.end_ns[event];
    if (rs_model_is_step(m, rank, from, to)) {
        *step_depth = m->events.aux[event];
        paint(p, rank, ON_STEP, from, to);
        return;
    }
    if (names_a_wait(rs_model_str(m, rs_model_sig(m, event)->name)))
        paint(p, rank, ON_WAITING, from, to);
    else if (*step_depth >= 0 && (gint32)m->events.aux[event] > *step_depth)
        paint(p, rank, ON_PHASE, from, to);
}

static void paint_track(Painter *p, guint32 track, gboolean main)
{
    const RsModel *m = p->model;
    const RsTrack *t = &g_array_index(m->tracks, RsTrack, track);
    gint32 step_depth = -1;
    for (guint32 i = t->first; i < t->first + t->n; i++) {
        const RsSig *s = rs_model_sig(m, i);
        gint64 from = m->events.start_ns[i], to = m->events.end_ns[i];
        if (s->kind == RS_KIND_CALL)
            paint_call(p, t->rank, main, s, from, to);
        else if (s->kind == RS_KIND_DEVICE && s->op != RS_OP_COPY && s->op != RS_OP_SET)
            paint(p, t->rank, s->klass == RS_CLASS_OTHER ? ON_KERNEL : ON_DEVICE, from, to);
        else if (s->kind == RS_KIND_IO && main)
            paint(p, t->rank, ON_IO, from, to);
        else if (s->kind == RS_KIND_RANGE && main)
            paint_range(p, t->rank, i, &step_depth);
        else if (rs_model_is_off(m, i))
            paint(p, t->rank, ON_OFF, from, to);
        else if (s->kind == RS_KIND_SPAN && strcmp(rs_model_str(m, s->domain), "horovod") == 0)
            paint(p, t->rank, ON_PENDING, from, to);
    }
}

/* ---- waits and transfers ---- */

static void paint_member(Painter *p, guint32 event, gint64 last_arrival_ns)
{
    const RsModel *m = p->model;
    guint32 rank = rs_model_rank_of(m, event);
    gint64 arrival = rs_model_arrival_ns(m, event), done = rs_model_done_ns(m, event);
    gboolean device = rs_model_sig(m, event)->kind == RS_KIND_DEVICE;
    paint(p, rank, device ? ON_LATE_DEVICE : ON_LATE, arrival, MIN(last_arrival_ns, done));
    paint(p, rank, ON_TRANSFER, MAX(last_arrival_ns, arrival), done);
}

static void paint_broken_off(Painter *p, const RsInstance *inst)
{
    const RsModel *m = p->model;
    guint32 n = g_array_index(m->comms, RsComm, inst->comm).n_members;
    gint64 gathered = rs_ending_gathered_ns(m, inst);
    for (guint32 k = 0; k < n && gathered >= 0; k++) {
        guint32 e = g_array_index(m->member_events, guint32, inst->first_member + k);
        if (e != RS_NONE && (m->events.flags[e] & RS_FLAG_OPEN))
            paint_member(p, e, gathered);
    }
}

static void paint_instances(Painter *p)
{
    const RsModel *m = p->model;
    for (guint i = 0; i < m->instances->len; i++) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        if (!inst->timed)
            continue;
        if (!inst->complete) {
            paint_broken_off(p, inst);
            continue;
        }
        guint32 n = g_array_index(m->comms, RsComm, inst->comm).n_members;
        for (guint32 k = 0; k < n; k++) {
            guint32 e = g_array_index(m->member_events, guint32, inst->first_member + k);
            if (e != RS_NONE)
                paint_member(p, e, inst->last_arrival_ns);
        }
    }
}

static void paint_rendezvous(Painter *p)
{
    const RsModel *m = p->model;
    for (guint i = 0; i < m->rendezvous->len; i++) {
        const RsRendezvous *v = &g_array_index(m->rendezvous, RsRendezvous, i);
        for (guint32 rank = 0; rank < m->ranks->len; rank++) {
            guint32 e = g_array_index(m->member_events, guint32, v->first_member + rank);
            if (e != RS_NONE)
                paint(p, rank, ON_LATE, m->events.start_ns[e], v->last_arrival_ns);
        }
    }
}

static void paint_messages(Painter *p)
{
    const RsModel *m = p->model;
    for (guint i = 0; i < m->messages->len; i++) {
        const RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        if (!msg->timed || msg->src == RS_NONE || msg->dst == RS_NONE)
            continue;
        paint(p, msg->dst, ON_LATE, rs_model_arrival_ns(m, msg->recv), msg->both_ns);
        paint(p, msg->dst, ON_TRANSFER, msg->both_ns, msg->end_ns);
        gint64 sent = MIN(rs_model_done_ns(m, msg->send), msg->end_ns);
        paint(p, msg->src, ON_LATE, rs_model_arrival_ns(m, msg->send), MIN(sent, msg->both_ns));
        paint(p, msg->src, ON_TRANSFER, msg->both_ns, sent);
    }
}

/* ---- sweep ---- */

typedef struct {
    gboolean device, phases, runtime;
    gint64 first_ns, last_ns;
} Rules;

static gboolean main_waits(const guint32 on[ON_COUNT], const Rules *r)
{
    if (on[ON_CALL])
        return TRUE;
    gboolean pending = on[ON_PENDING] || on[ON_DEVICE];
    if (on[ON_WAITING])
        return pending || on[ON_BEHIND];
    pending = pending || (!r->runtime && on[ON_BEHIND]); /* a runtime's thread always talks */
    return pending && r->phases && on[ON_STEP] && !on[ON_PHASE];
}

static RsPart blocked_part(const guint32 on[ON_COUNT])
{
    gboolean late = on[ON_LATE] || on[ON_LATE_DEVICE];
    return late && !on[ON_TRANSFER] ? RS_PART_WAIT : RS_PART_EXPOSED;
}

static void classify_device(const guint32 on[ON_COUNT], RsSegment *s)
{
    if (on[ON_KERNEL]) {
        s->part = RS_PART_COMPUTE;
        s->hidden = on[ON_DEVICE] || on[ON_BEHIND] || on[ON_CALL];
    } else if (on[ON_DEVICE] || on[ON_CALL]) {
        s->part = blocked_part(on);
    } else {
        s->part = on[ON_IO] ? RS_PART_IO : RS_PART_IDLE;
    }
}

static void classify_host(const guint32 on[ON_COUNT], const Rules *r, RsSegment *s)
{
    if (main_waits(on, r)) {
        s->part = blocked_part(on);
    } else if (on[ON_IO]) {
        s->part = RS_PART_IO;
    } else {
        s->part = RS_PART_COMPUTE;
        s->hidden = on[ON_DEVICE] || on[ON_BEHIND];
    }
}

static RsSegment classify(const guint32 on[ON_COUNT], const Rules *r, gint64 ns)
{
    RsSegment s = {.start_ns = ns, .part = RS_PART_IDLE};
    gboolean outside = ns < r->first_ns || ns >= r->last_ns;
    if (on[ON_OFF]) {
        s.part = RS_PART_OFF;
        return s;
    }
    if (!outside && !on[ON_ENV]) {
        if (r->device)
            classify_device(on, &s);
        else
            classify_host(on, r, &s);
    }
    s.own =
        s.part != RS_PART_EXPOSED && s.part != RS_PART_WAIT && !on[ON_ENV] && !on[ON_LATE_DEVICE];
    return s;
}

static void append_segment(GArray *segments, RsSegment s)
{
    if (segments->len > 0) {
        const RsSegment *last = &g_array_index(segments, RsSegment, segments->len - 1);
        if (last->part == s.part && last->hidden == s.hidden && last->own == s.own)
            return;
        s.own_before_ns = last->own_before_ns + (last->own ? s.start_ns - last->start_ns : 0);
    }
    g_array_append_val(segments, s);
}

static gint compare_edges(gconstpointer a, gconstpointer b)
{
    const Edge *x = a, *y = b;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static void sweep(RsTimeline *t, GArray *edges, const Rules *r)
{
    GArray *segments = g_array_new(FALSE, FALSE, sizeof(RsSegment));
    guint32 on[ON_COUNT] = {0};
    g_array_sort(edges, compare_edges);
    gint64 at = 0;
    for (guint i = 0; i < edges->len;) {
        gint64 ns = g_array_index(edges, Edge, i).ns;
        if (ns > at) {
            append_segment(segments, classify(on, r, at));
            at = ns;
        }
        for (; i < edges->len && g_array_index(edges, Edge, i).ns == ns; i++) {
            const Edge *e = &g_array_index(edges, Edge, i);
            on[e->on] += (guint32)e->delta;
        }
    }
    if (at < t->end_ns)
        append_segment(segments, classify(on, r, at));
    t->n = segments->len;
    t->segments = (RsSegment *)(void *)g_array_free(segments, FALSE);
}

static gboolean any_edge(const GArray *edges, On on)
{
    for (guint i = 0; i < edges->len; i++)
        if (g_array_index(edges, Edge, i).on == (guint32)on)
            return TRUE;
    return FALSE;
}

static void make_timeline(const RsModel *m, guint32 rank, GArray *edges, RsTimeline *t)
{
    const RsRank *r = rs_model_rank(m, rank);
    Rules rules = {.first_ns = r->first_ns, .last_ns = r->last_ns};
    rules.device = any_edge(edges, ON_KERNEL);
    rules.phases = any_edge(edges, ON_PHASE);
    rules.runtime = m->rendezvous->len > 0;
    t->device = rules.device;
    t->end_ns = m->duration_ns;
    t->blind = !rules.device && !rules.phases && !any_edge(edges, ON_WAITING) &&
               (any_edge(edges, ON_BEHIND) || any_edge(edges, ON_DEVICE));
    /* the edges where the rank's own first and last event cut a segment in two */
    Edge ends[2] = {{MAX(r->first_ns, 0), 0, ON_ENV}, {MAX(r->last_ns, 0), 0, ON_ENV}};
    g_array_append_vals(edges, ends, 2);
    sweep(t, edges, &rules);
}

RsTimeline *rs_timelines_new(const RsModel *m)
{
    guint32 n = m->ranks->len;
    RsTimeline *timelines = g_new0(RsTimeline, n + 1);
    GArray **edges = g_new0(GArray *, n + 1);
    Painter p = {m, edges};
    for (guint32 i = 0; i < n; i++) {
        const RsRank *r = rs_model_rank(m, i);
        edges[i] = g_array_new(FALSE, FALSE, sizeof(Edge));
        timelines[i].main_track = find_main_track(m, r);
        for (guint32 k = r->first_track; k < r->first_track + r->n_tracks; k++)
            paint_track(&p, k, k == timelines[i].main_track);
    }
    paint_instances(&p);
    paint_rendezvous(&p);
    paint_messages(&p);
    for (guint32 i = 0; i < n; i++) {
        make_timeline(m, i, edges[i], &timelines[i]);
        g_array_unref(edges[i]);
    }
    g_free(edges);
    return timelines;
}

void rs_timelines_free(RsTimeline *timelines, guint32 n)
{
    for (guint32 i = 0; timelines && i < n; i++)
        g_free(timelines[i].segments);
    g_free(timelines);
}

/* Index of the segment that holds `ns`. */
static guint32 find_segment(const RsTimeline *t, gint64 ns)
{
    guint32 low = 0, high = t->n;
    while (low + 1 < high) {
        guint32 mid = low + (high - low) / 2;
        if (t->segments[mid].start_ns <= ns)
            low = mid;
        else
            high = mid;
    }
    return low;
}

gint64 rs_timeline_own_ns(const RsTimeline *t, gint64 ns)
{
    if (t->n == 0 || ns <= 0)
        return 0;
    const RsSegment *s = &t->segments[find_segment(t, ns)];
    return s->own_before_ns + (s->own ? MIN(ns, t->end_ns) - s->start_ns : 0);
}

RsPart rs_timeline_part_at(const RsTimeline *t, gint64 ns)
{
    return t->n ? (RsPart)t->segments[find_segment(t, ns)].part : RS_PART_IDLE;
}

void rs_timeline_sum(const RsTimeline *t, gint64 from_ns, gint64 to_ns, gint64 parts[RS_PART_COUNT],
                     gint64 *hidden_ns)
{
    to_ns = MIN(to_ns, t->end_ns);
    if (t->n == 0 || to_ns <= from_ns)
        return;
    for (guint32 i = find_segment(t, from_ns); i < t->n && t->segments[i].start_ns < to_ns; i++) {
        const RsSegment *s = &t->segments[i];
        gint64 end = i + 1 < t->n ? t->segments[i + 1].start_ns : t->end_ns;
        gint64 ns = MIN(end, to_ns) - MAX(s->start_ns, from_ns);
        if (ns <= 0)
            continue;
        parts[s->part] += ns;
        if (s->hidden)
            *hidden_ns += ns;
    }
}
