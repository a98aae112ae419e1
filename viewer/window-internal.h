/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window-internal.h - what the files of the window share.
 *
 * window.c builds it and reads the run, window-input.c turns pointer and keys into calls of the
 * scene, window-side.c shows findings, details and search, window-state.c writes for tests.
 */
#ifndef RS_VIEWER_WINDOW_INTERNAL_H
#define RS_VIEWER_WINDOW_INTERNAL_H

#include <gtk/gtk.h>

#include "scene.h"
#include "window.h"

G_BEGIN_DECLS

typedef struct {
    const RsWindowOptions *options;
    RsScene *scene; /* NULL while it is read */
    int status;     /* exit */
    guint frames;   /* drawn so far */

    GtkWidget *window, *stack, *progress;
    GtkWidget *title, *legend, *area, *scroll, *findings, *details, *search, *count, *status_label;
    GtkAdjustment *adjustment;

    gboolean pressed, dragged;
    gdouble press_x, press_y, last_x, last_y;
} RsViewer;

/* The scene has changed: draw again, and set scroll bar and panes to it. */
void rs_window_changed(RsViewer *w);
void rs_window_select(RsViewer *w, guint32 event, gboolean reveal);
void rs_window_show_help(RsViewer *w);

/* window-input.c */
void rs_window_connect_input(RsViewer *w);

/* window-side.c */
GtkWidget *rs_window_side_new(RsViewer *w);
void rs_window_fill_findings(RsViewer *w);
void rs_window_fill_details(RsViewer *w);
void rs_window_connect_search(RsViewer *w);
void rs_window_search_next(RsViewer *w, gboolean backwards);

/* window-state.c: "key value" lines, replaced as a whole after each frame. Coordinates are of the
 * screen, so that a test can point there. */
void rs_window_write_state(RsViewer *w);

G_END_DECLS
#endif
