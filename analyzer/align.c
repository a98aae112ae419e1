/* SPDX-License-Identifier: Apache-2.0 */
/*
 * align.c - all times on one axis that begins at the first event.
 *
 * Processes of one clock domain share a clock: their anchors are pooled. Domains are joined one by
 * one to the reference, the domain of the lowest rank: over round trips where there are any, always
 * taking the link that leaves the least uncertainty; else over the ends of synchronising
 * collectives. A domain that nothing joins is placed by the wall clock, and not trusted.
 */
#include "model-internal.h"

#include "clock.h"

#define TIME_MAX ((gint64)1 << 58) /* sums of a few such never overflow */

/* ---- ticks ---- */

/* Domains are the strings of processes; there are few. */
static guint32 domain_of_process(const RsBuilder *b, guint32 process)
{
    return rs_model_rank(b->model, b->rank_of_process[process])->domain;
}

static void pool_anchors(const RsBuilder *b, guint32 domain, GArray *pool, gdouble *ret_hz)
{
    *ret_hz = 0;
    for (guint i = 0; i < b->processes->len; i++) {
        const RsProcess *p = g_ptr_array_index(b->processes, i);
        if (p->unit != RS_TIME_TICKS || domain_of_process(b, i) != domain)
            continue;
        g_array_append_vals(pool, p->anchors->data, p->anchors->len);
        if (*ret_hz == 0)
            *ret_hz = p->tick_hz;
    }
}

/* Where ticks count from in a domain without an anchor. */
static guint64 first_tick(const RsBuilder *b, guint32 domain)
{
    guint64 first = G_MAXUINT64;
    for (guint i = 0; i < b->events->len; i++) {
        const RsRawEvent *e = &g_array_index(b->events, RsRawEvent, i);
        guint32 process = g_array_index(b->tracks, RsRawTrack, e->track).process;
        if (domain_of_process(b, process) == domain)
            first = MIN(first, (guint64)e->start);
    }
    return first == G_MAXUINT64 ? 0 : first;
}

static RsTickMap *map_domains(RsBuilder *b)
{
    guint n = b->model->domains->len;
    RsTickMap *maps = g_new0(RsTickMap, n + 1);
    for (guint d = 0; d < n; d++) {
        g_autoptr(GArray) pool = g_array_new(FALSE, FALSE, sizeof(struct rs_anchor));
        gdouble hz;
        pool_anchors(b, d, pool, &hz);
        guint64 origin = pool->len ? 0 : first_tick(b, d);
        rs_tick_map_init(&maps[d], (const struct rs_anchor *)(void *)pool->data, pool->len, hz,
                         origin);
        RsDomain *domain = &g_array_index(b->model->domains, RsDomain, d);
        domain->uncertainty_ns = maps[d].uncertainty_ns;
    }
    return maps;
}

/* Time of a process's own clock as ns of its domain. */
static gint64 to_domain_ns(const RsProcess *p, const RsTickMap *map, guint64 time)
{
    if (p->unit == RS_TIME_TICKS)
        return rs_tick_map_ns(map, time);
    return CLAMP((gint64)time, -TIME_MAX, TIME_MAX);
}

/* Round trips in ns of both domains, in place of ticks; those without a known peer are dropped. */
static void convert_probes(RsBuilder *b, const RsTickMap *maps)
{
    g_autoptr(GHashTable) by_rank = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = b->processes->len; i-- > 0;) {
        const RsProcess *p = g_ptr_array_index(b->processes, i);
        if (p->rank >= 0)
            g_hash_table_insert(by_rank, GINT_TO_POINTER(p->rank + 1), GUINT_TO_POINTER(i + 1));
    }
    for (guint i = 0; i < b->processes->len; i++) {
        RsProcess *p = g_ptr_array_index(b->processes, i);
        const RsTickMap *own = &maps[domain_of_process(b, i)];
        guint kept = 0;
        for (guint k = 0; k < p->probes->len; k++) {
            struct rs_clock_probe t = g_array_index(p->probes, struct rs_clock_probe, k);
            gpointer found = t.peer < 0 || t.peer == G_MAXINT32
                                 ? NULL
                                 : g_hash_table_lookup(by_rank, GINT_TO_POINTER(t.peer + 1));
            if (!found)
                continue;
            guint32 peer = GPOINTER_TO_UINT(found) - 1;
            const RsProcess *q = rs_builder_process(b, peer);
            const RsTickMap *theirs = &maps[domain_of_process(b, peer)];
            t.sent = (guint64)to_domain_ns(p, own, t.sent);
            t.received = (guint64)to_domain_ns(p, own, t.received);
            t.peer_received = (guint64)to_domain_ns(q, theirs, t.peer_received);
            t.peer_sent = (guint64)to_domain_ns(q, theirs, t.peer_sent);
            t.peer = (gint32)domain_of_process(b, peer);
            g_array_index(p->probes, struct rs_clock_probe, kept++) = t;
        }
        g_array_set_size(p->probes, kept);
    }
}

void rs_align_ticks(RsBuilder *b)
{
    RsTickMap *maps = map_domains(b);
    convert_probes(b, maps);
    for (guint i = 0; i < b->events->len; i++) {
        RsRawEvent *e = &g_array_index(b->events, RsRawEvent, i);
        guint32 process = g_array_index(b->tracks, RsRawTrack, e->track).process;
        const RsProcess *p = rs_builder_process(b, process);
        if (p->unit == RS_TIME_ALIGNED)
            continue;
        const RsTickMap *map = &maps[domain_of_process(b, process)];
        e->start = to_domain_ns(p, map, (guint64)e->start);
        e->end = MAX(e->start, to_domain_ns(p, map, (guint64)e->end));
    }
    for (guint d = 0; d < b->model->domains->len; d++)
        rs_tick_map_clear(&maps[d]);
    g_free(maps);
}

/* ---- domains ---- */

typedef struct {
    RsBuilder *b;
    guint n;
    RsClockFit *to_reference; /* by domain */
    gboolean *aligned;
    gint64 *from, *to; /* events of each domain */
    gboolean by_trips, by_ends, lost;
} Alignment;

static void find_extents(Alignment *a)
{
    const RsModel *m = a->b->model;
    g_autofree gboolean *any = g_new0(gboolean, a->n + 1);
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        guint32 d = rs_model_rank(m, track->rank)->domain;
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            a->from[d] = any[d] ? MIN(a->from[d], m->events.start_ns[i]) : m->events.start_ns[i];
            a->to[d] = any[d] ? MAX(a->to[d], m->events.end_ns[i]) : m->events.end_ns[i];
            any[d] = TRUE;
        }
    }
}

/* Round trips between two domains, as seen by `own`, whoever of the two began them. */
static GArray *points_between(const Alignment *a, guint32 own, guint32 their)
{
    GArray *points = g_array_new(FALSE, FALSE, sizeof(RsClockPoint));
    for (guint i = 0; i < a->b->processes->len; i++) {
        const RsProcess *p = g_ptr_array_index(a->b->processes, i);
        guint32 d = domain_of_process(a->b, i);
        if (d != own && d != their)
            continue;
        for (guint k = 0; k < p->probes->len; k++) {
            const struct rs_clock_probe *t = &g_array_index(p->probes, struct rs_clock_probe, k);
            if ((guint32)t->peer != (d == own ? their : own))
                continue;
            RsClockPoint point = rs_clock_point_of_trip((gint64)t->sent, (gint64)t->peer_received,
                                                        (gint64)t->peer_sent, (gint64)t->received);
            if (d == their) {
                gint64 swap = point.own_ns;
                point.own_ns = point.their_ns;
                point.their_ns = swap;
            }
            g_array_append_val(points, point);
        }
    }
    return points;
}

/* Which pairs have round trips at all: [own * n + their]. */
static gboolean *linked_pairs(const Alignment *a)
{
    gboolean *linked = g_new0(gboolean, (gsize)a->n * a->n + 1);
    for (guint i = 0; i < a->b->processes->len; i++) {
        const RsProcess *p = g_ptr_array_index(a->b->processes, i);
        guint32 d = domain_of_process(a->b, i);
        for (guint k = 0; k < p->probes->len; k++) {
            guint32 e = (guint32)g_array_index(p->probes, struct rs_clock_probe, k).peer;
            linked[(gsize)d * a->n + e] = linked[(gsize)e * a->n + d] = d != e;
        }
    }
    return linked;
}

typedef struct {
    RsClockFit fit; /* to the reference */
    guint32 domain; /* RS_NONE: none */
} Candidate;

static void consider(const Alignment *a, guint32 own, guint32 via, Candidate *best)
{
    g_autoptr(GArray) points = points_between(a, own, via);
    RsClockFit link;
    if (!rs_clock_fit_trips((RsClockPoint *)(void *)points->data, points->len, a->from[own],
                            a->to[own], &link))
        return;
    RsClockFit fit = rs_clock_fit_chain(&a->to_reference[via], &link);
    if (best->domain == RS_NONE || fit.uncertainty_ns < best->fit.uncertainty_ns) {
        best->fit = fit;
        best->domain = own;
    }
}

static void accept(Alignment *a, const Candidate *c)
{
    a->to_reference[c->domain] = c->fit;
    a->aligned[c->domain] = TRUE;
}

static void join_by_trips(Alignment *a)
{
    g_autofree gboolean *linked = linked_pairs(a);
    for (;;) {
        Candidate best = {.domain = RS_NONE};
        for (guint own = 0; own < a->n; own++)
            for (guint via = 0; !a->aligned[own] && via < a->n; via++)
                if (a->aligned[via] && linked[(gsize)own * a->n + via])
                    consider(a, own, via, &best);
        if (best.domain == RS_NONE)
            return;
        accept(a, &best);
        a->by_trips = TRUE;
    }
}

/* ---- meetings ---- */

static gboolean is_meeting(const RsModel *m, const RsInstance *inst)
{
    const RsSig *s = &g_array_index(m->sigs, RsSig, inst->sig);
    return inst->complete && inst->timed && !inst->mismatched && s->klass == RS_CLASS_COLL &&
           rs_coll_synchronises(s->coll);
}

/* One instance as `own` and as the domains aligned so far saw it. */
static gboolean meeting_of(const Alignment *a, guint32 own, const RsInstance *inst,
                           RsClockMeeting *ret)
{
    const RsModel *m = a->b->model;
    const RsComm *c = &g_array_index(m->comms, RsComm, inst->comm);
    RsClockMeeting t = {G_MININT64, G_MAXINT64, G_MININT64, G_MAXINT64};
    for (guint32 i = 0; i < c->n_members; i++) {
        guint32 e = g_array_index(m->member_events, guint32, inst->first_member + i);
        guint32 d = rs_model_rank(m, c->members[i])->domain;
        gint64 arrival = rs_model_arrival_ns(m, e), end = rs_model_done_ns(m, e);
        if (d == own) {
            t.own_arrival_ns = MAX(t.own_arrival_ns, arrival);
            t.own_end_ns = MIN(t.own_end_ns, end);
        } else if (a->aligned[d]) {
            t.their_arrival_ns =
                MAX(t.their_arrival_ns, rs_clock_fit_apply(&a->to_reference[d], arrival));
            t.their_end_ns = MIN(t.their_end_ns, rs_clock_fit_apply(&a->to_reference[d], end));
        }
    }
    *ret = t;
    return t.own_end_ns != G_MAXINT64 && t.their_end_ns != G_MAXINT64;
}

static gboolean join_one_by_ends(Alignment *a)
{
    const RsModel *m = a->b->model;
    Candidate best = {.domain = RS_NONE};
    for (guint own = 0; own < a->n; own++) {
        if (a->aligned[own])
            continue;
        g_autoptr(GArray) meetings = g_array_new(FALSE, FALSE, sizeof(RsClockMeeting));
        for (guint i = 0; i < m->instances->len; i++) {
            const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
            RsClockMeeting t;
            if (is_meeting(m, inst) && meeting_of(a, own, inst, &t))
                g_array_append_val(meetings, t);
        }
        RsClockFit fit;
        if (rs_clock_fit_meetings((RsClockMeeting *)(void *)meetings->data, meetings->len, &fit) &&
            (best.domain == RS_NONE || fit.uncertainty_ns < best.fit.uncertainty_ns)) {
            best.fit = fit;
            best.domain = own;
        }
    }
    if (best.domain == RS_NONE)
        return FALSE;
    accept(a, &best);
    a->by_ends = TRUE;
    return TRUE;
}

/* ---- what is left ---- */

/* Realtime minus monotonic of a domain, by its first anchor. */
static gboolean wall_offset(const RsBuilder *b, guint32 domain, gint64 *ret)
{
    for (guint i = 0; i < b->processes->len; i++) {
        const RsProcess *p = g_ptr_array_index(b->processes, i);
        if (domain_of_process(b, i) != domain || p->anchors->len == 0)
            continue;
        const struct rs_anchor *a = &g_array_index(p->anchors, struct rs_anchor, 0);
        *ret = (gint64)MIN(a->realtime_ns, (guint64)TIME_MAX * 8) -
               (gint64)MIN(a->monotonic_ns, (guint64)TIME_MAX);
        return TRUE;
    }
    return FALSE;
}

static void place_by_wall(Alignment *a, guint32 domain)
{
    gint64 own, reference;
    RsDomain *d = &g_array_index(a->b->model->domains, RsDomain, domain);
    a->to_reference[domain] = (RsClockFit){.at_ns = a->from[domain]};
    if (wall_offset(a->b, domain, &own) && wall_offset(a->b, 0, &reference))
        a->to_reference[domain].offset_ns = own - reference;
    else
        a->to_reference[domain].offset_ns = a->from[0] - a->from[domain];
    a->lost = TRUE;
    rs_builder_warn(a->b, "", 0,
                    "clock of %s: no round trips and fewer than 3 synchronising collectives join "
                    "it to the other clocks: placed by the wall clock, not trusted",
                    rs_model_str(a->b->model, d->name));
}

static void apply(Alignment *a)
{
    RsModel *m = a->b->model;
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        const RsClockFit *f = &a->to_reference[rs_model_rank(m, track->rank)->domain];
        if (f->offset_ns == 0 && f->drift == 0)
            continue;
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            gint64 start = rs_clock_fit_apply(f, m->events.start_ns[i]);
            gint64 end = rs_clock_fit_apply(f, m->events.end_ns[i]);
            m->events.start_ns[i] = CLAMP(start, -8 * TIME_MAX, 8 * TIME_MAX);
            m->events.end_ns[i] =
                MAX(CLAMP(end, -8 * TIME_MAX, 8 * TIME_MAX), m->events.start_ns[i]);
        }
    }
}

static void describe(Alignment *a)
{
    RsModel *m = a->b->model;
    for (guint i = 0; i < a->n; i++) {
        RsDomain *d = &g_array_index(m->domains, RsDomain, i);
        const RsClockFit *f = &a->to_reference[i];
        d->offset_ns = rs_clock_fit_apply(f, a->from[i]) - a->from[i];
        d->drift_ppm = f->drift * 1e6;
        d->uncertainty_ns += f->uncertainty_ns;
        m->clock_uncertainty_ns = MAX(m->clock_uncertainty_ns, d->uncertainty_ns);
    }
    m->clock_method = a->lost       ? "none"
                      : a->by_ends  ? "collective ends"
                      : a->by_trips ? "round trips"
                                    : "single domain";
    m->clock_trusted = !a->lost;
}

/* Where a clock is not trusted, "uncertain by the length of the run" is the least that can be said.
 */
static void widen_lost(Alignment *a)
{
    RsModel *m = a->b->model;
    gint64 length = G_USEC_PER_SEC * (gint64)1000;
    for (guint i = 0; i < a->n; i++)
        length = MAX(length, a->to[i] - a->from[i]);
    for (guint i = 0; a->lost && i < a->n; i++)
        if (!a->aligned[i])
            g_array_index(m->domains, RsDomain, i).uncertainty_ns = length;
}

static gboolean has_own_clocks(const RsBuilder *b)
{
    for (guint i = 0; i < b->processes->len; i++)
        if (((const RsProcess *)g_ptr_array_index(b->processes, i))->unit != RS_TIME_ALIGNED)
            return TRUE;
    return FALSE;
}

void rs_align_domains(RsBuilder *b)
{
    Alignment a = {.b = b, .n = b->model->domains->len};
    if (a.n == 0 || !has_own_clocks(b))
        return;
    a.to_reference = g_new0(RsClockFit, a.n);
    a.aligned = g_new0(gboolean, a.n);
    a.from = g_new0(gint64, a.n);
    a.to = g_new0(gint64, a.n);
    find_extents(&a);
    a.aligned[0] = TRUE;
    join_by_trips(&a);
    while (join_one_by_ends(&a))
        ;
    for (guint i = 0; i < a.n; i++)
        if (!a.aligned[i])
            place_by_wall(&a, i);
    apply(&a);
    widen_lost(&a);
    describe(&a);
    g_free(a.to_reference);
    g_free(a.aligned);
    g_free(a.from);
    g_free(a.to);
}

/* ---- the axis ---- */

/* Unix time of the run's first event, by the reference domain's anchors. */
static void set_realtime(RsBuilder *b, gint64 base)
{
    gint64 wall;
    if (b->model->domains->len && wall_offset(b, 0, &wall))
        b->model->base_realtime_ns = base + wall;
}

void rs_align_base(RsBuilder *b)
{
    RsEvents *e = &b->model->events;
    gint64 base = e->n ? e->start_ns[0] : 0;
    for (guint32 i = 0; i < e->n; i++)
        base = MIN(base, e->start_ns[i]);
    for (guint32 i = 0; i < e->n; i++) {
        e->start_ns[i] -= base;
        e->end_ns[i] -= base;
    }
    set_realtime(b, base);
}
