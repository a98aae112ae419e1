/* SPDX-License-Identifier: Apache-2.0 */
/* command-view.c - `ringscope view RUN`: hands over to the window. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "beside.h"
#include "command.h"

/* The window tells its options itself, under the name it was asked by. */
static gboolean wants_help(int argc, char **argv)
{
    return argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

int rs_command_view(const RsCommand *self, int argc, char **argv)
{
    if (argc < 2)
        return rs_command_usage(
            self, "which run? Give a run folder, captures, an .sqlite file or traces");
    g_autoptr(GError) error = NULL;
    g_autofree gchar *viewer = rs_beside_find_viewer(&error);
    if (!viewer)
        return rs_command_fail(error);
    argv[0] = wants_help(argc, argv) ? (char *)"ringscope view" : viewer;
    execv(viewer, argv); /* options and arguments are the window's */
    g_set_error(&error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: %s", viewer, g_strerror(errno));
    return rs_command_fail(error);
}
