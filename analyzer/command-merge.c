/* SPDX-License-Identifier: Apache-2.0 */
/* command-merge.c - `ringscope merge DIR`: captures to run.json and run.sqlite. */
#include <stdio.h>

#include "command.h"
#include "merge.h"

int rs_command_merge(const RsCommand *self, int argc, char **argv)
{
    g_autofree gchar *prefix = NULL, *formats = NULL;
    const GOptionEntry entries[] = {{"output", 'o', 0, G_OPTION_ARG_FILENAME, &prefix,
                                     "write PREFIX.json and PREFIX.sqlite (default: DIR/run)",
                                     "PREFIX"},
                                    {"format", 'f', 0, G_OPTION_ARG_STRING, &formats,
                                     "chrome, sqlite, or both (default)", "LIST"},
                                    RS_COMMAND_RUN_ENTRIES,
                                    G_OPTION_ENTRY_NULL};
    int status;
    if (!rs_command_parse(self, entries, FALSE, &argc, &argv, &status))
        return status;
    if (argc != 2)
        return rs_command_usage(self, "name one run folder, one capture or one trace");
    if (prefix && (!*prefix || g_str_has_suffix(prefix, "/")))
        return rs_command_usage(self, "-o %s: names no file; .json and .sqlite are added to it",
                                prefix);
    RsRunOptions options;
    g_autoptr(GArray) ranks = NULL;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) written = NULL;
    if (!rs_command_run_options(&options, &ranks, &error))
        return rs_command_fail(error);
    const RsMerge what = {argv[1], prefix, formats, rs_command_progress, NULL, &options};
    g_autoptr(RsModel) m = rs_merge(&what, &written, &error);
    rs_command_progress(1, "", NULL);
    if (!m)
        return rs_command_fail(error);
    rs_command_warn(m);
    for (guint i = 0; !rs_command_quiet && written[i]; i++)
        printf("%s\n", written[i]);
    return 0;
}
