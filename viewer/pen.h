/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pen.h - text and plain shapes on cairo, in the few sizes and inks that the window uses.
 *
 * A pen holds one Pango layout, which is set anew for each text: making one costs more than
 * drawing. Needs no display. Texts are escaped by the caller where they come from a trace.
 */
#ifndef RS_VIEWER_PEN_H
#define RS_VIEWER_PEN_H

#include <glib.h>
#include <pango/pangocairo.h>

G_BEGIN_DECLS

#define RS_INK        0x1d2430
#define RS_INK_SOFT   0x626b78
#define RS_INK_FAINT  0x9aa3af
#define RS_PAPER      0xffffff
#define RS_PAPER_SIDE 0xf7f8fa
#define RS_PAPER_HEAD 0xe9edf2
#define RS_LINE_RGB   0xd8dde4
#define RS_ACCENT     0xc2410c /* selection, finding */

typedef enum { RS_PEN_SMALL, RS_PEN_PLAIN, RS_PEN_BOLD, RS_PEN_TITLE } RsPenSize;

typedef struct {
    cairo_t *cr;
    PangoLayout *layout;
} RsPen;

void rs_pen_init(RsPen *pen, cairo_t *cr);
void rs_pen_release(RsPen *pen);
void rs_pen_ink(RsPen *pen, guint32 rgb);
void rs_pen_fill(RsPen *pen, guint32 rgb, gdouble alpha, gdouble x, gdouble y, gdouble width,
                 gdouble height);
/* A line of a pixel, crisp. */
void rs_pen_line(RsPen *pen, guint32 rgb, gdouble x0, gdouble y0, gdouble x1, gdouble y1);
void rs_pen_frame(RsPen *pen, guint32 rgb, gdouble line_px, gdouble x, gdouble y, gdouble width,
                  gdouble height);
/* One line of text, its middle at `y`, ended by an ellipsis at `width` (-1: as long as it is).
 * Returns its width. */
gdouble rs_pen_text(RsPen *pen, RsPenSize size, guint32 rgb, gdouble x, gdouble y, gdouble width,
                    const gchar *text);
/* A paragraph of at most `lines` lines from `y` down; returns its height. */
gdouble rs_pen_paragraph(RsPen *pen, RsPenSize size, guint32 rgb, gdouble x, gdouble y,
                         gdouble width, gint lines, const gchar *text);
/* Width that `text` takes. */
gdouble rs_pen_measure(RsPen *pen, RsPenSize size, const gchar *text);

G_END_DECLS
#endif
