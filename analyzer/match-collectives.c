/* SPDX-License-Identifier: Apache-2.0 */
/* match-collectives.c - one RsInstance for each (communicator, sequence number on it). */
#include "coll-names.h"
#include "key-hash.h"
#include "model-internal.h"
#include "plural.h"

/* Entries of member_events per event seen: a bound on what a run with few captures of a huge
 * communicator may take. */
#define MEMBERS_PER_EVENT 4096

typedef struct {
    guint32 comm, seq, member;
    guint32 device; /* 1 before 0: the device interval stands for the member where there is one */
    guint32 event;
} Arrival;

gboolean rs_coll_synchronises(guint8 coll)
{
    switch (coll) {
    case RS_COLL_ALLREDUCE:
    case RS_COLL_ALLGATHER:
    case RS_COLL_REDUCE_SCATTER:
    case RS_COLL_ALLTOALL:
    case RS_COLL_BARRIER:
        return TRUE;
    default:
        return FALSE;
    }
}

static gint compare_arrivals(gconstpointer a, gconstpointer c)
{
    const Arrival *x = a, *y = c;
    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    if (x->member != y->member)
        return x->member < y->member ? -1 : 1;
    if (x->device != y->device)
        return x->device > y->device ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

static gboolean is_collective(const RsModel *m, guint32 event)
{
    const RsSig *s = rs_model_sig(m, event);
    return s->comm != RS_NONE && (m->events.flags[event] & RS_FLAG_SEQ) &&
           (s->klass == RS_CLASS_COLL || s->klass == RS_CLASS_COLL_START) &&
           (s->kind == RS_KIND_CALL || s->kind == RS_KIND_DEVICE);
}

static GArray *collect(RsBuilder *b)
{
    RsModel *m = b->model;
    GArray *arrivals = g_array_new(FALSE, FALSE, sizeof(Arrival));
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            if (!is_collective(m, i))
                continue;
            const RsSig *s = rs_model_sig(m, i);
            gint32 member = rs_comms_rank_of(b, i, track->rank);
            if (member < 0 || (guint32)member >= g_array_index(m->comms, RsComm, s->comm).n_members)
                continue;
            Arrival a = {s->comm, m->events.seq[i], (guint32)member, s->kind == RS_KIND_DEVICE, i};
            g_array_append_val(arrivals, a);
        }
    }
    g_array_sort(arrivals, compare_arrivals);
    return arrivals;
}

static gboolean is_reduction(guint8 coll)
{
    return coll == RS_COLL_ALLREDUCE || coll == RS_COLL_REDUCE || coll == RS_COLL_REDUCE_SCATTER ||
           coll == RS_COLL_SCAN;
}

/* Sizes of -v forms differ by right, those of scatter and gather matter at the root alone, and MPI
 * lets two type maps of equal size meet where nothing is computed on them. */
gboolean rs_model_calls_agree(const RsModel *m, guint32 a, guint32 b)
{
    const RsSig *x = rs_model_sig(m, a), *y = rs_model_sig(m, b);
    gboolean open = (m->events.flags[a] | m->events.flags[b]) & RS_FLAG_OPEN;
    if (x->coll != y->coll || x->klass != y->klass || x->api != y->api || x->op != y->op)
        return FALSE;
    if (x->peer != y->peer || (!open && x->redop != y->redop))
        return FALSE;
    gboolean vector;
    rs_coll_of_name(rs_model_str(m, x->name), &vector);
    if (x->coll == RS_COLL_BARRIER || x->coll == RS_COLL_NONE || vector)
        return TRUE;
    if (is_reduction(x->coll) || x->api == RS_API_NCCL)
        return x->dtype == y->dtype && x->count == y->count;
    return x->coll == RS_COLL_SCATTER || x->coll == RS_COLL_GATHER || x->bytes == y->bytes;
}

static gboolean has_ended(const RsModel *m, guint32 event)
{
    if (m->events.flags[event] & RS_FLAG_OPEN)
        return FALSE;
    const RsSig *s = rs_model_sig(m, event);
    return s->klass != RS_CLASS_COLL_START || s->kind == RS_KIND_DEVICE ||
           m->events.link[event] != RS_NONE;
}

/* An enqueue is never timed as a collective. */
static gboolean has_times(const RsSig *s)
{
    return s->kind == RS_KIND_DEVICE || s->api != RS_API_NCCL;
}

/* *first: the first member's event. */
static void add_member(RsBuilder *b, RsInstance *inst, const Arrival *a, guint32 *members,
                       guint32 *first)
{
    RsModel *m = b->model;
    const RsSig *s = rs_model_sig(m, a->event);
    if (inst->n_present == 0)
        inst->sig = m->events.sig[a->event];
    else if (!rs_model_calls_agree(m, *first, a->event))
        inst->mismatched = TRUE;
    if (inst->n_present == 0)
        *first = a->event;
    members[a->member] = a->event;
    inst->n_present++;
    inst->complete = inst->complete && has_ended(m, a->event);
    inst->timed = inst->timed && has_times(s);
}

/* The arrivals of one (communicator, sequence). Returns how many members came twice. */
static guint add_instance(RsBuilder *b, const Arrival *a, guint n)
{
    RsModel *m = b->model;
    const RsComm *comm = &g_array_index(m->comms, RsComm, a->comm);
    RsInstance inst = {.comm = a->comm, .seq = a->seq, .complete = TRUE, .timed = TRUE};
    inst.step = RS_NONE;
    inst.last_rank = RS_NONE;
    inst.first_member = m->member_events->len;
    g_array_set_size(m->member_events, inst.first_member + comm->n_members);
    guint32 *members = &g_array_index(m->member_events, guint32, inst.first_member);
    for (guint32 i = 0; i < comm->n_members; i++)
        members[i] = RS_NONE;
    guint twice = 0;
    guint32 first = RS_NONE;
    for (guint i = 0; i < n; i++) {
        if (members[a[i].member] == RS_NONE)
            add_member(b, &inst, &a[i], members, &first);
        else if (a[i].device == a[i - 1].device)
            twice++;
    }
    if (inst.n_present < (guint32)comm->size)
        inst.complete = FALSE;
    g_array_append_val(m->instances, inst);
    return twice;
}

/* Members whose captures we have: an instance of one alone says nothing. */
static gboolean worth_pairing(const RsModel *m, const RsComm *c)
{
    guint present = 0;
    for (guint32 i = 0; i < c->n_members && present < 2; i++)
        present += c->members[i] != RS_NONE && !rs_model_rank(m, c->members[i])->missing;
    return present >= 2 || c->size == 1;
}

void rs_collectives_pair(RsBuilder *b)
{
    RsModel *m = b->model;
    g_autoptr(GArray) arrivals = collect(b);
    const Arrival *a = (const Arrival *)(void *)arrivals->data;
    guint64 room = (guint64)arrivals->len * MEMBERS_PER_EVENT;
    guint64 left_out = 0;
    guint twice = 0;
    for (guint from = 0, to; from < arrivals->len; from = to) {
        for (to = from + 1;
             to < arrivals->len && a[to].comm == a[from].comm && a[to].seq == a[from].seq; to++)
            ;
        const RsComm *c = &g_array_index(m->comms, RsComm, a[from].comm);
        if (!worth_pairing(m, c))
            continue;
        if ((guint64)m->member_events->len + c->n_members > MIN(room, G_MAXINT32)) {
            left_out++;
            continue;
        }
        twice += add_instance(b, a + from, to - from);
    }
    if (left_out)
        rs_builder_warn(b, "", 0,
                        "%" G_GUINT64_FORMAT
                        " collective%s left out: too few captures of too large "
                        "communicators",
                        left_out, rs_plural(left_out));
    if (twice)
        rs_builder_warn(b, "", 0, "%u call%s with a collective number used before left out", twice,
                        rs_plural(twice));
}

/* ---- times, once all ranks are on one axis ---- */

static void time_instance(RsModel *m, RsInstance *inst)
{
    const RsComm *comm = &g_array_index(m->comms, RsComm, inst->comm);
    const guint32 *members = &g_array_index(m->member_events, guint32, inst->first_member);
    gboolean first = TRUE;
    for (guint32 i = 0; i < comm->n_members; i++) {
        if (members[i] == RS_NONE)
            continue;
        gint64 arrival = rs_model_arrival_ns(m, members[i]);
        gint64 done = rs_model_done_ns(m, members[i]);
        if (first || arrival < inst->first_arrival_ns)
            inst->first_arrival_ns = arrival;
        if (first || arrival > inst->last_arrival_ns) { /* a tie goes to the lower rank */
            inst->last_arrival_ns = arrival;
            inst->last_rank = rs_model_rank_of(m, members[i]);
        }
        if (first || done > inst->last_end_ns)
            inst->last_end_ns = done;
        first = FALSE;
    }
}

/* Instances still stand by (communicator, sequence): the first of a kind is its warm-up. */
static void mark_warmups(RsModel *m)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(rs_key_hash, g_int64_equal, g_free, NULL);
    for (guint i = 0; i < m->instances->len; i++) {
        RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        const RsSig *s = &g_array_index(m->sigs, RsSig, inst->sig);
        guint64 key = (guint64)inst->comm << 32 | (guint64)s->op << 16 | (guint64)s->coll << 8 |
                      (guint8)rs_size_class(s->bytes);
        if (!g_hash_table_contains(seen, &key)) {
            g_hash_table_add(seen, g_memdup2(&key, sizeof key));
            inst->warmup = TRUE;
        }
    }
}

static gint compare_instances(gconstpointer a, gconstpointer c)
{
    const RsInstance *x = a, *y = c;
    if (x->last_arrival_ns != y->last_arrival_ns)
        return x->last_arrival_ns < y->last_arrival_ns ? -1 : 1;
    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

void rs_collectives_time(RsBuilder *b)
{
    RsModel *m = b->model;
    mark_warmups(m);
    for (guint i = 0; i < m->instances->len; i++)
        time_instance(m, &g_array_index(m->instances, RsInstance, i));
    g_array_sort(m->instances, compare_instances);
}
