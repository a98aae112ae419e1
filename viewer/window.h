/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - the GTK window: what users do becomes calls of scene.h, what the scene says, widgets.
 */
#ifndef RS_VIEWER_WINDOW_H
#define RS_VIEWER_WINDOW_H

#include "wanted.h"

G_BEGIN_DECLS

typedef struct {
    const gchar *const *paths;
    const RsRunOptions *run; /* how they are read */
    gint width, height;
    const RsWanted *wanted;  /* checked */
    const gchar *state_file; /* NULL: none; else see window-internal.h */
} RsWindowOptions;

/* Opens the window, reads the run beside it, returns the exit status when it is closed. */
int rs_window_run(const RsWindowOptions *options);

G_END_DECLS
#endif
