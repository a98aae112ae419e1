/* SPDX-License-Identifier: Apache-2.0 */
#include "lod.h"

#include <math.h>
#include <string.h>

#define WIDE_PX    2.0
#define FAINTEST   85u /* of 256 */
#define GAP_MIN_PX 4   /* boxes at least so wide end in a gap, so that neighbours are told apart */
#define INSET_MIN  8   /* rows at least so high leave a pixel to the next */

typedef struct {
    const RsCanvas *canvas;
    const RsRows *rows;
    const RsRow *row;
    const RsAxis *axis;
    gint x0, y, height; /* cut by the canvas */
} Painter;

void rs_canvas_fill(const RsCanvas *c, gint x, gint y, gint width, gint height, guint32 rgb)
{
    gint x1 = MIN(x + width, c->width), y1 = MIN(y + height, c->height);
    x = MAX(x, 0);
    for (gint j = MAX(y, 0); j < y1; j++) {
        guint32 *line = c->pixels + (gsize)j * (gsize)c->stride_px;
        for (gint i = x; i < x1; i++)
            line[i] = rgb;
    }
}

static guint32 blend(guint32 rgb, guint32 under, guint alpha)
{
    guint32 odd = ((rgb & 0xff00ff) * alpha + (under & 0xff00ff) * (256 - alpha)) >> 8 & 0xff00ff;
    guint32 even = ((rgb & 0xff00) * alpha + (under & 0xff00) * (256 - alpha)) >> 8 & 0xff00;
    return odd | even;
}

static void blend_column(const RsCanvas *c, gint x, gint y, gint height, guint32 rgb, guint alpha)
{
    if (x < 0 || x >= c->width)
        return;
    gint end = MIN(y + height, c->height);
    for (gint j = MAX(y, 0); j < end; j++) {
        guint32 *p = c->pixels + (gsize)j * (gsize)c->stride_px + x;
        *p = blend(rgb, *p, alpha);
    }
}

static void paint_column(const Painter *p, gint x, guint32 first, guint32 last)
{
    gint64 sums[RS_MEANS_COUNT], total = 0;
    rs_rows_sum(p->rows, p->row, first, last, sums);
    gint present = 0;
    for (guint i = 0; i < RS_MEANS_COUNT; i++) {
        total += sums[i];
        present += sums[i] > 0;
    }
    gdouble share = (gdouble)total / p->axis->ns_per_px;
    guint alpha = p->row->marks ? 256 : FAINTEST + (guint)(MIN(share, 1.0) * (256 - FAINTEST));
    /* from the bottom up: the strong colours of communication come last, on top */
    gint left = p->height, y = p->y + p->height;
    for (guint i = 0; i < RS_MEANS_COUNT && left > 0; i++) {
        if (sums[i] <= 0)
            continue;
        present--;
        gint high = (gint)((gdouble)sums[i] / (gdouble)total * p->height + 0.5);
        high = present == 0 ? left : CLAMP(high, 1, MAX(left - present, 1));
        high = MIN(high, left);
        blend_column(p->canvas, x, y - high, high, rs_meaning_rgb((RsMeaning)i), alpha);
        y -= high;
        left -= high;
    }
}

static void paint_box(const Painter *p, guint32 slot, gdouble from, gdouble to)
{
    const RsRows *r = p->rows;
    gint x = (gint)MAX(floor(from), -1.0);
    gint end = (gint)MIN(floor(to + 0.5), p->axis->width_px + 2.0); /* wide: beyond x */
    gdouble split = rs_axis_px(p->axis, r->split_ns[slot]);
    gboolean waits = r->split_ns[slot] > r->start_ns[slot];
    gint wait = waits ? (gint)CLAMP(floor(split + 0.5), x, end) : x;
    if (end - x >= GAP_MIN_PX)
        end--;
    wait = MIN(wait, end);
    guint32 rgb = rs_meaning_event_rgb(r->model, r->event[slot], (RsMeaning)r->meaning[slot]);
    rs_canvas_fill(p->canvas, p->x0 + x, p->y, wait - x, p->height, rs_meaning_rgb(RS_MEANS_WAIT));
    rs_canvas_fill(p->canvas, p->x0 + wait, p->y, end - wait, p->height, rgb);
}

static gboolean is_wide(const Painter *p, guint32 slot)
{
    return (gdouble)(p->rows->end_ns[slot] - p->rows->start_ns[slot]) >=
           WIDE_PX * p->axis->ns_per_px;
}

/* Paints the column that `slot` starts in; returns the first slot that is not part of it. Slices
 * are disjoint: a wide one that starts there is the last. */
static guint32 gather(const Painter *p, guint32 slot)
{
    gint x = (gint)floor(MAX(rs_axis_px(p->axis, p->rows->start_ns[slot]), 0));
    gint64 next_ns = (gint64)ceil(rs_axis_time(p->axis, x + 1));
    guint32 last = rs_rows_seek(p->rows, p->row, slot + 1, next_ns);
    if (last > slot + 1 && is_wide(p, last - 1))
        last--;
    if (x < p->axis->width_px)
        paint_column(p, p->x0 + x, slot, last);
    return last;
}

static void paint_row(const Painter *p)
{
    gint64 from = (gint64)floor(p->axis->from_ns), to = (gint64)ceil(rs_axis_to_ns(p->axis));
    guint32 end = p->row->first + p->row->n;
    guint32 slot = rs_rows_first_visible(p->rows, p->row, from);
    while (slot < end && p->rows->start_ns[slot] <= to) {
        if (is_wide(p, slot)) {
            paint_box(p, slot, rs_axis_px(p->axis, p->rows->start_ns[slot]),
                      rs_axis_px(p->axis, p->rows->end_ns[slot]));
            slot++;
        } else {
            slot = gather(p, slot);
        }
    }
}

/* The part of the canvas that starts at the axis' first pixel: nothing is painted left of it. */
static RsCanvas right_of(const RsCanvas *c, gint x0, gint width)
{
    x0 = CLAMP(x0, 0, c->width);
    return (RsCanvas){c->pixels + x0, c->stride_px, MIN(c->width - x0, width), c->height};
}

void rs_lod_paint_row(const RsCanvas *canvas, const RsRows *rows, guint32 row, const RsAxis *axis,
                      gint x0, gint y, gint height)
{
    RsCanvas part = right_of(canvas, x0, axis->width_px);
    Painter p = {&part, rows, rs_rows_row(rows, row), axis, 0, y, height};
    if (height >= INSET_MIN)
        p.height--;
    if (p.y < part.height && p.y + p.height > 0 && p.row->n)
        paint_row(&p);
}
