/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"

#include "details.h"
#include "escape.h"
#include "export/stream.h"
#include "paint.h"
#include "run.h"

#define SIDE_PX      330
#define SIDE_MIN_PX  820 /* narrower pictures have no side */
#define HEAD_PX      34
#define STATUS_PX    24
#define PAD_PX       14
#define FINDINGS_MAX 6u
#define WARNINGS_MAX 12u

static void paint_head(const RsScene *s, RsPen *pen, gint width)
{
    rs_pen_fill(pen, RS_PAPER_SIDE, 1, 0, 0, width, HEAD_PX);
    g_autofree gchar *title = rs_escape_dup_text(s->title);
    gdouble took =
        rs_pen_text(pen, RS_PEN_TITLE, RS_INK, PAD_PX, HEAD_PX / 2.0, width / 3.0, title);
    rs_paint_legend(s, pen, PAD_PX + MAX(took + 30, RS_SCENE_GUTTER_PX - PAD_PX), HEAD_PX / 2.0);
    rs_pen_line(pen, RS_LINE_RGB, 0, HEAD_PX - 1, width, HEAD_PX - 1);
}

static gdouble paint_one_finding(const RsScene *s, RsPen *pen, guint index, gdouble x, gdouble y,
                                 gdouble width)
{
    const RsFinding *f = g_ptr_array_index(s->results->findings, index);
    gboolean shown = s->finding == (gint)index;
    g_autofree gchar *title = rs_escape_dup_text(f->title);
    g_autofree gchar *cost = rs_details_dup_finding_cost(f);
    rs_pen_fill(pen, shown ? RS_ACCENT : RS_LINE_RGB, 1, x, y + 2, 3, 30);
    gdouble high = rs_pen_paragraph(pen, RS_PEN_PLAIN, RS_INK, x + 12, y, width - 12, 3, title);
    high += 2;
    high += rs_pen_paragraph(pen, RS_PEN_SMALL, RS_INK_SOFT, x + 12, y + high, width - 12, 1, cost);
    return high + 12;
}

static gdouble heading(RsPen *pen, const gchar *text, gdouble x, gdouble y)
{
    rs_pen_text(pen, RS_PEN_BOLD, RS_INK, x, y + 8, -1, text);
    return y + 24;
}

static gdouble paint_findings(const RsScene *s, RsPen *pen, gdouble x, gdouble y, gdouble width)
{
    guint n = s->results->findings->len;
    y = heading(pen, "Findings", x, y);
    for (guint i = 0; i < MIN(n, FINDINGS_MAX); i++)
        y += paint_one_finding(s, pen, i, x, y, width);
    if (n == 0)
        y += 12 + rs_pen_paragraph(pen, RS_PEN_PLAIN, RS_INK_SOFT, x, y, width, 2,
                                   "Nothing found that costs this run time.");
    return y + 8;
}

static gdouble paint_details(const RsScene *s, RsPen *pen, gdouble x, gdouble y, gdouble width)
{
    g_autoptr(GPtrArray) all = rs_details_of_event(s, s->selected);
    if (all->len == 0)
        return y;
    y = heading(pen, "Selection", x, y);
    for (guint i = 0; i < all->len; i++) {
        const RsDetail *d = g_ptr_array_index(all, i);
        rs_pen_paragraph(pen, RS_PEN_PLAIN, RS_INK_SOFT, x, y, 100, 1, d->key);
        y += 4 + rs_pen_paragraph(pen, RS_PEN_PLAIN, RS_INK, x + 106, y, width - 106, 3, d->value);
    }
    return y + 8;
}

/* What speaks for the finding that is shown, where nothing is selected. */
static void paint_evidence(const RsScene *s, RsPen *pen, gdouble x, gdouble y, gdouble width)
{
    if (s->finding < 0 || s->selected != RS_NONE)
        return;
    const RsFinding *f = g_ptr_array_index(s->results->findings, (guint)s->finding);
    y = heading(pen, "Evidence", x, y);
    for (guint i = 0; i < f->evidence->len; i++) {
        g_autofree gchar *text = rs_escape_dup_text(g_ptr_array_index(f->evidence, i));
        y += 6 + rs_pen_paragraph(pen, RS_PEN_PLAIN, RS_INK, x, y, width, 4, text);
    }
    g_autofree gchar *remedy = rs_escape_dup_text(f->remedy);
    y = heading(pen, "Remedy", x, y + 8);
    rs_pen_paragraph(pen, RS_PEN_PLAIN, RS_INK, x, y, width, 6, remedy);
}

static void paint_warnings(const RsScene *s, RsPen *pen, gdouble x, gdouble y, gdouble width)
{
    g_autoptr(GPtrArray) warnings = rs_details_warnings(s);
    if (warnings->len == 0 || s->finding >= 0 || s->selected != RS_NONE)
        return;
    y = heading(pen, "Warnings", x, y);
    for (guint i = 0; i < MIN(warnings->len, WARNINGS_MAX); i++)
        y += 6 + rs_pen_paragraph(pen, RS_PEN_PLAIN, RS_INK, x, y, width, 3,
                                  g_ptr_array_index(warnings, i));
}

static void paint_side(const RsScene *s, RsPen *pen, gint x, gint y, gint height)
{
    rs_pen_fill(pen, RS_PAPER_SIDE, 1, x, y, SIDE_PX, height);
    rs_pen_line(pen, RS_LINE_RGB, x, y, x, y + height);
    cairo_save(pen->cr);
    cairo_rectangle(pen->cr, x, y, SIDE_PX, height);
    cairo_clip(pen->cr);
    gdouble at = paint_findings(s, pen, x + PAD_PX, y + PAD_PX, SIDE_PX - 2 * PAD_PX);
    at = paint_details(s, pen, x + PAD_PX, at, SIDE_PX - 2 * PAD_PX);
    paint_evidence(s, pen, x + PAD_PX, at, SIDE_PX - 2 * PAD_PX);
    paint_warnings(s, pen, x + PAD_PX, at, SIDE_PX - 2 * PAD_PX);
    cairo_restore(pen->cr);
}

static void paint_status(const RsScene *s, RsPen *pen, gint width, gint y)
{
    g_autofree gchar *text = rs_scene_dup_status(s);
    gboolean alarm = s->model->incomplete || !s->model->clock_trusted;
    rs_pen_fill(pen, RS_PAPER_SIDE, 1, 0, y, width, STATUS_PX);
    rs_pen_line(pen, RS_LINE_RGB, 0, y, width, y);
    rs_pen_text(pen, RS_PEN_SMALL, alarm ? RS_ACCENT : RS_INK_SOFT, PAD_PX, y + STATUS_PX / 2.0,
                width - 2 * PAD_PX, text);
}

static void paint_all(RsScene *s, cairo_t *cr, gint width, gint height)
{
    gint side = width >= SIDE_MIN_PX ? SIDE_PX : 0, body = MAX(height - HEAD_PX - STATUS_PX, 1);
    RsPen pen;
    rs_scene_resize(s, MAX(width - side, 1), body);
    cairo_save(cr);
    cairo_translate(cr, 0, HEAD_PX);
    cairo_rectangle(cr, 0, 0, width - side, body);
    cairo_clip(cr);
    rs_paint_scene(s, cr);
    cairo_restore(cr);
    rs_pen_init(&pen, cr);
    paint_head(s, &pen, width);
    if (side)
        paint_side(s, &pen, width - side, HEAD_PX, body);
    paint_status(s, &pen, width, height - STATUS_PX);
    rs_pen_release(&pen);
}

static cairo_status_t put_bytes(void *out, const unsigned char *data, unsigned int n)
{
    rs_stream_put_len(out, (const gchar *)data, n);
    return CAIRO_STATUS_SUCCESS; /* what fails is said at the end */
}

gboolean rs_picture_write(RsScene *s, const gchar *path, gint width, gint height, GError **error)
{
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    cairo_t *cr = cairo_create(image);
    paint_all(s, cr, width, height);
    cairo_status_t status = cairo_status(cr);
    RsStream *out = status == CAIRO_STATUS_SUCCESS ? rs_stream_open(path, error) : NULL;
    if (out)
        status = cairo_surface_write_to_png_stream(image, put_bytes, out);
    cairo_destroy(cr);
    cairo_surface_destroy(image);
    if (status == CAIRO_STATUS_SUCCESS)
        return out && rs_stream_finish(out, error);
    g_set_error(error, RS_ERROR, RS_ERROR_IO, "%s: %s", path, cairo_status_to_string(status));
    if (out)
        rs_stream_cancel(out);
    return FALSE;
}
