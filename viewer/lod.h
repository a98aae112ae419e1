/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lod.h - paints the slices of a row into pixels, however many share one.
 *
 * Level of detail: a slice of two pixels or more is a box of its own. Whatever is thinner is
 * gathered by pixel column: the column is divided between the meanings in it by their time, each at
 * least a pixel high, and is as strong as the slices fill it, but never fainter than a third, so a
 * rare slice is seen. The cost of a row grows with its pixels, and with the logarithm of its
 * slices.
 */
#ifndef RS_VIEWER_LOD_H
#define RS_VIEWER_LOD_H

#include "axis.h"
#include "rows.h"

G_BEGIN_DECLS

/* Pixels as cairo's RGB24: 0x00RRGGBB. */
typedef struct {
    guint32 *pixels;
    gint stride_px, width, height;
} RsCanvas;

/* Paints row `row` at lines [y, y + height) (cut by the canvas), the axis' first pixel at column
 * `x0`. */
void rs_lod_paint_row(const RsCanvas *canvas, const RsRows *rows, guint32 row, const RsAxis *axis,
                      gint x0, gint y, gint height);
void rs_canvas_fill(const RsCanvas *canvas, gint x, gint y, gint width, gint height, guint32 rgb);

G_END_DECLS
#endif
