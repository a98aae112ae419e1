/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "escape.h"
#include "lod.h"
#include "paint.h"

#define NAME_MIN_PX   34
#define HEIGHT_MIN_PX 13 /* of a row that has names in it */

static gboolean in_view(const RsScene *s, const RsLine *line)
{
    return line->y < s->scroll_px + rs_scene_body_px(s);
}

/* Calls `paint` for each row in view: the lines from the first that is in view on. */
static void each_row(const RsScene *s,
                     void (*paint)(const RsScene *, guint32, gint, gint, gpointer), gpointer data)
{
    const RsModel *m = s->model;
    guint32 at = rs_layout_line_at(&s->layout, s->scroll_px);
    for (; at < s->layout.lines->len && in_view(s, rs_layout_line(&s->layout, at)); at++) {
        const RsLine *line = rs_layout_line(&s->layout, at);
        guint32 first = line->row, last = line->row + 1;
        if (line->kind == RS_LINE_RANK && s->layout.rank_closed[line->rank]) {
            const RsRank *r = rs_model_rank(m, line->rank);
            first = s->rows.track_rows[r->first_track];
            last = s->rows.track_rows[r->first_track + r->n_tracks];
        } else if (line->kind != RS_LINE_ROW) {
            continue;
        }
        gint y, height;
        for (guint32 row = first; row < last; row++)
            if (rs_layout_row_box(&s->layout, row, &y, &height))
                paint(s, row, y - s->scroll_px, height, data);
    }
}

/* ---- pixels ---- */

static void paint_line_paper(const RsScene *s, const RsCanvas *c)
{
    guint32 at = rs_layout_line_at(&s->layout, s->scroll_px);
    for (; at < s->layout.lines->len && in_view(s, rs_layout_line(&s->layout, at)); at++) {
        const RsLine *line = rs_layout_line(&s->layout, at);
        guint32 rgb = line->kind == RS_LINE_HOST  ? RS_PAPER_HEAD
                      : line->kind == RS_LINE_ROW ? RS_PAPER
                                                  : RS_PAPER_SIDE;
        rs_canvas_fill(c, 0, line->y - s->scroll_px, c->width, line->height, rgb);
    }
}

static void paint_pixels(const RsScene *s, guint32 row, gint y, gint height, gpointer data)
{
    rs_lod_paint_row(data, &s->rows, row, &s->axis, 0, y, height);
}

/* ---- names ---- */

static void name_slice(const RsScene *s, RsPen *pen, guint32 slot, gdouble y, gdouble height)
{
    guint32 event = s->rows.event[slot];
    gdouble from = MAX(rs_axis_px(&s->axis, s->rows.start_ns[slot]), 0);
    gdouble to = MIN(rs_axis_px(&s->axis, s->rows.end_ns[slot]), s->axis.width_px);
    gdouble split = rs_axis_px(&s->axis, s->rows.split_ns[slot]);
    guint32 rgb = rs_meaning_event_rgb(s->model, event, (RsMeaning)s->rows.meaning[slot]);
    if (split - from > (to - from) / 2)
        rgb = rs_meaning_rgb(RS_MEANS_WAIT);
    g_autofree gchar *name =
        rs_escape_dup_text(rs_model_str(s->model, rs_model_sig(s->model, event)->name));
    rs_pen_text(pen, RS_PEN_SMALL, rs_meaning_ink(rgb), RS_SCENE_GUTTER_PX + from + 4,
                y + height / 2 - 0.5, to - from - 8, name);
}

/* Only slices wide enough are looked at: from one, the next candidate starts NAME_MIN_PX before the
 * end of the next such stretch; thin ones between are skipped by search. */
static void paint_names(const RsScene *s, guint32 row, gint y, gint height, gpointer data)
{
    const RsRow *r = rs_rows_row(&s->rows, row);
    gint64 to = (gint64)ceil(rs_axis_to_ns(&s->axis));
    gint64 enough = (gint64)(NAME_MIN_PX * s->axis.ns_per_px);
    if (height < HEIGHT_MIN_PX || r->marks)
        return;
    guint32 slot = rs_rows_first_visible(&s->rows, r, (gint64)floor(s->axis.from_ns));
    while (slot < r->first + r->n && s->rows.start_ns[slot] < to) {
        gint64 begin = MAX(s->rows.start_ns[slot], (gint64)s->axis.from_ns);
        if (MIN(s->rows.end_ns[slot], to) - begin >= enough) {
            name_slice(s, data, slot++, y + RS_SCENE_RULER_PX, height);
            continue;
        }
        /* a wide slice covers the point `enough` after this start, or starts beyond it */
        guint32 next = rs_rows_first_visible(&s->rows, r, begin + enough);
        slot = MAX(slot + 1, next);
    }
}

void rs_paint_slices(const RsScene *s, RsPen *pen)
{
    gint width = s->axis.width_px, height = rs_scene_body_px(s);
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    if (cairo_surface_status(image) == CAIRO_STATUS_SUCCESS) {
        RsCanvas canvas = {(guint32 *)(gpointer)cairo_image_surface_get_data(image),
                           cairo_image_surface_get_stride(image) / 4, width, height};
        rs_canvas_fill(&canvas, 0, 0, width, height, RS_PAPER);
        paint_line_paper(s, &canvas);
        each_row(s, paint_pixels, &canvas);
        cairo_surface_mark_dirty(image);
        cairo_set_source_surface(pen->cr, image, RS_SCENE_GUTTER_PX, RS_SCENE_RULER_PX);
        cairo_paint(pen->cr);
    }
    cairo_surface_destroy(image);
    cairo_save(pen->cr);
    cairo_rectangle(pen->cr, RS_SCENE_GUTTER_PX, RS_SCENE_RULER_PX, width, height);
    cairo_clip(pen->cr);
    each_row(s, paint_names, pen);
    cairo_restore(pen->cr);
}
