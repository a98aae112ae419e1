/* SPDX-License-Identifier: Apache-2.0 */
#include "synthetic-run.h"

const RsSyntheticRun rs_synthetic_healthy = {
    .seed = 1,
    .n_ranks = 4,
    .n_hosts = 2,
    .n_steps = 20,
    .mark_steps = TRUE,
    .compute_ns = 10000000,
    .collectives_per_step = 2,
    .count = 65536,
    .transfer_ns = 500000,
    .message_bytes = 1 << 20,
    .bytes_per_s = 1e9,
    .slow_rank = -1,
    .slow_src = -1,
    .slow_dst = -1,
    .missing_rank = -1,
};

typedef struct {
    const RsSyntheticRun *spec;
    RsBuilder *b;
    guint32 random;
    guint32 comm, nccl_comm;
    guint32 *process, *track, *device_track; /* by rank; RS_NONE where missing */
    gint64 *now;                             /* by rank */
    guint32 seq;
    guint64 request;
} Run;

static guint32 draw(Run *r, guint32 below)
{
    r->random = r->random * 1664525u + 1013904223u;
    return below ? (r->random >> 8) % below : 0;
}

static guint32 host_of(const RsSyntheticRun *s, guint rank)
{
    return rank * s->n_hosts / s->n_ranks;
}

static void add_rank(Run *r, guint rank)
{
    r->track[rank] = r->device_track[rank] = RS_NONE;
    if ((gint32)rank == r->spec->missing_rank)
        return;
    g_autofree gchar *host = g_strdup_printf("host%u", host_of(r->spec, rank));
    guint32 p = r->process[rank] = rs_builder_add_process(r->b, (gint32)rank, host, 4000 + rank);
    RsProcess *info = rs_builder_process(r->b, p);
    info->world_size = (gint32)r->spec->n_ranks;
    rs_builder_set_text(&info->program, "train");
    g_autofree gchar *path = g_strdup_printf("run/%s-%u.rsc", host, 4000 + rank);
    rs_builder_set_text(&info->path, path);
    r->track[rank] = rs_builder_add_track(r->b, p, "main", 4000 + rank, FALSE);
    if (r->spec->nccl) {
        r->device_track[rank] = rs_builder_add_track(r->b, p, "NCCL device 0", 0, TRUE);
        rs_builder_comm_join(r->b, r->nccl_comm, p, (gint32)rank);
    }
    rs_builder_meta(r->b, p, "mpi.library", "synthetic MPI 1.0");
}

static guint32 put(Run *r, guint rank, const RsSig *sig, gint64 start, gint64 end, guint16 flags,
                   guint16 depth, guint32 seq)
{
    if (r->track[rank] == RS_NONE)
        return RS_NONE;
    guint32 track = sig->kind == RS_KIND_DEVICE ? r->device_track[rank] : r->track[rank];
    return rs_builder_event(r->b, track, rs_builder_sig(r->b, sig), start, end, flags, depth, seq);
}

static void compute(Run *r)
{
    for (guint i = 0; i < r->spec->n_ranks; i++) {
        gint64 late = (gint32)i == r->spec->slow_rank ? r->spec->late_ns : 0;
        gint64 jitter = draw(r, (guint32)(r->spec->compute_ns / 8 + 1));
        gint64 end = r->now[i] + r->spec->compute_ns + jitter + late;
        RsSig sig = rs_builder_sig_init(r->b, RS_KIND_RANGE, "forward");
        if (r->spec->mark_steps)
            put(r, i, &sig, r->now[i], end, 0, 1, 0);
        r->now[i] = end;
    }
}

static RsSig message_sig(Run *r, enum rs_op_class klass, const gchar *name, guint peer)
{
    RsSig sig = rs_builder_sig_init(r->b, RS_KIND_CALL, name);
    sig.api = RS_API_MPI;
    sig.klass = (guint8)klass;
    sig.comm = r->comm;
    sig.peer = (gint32)peer;
    sig.tag = 7;
    sig.dtype = rs_builder_string(r->b, "MPI_BYTE");
    sig.count = sig.bytes = r->spec->message_bytes;
    return sig;
}

static gdouble speed(const RsSyntheticRun *s, guint from, guint to)
{
    gboolean slow =
        (gint32)host_of(s, from) == s->slow_src && (gint32)host_of(s, to) == s->slow_dst;
    return slow ? s->slow_bytes_per_s : s->bytes_per_s;
}

/* Irecv from the rank before, Send to the next, Wait: the receiver's Wait shows the transfer. */
static void exchange(Run *r)
{
    const RsSyntheticRun *s = r->spec;
    guint n = s->n_ranks;
    if (s->message_bytes == 0 || n < 2)
        return;
    g_autofree gint64 *start = g_memdup2(r->now, n * sizeof *r->now);
    for (guint i = 0; i < n; i++) {
        guint from = (i + n - 1) % n, to = (i + 1) % n;
        RsSig recv = message_sig(r, RS_CLASS_RECV_START, "MPI_Irecv", from);
        RsSig send = message_sig(r, RS_CLASS_SEND, "MPI_Send", to);
        guint64 request = 0x1000 + r->request++ % 3 * 16 + i * 4096; /* values come again */
        guint32 e = put(r, i, &recv, start[i], start[i] + 1000, 0, 0, 0);
        rs_builder_request(r->b, e, request);
        put(r, i, &send, start[i] + 2000, start[i] + 30000, 0, 0, 0);
        gint64 both = MAX(start[from] + 2000, start[i]);
        gint64 end = both + (gint64)((gdouble)s->message_bytes / speed(s, from, i) * 1e9);
        r->now[i] = MAX(end, start[i] + 31000);
        RsSig wait = rs_builder_sig_init(r->b, RS_KIND_CALL, "MPI_Wait");
        wait.api = RS_API_MPI;
        wait.klass = RS_CLASS_COMPLETE;
        guint32 w = put(r, i, &wait, start[i] + 30500, r->now[i], 0, 0, 0);
        rs_builder_done(r->b, w, request, (gint32)from, 7);
    }
}

static void collective(Run *r, guint64 count)
{
    const RsSyntheticRun *s = r->spec;
    RsSig sig =
        rs_builder_sig_init(r->b, RS_KIND_CALL, s->nccl ? "ncclAllReduce" : "MPI_Allreduce");
    sig.api = s->nccl ? RS_API_NCCL : RS_API_MPI;
    sig.klass = RS_CLASS_COLL;
    sig.coll = RS_COLL_ALLREDUCE;
    sig.comm = s->nccl ? r->nccl_comm : r->comm;
    sig.dtype = rs_builder_string(r->b, s->nccl ? "ncclFloat32" : "MPI_FLOAT");
    sig.redop = rs_builder_string(r->b, s->nccl ? "ncclSum" : "MPI_SUM");
    sig.count = count;
    sig.bytes = count * 4;
    gint64 last = 0;
    for (guint i = 0; i < s->n_ranks; i++)
        last = MAX(last, r->now[i]);
    gint64 done = last + s->transfer_ns + draw(r, (guint32)(s->transfer_ns / 16 + 1));
    for (guint i = 0; i < s->n_ranks; i++) {
        gint64 end = done + draw(r, 2000);
        put(r, i, &sig, r->now[i], s->nccl ? r->now[i] + 3000 : end, RS_FLAG_SEQ, 0, r->seq);
        RsSig device = sig;
        device.kind = RS_KIND_DEVICE;
        if (s->nccl)
            put(r, i, &device, r->now[i] + 5000, end, RS_FLAG_SEQ, 0, r->seq);
        r->now[i] = end + 1000;
    }
    r->seq++;
}

static void negotiate(Run *r)
{
    gint64 last = 0;
    for (guint i = 0; i < r->spec->n_ranks; i++)
        last = MAX(last, r->now[i]);
    for (guint i = 0; i < r->spec->n_ranks; i++) {
        RsSig sig = rs_builder_sig_init(r->b, RS_KIND_SPAN, "NEGOTIATE_ALLREDUCE");
        sig.domain = rs_builder_string(r->b, "horovod");
        sig.category = rs_builder_string(r->b, "grad");
        put(r, i, &sig, r->now[i], last + 20000, 0, 0, 0);
        r->now[i] = last + 20000;
    }
}

static void step(Run *r)
{
    g_autofree gint64 *begin = g_memdup2(r->now, r->spec->n_ranks * sizeof *r->now);
    compute(r);
    exchange(r);
    if (r->spec->negotiate)
        negotiate(r);
    for (guint i = 0; i < r->spec->collectives_per_step; i++)
        collective(r, r->spec->count << i);
    RsSig sig = rs_builder_sig_init(r->b, RS_KIND_RANGE, "step");
    for (guint i = 0; r->spec->mark_steps && i < r->spec->n_ranks; i++)
        put(r, i, &sig, begin[i], r->now[i]++, 0, 0, 0);
}

RsModel *rs_synthetic_run(const RsSyntheticRun *spec)
{
    guint n = spec->n_ranks;
    Run r = {.spec = spec, .b = rs_builder_new(), .random = spec->seed};
    g_autofree guint32 *tables = g_new0(guint32, 3 * n + 1);
    g_autofree gint64 *now = g_new0(gint64, n + 1);
    r.process = tables;
    r.track = tables + n;
    r.device_track = tables + 2 * n;
    r.now = now;
    r.comm = rs_builder_comm(r.b, 0x77 + spec->seed, 0, RS_COMM_MPI, (gint32)n, "MPI_COMM_WORLD");
    g_autofree gint32 *world = g_new(gint32, n + 1);
    for (guint i = 0; i < n; i++)
        world[i] = (gint32)i;
    rs_builder_comm_members(r.b, r.comm, world, n);
    if (spec->nccl)
        r.nccl_comm = rs_builder_comm(r.b, 0x99 + spec->seed, 0, RS_COMM_NCCL, (gint32)n, "nccl");
    for (guint i = 0; i < n; i++) {
        add_rank(&r, i);
        now[i] = 1000 + draw(&r, 100000);
    }
    for (guint i = 0; i < spec->n_steps; i++)
        step(&r);
    return rs_builder_finish(r.b, RS_FINISH_ALL);
}
