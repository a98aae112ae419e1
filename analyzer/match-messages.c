/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match-messages.c - one RsMessage for each (communicator, source, destination, tag, order).
 *
 * MPI does not let messages of one key overtake each other: the k-th send of a key meets the k-th
 * receive that was posted and turned out to be of that key. A receive from "any" gets its key from
 * its status; one that never told stays out.
 */
#include "key-hash.h"
#include "model-internal.h"
#include "plural.h"

#include <string.h>

typedef struct {
    guint32 comm, src, dst; /* ranks in comm */
    gint32 tag;
    guint32 parts; /* 1: a message in parts, which meets its like alone */
    guint32 side;  /* 0 send, 1 receive */
    gint64 start;
    guint32 event;
    guint64 bytes; /* G_MAXUINT64 unknown */
} End;

static gint compare_ends(gconstpointer a, gconstpointer c)
{
    const End *x = a, *y = c;
#define BY(field)                                                                                  \
    if (x->field != y->field)                                                                      \
    return x->field < y->field ? -1 : 1
    BY(comm);
    BY(src);
    BY(dst);
    BY(tag);
    BY(parts);
    BY(side);
    BY(start);
    BY(event);
#undef BY
    return 0;
}

/* A partitioned send or receive: what is sent is ready long after its start. */
static gboolean is_in_parts(const RsModel *m, guint32 event)
{
    const gchar *name = rs_model_str(m, rs_model_sig(m, event)->name);
    return strcmp(name, "MPI_Start_psend") == 0 || strcmp(name, "MPI_Start_precv") == 0;
}

static gboolean same_key(const End *x, const End *y)
{
    return x->comm == y->comm && x->src == y->src && x->dst == y->dst && x->tag == y->tag &&
           x->parts == y->parts;
}

/* The extras of an event: what completion told was appended after the sorted rest. */
static const RsExtra *find_extra(const GHashTable *extras, guint32 event, RsExtraKind kind)
{
    guint64 key = (guint64)event << 8 | kind;
    return g_hash_table_lookup((GHashTable *)extras, &key);
}

static GHashTable *index_extras(const RsBuilder *b)
{
    GHashTable *h = g_hash_table_new_full(rs_key_hash, g_int64_equal, g_free, NULL);
    for (guint i = 0; i < b->extras->len; i++) {
        RsExtra *x = &g_array_index(b->extras, RsExtra, i);
        if (x->kind != RS_EXTRA_STATUS && x->kind != RS_EXTRA_SECOND)
            continue;
        guint64 key = (guint64)x->event << 8 | x->kind;
        g_hash_table_replace(h, g_memdup2(&key, sizeof key), x);
    }
    return h;
}

typedef struct {
    RsBuilder *b;
    GHashTable *extras;
    GArray *ends;
} Collector;

static void add_end(Collector *c, guint32 event, guint32 side, gint32 own, gint32 peer, gint32 tag,
                    guint64 bytes)
{
    if (own < 0 || peer < 0)
        return;
    End e = {.comm = rs_model_sig(c->b->model, event)->comm, .tag = tag, .side = side};
    e.src = (guint32)(side ? peer : own);
    e.dst = (guint32)(side ? own : peer);
    e.parts = (guint32)is_in_parts(c->b->model, event);
    e.start = c->b->model->events.start_ns[event];
    e.event = event;
    e.bytes = bytes;
    g_array_append_val(c->ends, e);
}

static void add_receive(Collector *c, guint32 event, gint32 own, gint32 peer, gint32 tag,
                        guint64 bytes)
{
    const RsExtra *status = find_extra(c->extras, event, RS_EXTRA_STATUS);
    if (peer == RS_PEER_NONE)
        return; /* the null process */
    if (status && status->source != RS_PEER_UNKNOWN) {
        peer = status->source;
        tag = status->tag;
        bytes = status->value;
    } else if (peer == RS_PEER_ANY || tag == -1) {
        return; /* from anybody, and nobody told from whom */
    }
    add_end(c, event, 1, own, peer, tag, bytes);
}

static void collect_event(Collector *c, guint32 event, guint32 rank)
{
    const RsSig *s = rs_model_sig(c->b->model, event);
    if (s->comm == RS_NONE || s->kind != RS_KIND_CALL ||
        (c->b->model->events.flags[event] & RS_FLAG_FAILED))
        return;
    gint32 own = rs_comms_rank_of(c->b, event, rank);
    switch (s->klass) {
    case RS_CLASS_SEND:
    case RS_CLASS_SEND_START:
        add_end(c, event, 0, own, s->peer, s->tag, s->bytes);
        break;
    case RS_CLASS_RECV:
    case RS_CLASS_RECV_START:
        add_receive(c, event, own, s->peer, s->tag, G_MAXUINT64);
        break;
    case RS_CLASS_SENDRECV: {
        add_end(c, event, 0, own, s->peer, s->tag, s->bytes);
        const RsExtra *second = find_extra(c->extras, event, RS_EXTRA_SECOND);
        if (second)
            add_receive(c, event, own, second->source, second->tag, G_MAXUINT64);
        break;
    }
    default:
        break;
    }
}

static void member_ranks(const RsModel *m, const End *e, RsMessage *msg)
{
    const RsComm *c = &g_array_index(m->comms, RsComm, e->comm);
    msg->src = e->src < c->n_members ? c->members[e->src] : RS_NONE;
    msg->dst = e->dst < c->n_members ? c->members[e->dst] : RS_NONE;
}

static void add_message(RsModel *m, const End *send, const End *recv)
{
    RsMessage msg = {.send = RS_NONE, .recv = RS_NONE, .step = RS_NONE};
    member_ranks(m, send ? send : recv, &msg);
    if (send) {
        msg.send = send->event;
        msg.bytes = send->bytes;
    }
    if (recv) {
        msg.recv = recv->event;
        if (recv->bytes != G_MAXUINT64)
            msg.bytes = recv->bytes;
    }
    g_array_append_val(m->messages, msg);
}

/* One key: sends stand before receives, each in order. */
static void pair_key(RsModel *m, const End *ends, guint n)
{
    guint sends = 0;
    while (sends < n && !ends[sends].side)
        sends++;
    guint recvs = n - sends;
    for (guint i = 0; i < MAX(sends, recvs); i++)
        add_message(m, i < sends ? &ends[i] : NULL, i < recvs ? &ends[sends + i] : NULL);
}

void rs_messages_pair(RsBuilder *b)
{
    RsModel *m = b->model;
    g_autoptr(GHashTable) extras = index_extras(b);
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(End));
    Collector c = {b, extras, ends};
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        for (guint32 i = track->first; i < track->first + track->n; i++)
            collect_event(&c, i, track->rank);
    }
    g_array_sort(ends, compare_ends);
    const End *e = (const End *)(void *)ends->data;
    for (guint from = 0, to; from < ends->len; from = to) {
        for (to = from + 1; to < ends->len && same_key(&e[from], &e[to]); to++)
            ;
        pair_key(m, e + from, to - from);
    }
}

/* ---- times ---- */

/* What occupied the side: the device interval where the call has one. */
static guint32 *device_of_calls(const RsModel *m)
{
    guint32 *device = g_new(guint32, (gsize)m->events.n + 1);
    for (guint32 i = 0; i < m->events.n; i++)
        device[i] = RS_NONE;
    for (guint32 i = 0; i < m->events.n; i++)
        if (rs_model_sig(m, i)->kind == RS_KIND_DEVICE && m->events.link[i] != RS_NONE)
            device[m->events.link[i]] = i;
    return device;
}

static gboolean side_ended(const RsModel *m, guint32 event, gboolean receiver)
{
    if (m->events.flags[event] & RS_FLAG_OPEN)
        return FALSE;
    const RsSig *s = rs_model_sig(m, event);
    if (s->api == RS_API_NCCL && s->kind != RS_KIND_DEVICE)
        return FALSE;
    return !receiver || s->klass != RS_CLASS_RECV_START || s->kind == RS_KIND_DEVICE ||
           m->events.link[event] != RS_NONE;
}

gboolean rs_message_is_witness(const RsModel *m, const RsMessage *msg)
{
    return msg->send != RS_NONE && msg->recv != RS_NONE &&
           rs_model_sig(m, msg->send)->api == RS_API_MPI && side_ended(m, msg->recv, TRUE) &&
           rs_model_rank(m, msg->src)->dropped + rs_model_rank(m, msg->dst)->dropped == 0 &&
           rs_model_rank(m, msg->src)->off_count + rs_model_rank(m, msg->dst)->off_count == 0;
}

static void time_message(const RsModel *m, RsMessage *msg, const guint32 *device)
{
    guint32 send = msg->send, recv = msg->recv;
    if (send != RS_NONE && device[send] != RS_NONE)
        send = device[send];
    if (recv != RS_NONE && device[recv] != RS_NONE)
        recv = device[recv];
    if (send == RS_NONE || recv == RS_NONE) {
        guint32 one = send == RS_NONE ? recv : send;
        msg->both_ns = rs_model_arrival_ns(m, one);
        msg->end_ns = rs_model_done_ns(m, one);
        return;
    }
    msg->both_ns = MAX(rs_model_arrival_ns(m, send), rs_model_arrival_ns(m, recv));
    msg->end_ns = rs_model_done_ns(m, recv);
    msg->timed =
        side_ended(m, send, FALSE) && side_ended(m, recv, TRUE) && !is_in_parts(m, msg->send);
}

static gint compare_messages(gconstpointer a, gconstpointer c)
{
    const RsMessage *x = a, *y = c;
    if (x->both_ns != y->both_ns)
        return x->both_ns < y->both_ns ? -1 : 1;
    if (x->send != y->send)
        return x->send < y->send ? -1 : 1;
    return x->recv < y->recv ? -1 : x->recv > y->recv;
}

/* The cause stands before its effect: what the clocks still have wrong is counted, and the message
 * is taken to end when both sides had come. */
static void repair(RsBuilder *b)
{
    RsModel *m = b->model;
    guint64 violations = 0;
    gint64 worst = 0;
    for (guint i = 0; i < m->messages->len; i++) {
        RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        if (msg->send == RS_NONE || msg->recv == RS_NONE || msg->end_ns >= msg->both_ns)
            continue;
        if (msg->timed) {
            violations++;
            worst = MAX(worst, msg->both_ns - msg->end_ns);
        }
        msg->end_ns = msg->both_ns;
    }
    if (violations == 0)
        return;
    rs_builder_warn(b, "", 0,
                    "%" G_GUINT64_FORMAT
                    " message%s received before sent, by up to %" G_GINT64_FORMAT
                    " ns: the clocks are off by as much",
                    violations, rs_plural(violations), worst);
    m->clock_uncertainty_ns = MAX(m->clock_uncertainty_ns, worst);
}

/* Its number in the order is not known then. */
static gboolean was_off_before(const RsModel *m, guint32 rank, guint32 event)
{
    return rs_model_was_off(m, rank, G_MININT64, m->events.start_ns[event]);
}

void rs_messages_time(RsBuilder *b)
{
    RsModel *m = b->model;
    g_autofree guint32 *device = device_of_calls(m);
    for (guint i = 0; i < m->messages->len; i++)
        time_message(m, &g_array_index(m->messages, RsMessage, i), device);
    for (guint i = 0; b->cut_in_front && i < m->messages->len; i++) {
        RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        /* Which of the messages went to which receive is told by their order alone. */
        msg->timed = msg->timed && !b->whole_ns[msg->src] && !b->whole_ns[msg->dst] &&
                     !was_off_before(m, msg->src, msg->send) &&
                     !was_off_before(m, msg->dst, msg->recv);
    }
    repair(b);
    g_array_sort(m->messages, compare_messages);
}
