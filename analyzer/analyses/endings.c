/* SPDX-License-Identifier: Apache-2.0 */
#include "endings.h"

#define STARTS_SEEN                                                                                \
    4096 /* events before a completion call among which its starts are looked for                  \
          */

gboolean rs_ending_is_early(const RsRank *r)
{
    return r->ending == RS_ENDING_EXITED || r->ending == RS_ENDING_ABORTED ||
           r->ending == RS_ENDING_KILLED;
}

gboolean rs_ending_is_of_trace(const RsModel *m, const RsRank *r)
{
    const gchar *path = rs_model_str(m, r->path);
    return *path && !g_str_has_suffix(path, ".rsc");
}

gboolean rs_ending_any_early(const RsModel *m)
{
    for (guint i = 0; i < m->ranks->len; i++)
        if (rs_ending_is_early(rs_model_rank(m, i)))
            return TRUE;
    return FALSE;
}

gboolean rs_ending_is_whole(const RsModel *m, guint32 rank)
{
    if (rank == RS_NONE)
        return FALSE;
    const RsRank *r = rs_model_rank(m, rank);
    return !r->missing && !r->dropped && !r->unseen && r->ending != RS_ENDING_UNKNOWN;
}

gint64 rs_ending_gathered_ns(const RsModel *m, const RsInstance *inst)
{
    const RsComm *c = &g_array_index(m->comms, RsComm, inst->comm);
    if (inst->n_present >= (guint32)c->size)
        return inst->last_arrival_ns;
    for (guint32 k = 0; k < c->n_members; k++)
        if (g_array_index(m->member_events, guint32, inst->first_member + k) == RS_NONE &&
            rs_ending_is_whole(m, c->members[k]))
            return G_MAXINT64;
    return -1;
}

/* ---- for whom ---- */

static void add_target(RsWait *w, guint32 rank)
{
    for (guint i = 0; i < w->targets->len; i++)
        if (g_array_index(w->targets, guint32, i) == rank)
            return;
    g_array_append_val(w->targets, rank);
}

static guint32 peer_rank(const RsModel *m, const RsSig *s)
{
    if (s->comm == RS_NONE || s->peer < 0)
        return RS_NONE;
    const RsComm *c = &g_array_index(m->comms, RsComm, s->comm);
    return (guint32)s->peer < c->n_members ? c->members[s->peer] : RS_NONE;
}

static void add_peer(const RsModel *m, RsWait *w, const RsSig *s)
{
    guint32 rank = peer_rank(m, s);
    if (rs_ending_is_whole(m, rank))
        add_target(w, rank);
}

static gboolean is_pending(const RsModel *m, guint32 event, guint8 klass)
{
    /* what was open when capture was switched off may be long done */
    return rs_model_sig(m, event)->klass == klass && m->events.link[event] == RS_NONE &&
           m->events.start_ns[event] >= rs_model_rank(m, rs_model_rank_of(m, event))->off_until_ns;
}

/* Receives first: a send that nobody took yet may be done all the same. */
static void add_pending(const RsModel *m, RsWait *w)
{
    static const guint8 classes[] = {RS_CLASS_RECV_START, RS_CLASS_SEND_START};
    const RsTrack *t = &g_array_index(m->tracks, RsTrack, rs_model_track_of(m, w->event));
    guint32 from = MAX(t->first, w->event - MIN(w->event, STARTS_SEEN));
    for (guint k = 0; k < G_N_ELEMENTS(classes) && w->targets->len == 0; k++)
        for (guint32 i = from; i < w->event; i++)
            if (is_pending(m, i, classes[k]))
                add_peer(m, w, rs_model_sig(m, i));
}

static void look_at_call(const RsModel *m, RsWait *w)
{
    const RsSig *s = rs_model_sig(m, w->event);
    if (s->klass == RS_CLASS_SEND || s->klass == RS_CLASS_RECV || s->klass == RS_CLASS_PROBE)
        add_peer(m, w, s);
    else if (s->klass == RS_CLASS_COMPLETE)
        add_pending(m, w);
}

/* The member's collective is the call that its rank is in, or one that such a call completes. */
static gboolean holds_up(const RsModel *m, const RsWait *w, guint32 member_event)
{
    if (w->event == RS_NONE || member_event == RS_NONE)
        return FALSE;
    return member_event == w->event ||
           (rs_model_sig(m, w->event)->klass == RS_CLASS_COMPLETE &&
            is_pending(m, member_event, RS_CLASS_COLL_START) && member_event < w->event);
}

static void add_absent(const RsModel *m, RsWait *w, const RsComm *c, const guint32 *members)
{
    for (guint32 k = 0; k < c->n_members; k++)
        if (members[k] == RS_NONE && rs_ending_is_whole(m, c->members[k]))
            add_target(w, c->members[k]);
}

static void look_at_collectives(const RsModel *m, RsWait *waits)
{
    for (guint i = 0; i < m->instances->len; i++) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        const RsComm *c = &g_array_index(m->comms, RsComm, inst->comm);
        const guint32 *members = &g_array_index(m->member_events, guint32, inst->first_member);
        if (inst->complete || inst->n_present >= c->n_members)
            continue;
        for (guint32 k = 0; k < c->n_members; k++) {
            RsWait *w = members[k] != RS_NONE ? &waits[rs_model_rank_of(m, members[k])] : NULL;
            if (w && holds_up(m, w, members[k]))
                add_absent(m, w, c, members);
        }
    }
}

RsWait *rs_waits_new(const RsModel *m)
{
    RsWait *waits = g_new0(RsWait, m->ranks->len + 1);
    for (guint i = 0; i < m->ranks->len; i++) {
        waits[i].event = rs_model_rank(m, i)->open_event;
        waits[i].targets = g_array_new(FALSE, FALSE, sizeof(guint32));
    }
    look_at_collectives(m, waits);
    for (guint i = 0; i < m->ranks->len; i++)
        if (waits[i].event != RS_NONE && waits[i].targets->len == 0)
            look_at_call(m, &waits[i]);
    return waits;
}

void rs_waits_free(RsWait *waits, guint32 n)
{
    for (guint32 i = 0; waits && i < n; i++)
        g_array_unref(waits[i].targets);
    g_free(waits);
}

/* Calls that look and come back, whatever they saw. */
static gboolean only_looks(const gchar *name)
{
    return g_str_has_prefix(name, "MPI_Test") || g_str_has_prefix(name, "MPI_Iprobe") ||
           g_str_has_prefix(name, "MPI_Improbe");
}

/* In a completion or a probe, or just out of one that only looks: who came out of a wait has what
 * it waited for. */
static gboolean polls(const RsModel *m, guint32 rank)
{
    const RsRank *r = rs_model_rank(m, rank);
    for (guint32 t = r->first_track; t < r->first_track + r->n_tracks; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        for (guint32 i = track->first + track->n; i-- > track->first;) {
            const RsSig *sig = rs_model_sig(m, i);
            if (sig->kind != RS_KIND_CALL)
                continue;
            if ((sig->klass == RS_CLASS_COMPLETE || sig->klass == RS_CLASS_PROBE) &&
                (m->events.flags[i] & RS_FLAG_OPEN ||
                 (only_looks(rs_model_str(m, sig->name)) &&
                  m->events.end_ns[i] + RS_ALIVE_SEEN_NS >= r->last_ns)))
                return TRUE;
            break;
        }
    }
    return FALSE;
}

/* A killed rank that is in a call, and no longer than deaths are uncertain kept `rank` waiting:
 * ranks that go on do that all the time. */
static gboolean may_go_on(const RsModel *m, const RsWait *waits, guint32 target, guint32 rank)
{
    gint64 waited = rs_model_rank(m, rank)->last_ns - m->events.start_ns[waits[rank].event];
    return rs_ending_is_early(rs_model_rank(m, target)) && waits[target].event != RS_NONE &&
           waited <= RS_ALIVE_SEEN_NS;
}

/* A root of the chains of waits. */
static gboolean is_root(const RsModel *m, const RsWait *waits, guint32 first, guint32 target,
                        guint32 rank)
{
    return waits[target].targets->len == 0 && !may_go_on(m, waits, target, rank) &&
           (target == first || !polls(m, target));
}

guint rs_waits_find_roots(const RsModel *m, const RsWait *waits, guint32 first, gboolean *named)
{
    guint n = 0;
    for (guint32 i = 0; i < m->ranks->len; i++)
        for (guint k = 0; k < waits[i].targets->len; k++) {
            guint32 target = g_array_index(waits[i].targets, guint32, k);
            if (named[target] || !is_root(m, waits, first, target, i))
                continue;
            named[target] = TRUE;
            n++;
        }
    return n;
}

/* Depth first; the ranks on the way from the start are those whose mark is ON_WAY. */
enum { UNSEEN, ON_WAY, DONE };

static gboolean find_back(const RsWait *waits, GArray *way, guint8 *marks, GArray *next_of)
{
    while (way->len) {
        guint32 at = g_array_index(way, guint32, way->len - 1);
        guint *next = &g_array_index(next_of, guint, way->len - 1);
        if (*next == waits[at].targets->len) {
            marks[at] = DONE;
            g_array_set_size(way, way->len - 1);
            g_array_set_size(next_of, next_of->len - 1);
            continue;
        }
        guint32 target = g_array_index(waits[at].targets, guint32, (*next)++);
        guint zero = 0;
        if (marks[target] == DONE)
            continue;
        g_array_append_val(way, target);
        if (marks[target] == ON_WAY)
            return TRUE;
        marks[target] = ON_WAY;
        g_array_append_val(next_of, zero);
    }
    return FALSE;
}

GArray *rs_waits_find_cycle(const RsModel *m, const RsWait *waits)
{
    g_autofree guint8 *marks = g_new0(guint8, m->ranks->len + 1);
    g_autoptr(GArray) next_of = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GArray) way = g_array_new(FALSE, FALSE, sizeof(guint32));
    for (guint32 i = 0; i < m->ranks->len; i++) {
        guint zero = 0;
        if (marks[i] != UNSEEN)
            continue;
        g_array_set_size(next_of, 0);
        g_array_append_val(way, i);
        g_array_append_val(next_of, zero);
        marks[i] = ON_WAY;
        if (!find_back(waits, way, marks, next_of))
            continue;
        guint32 closing = g_array_index(way, guint32, way->len - 1);
        while (g_array_index(way, guint32, 0) != closing)
            g_array_remove_index(way, 0);
        g_array_set_size(way, way->len - 1);
        return g_steal_pointer(&way);
    }
    return NULL;
}

/* ---- in words ---- */

const gchar *rs_ending_name(RsEnding ending)
{
    static const gchar *const names[RS_ENDING_COUNT] = {"unknown", "clean",  "exited",
                                                        "aborted", "killed", "running"};
    return names[ending];
}

gchar *rs_ending_dup_call(const RsModel *m, guint32 event)
{
    const RsSig *s = rs_model_sig(m, event);
    const gchar *name = rs_model_str(m, s->name);
    const RsComm *c = s->comm == RS_NONE ? NULL : &g_array_index(m->comms, RsComm, s->comm);
    if (c && m->events.flags[event] & RS_FLAG_SEQ)
        return g_strdup_printf("%s, number %u on %s", name, m->events.seq[event],
                               c->name ? rs_model_str(m, c->name) : "an unnamed communicator");
    const gchar *way = s->klass == RS_CLASS_SEND                                 ? "to"
                       : s->klass == RS_CLASS_RECV || s->klass == RS_CLASS_PROBE ? "from"
                                                                                 : NULL;
    guint32 peer = way ? peer_rank(m, s) : RS_NONE;
    if (peer != RS_NONE)
        return g_strdup_printf("%s %s rank %d", name, way, rs_model_rank(m, peer)->rank);
    return g_strdup_printf("%s%s", name, way && s->peer == RS_PEER_ANY ? " from any rank" : "");
}

gchar *rs_ending_dup_text(const RsModel *m, guint32 rank)
{
    static const gchar *const words[RS_ENDING_COUNT] = {
        [RS_ENDING_UNKNOWN] = "was last heard of",
        [RS_ENDING_CLEAN] = "ended",
        [RS_ENDING_EXITED] = "exited",
        [RS_ENDING_ABORTED] = "called MPI_Abort",
        [RS_ENDING_KILLED] = "was killed",
        [RS_ENDING_RUNNING] = "is",
    };
    const RsRank *r = rs_model_rank(m, rank);
    GString *s = g_string_new(NULL);
    g_string_append_printf(s, "%s at %.3f s", words[r->ending], (gdouble)r->last_ns / 1e9);
    if (r->ending == RS_ENDING_ABORTED)
        return g_string_free(s, FALSE); /* in just that call */
    if (r->open_event != RS_NONE) {
        g_autofree gchar *call = rs_ending_dup_call(m, r->open_event);
        g_string_append_printf(s, " %s %s", r->ending == RS_ENDING_EXITED ? "inside" : "in", call);
    } else if (r->ending == RS_ENDING_EXITED) {
        g_string_append(s, " without MPI_Finalize");
    } else if (r->ending == RS_ENDING_KILLED) {
        g_string_append(s, " outside of all recorded calls");
    }
    return g_string_free(s, FALSE);
}
