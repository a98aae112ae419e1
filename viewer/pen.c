/* SPDX-License-Identifier: Apache-2.0 */
#include "pen.h"

#include <math.h>

static const gchar *const fonts[] = {
    [RS_PEN_SMALL] = "Sans 10px",
    [RS_PEN_PLAIN] = "Sans 11px",
    [RS_PEN_BOLD] = "Sans Bold 11px",
    [RS_PEN_TITLE] = "Sans Bold 14px",
};

void rs_pen_init(RsPen *p, cairo_t *cr)
{
    p->cr = cr;
    p->layout = pango_cairo_create_layout(cr);
    pango_layout_set_ellipsize(p->layout, PANGO_ELLIPSIZE_END);
}

void rs_pen_release(RsPen *p)
{
    g_clear_object(&p->layout);
}

static void set_ink(RsPen *p, guint32 rgb, gdouble alpha)
{
    cairo_set_source_rgba(p->cr, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0,
                          (rgb & 255) / 255.0, alpha);
}

void rs_pen_ink(RsPen *p, guint32 rgb)
{
    set_ink(p, rgb, 1);
}

void rs_pen_fill(RsPen *p, guint32 rgb, gdouble alpha, gdouble x, gdouble y, gdouble width,
                 gdouble height)
{
    set_ink(p, rgb, alpha);
    cairo_rectangle(p->cr, x, y, width, height);
    cairo_fill(p->cr);
}

void rs_pen_line(RsPen *p, guint32 rgb, gdouble x0, gdouble y0, gdouble x1, gdouble y1)
{
    rs_pen_ink(p, rgb);
    cairo_set_line_width(p->cr, 1);
    cairo_move_to(p->cr, floor(x0) + 0.5, floor(y0) + 0.5);
    cairo_line_to(p->cr, floor(x1) + 0.5, floor(y1) + 0.5);
    cairo_stroke(p->cr);
}

void rs_pen_frame(RsPen *p, guint32 rgb, gdouble line_px, gdouble x, gdouble y, gdouble width,
                  gdouble height)
{
    rs_pen_ink(p, rgb);
    cairo_set_line_width(p->cr, line_px);
    cairo_rectangle(p->cr, x, y, width, height);
    cairo_stroke(p->cr);
}

static void set_text(RsPen *p, RsPenSize size, gdouble width, gint lines, const gchar *text)
{
    PangoFontDescription *font = pango_font_description_from_string(fonts[size]);
    pango_layout_set_font_description(p->layout, font);
    pango_font_description_free(font);
    pango_layout_set_width(p->layout, width < 0 ? -1 : (gint)(width * PANGO_SCALE));
    pango_layout_set_height(p->layout, -lines);
    pango_layout_set_wrap(p->layout, PANGO_WRAP_WORD_CHAR);
    pango_layout_set_text(p->layout, text, -1);
}

gdouble rs_pen_text(RsPen *p, RsPenSize size, guint32 rgb, gdouble x, gdouble y, gdouble width,
                    const gchar *text)
{
    gint w, h;
    set_text(p, size, width, 1, text);
    pango_layout_get_pixel_size(p->layout, &w, &h);
    rs_pen_ink(p, rgb);
    cairo_move_to(p->cr, floor(x), floor(y - h / 2.0 + 0.5));
    pango_cairo_show_layout(p->cr, p->layout);
    return w;
}

gdouble rs_pen_paragraph(RsPen *p, RsPenSize size, guint32 rgb, gdouble x, gdouble y, gdouble width,
                         gint lines, const gchar *text)
{
    gint w, h;
    set_text(p, size, width, lines, text);
    pango_layout_get_pixel_size(p->layout, &w, &h);
    rs_pen_ink(p, rgb);
    cairo_move_to(p->cr, floor(x), floor(y));
    pango_cairo_show_layout(p->cr, p->layout);
    return h;
}

gdouble rs_pen_measure(RsPen *p, RsPenSize size, const gchar *text)
{
    gint w, h;
    set_text(p, size, -1, 1, text);
    pango_layout_get_pixel_size(p->layout, &w, &h);
    return w;
}
