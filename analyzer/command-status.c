/* SPDX-License-Identifier: Apache-2.0 */
/* command-status.c - `ringscope status DIR`: what a live, hung or killed run is in. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "status/status.h"

typedef struct {
    gchar *format;
    gboolean each, stacks;
} Options;

static int print_status(const Options *o, gchar **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(RsModel) m =
        rs_run_look((const gchar *const *)&argv[1], rs_command_progress, NULL, &error);
    rs_command_progress(1, "", NULL);
    if (!m)
        return rs_command_fail(error);
    RsStatus s;
    rs_status_init(&s, m, argv[1]);
    if (o->stacks)
        rs_status_read_stacks(&s);
    g_autofree gchar *text = o->format && strcmp(o->format, "json") == 0
                                 ? rs_status_json(&s)
                                 : rs_status_text(&s, o->each);
    fputs(text, stdout);
    rs_status_release(&s);
    return 0;
}

int rs_command_status(const RsCommand *self, int argc, char **argv)
{
    static Options o;
    const GOptionEntry entries[] = {
        {"format", 0, 0, G_OPTION_ARG_STRING, &o.format, "text (default) or json", "FORMAT"},
        {"each", 0, 0, G_OPTION_ARG_NONE, &o.each,
         "a line for each rank, not one for all in the same call", NULL},
        {"stacks", 0, 0, G_OPTION_ARG_NONE, &o.stacks,
         "with the native stack of each living rank on this host, which stops it for a moment",
         NULL},
        G_OPTION_ENTRY_NULL,
    };
    int status;
    if (!rs_command_parse(self, entries, FALSE, &argc, &argv, &status))
        return status;
    if (argc < 2)
        return rs_command_usage(self, "which run? Give its folder, on the host that it runs on");
    if (o.format && strcmp(o.format, "text") != 0 && strcmp(o.format, "json") != 0)
        return rs_command_usage(self, "no format '%s': text or json", o.format);
    return print_status(&o, argv);
}
