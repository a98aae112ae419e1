/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous.c - when every rank had a tensor ready: spans NEGOTIATE_* of domain "horovod",
 * category = the tensor, matched by (tensor, occurrence on its rank), as Horovod names its
 * negotiation.
 */
#include "model-internal.h"

typedef struct {
    RsStr tensor;
    guint32 occurrence, rank, event;
} Ready;

static gint compare_ready(gconstpointer a, gconstpointer c)
{
    const Ready *x = a, *y = c;
    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1;
    if (x->occurrence != y->occurrence)
        return x->occurrence < y->occurrence ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static gint compare_by_rank_time(gconstpointer a, gconstpointer c, gpointer data)
{
    const RsModel *m = data;
    const Ready *x = a, *y = c;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    gint64 s = m->events.start_ns[x->event], t = m->events.start_ns[y->event];
    if (s != t)
        return s < t ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

/* Which signatures are negotiations: looked up once each, not once an event. */
static gboolean *find_negotiations(const RsModel *m)
{
    gboolean *is = g_new0(gboolean, m->sigs->len + 1);
    for (guint i = 0; i < m->sigs->len; i++) {
        const RsSig *s = &g_array_index(m->sigs, RsSig, i);
        is[i] = (s->kind == RS_KIND_SPAN || s->kind == RS_KIND_RANGE) && s->category &&
                g_str_equal(rs_model_str(m, s->domain), "horovod") &&
                g_str_has_prefix(rs_model_str(m, s->name), "NEGOTIATE_");
    }
    return is;
}

static GArray *collect(RsModel *m)
{
    g_autofree gboolean *is = find_negotiations(m);
    GArray *all = g_array_new(FALSE, FALSE, sizeof(Ready));
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            if (!is[m->events.sig[i]])
                continue;
            Ready r = {rs_model_sig(m, i)->category, 0, track->rank, i};
            g_array_append_val(all, r);
        }
    }
    return all;
}

/* Numbers the occurrences of each tensor on each rank, over all its threads, by time. */
static void number(RsModel *m, GArray *all)
{
    g_array_sort_with_data(all, compare_by_rank_time, m);
    g_autoptr(GHashTable) counts = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < all->len; i++) {
        Ready *r = &g_array_index(all, Ready, i);
        if (i > 0 && g_array_index(all, Ready, i - 1).rank != r->rank)
            g_hash_table_remove_all(counts);
        gpointer key = GUINT_TO_POINTER(r->tensor);
        r->occurrence = GPOINTER_TO_UINT(g_hash_table_lookup(counts, key));
        g_hash_table_insert(counts, key, GUINT_TO_POINTER(r->occurrence + 1));
    }
    g_array_sort(all, compare_ready);
}

static void add(RsModel *m, const Ready *r, guint n)
{
    RsRendezvous v = {.name = r->tensor, .occurrence = r->occurrence, .step = RS_NONE};
    v.n_present = n;
    v.first_member = m->member_events->len;
    g_array_set_size(m->member_events, v.first_member + m->ranks->len);
    guint32 *members = &g_array_index(m->member_events, guint32, v.first_member);
    for (guint i = 0; i < m->ranks->len; i++)
        members[i] = RS_NONE;
    for (guint i = 0; i < n; i++) {
        gint64 start = m->events.start_ns[r[i].event], end = m->events.end_ns[r[i].event];
        members[r[i].rank] = r[i].event;
        if (i == 0 || start < v.first_arrival_ns)
            v.first_arrival_ns = start;
        if (i == 0 || start > v.last_arrival_ns) {
            v.last_arrival_ns = start;
            v.last_rank = r[i].rank;
        }
        v.last_end_ns = i == 0 ? end : MAX(v.last_end_ns, end);
    }
    g_array_append_val(m->rendezvous, v);
}

static gint compare_rendezvous(gconstpointer a, gconstpointer c)
{
    const RsRendezvous *x = a, *y = c;
    if (x->last_arrival_ns != y->last_arrival_ns)
        return x->last_arrival_ns < y->last_arrival_ns ? -1 : 1;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->occurrence < y->occurrence ? -1 : x->occurrence > y->occurrence;
}

void rs_rendezvous_find(RsBuilder *b)
{
    RsModel *m = b->model;
    g_autoptr(GArray) all = collect(m);
    number(m, all);
    const Ready *r = (const Ready *)(void *)all->data;
    for (guint from = 0, to; from < all->len; from = to) {
        for (to = from + 1; to < all->len && r[to].tensor == r[from].tensor &&
                            r[to].occurrence == r[from].occurrence;
             to++)
            ;
        add(m, r + from, to - from);
    }
    g_array_sort(m->rendezvous, compare_rendezvous);
}
