/* SPDX-License-Identifier: Apache-2.0 */
/* command-view.c - `ringscope view RUN`: hands over to the window. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "beside.h"
#include "command.h"

int rs_command_view(const RsCommand *self, int argc, char **argv)
{
    int status;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        rs_command_parse(self, NULL, TRUE, &argc, &argv, &status);
        return status;
    }
    if (argc < 2)
        return rs_command_usage(self, "name a run");
    g_autoptr(GError) error = NULL;
    g_autofree gchar *viewer = rs_beside_find_viewer(&error);
    if (!viewer)
        return rs_command_fail(error);
    argv[0] = viewer; /* its own options and arguments are the window's */
    execv(viewer, argv);
    g_set_error(&error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: %s", viewer, g_strerror(errno));
    return rs_command_fail(error);
}
