/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <math.h>
#include <string.h>

static gint64 ns(gdouble us)
{
    return (gint64)llround(us * 1000);
}

void scene_init(Scene *s, guint n_ranks, guint n_hosts)
{
    g_assert(n_ranks <= SCENE_RANKS_MAX);
    *s = (Scene){.b = rs_builder_new(), .n_ranks = n_ranks};
    gint32 world[SCENE_RANKS_MAX];
    for (guint i = 0; i < n_ranks; i++) {
        g_autofree gchar *host = g_strdup_printf("host%u", i * n_hosts / n_ranks);
        world[i] = (gint32)i;
        s->process[i] = rs_builder_add_process(s->b, (gint32)i, host, 100 + i);
        RsProcess *p = rs_builder_process(s->b, s->process[i]);
        p->world_size = (gint32)n_ranks;
        p->unit = RS_TIME_ALIGNED;
        rs_builder_set_text(&p->domain, "machine");
        s->main[i] = rs_builder_add_track(s->b, s->process[i], "main", 100 + i, FALSE);
        s->other[i] = s->device[i] = RS_NONE;
        /* the run begins at 0 on every rank */
        RsSig sig = rs_builder_sig_init(s->b, RS_KIND_MARK, "begin");
        rs_builder_event(s->b, s->main[i], rs_builder_sig(s->b, &sig), 0, 0, 0, 0, 0);
    }
    s->world = rs_builder_comm(s->b, 0x1234, 0, RS_COMM_MPI, (gint32)n_ranks, "world");
    s->nccl = rs_builder_comm(s->b, 0x5678, 0, RS_COMM_NCCL, (gint32)n_ranks, "nccl");
    rs_builder_comm_members(s->b, s->world, world, n_ranks);
    rs_builder_comm_members(s->b, s->nccl, world, n_ranks);
}

RsModel *scene_finish(Scene *s)
{
    return rs_builder_finish(g_steal_pointer(&s->b), RS_FINISH_ALL);
}

static guint32 put(Scene *s, guint32 track, const RsSig *sig, gdouble from_us, gdouble to_us,
                   guint16 flags, guint depth, guint32 seq)
{
    return rs_builder_event(s->b, track, rs_builder_sig(s->b, sig), ns(from_us), ns(to_us), flags,
                            (guint16)depth, seq);
}

void scene_range(Scene *s, guint rank, const gchar *name, guint depth, gdouble from_us,
                 gdouble to_us)
{
    RsSig sig = rs_builder_sig_init(s->b, RS_KIND_RANGE, name);
    put(s, s->main[rank], &sig, from_us, to_us, 0, depth, 0);
}

void scene_call(Scene *s, guint rank, const gchar *name, enum rs_op_class klass, gdouble from_us,
                gdouble to_us)
{
    RsSig sig = rs_builder_sig_init(s->b, RS_KIND_CALL, name);
    sig.api = RS_API_MPI;
    sig.klass = (guint8)klass;
    put(s, s->main[rank], &sig, from_us, to_us, 0, 0, 0);
}

void scene_io(Scene *s, guint rank, gdouble from_us, gdouble to_us)
{
    RsSig sig = rs_builder_sig_init(s->b, RS_KIND_IO, "read");
    put(s, s->main[rank], &sig, from_us, to_us, 0, 0, 0);
}

static guint32 other_track(Scene *s, guint rank)
{
    if (s->other[rank] == RS_NONE)
        s->other[rank] = rs_builder_add_track(s->b, s->process[rank], "worker", 900, FALSE);
    return s->other[rank];
}

static guint32 device_track(Scene *s, guint rank)
{
    if (s->device[rank] == RS_NONE)
        s->device[rank] = rs_builder_add_track(s->b, s->process[rank], "stream", 0, TRUE);
    return s->device[rank];
}

void scene_kernel(Scene *s, guint rank, gdouble from_us, gdouble to_us)
{
    RsSig sig = rs_builder_sig_init(s->b, RS_KIND_DEVICE, "gemm_kernel");
    sig.api = RS_API_CUDA;
    put(s, device_track(s, rank), &sig, from_us, to_us, 0, 0, 0);
}

static RsSig collective_sig(Scene *s, enum rs_coll coll, guint64 count, gboolean nccl)
{
    RsSig sig = rs_builder_sig_init(s->b, RS_KIND_CALL, nccl ? "ncclOp" : "MPI_Op");
    gboolean gathers = coll == RS_COLL_ALLGATHER || coll == RS_COLL_REDUCE_SCATTER;
    sig.api = nccl ? RS_API_NCCL : RS_API_MPI;
    sig.klass = RS_CLASS_COLL;
    sig.coll = (guint8)coll;
    sig.comm = nccl ? s->nccl : s->world;
    sig.count = count;
    sig.bytes = coll == RS_COLL_BARRIER ? 0 : count * 4 * (gathers ? s->n_ranks : 1);
    sig.dtype = rs_builder_string(s->b, "float");
    return sig;
}

void scene_collective(Scene *s, guint rank, enum rs_coll coll, guint32 seq, guint64 count,
                      gint thread, gdouble from_us, gdouble to_us)
{
    RsSig sig = collective_sig(s, coll, count, FALSE);
    guint32 track = thread ? other_track(s, rank) : s->main[rank];
    put(s, track, &sig, from_us, to_us, RS_FLAG_SEQ, 0, seq);
}

void scene_nonblocking(Scene *s, guint rank, guint32 seq, gdouble from_us, gdouble to_us)
{
    RsSig sig = collective_sig(s, RS_COLL_ALLREDUCE, 1, FALSE);
    sig.klass = RS_CLASS_COLL_START;
    put(s, s->main[rank], &sig, from_us, to_us, RS_FLAG_SEQ, 0, seq);
}

void scene_nccl(Scene *s, guint rank, enum rs_coll coll, guint32 seq, guint64 count,
                gdouble call_us, gdouble from_us, gdouble to_us)
{
    RsSig sig = collective_sig(s, coll, count, TRUE);
    put(s, s->main[rank], &sig, call_us, call_us + 2, RS_FLAG_SEQ, 0, seq);
    sig.kind = RS_KIND_DEVICE;
    if (to_us > from_us)
        put(s, device_track(s, rank), &sig, from_us, to_us, RS_FLAG_SEQ, 0, seq);
}

void scene_negotiate(Scene *s, guint rank, const gchar *tensor, gdouble from_us, gdouble to_us)
{
    RsSig sig = rs_builder_sig_init(s->b, RS_KIND_SPAN, "NEGOTIATE_ALLREDUCE");
    sig.domain = rs_builder_string(s->b, "horovod");
    sig.category = rs_builder_string(s->b, tensor);
    put(s, other_track(s, rank), &sig, from_us, to_us, 0, 0, 0);
}

void scene_message(Scene *s, guint src, guint dst, guint64 bytes, gdouble send_us, gdouble recv_us,
                   gdouble end_us)
{
    RsSig sig = rs_builder_sig_init(s->b, RS_KIND_CALL, "MPI_Send");
    sig.api = RS_API_MPI;
    sig.comm = s->world;
    sig.tag = 5;
    sig.count = sig.bytes = bytes;
    sig.klass = RS_CLASS_SEND;
    sig.peer = (gint32)dst;
    put(s, s->main[src], &sig, send_us, end_us, 0, 0, 0);
    sig.name = rs_builder_string(s->b, "MPI_Recv");
    sig.klass = RS_CLASS_RECV;
    sig.peer = (gint32)src;
    put(s, s->main[dst], &sig, recv_us, end_us, 0, 0, 0);
}

void scene_open_collective(Scene *s, guint rank, enum rs_coll coll, guint32 seq, gdouble from_us,
                           gdouble to_us)
{
    RsSig sig = collective_sig(s, coll, 1, FALSE);
    put(s, s->main[rank], &sig, from_us, to_us, RS_FLAG_SEQ | RS_FLAG_OPEN, 0, seq);
}

void scene_open_receive(Scene *s, guint rank, guint src, gdouble from_us, gdouble to_us)
{
    RsSig sig = rs_builder_sig_init(s->b, RS_KIND_CALL, "MPI_Recv");
    sig.api = RS_API_MPI;
    sig.klass = RS_CLASS_RECV;
    sig.comm = s->world;
    sig.peer = (gint32)src;
    put(s, s->main[rank], &sig, from_us, to_us, RS_FLAG_OPEN, 0, 0);
}

void scene_end(Scene *s, guint rank, RsEnding ending, gdouble at_us)
{
    RsSig sig = rs_builder_sig_init(s->b, RS_KIND_MARK, "end");
    rs_builder_process(s->b, s->process[rank])->ending = ending;
    put(s, s->main[rank], &sig, at_us, at_us, 0, 0, 0);
}

const RsFinding *scene_finding(const RsResults *results, const gchar *kind, guint index)
{
    for (guint i = 0; i < results->findings->len; i++) {
        const RsFinding *f = g_ptr_array_index(results->findings, i);
        if (strcmp(f->kind, kind) == 0 && index-- == 0)
            return f;
    }
    return NULL;
}

const RsBreakdown *scene_breakdown(const RsResults *results, guint rank, guint32 step)
{
    for (guint i = 0; i < results->breakdown->len; i++) {
        const RsBreakdown *b = &g_array_index(results->breakdown, RsBreakdown, i);
        if (b->rank == rank && b->step == step)
            return b;
    }
    return NULL;
}

const gchar *scene_reason(const RsResults *results, const gchar *analysis)
{
    for (guint i = 0; i < results->not_applicable->len; i++) {
        const RsNotApplicable *n = g_ptr_array_index(results->not_applicable, i);
        if (strcmp(n->analysis, analysis) == 0)
            return n->reason;
    }
    return NULL;
}

static gboolean same_arrays(const GArray *a, const GArray *b, gsize size)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len * size) == 0);
}

static gboolean same_numbers(const GArray *a, const GArray *b)
{
    return same_arrays(a, b, g_array_get_element_size((GArray *)a));
}

static gboolean same_texts(const GPtrArray *a, const GPtrArray *b)
{
    if (a->len != b->len)
        return FALSE;
    for (guint i = 0; i < a->len; i++)
        if (g_strcmp0(g_ptr_array_index(a, i), g_ptr_array_index(b, i)) != 0)
            return FALSE;
    return TRUE;
}

static gboolean same_findings(const RsFinding *a, const RsFinding *b)
{
    return strcmp(a->kind, b->kind) == 0 && g_strcmp0(a->title, b->title) == 0 &&
           a->cost_s == b->cost_s && a->confidence == b->confidence &&
           a->t_start_s == b->t_start_s && a->t_end_s == b->t_end_s &&
           same_numbers(a->ranks, b->ranks) && same_numbers(a->steps, b->steps) &&
           same_numbers(a->communicators, b->communicators) && same_texts(a->hosts, b->hosts) &&
           same_texts(a->evidence, b->evidence);
}

gboolean scene_same_results(const RsResults *a, const RsResults *b)
{
    if (a->findings->len != b->findings->len || !same_numbers(a->breakdown, b->breakdown) ||
        !same_numbers(a->collectives, b->collectives) || !same_numbers(a->links, b->links) ||
        a->not_applicable->len != b->not_applicable->len)
        return FALSE;
    for (guint i = 0; i < a->findings->len; i++)
        if (!same_findings(g_ptr_array_index(a->findings, i), g_ptr_array_index(b->findings, i)))
            return FALSE;
    return TRUE;
}
