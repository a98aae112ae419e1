/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - runs a program with an environment of its own, forwards signals, keeps its status.
 *
 * Only the child sees the environment. Signals that a terminal sends to the whole group reach the
 * child without us; those sent to this process alone are forwarded.
 */
#ifndef RS_ANALYZER_LAUNCH_H
#define RS_ANALYZER_LAUNCH_H

#include <glib.h>

G_BEGIN_DECLS

/* Runs argv (by PATH) with `environment` and waits. *ret_status: its exit code, or 128 + the signal
 * that ended it. FALSE and RS_ERROR where it could not be started. */
gboolean rs_launch(gchar **argv, gchar **environment, int *ret_status, GError **error);

G_END_DECLS
#endif
