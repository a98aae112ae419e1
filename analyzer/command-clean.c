/* SPDX-License-Identifier: Apache-2.0 */
/* command-clean.c - `ringscope clean`: what killed processes left in memory goes to their captures,
 * and the memory is free again. */
#include <stdio.h>

#include "command.h"
#include "orphans.h"
#include "recover.h"

#define QUIET_S 600 /* ten times what a living process lets pass between writes to its capture */

typedef struct {
    guint freed, left;
    guint64 bytes;
} Total;

static void say_left(const RsOrphan *o, const gchar *why)
{
    printf("left: %s (process %" G_GINT64_FORMAT ", %.2f MiB): %s\n",
           o->capture[0] ? o->capture : "no capture", o->pid, (gdouble)o->bytes / (1 << 20), why);
}

static gboolean is_gone(const RsOrphan *o)
{
    return !g_file_test(g_ptr_array_index(o->files, o->files->len - 1), G_FILE_TEST_EXISTS);
}

/* TRUE where its rings are gone. */
static gboolean clean(const RsOrphan *o, gboolean all)
{
    if (o->there && o->quiet_s < QUIET_S) {
        say_left(o, "it changed in the last 10 minutes: merge its folder, or wait");
        return FALSE;
    }
    guint64 events = 0;
    g_autoptr(GError) error = NULL;
    if (o->there && !rs_recover(o->capture, &events, &error)) {
        say_left(o, error->message);
        return FALSE;
    }
    if (o->there && is_gone(o)) {
        printf("saved: %s (process %" G_GINT64_FORMAT ", events: %" G_GUINT64_FORMAT ")\n",
               o->capture, o->pid, events);
        return TRUE;
    }
    if (!all) {
        say_left(o, "the capture is not there any more: merge it where it is now, or --all");
        return FALSE;
    }
    rs_orphan_remove(o);
    printf("removed: %s (process %" G_GINT64_FORMAT ")\n",
           o->capture[0] ? o->capture : "no capture", o->pid);
    return TRUE;
}

int rs_command_clean(const RsCommand *self, int argc, char **argv)
{
    gboolean all = FALSE;
    const GOptionEntry entries[] = {
        {"all", 0, 0, G_OPTION_ARG_NONE, &all,
         "remove also what can't be saved, as its capture was moved or deleted", NULL},
        G_OPTION_ENTRY_NULL};
    int status;
    if (!rs_command_parse(self, entries, FALSE, &argc, &argv, &status))
        return status;
    if (argc != 1)
        return rs_command_usage(self, "takes no folder: it looks at this host's memory");
    g_autoptr(GPtrArray) orphans = rs_orphans_list("/dev/shm");
    Total t = {0};
    for (guint i = 0; i < orphans->len; i++) {
        const RsOrphan *o = g_ptr_array_index(orphans, i);
        if (clean(o, all)) {
            t.freed++;
            t.bytes += o->bytes;
        } else {
            t.left++;
        }
    }
    if (!rs_command_quiet)
        printf("killed processes with rings on this host: %u; freed: %u (%.2f MiB); left: %u\n",
               orphans->len, t.freed, (gdouble)t.bytes / (1 << 20), t.left);
    return 0;
}
