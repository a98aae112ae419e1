/* SPDX-License-Identifier: Apache-2.0 */
/* cut.c - a model of a part of a run: the same tables with fewer events. */
#include "export.h"
#include "model-internal.h"

typedef struct {
    const RsModel *m;
    gint64 from_ns, to_ns;
    guint8 *rank_in, *step_in;
    gboolean by_step;
    guint kinds;
    guint32 *new_of; /* by event; RS_NONE where it is left out */
} Cut;

static gboolean in_list(const GArray *list, gint32 value)
{
    for (guint i = 0; i < list->len; i++)
        if (g_array_index(list, gint32, i) == value)
            return TRUE;
    return FALSE;
}

static void cut_init(Cut *c, const RsModel *m, const RsScope *scope, guint kinds)
{
    *c = (Cut){.m = m, .kinds = kinds ? kinds : ~0u};
    c->from_ns = (gint64)(scope->from_s * 1e9);
    c->to_ns = scope->to_s > 0 ? (gint64)(scope->to_s * 1e9) : G_MAXINT64;
    c->rank_in = g_new0(guint8, m->ranks->len + 1);
    for (guint i = 0; i < m->ranks->len; i++)
        c->rank_in[i] = !scope->ranks || in_list(scope->ranks, rs_model_rank(m, i)->rank);
    c->by_step = scope->steps != NULL;
    c->step_in = g_new0(guint8, m->steps->len + 1);
    for (guint i = 0; c->by_step && i < m->steps->len; i++)
        c->step_in[i] = in_list(scope->steps, (gint32)g_array_index(m->steps, RsStep, i).number);
    c->new_of = g_new(guint32, (gsize)m->events.n + 1);
}

static void cut_release(Cut *c)
{
    g_free(c->rank_in);
    g_free(c->step_in);
    g_free(c->new_of);
}

/* Spans of one rank are in order of time: from the first that ends after `start`. */
static gboolean in_steps(const Cut *c, guint32 rank, gint64 start, gint64 end)
{
    for (guint i = rs_model_first_step(c->m, rank, start); i < c->m->steps->len; i++) {
        const RsStep *s = &g_array_index(c->m->steps, RsStep, i);
        const RsSpan *span = &g_array_index(c->m->step_spans, RsSpan, s->first_span + rank);
        if (span->end_ns > span->start_ns && span->start_ns >= end)
            return FALSE;
        if (c->step_in[i] && start < span->end_ns && end > span->start_ns)
            return TRUE;
    }
    return FALSE;
}

static gboolean keeps(const Cut *c, guint32 event, guint32 rank)
{
    gint64 start = c->m->events.start_ns[event], end = c->m->events.end_ns[event];
    if (!c->rank_in[rank] || !(c->kinds & 1u << rs_model_sig(c->m, event)->kind))
        return FALSE;
    if (start >= c->to_ns || (end <= c->from_ns && start < c->from_ns))
        return FALSE;
    return !c->by_step || in_steps(c, rank, start, end);
}

static void copy_event(RsEvents *to, guint32 k, const RsEvents *from, guint32 i)
{
    to->start_ns[k] = from->start_ns[i];
    to->end_ns[k] = from->end_ns[i];
    to->sig[k] = from->sig[i];
    to->flags[k] = from->flags[i];
    to->aux[k] = from->aux[i];
    to->seq[k] = from->seq[i];
    to->link[k] = from->link[i];
}

static guint32 map(const Cut *c, guint32 event)
{
    return event == RS_NONE ? RS_NONE : c->new_of[event];
}

static void cut_events(Cut *c, RsModel *r)
{
    const RsEvents *from = &c->m->events;
    gsize room = (gsize)from->n + 1;
    RsEvents *to = &r->events;
    to->start_ns = g_new(gint64, room);
    to->end_ns = g_new(gint64, room);
    to->sig = g_new(guint32, room);
    to->flags = g_new(guint16, room);
    to->aux = g_new(guint16, room);
    to->seq = g_new(guint32, room);
    to->link = g_new(guint32, room);
    guint32 k = 0;
    for (guint t = 0; t < r->tracks->len; t++) {
        RsTrack *track = &g_array_index(r->tracks, RsTrack, t);
        guint32 first = k;
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            gboolean keep = keeps(c, i, track->rank);
            c->new_of[i] = keep ? k : RS_NONE;
            if (keep)
                copy_event(to, k++, from, i);
        }
        track->first = first;
        track->n = k - first;
    }
    to->n = k;
    for (guint32 i = 0; i < k; i++)
        to->link[i] = map(c, to->link[i]);
}

/* Copies the members of one gathering; returns how many are left. */
static guint32 cut_members(const Cut *c, RsModel *r, guint32 *first, guint32 n)
{
    guint32 left = 0, from = *first;
    *first = r->member_events->len;
    for (guint32 k = 0; k < n; k++) {
        guint32 e = map(c, g_array_index(c->m->member_events, guint32, from + k));
        left += e != RS_NONE;
        g_array_append_val(r->member_events, e);
    }
    if (left == 0)
        g_array_set_size(r->member_events, *first);
    return left;
}

static void cut_gatherings(const Cut *c, RsModel *r)
{
    for (guint i = 0; i < c->m->instances->len; i++) {
        RsInstance inst = g_array_index(c->m->instances, RsInstance, i);
        guint32 n = g_array_index(c->m->comms, RsComm, inst.comm).n_members;
        guint32 before = inst.n_present;
        inst.n_present = cut_members(c, r, &inst.first_member, n);
        inst.complete = inst.complete && inst.n_present == before;
        if (inst.n_present)
            g_array_append_val(r->instances, inst);
    }
    for (guint i = 0; i < c->m->rendezvous->len; i++) {
        RsRendezvous v = g_array_index(c->m->rendezvous, RsRendezvous, i);
        v.n_present = cut_members(c, r, &v.first_member, c->m->ranks->len);
        if (v.n_present)
            g_array_append_val(r->rendezvous, v);
    }
}

static void cut_messages(const Cut *c, RsModel *r)
{
    for (guint i = 0; i < c->m->messages->len; i++) {
        RsMessage msg = g_array_index(c->m->messages, RsMessage, i);
        msg.timed = msg.timed && map(c, msg.send) != RS_NONE && map(c, msg.recv) != RS_NONE;
        msg.send = map(c, msg.send);
        msg.recv = map(c, msg.recv);
        if (msg.send != RS_NONE || msg.recv != RS_NONE)
            g_array_append_val(r->messages, msg);
    }
}

static void cut_args(const Cut *c, RsModel *r)
{
    for (guint i = 0; i < c->m->args->len; i++) {
        RsArg arg = g_array_index(c->m->args, RsArg, i);
        arg.event = map(c, arg.event);
        if (arg.event != RS_NONE)
            g_array_append_val(r->args, arg);
    }
}

static void append_all(GArray *to, const GArray *from)
{
    g_array_append_vals(to, from->data, from->len);
}

static void copy_tables(const RsModel *m, RsModel *r)
{
    append_all(r->sigs, m->sigs);
    append_all(r->tracks, m->tracks);
    append_all(r->ranks, m->ranks);
    append_all(r->hosts, m->hosts);
    append_all(r->domains, m->domains);
    append_all(r->comms, m->comms);
    for (guint i = 0; i < r->comms->len; i++) {
        RsComm *c = &g_array_index(r->comms, RsComm, i);
        c->members = g_memdup2(c->members, c->n_members * sizeof *c->members);
    }
    append_all(r->steps, m->steps);
    append_all(r->step_spans, m->step_spans);
    for (guint i = 0; i < m->strings->len; i++)
        g_ptr_array_add(r->strings, g_strdup(g_ptr_array_index(m->strings, i)));
    for (guint i = 0; i < m->warnings->len; i++) {
        const RsWarning *from = g_ptr_array_index(m->warnings, i);
        RsWarning *w = g_new0(RsWarning, 1);
        *w = (RsWarning){g_strdup(from->path), from->offset, g_strdup(from->text)};
        g_ptr_array_add(r->warnings, w);
    }
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, m->meta);
    while (g_hash_table_iter_next(&it, &key, &value))
        g_hash_table_insert(r->meta, g_strdup(key), g_strdup(value));
}

static void copy_head(const RsModel *m, RsModel *r)
{
    r->world_size = m->world_size;
    r->base_realtime_ns = m->base_realtime_ns;
    r->duration_ns = m->duration_ns;
    r->clock_uncertainty_ns = m->clock_uncertainty_ns;
    r->clock_method = m->clock_method;
    r->clock_trusted = m->clock_trusted;
    r->step_source = m->step_source;
    r->incomplete = m->incomplete;
    r->dropped = m->dropped;
}

RsModel *rs_model_cut(const RsModel *m, const RsScope *scope, guint kinds)
{
    Cut c;
    cut_init(&c, m, scope, kinds);
    RsModel *r = rs_model_new();
    copy_tables(m, r);
    copy_head(m, r);
    cut_events(&c, r);
    cut_args(&c, r);
    cut_gatherings(&c, r);
    cut_messages(&c, r);
    for (guint i = 0; i < r->ranks->len; i++)
        rs_model_rank(r, i)->open_event = map(&c, rs_model_rank(r, i)->open_event);
    cut_release(&c);
    return r;
}
