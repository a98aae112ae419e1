/* SPDX-License-Identifier: Apache-2.0 */
#include "phases.h"

#include "stats.h"
#include "timeline.h"

typedef struct {
    gint64 *own_ns; /* by RsRank index */
    guint64 *count;
} Phase;

static void free_phase(gpointer data)
{
    Phase *p = data;
    g_free(p->own_ns);
    g_free(p->count);
    g_free(p);
}

static Phase *phase_of(GHashTable *phases, RsStr name, guint32 n_ranks)
{
    Phase *p = g_hash_table_lookup(phases, GUINT_TO_POINTER(name));
    if (!p) {
        p = g_new0(Phase, 1);
        p->own_ns = g_new0(gint64, n_ranks + 1);
        p->count = g_new0(guint64, n_ranks + 1);
        g_hash_table_insert(phases, GUINT_TO_POINTER(name), p);
    }
    return p;
}

/* Innermost time only: what a range spends in a range inside it belongs to that one. */
static void add_track(GHashTable *phases, const RsContext *ctx, guint32 rank)
{
    const RsModel *m = ctx->model;
    const RsTimeline *line = &ctx->timelines[rank];
    const RsTrack *t = &g_array_index(m->tracks, RsTrack, line->main_track);
    GArray *open = g_array_new(FALSE, FALSE, sizeof(guint32));
    for (guint32 i = t->first; i < t->first + t->n; i++) {
        const RsSig *s = rs_model_sig(m, i);
        if (s->kind != RS_KIND_RANGE)
            continue;
        gint64 from = m->events.start_ns[i], to = m->events.end_ns[i];
        while (open->len && m->events.end_ns[g_array_index(open, guint32, open->len - 1)] <= from)
            g_array_set_size(open, open->len - 1);
        gint64 own = rs_timeline_own_ns(line, to) - rs_timeline_own_ns(line, from);
        Phase *p = phase_of(phases, s->name, m->ranks->len);
        p->own_ns[rank] += own;
        p->count[rank]++;
        if (open->len) {
            guint32 outer = g_array_index(open, guint32, open->len - 1);
            phase_of(phases, rs_model_sig(m, outer)->name, m->ranks->len)->own_ns[rank] -= own;
        }
        g_array_append_val(open, i);
    }
    g_array_unref(open);
}

static gint64 median_other(const Phase *p, const guint8 *member, guint32 rank, guint32 n)
{
    g_autofree gint64 *v = g_new(gint64, n + 1);
    guint k = 0;
    for (guint32 r = 0; r < n; r++)
        if (member[r] && r != rank)
            v[k++] = p->own_ns[r];
    return k ? rs_median_ns(v, k) : 0;
}

static gboolean pick(const RsContext *ctx, GHashTable *phases, const guint8 *member, guint32 rank,
                     RsPhaseExcess *ret)
{
    const RsModel *m = ctx->model;
    GHashTableIter it;
    gpointer key, value;
    gint64 most = 0, all = 0;
    RsStr best = 0;
    g_hash_table_iter_init(&it, phases);
    while (g_hash_table_iter_next(&it, &key, &value)) {
        const Phase *p = value;
        gint64 others = median_other(p, member, rank, m->ranks->len);
        gint64 more = p->own_ns[rank] - others;
        RsStr name = GPOINTER_TO_UINT(key);
        all += MAX(more, 0);
        if (more < most || (more == most && (best == 0 || name > best)) || p->count[rank] == 0)
            continue;
        guint64 per = m->steps->len ? m->steps->len : p->count[rank];
        most = more;
        best = name;
        ret->name = rs_model_str(m, name);
        ret->own_ns = p->own_ns[rank] / (gint64)per;
        ret->others_ns = others / (gint64)per;
    }
    ret->per_step = m->steps->len > 0;
    ret->share = all > 0 ? (gdouble)most / (gdouble)all : 0;
    return most > 0;
}

gboolean rs_phases_excess(const RsContext *ctx, const guint8 *member, guint32 rank,
                          RsPhaseExcess *ret)
{
    const RsModel *m = ctx->model;
    GHashTable *phases = g_hash_table_new_full(NULL, NULL, NULL, free_phase);
    for (guint32 r = 0; r < m->ranks->len; r++)
        if (member[r] && ctx->timelines[r].main_track != RS_NONE)
            add_track(phases, ctx, r);
    gboolean found = pick(ctx, phases, member, rank, ret);
    g_hash_table_unref(phases);
    return found;
}
