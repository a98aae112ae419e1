/* SPDX-License-Identifier: Apache-2.0 */
/*
 * align-domains.c - the clocks of all domains to that of the reference, the lowest rank's.
 *
 * Domains are joined one by one: over round trips where there are any, and then also by what came
 * before what in the run's own calls, always taking the link that leaves the least uncertainty;
 * else over the ends of synchronising collectives. A domain that nothing joins is placed by the
 * wall clock, and not trusted.
 */
#include <string.h>

#include "clock.h"
#include "model-internal.h"

#define MEETINGS_MAX 20000 /* collectives looked at in one round: more tell nothing new */

/* A collective's kernels end together on all devices, but for the last exchange: at most 27 us
 * apart where it was seen. What arrivals and ends allow is wider, as waiting is inside kernels. */
#define DEVICE_ENDS_NS 30000
#define DRIFT_PER_NS   50e-6 /* what clocks may run apart where it was not measured */

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

static void accept_fit(Alignment *a, guint32 domain, const RsClockFit *fit)
{
    a->to_reference[domain] = *fit;
    a->aligned[domain] = TRUE;
}

/* ---- round trips ---- */

/* All that is known of two domains, as one of them sees it. */
typedef struct {
    guint32 own, their;   /* domains */
    RsClockBounds *trips; /* what their round trips tell */
    RsClockBounds *all;   /* and what the run's own collectives and messages do */
    gint64 shortest_ns;   /* half of the shortest trip: no fit is more certain */
    RsClockFit fit;
} Link;

static void clear_link(gpointer data)
{
    Link *l = data;
    rs_clock_bounds_free(l->trips);
    rs_clock_bounds_free(l->all);
}

typedef struct {
    const Alignment *a;
    GArray *list;   /* Link */
    GHashTable *at; /* own * n + their: index + 1 */
} Links;

static gpointer pair_of(const Links *links, guint32 own, guint32 their)
{
    return GSIZE_TO_POINTER((gsize)own * links->a->n + their);
}

static Link *link_of(const Links *links, guint32 own, guint32 their)
{
    guint i = GPOINTER_TO_UINT(g_hash_table_lookup(links->at, pair_of(links, own, their)));
    return i ? &g_array_index(links->list, Link, i - 1) : NULL;
}

static Link *make_link(Links *links, guint32 own, guint32 their)
{
    Link *found = link_of(links, own, their);
    if (found)
        return found;
    Link link = {.own = own, .their = their, .trips = rs_clock_bounds_new()};
    link.shortest_ns = G_MAXINT64;
    g_array_append_val(links->list, link);
    g_hash_table_insert(links->at, pair_of(links, own, their), GUINT_TO_POINTER(links->list->len));
    return link_of(links, own, their);
}

/* Each trip tells both clocks, whoever began it. */
static void add_trip(Links *links, guint32 own, const struct rs_clock_probe *t)
{
    guint32 their = (guint32)t->peer; /* a domain by now */
    gint64 sent = (gint64)t->sent, received = (gint64)t->received;
    gint64 there = (gint64)t->peer_received, back = (gint64)t->peer_sent;
    gint64 half = MAX((received - sent) - (back - there), 0) / 2;
    Link *l = make_link(links, own, their);
    rs_clock_bounds_add(l->trips, sent, there, back, received);
    l->shortest_ns = MIN(l->shortest_ns, half);
    l = make_link(links, their, own);
    rs_clock_bounds_add(l->trips, back, received, sent, there);
    l->shortest_ns = MIN(l->shortest_ns, half);
}

static void add_trips(Links *links)
{
    const RsBuilder *b = links->a->b;
    for (guint i = 0; i < b->processes->len; i++) {
        const RsProcess *p = g_ptr_array_index(b->processes, i);
        guint32 own = rs_align_domain_of(b, i);
        for (guint k = 0; k < p->probes->len; k++) {
            const struct rs_clock_probe *t = &g_array_index(p->probes, struct rs_clock_probe, k);
            if ((guint32)t->peer != own)
                add_trip(links, own, t);
        }
    }
    for (guint i = 0; i < links->list->len; i++) {
        Link *l = &g_array_index(links->list, Link, i);
        l->all = rs_clock_bounds_dup(l->trips);
    }
}

/* ---- what the run's own calls tell of linked domains ---- */

/* Latest arrival and earliest end, of one domain or of all that are aligned. */
typedef struct {
    gint64 arrival, end;
    gboolean any;
} Extent;

static void widen(Extent *x, gint64 arrival, gint64 end)
{
    x->arrival = x->any ? MAX(x->arrival, arrival) : arrival;
    x->end = x->any ? MIN(x->end, end) : end;
    x->any = TRUE;
}

/* Who is absent from the captures does not matter: nobody leaves before all have come. */
static gboolean is_meeting(const RsModel *m, const RsInstance *inst)
{
    const RsSig *s = &g_array_index(m->sigs, RsSig, inst->sig);
    guint32 n = g_array_index(m->comms, RsComm, inst->comm).n_members;
    const guint32 *members = &g_array_index(m->member_events, guint32, inst->first_member);
    for (guint32 i = 0; i < n; i++)
        if (members[i] != RS_NONE && (m->events.flags[members[i]] & RS_FLAG_OPEN))
            return FALSE;
    return inst->n_present >= 2 && inst->timed && !inst->mismatched && s->klass == RS_CLASS_COLL &&
           rs_coll_synchronises(s->coll);
}

static guint32 domain_of(const RsModel *m, guint32 event)
{
    return rs_model_rank(m, rs_model_rank_of(m, event))->domain;
}

/* Nobody has the result before all have come. `seen`: by domain, cleared here. */
static void add_collective(Links *links, const RsInstance *inst, Extent *seen)
{
    const RsModel *m = links->a->b->model;
    guint32 n = g_array_index(m->comms, RsComm, inst->comm).n_members;
    const guint32 *members = &g_array_index(m->member_events, guint32, inst->first_member);
    memset(seen, 0, links->a->n * sizeof *seen);
    for (guint32 i = 0; i < n; i++)
        if (members[i] != RS_NONE)
            widen(&seen[domain_of(m, members[i])], rs_model_arrival_ns(m, members[i]),
                  rs_model_done_ns(m, members[i]));
    for (guint i = 0; i < links->list->len; i++) {
        Link *l = &g_array_index(links->list, Link, i);
        const Extent *own = &seen[l->own], *their = &seen[l->their];
        if (own->any && their->any)
            rs_clock_bounds_add(l->all, own->arrival, their->end, their->arrival, own->end);
    }
}

static void add_collectives(Links *links)
{
    const RsModel *m = links->a->b->model;
    g_autofree Extent *seen = g_new(Extent, links->a->n);
    guint stride = 1 + m->instances->len / MEETINGS_MAX;
    for (guint i = 0; i < m->instances->len; i += stride) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        if (is_meeting(m, inst))
            add_collective(links, inst, seen);
    }
}

/* Nobody has a message before it is sent. */
static void add_messages(Links *links)
{
    const RsModel *m = links->a->b->model;
    guint stride = 1 + m->messages->len / (10 * MEETINGS_MAX);
    for (guint i = 0; i < m->messages->len; i += stride) {
        const RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        if (!rs_message_is_witness(m, msg))
            continue;
        gint64 sent = rs_model_arrival_ns(m, msg->send), received = rs_model_done_ns(m, msg->recv);
        guint32 from = domain_of(m, msg->send), to = domain_of(m, msg->recv);
        Link *l = link_of(links, from, to);
        if (l)
            rs_clock_bounds_add(l->all, sent, received, RS_CLOCK_UNKNOWN, RS_CLOCK_UNKNOWN);
        l = link_of(links, to, from);
        if (l)
            rs_clock_bounds_add(l->all, RS_CLOCK_UNKNOWN, RS_CLOCK_UNKNOWN, sent, received);
    }
}

/* Round trips are measurements; calls were paired by us. Where they contradict, trips count. */
static void fit_link(const Alignment *a, Link *l)
{
    RsClockBounds *bounds = rs_clock_bounds_agree(l->all) ? l->all : l->trips;
    rs_clock_bounds_fit(bounds, a->from[l->own], a->to[l->own], &l->fit);
    l->fit.uncertainty_ns = MAX(l->fit.uncertainty_ns, l->shortest_ns);
}

static GArray *make_links(const Alignment *a)
{
    Links links = {a, g_array_new(FALSE, FALSE, sizeof(Link)), g_hash_table_new(NULL, NULL)};
    g_array_set_clear_func(links.list, clear_link);
    add_trips(&links);
    if (links.list->len) {
        add_collectives(&links);
        add_messages(&links);
    }
    for (guint i = 0; i < links.list->len; i++)
        fit_link(a, &g_array_index(links.list, Link, i));
    g_hash_table_unref(links.at);
    return links.list;
}

static void join_by_trips(Alignment *a)
{
    g_autoptr(GArray) links = make_links(a);
    for (;;) {
        RsClockFit best = {0};
        guint32 domain = RS_NONE;
        for (guint i = 0; i < links->len; i++) {
            const Link *l = &g_array_index(links, Link, i);
            if (a->aligned[l->own] || !a->aligned[l->their])
                continue;
            RsClockFit fit = rs_clock_fit_chain(&a->to_reference[l->their], &l->fit);
            if (domain == RS_NONE || fit.uncertainty_ns < best.uncertainty_ns) {
                best = fit;
                domain = l->own;
            }
        }
        if (domain == RS_NONE)
            return;
        accept_fit(a, domain, &best);
        a->by_trips = TRUE;
    }
}

/* ---- meetings ---- */

/* Adds what one collective tells of each domain not yet aligned. `seen`: by domain, all clear. */
static void add_meetings(const Alignment *a, const RsInstance *inst, Extent *seen,
                         GArray **meetings)
{
    const RsModel *m = a->b->model;
    guint32 n = g_array_index(m->comms, RsComm, inst->comm).n_members;
    const guint32 *members = &g_array_index(m->member_events, guint32, inst->first_member);
    Extent reference = {0};
    for (guint32 i = 0; i < n; i++) {
        if (members[i] == RS_NONE)
            continue;
        guint32 d = domain_of(m, members[i]);
        gint64 arrival = rs_model_arrival_ns(m, members[i]), end = rs_model_done_ns(m, members[i]);
        const RsClockFit *f = &a->to_reference[d];
        if (a->aligned[d])
            widen(&reference, rs_clock_fit_apply(f, arrival), rs_clock_fit_apply(f, end));
        else
            widen(&seen[d], arrival, end);
    }
    for (guint32 i = 0; i < n; i++) {
        if (members[i] == RS_NONE)
            continue;
        guint32 d = domain_of(m, members[i]);
        RsClockMeeting t = {seen[d].arrival, seen[d].end, reference.arrival, reference.end};
        if (seen[d].any && reference.any)
            g_array_append_val(meetings[d], t);
        seen[d].any = FALSE;
    }
}

static gboolean is_on_devices(const RsModel *m, const RsInstance *inst)
{
    return g_array_index(m->sigs, RsSig, inst->sig).kind == RS_KIND_DEVICE;
}

/* Where all that met were devices' intervals, their ends tell more than what they allow. */
static void narrow(const GArray *meetings, RsClockFit *fit)
{
    const RsClockMeeting *t = (const RsClockMeeting *)(void *)meetings->data;
    gint64 span = t[meetings->len - 1].own_end_ns - t[0].own_end_ns;
    gint64 sure = DEVICE_ENDS_NS + rs_clock_fit_spread(t, meetings->len, fit);
    if (fit->drift == 0)
        sure += (gint64)(DRIFT_PER_NS * (gdouble)span);
    fit->uncertainty_ns = MIN(fit->uncertainty_ns, sure);
}

/* Joins every domain that has met the aligned ones often enough. Returns FALSE where none has. */
static gboolean join_round_by_ends(Alignment *a)
{
    const RsModel *m = a->b->model;
    GArray **meetings = g_new(GArray *, a->n);
    gboolean joined = FALSE, on_devices = TRUE;
    g_autofree Extent *seen = g_new0(Extent, a->n);
    for (guint d = 0; d < a->n; d++)
        meetings[d] = g_array_new(FALSE, FALSE, sizeof(RsClockMeeting));
    guint stride = 1 + m->instances->len / MEETINGS_MAX;
    for (guint i = 0; i < m->instances->len; i += stride) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        if (!is_meeting(m, inst))
            continue;
        on_devices = on_devices && is_on_devices(m, inst);
        add_meetings(a, inst, seen, meetings);
    }
    for (guint d = 0; d < a->n; d++) {
        RsClockFit fit;
        if (!a->aligned[d] && rs_clock_fit_meetings((RsClockMeeting *)(void *)meetings[d]->data,
                                                    meetings[d]->len, &fit)) {
            if (on_devices)
                narrow(meetings[d], &fit);
            accept_fit(a, d, &fit);
            joined = a->by_ends = TRUE;
        }
        g_array_unref(meetings[d]);
    }
    g_free(meetings);
    return joined;
}

static gboolean all_aligned(const Alignment *a)
{
    for (guint d = 0; d < a->n; d++)
        if (!a->aligned[d])
            return FALSE;
    return TRUE;
}

/* ---- what is left ---- */

static void place_by_wall(Alignment *a, guint32 domain)
{
    gint64 own, reference;
    RsDomain *d = &g_array_index(a->b->model->domains, RsDomain, domain);
    a->to_reference[domain] = (RsClockFit){.at_ns = a->from[domain]};
    if (rs_align_wall_offset(a->b, domain, &own) && rs_align_wall_offset(a->b, 0, &reference))
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
            m->events.start_ns[i] = CLAMP(start, -8 * RS_TIME_MAX, 8 * RS_TIME_MAX);
            m->events.end_ns[i] =
                MAX(CLAMP(end, -8 * RS_TIME_MAX, 8 * RS_TIME_MAX), m->events.start_ns[i]);
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
    while (!all_aligned(&a) && join_round_by_ends(&a))
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
