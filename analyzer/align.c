/* SPDX-License-Identifier: Apache-2.0 */
/*
 * align.c - times of each process as ns of its clock domain, and the axis that begins at the first
 * event. Processes of one domain share a clock: their anchors are pooled.
 */
#include "model-internal.h"

#include "clock.h"

/* ---- ticks ---- */

guint32 rs_align_domain_of(const RsBuilder *b, guint32 process)
{
    return rs_model_rank(b->model, b->rank_of_process[process])->domain;
}

static void pool_anchors(const RsBuilder *b, guint32 domain, GArray *pool, gdouble *ret_hz)
{
    *ret_hz = 0;
    for (guint i = 0; i < b->processes->len; i++) {
        const RsProcess *p = g_ptr_array_index(b->processes, i);
        if (p->unit != RS_TIME_TICKS || rs_align_domain_of(b, i) != domain)
            continue;
        g_array_append_vals(pool, p->anchors->data, p->anchors->len);
        if (*ret_hz == 0)
            *ret_hz = p->tick_hz;
    }
}

/* Where ticks count from in a domain without an anchor. */
static guint64 first_tick(const RsBuilder *b, guint32 domain)
{
    guint64 first = G_MAXUINT64;
    for (guint i = 0; i < b->events->len; i++) {
        const RsRawEvent *e = &g_array_index(b->events, RsRawEvent, i);
        guint32 process = g_array_index(b->tracks, RsRawTrack, e->track).process;
        if (rs_align_domain_of(b, process) == domain)
            first = MIN(first, (guint64)e->start);
    }
    return first == G_MAXUINT64 ? 0 : first;
}

static RsTickMap *map_domains(RsBuilder *b)
{
    guint n = b->model->domains->len;
    RsTickMap *maps = g_new0(RsTickMap, n + 1);
    for (guint d = 0; d < n; d++) {
        g_autoptr(GArray) pool = g_array_new(FALSE, FALSE, sizeof(struct rs_anchor));
        gdouble hz;
        pool_anchors(b, d, pool, &hz);
        guint64 origin = pool->len ? 0 : first_tick(b, d);
        rs_tick_map_init(&maps[d], (const struct rs_anchor *)(void *)pool->data, pool->len, hz,
                         origin);
        RsDomain *domain = &g_array_index(b->model->domains, RsDomain, d);
        domain->uncertainty_ns = maps[d].uncertainty_ns;
    }
    return maps;
}

/* Time of a process's own clock as ns of its domain. */
static gint64 to_domain_ns(const RsProcess *p, const RsTickMap *map, guint64 time)
{
    if (p->unit == RS_TIME_TICKS)
        return rs_tick_map_ns(map, time);
    return CLAMP((gint64)time, -RS_TIME_MAX, RS_TIME_MAX);
}

/* Round trips in ns of both domains, in place of ticks; those without a known peer are dropped. */
static void convert_probes(RsBuilder *b, const RsTickMap *maps)
{
    g_autoptr(GHashTable) by_rank = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = b->processes->len; i-- > 0;) {
        const RsProcess *p = g_ptr_array_index(b->processes, i);
        if (p->rank >= 0)
            g_hash_table_insert(by_rank, GINT_TO_POINTER(p->rank + 1), GUINT_TO_POINTER(i + 1));
    }
    for (guint i = 0; i < b->processes->len; i++) {
        RsProcess *p = g_ptr_array_index(b->processes, i);
        const RsTickMap *own = &maps[rs_align_domain_of(b, i)];
        guint kept = 0;
        for (guint k = 0; k < p->probes->len; k++) {
            struct rs_clock_probe t = g_array_index(p->probes, struct rs_clock_probe, k);
            gpointer found = t.peer < 0 || t.peer == G_MAXINT32
                                 ? NULL
                                 : g_hash_table_lookup(by_rank, GINT_TO_POINTER(t.peer + 1));
            if (!found)
                continue;
            guint32 peer = GPOINTER_TO_UINT(found) - 1;
            const RsProcess *q = rs_builder_process(b, peer);
            const RsTickMap *theirs = &maps[rs_align_domain_of(b, peer)];
            t.sent = (guint64)to_domain_ns(p, own, t.sent);
            t.received = (guint64)to_domain_ns(p, own, t.received);
            t.peer_received = (guint64)to_domain_ns(q, theirs, t.peer_received);
            t.peer_sent = (guint64)to_domain_ns(q, theirs, t.peer_sent);
            t.peer = (gint32)rs_align_domain_of(b, peer);
            g_array_index(p->probes, struct rs_clock_probe, kept++) = t;
        }
        g_array_set_size(p->probes, kept);
    }
}

void rs_align_ticks(RsBuilder *b)
{
    RsTickMap *maps = map_domains(b);
    convert_probes(b, maps);
    for (guint i = 0; i < b->events->len; i++) {
        RsRawEvent *e = &g_array_index(b->events, RsRawEvent, i);
        guint32 process = g_array_index(b->tracks, RsRawTrack, e->track).process;
        const RsProcess *p = rs_builder_process(b, process);
        if (p->unit == RS_TIME_ALIGNED)
            continue;
        const RsTickMap *map = &maps[rs_align_domain_of(b, process)];
        e->start = to_domain_ns(p, map, (guint64)e->start);
        e->end = MAX(e->start, to_domain_ns(p, map, (guint64)e->end));
    }
    for (guint d = 0; d < b->model->domains->len; d++)
        rs_tick_map_clear(&maps[d]);
    g_free(maps);
}

/* ---- the axis ---- */

gboolean rs_align_wall_offset(const RsBuilder *b, guint32 domain, gint64 *ret)
{
    for (guint i = 0; i < b->processes->len; i++) {
        const RsProcess *p = g_ptr_array_index(b->processes, i);
        if (rs_align_domain_of(b, i) != domain || p->anchors->len == 0)
            continue;
        const struct rs_anchor *a = &g_array_index(p->anchors, struct rs_anchor, 0);
        *ret = (gint64)MIN(a->realtime_ns, (guint64)RS_TIME_MAX * 8) -
               (gint64)MIN(a->monotonic_ns, (guint64)RS_TIME_MAX);
        return TRUE;
    }
    return FALSE;
}

/* Unix time of the run's first event, by the reference domain's anchors. */
static void set_realtime(RsBuilder *b, gint64 base)
{
    gint64 wall;
    if (b->model->domains->len && rs_align_wall_offset(b, 0, &wall))
        b->model->base_realtime_ns = base + wall;
}

void rs_align_base(RsBuilder *b)
{
    RsEvents *e = &b->model->events;
    gint64 base = e->n ? e->start_ns[0] : 0;
    for (guint32 i = 0; i < e->n; i++)
        base = MIN(base, e->start_ns[i]);
    for (guint32 i = 0; i < e->n; i++) {
        e->start_ns[i] -= base;
        e->end_ns[i] -= base;
    }
    set_realtime(b, base);
}
