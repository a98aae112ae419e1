/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

/* The call of `rank` that ended last. */
static guint32 find_last(const RsModel *m, guint32 rank)
{
    const RsRank *r = rs_model_rank(m, rank);
    guint32 last = RS_NONE;
    for (guint32 t = r->first_track; t < r->first_track + r->n_tracks; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        guint32 i = track->first + track->n;
        while (i-- > track->first && rs_model_sig(m, i)->kind != RS_KIND_CALL)
            ;
        if (i + 1 > track->first &&
            (last == RS_NONE || m->events.end_ns[i] > m->events.end_ns[last]))
            last = i;
    }
    return last;
}

static void look_at_rank(RsStatus *s, guint32 rank)
{
    const RsModel *m = s->model;
    const RsRank *r = rs_model_rank(m, rank);
    RsRankStatus *status = &s->ranks[rank];
    status->call = r->open_event;
    status->last = RS_NONE;
    if (status->call != RS_NONE)
        status->call_ns = r->last_ns - m->events.start_ns[status->call];
    else if (!r->missing)
        status->last = find_last(m, rank);
    if (status->last != RS_NONE)
        status->last_ns = r->last_ns - m->events.end_ns[status->last];
}

guint32 rs_status_longest_wait(const RsStatus *s, guint32 rank, guint *ret_n)
{
    guint32 longest = RS_NONE;
    *ret_n = 0;
    for (guint32 i = 0; i < s->model->ranks->len; i++)
        for (guint k = 0; k < s->waits[i].targets->len; k++) {
            if (g_array_index(s->waits[i].targets, guint32, k) != rank)
                continue;
            (*ret_n)++;
            if (longest == RS_NONE || s->ranks[i].call_ns > s->ranks[longest].call_ns)
                longest = i;
        }
    return longest;
}

/* Waits that are over in a moment are no hang. */
static void drop_short_roots(RsStatus *s)
{
    for (guint32 i = 0; i < s->model->ranks->len; i++) {
        guint n;
        guint32 longest = s->roots[i] ? rs_status_longest_wait(s, i, &n) : RS_NONE;
        if (longest == RS_NONE || s->ranks[longest].call_ns >= RS_STATUS_STUCK_NS)
            continue;
        s->roots[i] = FALSE;
        s->n_roots--;
    }
}

static void drop_short_cycle(RsStatus *s)
{
    gint64 shortest = G_MAXINT64;
    for (guint i = 0; s->cycle && i < s->cycle->len; i++)
        shortest = MIN(shortest, s->ranks[g_array_index(s->cycle, guint32, i)].call_ns);
    if (s->cycle && shortest < RS_STATUS_STUCK_NS)
        g_clear_pointer(&s->cycle, g_array_unref);
}

/* ---- how far each is ---- */

static gint compare_progress(gconstpointer a, gconstpointer b)
{
    const RsProgressAt *x = a, *y = b;
    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void see_number(GHashTable *newest, guint32 comm, guint32 rank, guint32 number)
{
    guint64 key = (guint64)comm << 32 | rank;
    guint32 known = GPOINTER_TO_UINT(g_hash_table_lookup(newest, &key));
    if (number + 1 > known)
        g_hash_table_replace(newest, g_memdup2(&key, sizeof key), GUINT_TO_POINTER(number + 1));
}

static GArray *find_progress(const RsModel *m)
{
    g_autoptr(GHashTable) newest = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        if (rs_model_rank(m, track->rank)->unseen)
            continue; /* it may be further */
        for (guint32 i = track->first; i < track->first + track->n; i++)
            if (m->events.flags[i] & RS_FLAG_SEQ && rs_model_sig(m, i)->comm != RS_NONE)
                see_number(newest, rs_model_sig(m, i)->comm, track->rank, m->events.seq[i]);
    }
    GArray *progress = g_array_new(FALSE, FALSE, sizeof(RsProgressAt));
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, newest);
    while (g_hash_table_iter_next(&it, &key, &value)) {
        guint64 k = *(const guint64 *)key;
        RsProgressAt at = {(guint32)(k >> 32), GPOINTER_TO_UINT(value) - 1, (guint32)k};
        g_array_append_val(progress, at);
    }
    g_array_sort(progress, compare_progress);
    return progress;
}

void rs_status_init(RsStatus *s, const RsModel *m, const gchar *name)
{
    *s = (RsStatus){.model = m, .name = name};
    s->ranks = g_new0(RsRankStatus, m->ranks->len + 1);
    for (guint32 i = 0; i < m->ranks->len; i++)
        look_at_rank(s, i);
    s->progress = find_progress(m);
    s->waits = rs_waits_new(m);
    s->roots = g_new0(gboolean, m->ranks->len + 1);
    s->n_roots = rs_waits_find_roots(m, s->waits, RS_NONE, s->roots);
    s->cycle = rs_waits_find_cycle(m, s->waits);
    drop_short_roots(s);
    drop_short_cycle(s);
}

void rs_status_release(RsStatus *s)
{
    for (guint32 i = 0; i < s->model->ranks->len; i++)
        if (s->ranks[i].stack)
            g_ptr_array_unref(s->ranks[i].stack);
    g_free(s->ranks);
    rs_waits_free(s->waits, s->model->ranks->len);
    g_array_unref(s->progress);
    g_free(s->roots);
    if (s->cycle)
        g_array_unref(s->cycle);
    g_free(s->no_stacks);
}
