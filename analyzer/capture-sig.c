/* SPDX-License-Identifier: Apache-2.0 */
/* capture-sig.c - what a recorded call is: operation, sizes, peers; interned once each. */
#include "capture-internal.h"

#include "coll-names.h"

#include <string.h>

static guint64 times(guint64 a, guint64 b)
{
    guint64 r;
    return __builtin_mul_overflow(a, b, &r) ? G_MAXUINT64 : r;
}

/* RsSig.bytes of a collective. `own`: what this rank passed; `other`: its receive side. */
static guint64 collective_bytes(const RsSigKey *k, guint8 coll, gboolean vector, guint64 size,
                                guint64 second_size, const RsCaptureComm *comm)
{
    guint64 n = comm ? (guint64)comm->size : 1;
    gboolean has_second = k->second_count != G_MAXUINT64;
    guint64 own = times(k->count, size);
    guint64 other = has_second ? times(k->second_count, second_size) : own;
    gboolean in_place = (k->flags & RS_EVENT_IN_PLACE) && has_second;
    switch (coll) {
    case RS_COLL_ALLREDUCE:
    case RS_COLL_REDUCE:
    case RS_COLL_BROADCAST:
    case RS_COLL_SCAN:
        return own;
    case RS_COLL_REDUCE_SCATTER:
        return vector ? own : times(own, n);
    case RS_COLL_ALLGATHER:
        if (vector) /* receive counts are those of all ranks */
            return has_second ? other : times(own, n);
        return times(in_place ? other : own, n);
    case RS_COLL_GATHER:
        if (vector)
            return comm && comm->rank == k->peer ? other : times(own, n);
        return times(in_place ? other : own, n);
    case RS_COLL_ALLTOALL:
        if (vector)
            return in_place ? other : own;
        return times(in_place ? other : own, n);
    case RS_COLL_SCATTER: /* the send side counts at the root alone */
        if (comm && comm->rank == k->peer)
            return vector ? own : times(own, n);
        return times(other, n);
    default:
        return 0;
    }
}

static gint32 peer_of(guint8 klass, const RsSigKey *k)
{
    gboolean receives =
        klass == RS_CLASS_RECV || klass == RS_CLASS_RECV_START || klass == RS_CLASS_PROBE;
    if (k->flags & RS_EVENT_NULL_PEER)
        return RS_PEER_NONE;
    return receives && k->peer == -1 ? RS_PEER_ANY : k->peer; /* MPI_Mrecv is told no source */
}

/* Captures say themselves what their operations are: a later tracer's are understood too. */
static void fill_operation(RsCapture *c, guint16 op, RsSig *s, gboolean *ret_vector)
{
    const RsCaptureOp *def = g_hash_table_lookup(c->ops, GUINT_TO_POINTER(op));
    s->op = op;
    *ret_vector = FALSE;
    if (!def) { /* its definition was lost */
        g_autofree gchar *name = g_strdup_printf("operation %u", op);
        s->name = rs_builder_string(c->b, name);
        return;
    }
    s->klass = (guint8)def->klass;
    s->api = (guint8)def->api;
    s->name = def->name;
    if (s->klass == RS_CLASS_COLL || s->klass == RS_CLASS_COLL_START)
        s->coll = (guint8)rs_coll_of_name(rs_builder_text(c->b, def->name), ret_vector);
}

static guint32 make_sig(RsCapture *c, const RsSigKey *k)
{
    RsSig s = rs_builder_sig_init(c->b, RS_KIND_CALL, NULL);
    gboolean vector;
    fill_operation(c, k->op, &s, &vector);
    if (k->flags & RS_EVENT_DEVICE)
        s.kind = RS_KIND_DEVICE;
    const RsCaptureComm *comm = rs_capture_comm(c, k->comm);
    if (comm) {
        s.comm = comm->comm;
        s.member = comm->shared && comm->rank >= 0 && comm->rank < G_MAXUINT16
                       ? (guint16)(comm->rank + 1)
                       : 0;
    }
    RsCaptureType type = rs_capture_type(c, k->dtype);
    RsCaptureType second = rs_capture_type(c, k->second_dtype);
    const RsCaptureType *redop = g_hash_table_lookup(c->redops, GUINT_TO_POINTER(k->redop));
    s.dtype = type.name;
    s.redop = redop ? redop->name : 0;
    s.peer = peer_of(s.klass, k);
    s.tag = (gint32)k->tag;
    s.count = k->count;
    if (s.klass == RS_CLASS_COLL || s.klass == RS_CLASS_COLL_START)
        s.bytes = collective_bytes(k, s.coll, vector, type.size_bytes, second.size_bytes, comm);
    else
        s.bytes = times(k->count, type.size_bytes);
    return rs_builder_sig(c->b, &s);
}

static gboolean is_message(guint8 klass)
{
    return klass >= RS_CLASS_SEND && klass <= RS_CLASS_PROBE;
}

/* `seq` is a tag, part of what the call is, or a collective's number, which is not. */
static guint32 tag_of(const RsCapture *c, const struct rs_event *e)
{
    const RsCaptureOp *def = g_hash_table_lookup(c->ops, GUINT_TO_POINTER(e->op));
    return def && is_message((guint8)def->klass) ? e->seq : 0;
}

static guint hash_key(const RsSigKey *k)
{
    const guint32 *w = (const guint32 *)(const void *)k;
    guint32 h = 2166136261u;
    for (gsize i = 0; i < sizeof *k / sizeof *w; i++)
        h = (h ^ w[i]) * 16777619u;
    return (h ^ (h >> 16)) % RS_SIG_CACHE;
}

guint32 rs_capture_call_sig(RsCapture *c, const struct rs_event *e,
                            const struct rs_ext_second *second)
{
    RsSigKey k;
    memset(&k, 0, sizeof k);
    k.op = e->op;
    k.flags = e->flags & (RS_EVENT_DEVICE | RS_EVENT_IN_PLACE | RS_EVENT_NULL_PEER);
    k.peer = e->peer;
    k.count = e->count;
    k.comm = e->comm;
    k.dtype = e->dtype;
    k.redop = e->redop;
    k.tag = tag_of(c, e);
    k.second_count = second ? second->count : G_MAXUINT64;
    k.second_dtype = second ? second->dtype : 0;
    guint slot = hash_key(&k);
    if (!c->cache[slot].used || memcmp(&c->cache[slot].key, &k, sizeof k) != 0) {
        c->cache[slot].sig = make_sig(c, &k);
        c->cache[slot].key = k;
        c->cache[slot].used = TRUE;
    }
    return c->cache[slot].sig;
}
