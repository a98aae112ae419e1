/* SPDX-License-Identifier: Apache-2.0 */
/* depths.c - how deep ranges stand in each other, where times alone tell. */
#include "model-internal.h"

static void find_depths(RsModel *m, const RsTrack *t, GArray *ends)
{
    g_array_set_size(ends, 0);
    for (guint32 i = t->first; i < t->first + t->n; i++) {
        gint64 start = m->events.start_ns[i], end = m->events.end_ns[i];
        if (rs_model_sig(m, i)->kind != RS_KIND_RANGE)
            continue;
        while (ends->len && g_array_index(ends, gint64, ends->len - 1) <= start &&
               (end > start || g_array_index(ends, gint64, ends->len - 1) < start))
            g_array_set_size(ends, ends->len - 1);
        m->events.aux[i] = (guint16)MIN(ends->len, G_MAXUINT16);
        g_array_append_val(ends, end);
    }
}

void rs_depths_find(RsBuilder *b)
{
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(gint64));
    for (guint t = 0; t < b->model->tracks->len; t++)
        if (b->nests[t])
            find_depths(b->model, &g_array_index(b->model->tracks, RsTrack, t), ends);
}
