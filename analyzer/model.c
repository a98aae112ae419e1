/* SPDX-License-Identifier: Apache-2.0 */
#include "model-internal.h"

static void free_warning(gpointer data)
{
    RsWarning *w = data;
    g_free(w->path);
    g_free(w->text);
    g_free(w);
}

static void clear_comm(gpointer data)
{
    RsComm *c = data;
    g_free(c->members);
}

RsModel *rs_model_new(void)
{
    RsModel *m = g_new0(RsModel, 1);
    m->args = g_array_new(FALSE, TRUE, sizeof(RsArg));
    m->sigs = g_array_new(FALSE, TRUE, sizeof(RsSig));
    m->tracks = g_array_new(FALSE, TRUE, sizeof(RsTrack));
    m->ranks = g_array_new(FALSE, TRUE, sizeof(RsRank));
    m->hosts = g_array_new(FALSE, TRUE, sizeof(RsHost));
    m->domains = g_array_new(FALSE, TRUE, sizeof(RsDomain));
    m->comms = g_array_new(FALSE, TRUE, sizeof(RsComm));
    g_array_set_clear_func(m->comms, clear_comm);
    m->instances = g_array_new(FALSE, TRUE, sizeof(RsInstance));
    m->rendezvous = g_array_new(FALSE, TRUE, sizeof(RsRendezvous));
    m->offs = g_array_new(FALSE, TRUE, sizeof(RsOffTime));
    m->messages = g_array_new(FALSE, TRUE, sizeof(RsMessage));
    m->steps = g_array_new(FALSE, TRUE, sizeof(RsStep));
    m->step_spans = g_array_new(FALSE, TRUE, sizeof(RsSpan));
    m->member_events = g_array_new(FALSE, TRUE, sizeof(guint32));
    m->warnings = g_ptr_array_new_with_free_func(free_warning);
    m->meta = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    m->strings = g_ptr_array_new_with_free_func(g_free);
    m->clock_method = "single domain";
    m->clock_trusted = TRUE;
    m->step_source = "none";
    return m;
}

static void free_columns(RsEvents *e)
{
    g_free(e->start_ns);
    g_free(e->end_ns);
    g_free(e->sig);
    g_free(e->flags);
    g_free(e->aux);
    g_free(e->seq);
    g_free(e->link);
}

void rs_model_free(RsModel *m)
{
    if (!m)
        return;
    free_columns(&m->events);
    GArray *arrays[] = {m->sigs,       m->tracks,        m->ranks,      m->hosts,    m->domains,
                        m->comms,      m->instances,     m->rendezvous, m->messages, m->steps,
                        m->step_spans, m->member_events, m->args,       m->offs};
    for (guint i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_unref(arrays[i]);
    g_ptr_array_unref(m->warnings);
    g_hash_table_unref(m->meta);
    g_ptr_array_unref(m->strings);
    g_free(m);
}

guint32 rs_model_track_of(const RsModel *m, guint32 event)
{
    guint32 low = 0, high = m->tracks->len;
    while (high - low > 1) {
        guint32 mid = low + (high - low) / 2;
        if (g_array_index(m->tracks, RsTrack, mid).first <= event)
            low = mid;
        else
            high = mid;
    }
    return low;
}

gboolean rs_model_hosts_are_known(const RsModel *m)
{
    for (guint32 i = 0; i < m->hosts->len; i++)
        if (!rs_model_host_is_known(m, i))
            return FALSE;
    return TRUE;
}

guint32 rs_model_rank_of(const RsModel *m, guint32 event)
{
    return g_array_index(m->tracks, RsTrack, rs_model_track_of(m, event)).rank;
}

const RsArg *rs_model_args(const RsModel *m, guint32 event, guint *ret_n)
{
    guint low = 0, high = m->args->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(m->args, RsArg, middle).event < event)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_n = 0;
    if (m->args->len == 0)
        return NULL;
    const RsArg *first = (const RsArg *)(void *)m->args->data + low;
    for (; low + *ret_n < m->args->len && first[*ret_n].event == event; ++*ret_n)
        ;
    return first;
}

gint64 rs_model_done_ns(const RsModel *m, guint32 event)
{
    guint32 link = m->events.link[event];
    if (link != RS_NONE && rs_model_sig(m, event)->kind == RS_KIND_CALL)
        return MAX(m->events.end_ns[link], m->events.end_ns[event]);
    return m->events.end_ns[event];
}

guint32 rs_size_class(guint64 bytes)
{
    return bytes == 0 ? RS_NONE : 63 - (guint32)__builtin_clzll(bytes);
}

gchar *rs_model_dup_rank_label(const RsModel *m, guint32 rank)
{
    const RsRank *r = rs_model_rank(m, rank);
    if (r->missing)
        return g_strdup_printf("rank %d (no capture)", r->rank);
    const RsHost *host = &g_array_index(m->hosts, RsHost, r->host);
    g_autofree gchar *who =
        r->rank < 0 ? g_strdup(rs_model_str(m, r->program)) : g_strdup_printf("rank %d", r->rank);
    return g_strdup_printf("%s (%s:%" G_GINT64_FORMAT ")", who[0] ? who : "process",
                           rs_model_str(m, host->name), r->pid);
}

gboolean rs_model_is_left_out(const RsModel *m, guint32 event)
{
    const RsSig *s = rs_model_sig(m, event);
    return s->kind == RS_KIND_HOLE && g_str_equal(rs_model_str(m, s->name), RS_HOLE_LIMIT);
}

gboolean rs_model_is_off(const RsModel *m, guint32 event)
{
    const RsSig *s = rs_model_sig(m, event);
    return s->kind == RS_KIND_HOLE && g_str_equal(rs_model_str(m, s->name), RS_HOLE_OFF);
}

gboolean rs_model_was_off(const RsModel *m, guint32 rank, gint64 from_ns, gint64 to_ns)
{
    const RsRank *r = rs_model_rank(m, rank);
    guint32 low = r->first_off, end = r->first_off + r->off_count, high = end;
    while (low < high) { /* the first that ends at from_ns or later: they don't overlap */
        guint32 mid = low + (high - low) / 2;
        if (g_array_index(m->offs, RsOffTime, mid).end_ns < from_ns)
            low = mid + 1;
        else
            high = mid;
    }
    return low < end && g_array_index(m->offs, RsOffTime, low).start_ns <= to_ns;
}

gdouble rs_model_lost_share(const RsModel *m)
{
    guint64 lost = m->dropped;
    for (guint32 i = 0; lost && i < m->events.n; i++)
        if (rs_model_is_left_out(m, i))
            lost -= MIN(lost, rs_model_sig(m, i)->count);
    return (gdouble)lost / (gdouble)(lost + m->events.n + 1);
}
