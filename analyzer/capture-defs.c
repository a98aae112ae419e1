/* SPDX-License-Identifier: Apache-2.0 */
/* capture-defs.c - definitions of a capture: numbers to strings, communicators, types, threads. */
#include "capture-internal.h"

#include <string.h>

void rs_capture_init_tables(RsCapture *c)
{
    c->identities = g_hash_table_new(g_int64_hash, g_int64_equal);
    c->strings = g_hash_table_new(g_direct_hash, g_direct_equal);
    GHashTable **tables[] = {&c->comms, &c->dtypes, &c->redops, &c->ops, &c->threads};
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        *tables[i] = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
}

void rs_capture_clear_tables(RsCapture *c)
{
    GHashTable *tables[] = {c->identities, c->strings, c->comms,  c->dtypes,
                            c->redops,     c->ops,     c->threads};
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        g_hash_table_unref(tables[i]);
}

RsCaptureThread *rs_capture_thread(RsCapture *c, guint32 number)
{
    RsCaptureThread *t = g_hash_table_lookup(c->threads, GUINT_TO_POINTER(number));
    if (!t) {
        t = g_new0(RsCaptureThread, 1);
        t->track = t->device_track = RS_NONE;
        g_hash_table_insert(c->threads, GUINT_TO_POINTER(number), t);
    }
    return t;
}

const RsCaptureComm *rs_capture_comm(const RsCapture *c, guint32 id)
{
    return g_hash_table_lookup(c->comms, GUINT_TO_POINTER(id));
}

RsStr rs_capture_string(const RsCapture *c, guint32 id)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(c->strings, GUINT_TO_POINTER(id)));
}

RsCaptureType rs_capture_type(const RsCapture *c, guint32 id)
{
    const RsCaptureType *t = g_hash_table_lookup(c->dtypes, GUINT_TO_POINTER(id));
    return t ? *t : (RsCaptureType){0};
}

/* One process may hold several members of a communicator: one process, many devices. */
static void mark_shared(RsCapture *c, RsCaptureComm *added)
{
    RsCaptureComm *first = g_hash_table_lookup(c->identities, &added->identity);
    if (!first)
        g_hash_table_insert(c->identities, &added->identity, added);
    else if (first->rank != added->rank)
        first->shared = added->shared = TRUE;
}

static void add_comm(RsCapture *c, const guint8 *p, guint32 bytes)
{
    struct rs_def_comm d;
    if (bytes < sizeof d)
        return;
    memcpy(&d, p, sizeof d);
    if (g_hash_table_contains(c->comms, GUINT_TO_POINTER(d.def.id)) || d.size <= 0)
        return;
    const gchar *name = rs_builder_text(c->b, rs_capture_string(c, d.name));
    RsCaptureComm *comm = g_new0(RsCaptureComm, 1);
    comm->comm = rs_builder_comm(c->b, d.identity, d.parent, d.api, d.size, name);
    comm->rank = d.rank;
    comm->size = d.size;
    comm->identity = d.identity;
    comm->device = d.device;
    g_hash_table_insert(c->comms, GUINT_TO_POINTER(d.def.id), comm);
    mark_shared(c, comm);
    if (d.member_count == (guint32)d.size &&
        d.member_count <= (bytes - sizeof d) / sizeof(gint32)) {
        gint32 *members = g_new(gint32, d.member_count);
        memcpy(members, p + sizeof d, d.member_count * sizeof *members);
        rs_builder_comm_members(c->b, comm->comm, members, d.member_count);
        g_free(members);
    }
    if (d.rank >= 0 && d.rank < d.size)
        rs_builder_comm_join(c->b, comm->comm, c->process, d.rank);
}

static void add_type(RsCapture *c, GHashTable *table, const guint8 *p, guint32 bytes)
{
    struct rs_def_type d;
    if (bytes < sizeof d)
        return;
    memcpy(&d, p, sizeof d);
    RsCaptureType *t = g_new0(RsCaptureType, 1);
    t->name = rs_capture_string(c, d.name);
    t->size_bytes = d.size_bytes;
    g_hash_table_replace(table, GUINT_TO_POINTER(d.def.id), t);
}

static void add_thread(RsCapture *c, const guint8 *p, guint32 bytes)
{
    struct rs_def_thread d;
    if (bytes < sizeof d)
        return;
    memcpy(&d, p, sizeof d);
    if (d.def.id == 0)
        return;
    RsCaptureThread *t = rs_capture_thread(c, d.def.id - 1);
    t->tid = d.tid;
    t->name = rs_capture_string(c, d.name);
}

static void add_op(RsCapture *c, const guint8 *p, guint32 bytes)
{
    struct rs_def_op d;
    if (bytes < sizeof d)
        return;
    memcpy(&d, p, sizeof d);
    RsCaptureOp *op = g_new0(RsCaptureOp, 1);
    op->name = rs_capture_string(c, d.name);
    op->klass = d.klass < RS_CLASS_COUNT ? d.klass : RS_CLASS_OTHER;
    op->api = d.api < RS_API_COUNT ? d.api : RS_API_NONE;
    g_hash_table_replace(c->ops, GUINT_TO_POINTER(d.def.id), op);
}

static void add_def(RsCapture *c, const struct rs_def *d, const guint8 *p)
{
    switch (d->kind) {
    case RS_DEF_STRING:
        if (d->text_bytes <= d->bytes - sizeof *d)
            g_hash_table_insert(c->strings, GUINT_TO_POINTER(d->id),
                                GUINT_TO_POINTER(rs_builder_string_len(
                                    c->b, (const gchar *)p + sizeof *d, d->text_bytes)));
        break;
    case RS_DEF_COMM:
        add_comm(c, p, d->bytes);
        break;
    case RS_DEF_DTYPE:
        add_type(c, c->dtypes, p, d->bytes);
        break;
    case RS_DEF_REDOP:
        add_type(c, c->redops, p, d->bytes);
        break;
    case RS_DEF_THREAD:
        add_thread(c, p, d->bytes);
        break;
    case RS_DEF_OP:
        add_op(c, p, d->bytes);
        break;
    default:
        c->unknown_defs++;
    }
}

void rs_capture_read_defs(RsCapture *c, const guint8 *payload, gsize bytes, guint64 offset)
{
    for (gsize at = 0; at < bytes;) {
        struct rs_def d;
        if (bytes - at < sizeof d)
            break;
        memcpy(&d, payload + at, sizeof d);
        if (d.bytes < sizeof d || d.bytes > bytes - at) {
            rs_builder_warn(c->b, c->path, offset + at, "a definition of impossible length");
            break;
        }
        add_def(c, &d, payload + at);
        at += d.bytes;
    }
}
