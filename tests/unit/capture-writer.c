/* SPDX-License-Identifier: Apache-2.0 */
#include "capture-writer.h"

#include <glib/gstdio.h>
#include <stdarg.h>
#include <string.h>

#include "ops.h"

/* Bit by bit, as the definition has it. */
static guint32 crc32c(const void *data, gsize bytes)
{
    const guint8 *p = data;
    guint32 c = 0xffffffffu;
    for (gsize i = 0; i < bytes; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++)
            c = (c >> 1) ^ (0x82f63b78u & (0u - (c & 1)));
    }
    return ~c;
}

CwFile *cw_new(void)
{
    CwFile *f = g_new0(CwFile, 1);
    f->bytes = g_byte_array_new();
    f->payload = g_byte_array_new();
    return f;
}

void cw_free(CwFile *f)
{
    g_byte_array_unref(f->bytes);
    g_byte_array_unref(f->payload);
    g_free(f);
}

void cw_put(CwFile *f, const void *record, gsize bytes)
{
    g_byte_array_append(f->payload, record, (guint)bytes);
}

void cw_block(CwFile *f, guint16 kind, guint32 thread, guint32 flags)
{
    static const guint8 zeros[8];
    struct rs_block h;
    memset(&h, 0, sizeof h);
    h.magic = 0x42435352u;
    h.major = 1;
    h.kind = kind;
    h.payload_bytes = f->payload->len;
    h.sequence = f->sequence++;
    h.thread = thread;
    h.flags = flags;
    h.payload_crc = crc32c(f->payload->data, f->payload->len);
    h.header_crc = crc32c(&h, sizeof h - sizeof h.header_crc);
    g_byte_array_append(f->bytes, (const guint8 *)&h, sizeof h);
    g_byte_array_append(f->bytes, f->payload->data, f->payload->len);
    g_byte_array_append(f->bytes, zeros, (8 - f->payload->len % 8) % 8);
    g_byte_array_set_size(f->payload, 0);
}

void cw_meta(CwFile *f, ...)
{
    va_list args;
    va_start(args, f);
    const gchar *text;
    while ((text = va_arg(args, const gchar *)))
        cw_put(f, text, strlen(text) + 1);
    va_end(args);
    cw_block(f, RS_BLOCK_META, 0, 0);
}

void cw_process(CwFile *f, gint32 rank, gint32 world_size, const gchar *host, const gchar *domain,
                gint64 pid, const gchar *hz)
{
    g_autofree gchar *r = g_strdup_printf("%d", rank);
    g_autofree gchar *w = g_strdup_printf("%d", world_size);
    g_autofree gchar *p = g_strdup_printf("%" G_GINT64_FORMAT, pid);
    cw_meta(f, "format", "1.0", "program", "train", "host", host, "domain", domain, "pid", p,
            "rank", r, "world_size", w, "clock.source", "tsc", "clock.hz", hz, "run_id", "r1",
            "nic.eth0.mbps", "1000", "nic.eth1.mbps", "10000", NULL);
}

static void put_def(CwFile *f, void *record, gsize bytes, guint16 kind, guint32 id,
                    const void *tail, gsize tail_bytes)
{
    static const guint8 zeros[8];
    struct rs_def *d = record;
    gsize pad = (8 - (bytes + tail_bytes) % 8) % 8;
    d->kind = kind;
    d->id = id;
    d->bytes = (guint32)(bytes + tail_bytes + pad);
    cw_put(f, record, bytes);
    cw_put(f, tail, tail_bytes);
    cw_put(f, zeros, pad);
}

guint32 cw_string(CwFile *f, const gchar *text)
{
    struct rs_def d = {.text_bytes = (guint32)strlen(text)};
    put_def(f, &d, sizeof d, RS_DEF_STRING, ++f->strings, text, strlen(text));
    return f->strings;
}

void cw_comm(CwFile *f, guint32 id, guint64 identity, gint32 rank, gint32 size,
             const gint32 *members, guint32 api)
{
    struct rs_def_comm d = {.identity = identity, .rank = rank, .size = size, .api = api};
    d.device = -1;
    d.member_count = members ? (guint32)size : 0;
    put_def(f, &d, sizeof d, RS_DEF_COMM, id, members, d.member_count * sizeof *members);
}

static void put_type(CwFile *f, guint16 kind, guint32 id, const gchar *name, guint64 size)
{
    struct rs_def_type d = {.size_bytes = size, .name = cw_string(f, name)};
    put_def(f, &d, sizeof d, kind, id, "", 0);
}

void cw_dtype(CwFile *f, guint32 id, const gchar *name, guint64 size)
{
    put_type(f, RS_DEF_DTYPE, id, name, size);
}

void cw_op(CwFile *f, guint16 op, const gchar *name, guint16 klass, guint16 api)
{
    struct rs_def_op d = {.name = cw_string(f, name), .klass = klass, .api = api};
    put_def(f, &d, sizeof d, RS_DEF_OP, op, "", 0);
}

void cw_standard_defs(CwFile *f, gint32 rank, gint32 size)
{
    cw_op(f, CW_ALLREDUCE, "MPI_Allreduce", RS_CLASS_COLL, RS_API_MPI);
    cw_op(f, CW_IALLREDUCE, "MPI_Iallreduce", RS_CLASS_COLL_START, RS_API_MPI);
    cw_op(f, CW_BCAST, "MPI_Bcast", RS_CLASS_COLL, RS_API_MPI);
    cw_op(f, CW_SEND, "MPI_Send", RS_CLASS_SEND, RS_API_MPI);
    cw_op(f, CW_ISEND, "MPI_Isend", RS_CLASS_SEND_START, RS_API_MPI);
    cw_op(f, CW_RECV, "MPI_Recv", RS_CLASS_RECV, RS_API_MPI);
    cw_op(f, CW_IRECV, "MPI_Irecv", RS_CLASS_RECV_START, RS_API_MPI);
    cw_op(f, CW_SENDRECV, "MPI_Sendrecv", RS_CLASS_SENDRECV, RS_API_MPI);
    cw_op(f, CW_WAIT, "MPI_Wait", RS_CLASS_COMPLETE, RS_API_MPI);
    cw_op(f, CW_BARRIER, "MPI_Barrier", RS_CLASS_COLL, RS_API_MPI);
    cw_op(f, CW_ALLGATHER, "MPI_Allgather", RS_CLASS_COLL, RS_API_MPI);
    cw_op(f, CW_REDUCE_SCATTER, "MPI_Reduce_scatter_block", RS_CLASS_COLL, RS_API_MPI);
    cw_op(f, CW_NCCL_ALLREDUCE, "ncclAllReduce", RS_CLASS_COLL, RS_API_NCCL);
    cw_dtype(f, 1, "MPI_FLOAT", 4);
    cw_dtype(f, 2, "MPI_BYTE", 1);
    put_type(f, RS_DEF_REDOP, 1, "MPI_SUM", 0);
    g_autofree gint32 *members = g_new(gint32, size + 1);
    for (gint32 i = 0; i < size; i++)
        members[i] = i;
    cw_comm(f, 1, 0xabc, rank, size, members, RS_COMM_MPI);
    cw_block(f, RS_BLOCK_DEFS, 0, 0);
}

void cw_anchor(CwFile *f, guint64 tick, guint64 monotonic_ns, guint64 realtime_ns, guint32 spread)
{
    struct rs_anchor a = {RS_CLOCK_ANCHOR, spread, tick, monotonic_ns, realtime_ns};
    cw_put(f, &a, sizeof a);
}

void cw_probe(CwFile *f, gint32 peer, guint64 sent, guint64 peer_received, guint64 peer_sent,
              guint64 received)
{
    struct rs_clock_probe p = {RS_CLOCK_PROBE, peer, sent, peer_received, peer_sent, received};
    cw_put(f, &p, sizeof p);
}

void cw_event(CwFile *f, struct rs_event e)
{
    cw_put(f, &e, sizeof e);
}

void cw_request(CwFile *f, guint64 request)
{
    struct rs_ext_request x = {.op = RS_EXT_REQUEST, .request = request};
    cw_put(f, &x, sizeof x);
}

void cw_done(CwFile *f, guint64 request, gint32 source, gint32 tag)
{
    struct rs_ext_done x = {.op = RS_EXT_DONE, .n = 1, .done = {{request, source, tag}}};
    cw_put(f, &x, sizeof x);
}

void cw_status(CwFile *f, gint32 source, gint32 tag, guint64 bytes)
{
    struct rs_ext_status x = {.op = RS_EXT_STATUS, .source = source, .tag = tag, .bytes = bytes};
    cw_put(f, &x, sizeof x);
}

void cw_second(CwFile *f, gint32 source, gint32 tag, guint64 count, guint32 dtype)
{
    struct rs_ext_second x = {.op = RS_EXT_SECOND, .peer = source, .count = count};
    x.dtype = dtype;
    x.tag = tag;
    cw_put(f, &x, sizeof x);
}

void cw_end(CwFile *f, enum rs_end_reason reason, guint64 tick, guint64 events, guint64 dropped)
{
    struct rs_end e = {.reason = reason, .tick = tick, .events = events, .dropped = dropped};
    cw_put(f, &e, sizeof e);
    cw_block(f, RS_BLOCK_END, 0, 0);
}

gchar *cw_save(const CwFile *f, const gchar *folder, const gchar *name)
{
    gchar *path = g_build_filename(folder, name, NULL);
    g_autoptr(GError) error = NULL;
    if (!g_file_set_contents(path, (const gchar *)f->bytes->data, f->bytes->len, &error))
        g_error("%s", error->message);
    return path;
}

gchar *cw_make_folder(void)
{
    g_autoptr(GError) error = NULL;
    gchar *folder = g_dir_make_tmp("ringscope-test-XXXXXX", &error);
    if (!folder)
        g_error("%s", error->message);
    return folder;
}

void cw_remove_folder(const gchar *folder)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    const gchar *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree gchar *path = g_build_filename(folder, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            cw_remove_folder(path);
        else
            g_unlink(path);
    }
    if (dir)
        g_dir_close(dir);
    g_rmdir(folder);
}

int cw_setup(void **state)
{
    *state = cw_make_folder();
    return 0;
}

int cw_teardown(void **state)
{
    cw_remove_folder(*state);
    g_free(*state);
    return 0;
}
