/* SPDX-License-Identifier: Apache-2.0 */
#include "pick.h"

#include <math.h>

#define REACH_PX    2.0
#define LOOK_AT_MAX 256u /* slices within reach that are compared */

static guint32 longest(const RsRows *r, guint32 first, guint32 last)
{
    guint32 best = first;
    for (guint32 s = first + 1; s < last && s < first + LOOK_AT_MAX; s++)
        if (r->end_ns[s] - r->start_ns[s] > r->end_ns[best] - r->start_ns[best])
            best = s;
    return best;
}

guint32 rs_pick_in_row(const RsRows *r, const RsRow *row, const RsAxis *axis, gdouble x)
{
    gint64 at = (gint64)floor(rs_axis_time(axis, x));
    guint32 end = row->first + row->n;
    guint32 slot = rs_rows_first_visible(r, row, at);
    gboolean covers = slot < end && r->start_ns[slot] <= at && r->end_ns[slot] > at;
    if (covers && (gdouble)(r->end_ns[slot] - r->start_ns[slot]) >= axis->ns_per_px)
        return slot;
    gint64 low = (gint64)floor(rs_axis_time(axis, x - REACH_PX));
    gint64 high = (gint64)ceil(rs_axis_time(axis, x + REACH_PX));
    guint32 first = rs_rows_first_visible(r, row, low);
    guint32 last = rs_rows_seek(r, row, first, high + 1);
    return first < last ? longest(r, first, last) : RS_NONE;
}

guint32 rs_pick_event(const RsLayout *l, const RsAxis *axis, gdouble x, gint y)
{
    guint32 row = rs_layout_row_at(l, y);
    if (row == RS_NONE || x < 0 || x >= axis->width_px)
        return RS_NONE;
    guint32 slot = rs_pick_in_row(l->rows, rs_rows_row(l->rows, row), axis, x);
    return slot == RS_NONE ? RS_NONE : l->rows->event[slot];
}
