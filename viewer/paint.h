/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paint.h - draws a scene: the one painter of the window and of the screenshot command.
 *
 * Slices go into one buffer of pixels (lod.h), everything else is cairo's. Nothing is computed here
 * but colours and text: where things are is asked of the scene. Needs no display.
 */
#ifndef RS_VIEWER_PAINT_H
#define RS_VIEWER_PAINT_H

#include "pen.h"
#include "scene.h"

G_BEGIN_DECLS

/* Draws the scene's width x height at cr's origin. */
void rs_paint_scene(const RsScene *scene, cairo_t *cr);

/* Its parts, in their order. */
void rs_paint_slices(const RsScene *scene, RsPen *pen); /* paint-slices.c: and their names */
void rs_paint_arrows(const RsScene *scene, RsPen *pen); /* paint-arrows.c: of the selection */
/* The meanings that occur in the run, in a row; returns the width it took. */
gdouble rs_paint_legend(const RsScene *scene, RsPen *pen, gdouble x, gdouble y);

G_END_DECLS
#endif
