/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orphans.h - rings of this user on this host whose process is dead, whoever knows its capture.
 *
 * A process of a container that shares /dev/shm but no process ids looks dead from outside. While
 * it lives, it writes to its capture every minute: `quiet_s` tells it from a dead one.
 */
#ifndef RS_ANALYZER_ORPHANS_H
#define RS_ANALYZER_ORPHANS_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    gint64 pid;
    guint64 start;    /* with the pid: which process it was */
    gchar *capture;   /* where it stood when the process made it; "" where none is known */
    gboolean there;   /* `capture` is a file now */
    gint64 quiet_s;   /* since capture and rings last changed */
    guint64 bytes;    /* of memory that the rings take */
    GPtrArray *files; /* char*: the rings, the control file last */
} RsOrphan;

/* Returns RsOrphan*, owned by the array. `folder`: where rings lie, "/dev/shm". */
GPtrArray *rs_orphans_list(const gchar *folder);

/* Removes the rings; what they hold is lost. */
void rs_orphan_remove(const RsOrphan *orphan);

G_END_DECLS
#endif
