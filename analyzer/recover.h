/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.h - what a killed process left in its rings: read it beside the capture, or append it.
 *
 * Rings lie on the host of the process and outlive it (schemas/ring.h). A process is dead when
 * none of its pid has its start time. Looking changes nothing; appending writes the blocks behind
 * the last whole one of the capture, flushes, and only then removes the rings.
 * Safety: a capture names its rings, and a capture may come from anybody, so only regular files of
 * this user, with a ring's magic and the capture's pid and start time, are read or removed.
 */
#ifndef RS_ANALYZER_RECOVER_H
#define RS_ANALYZER_RECOVER_H

#include "blocks.h"

G_BEGIN_DECLS

typedef enum {
    RS_RINGS_NONE,     /* no rings here: a clean end, another host, or removed */
    RS_RINGS_LIVE,     /* the process still runs */
    RS_RINGS_ORPHANED, /* it is dead: `blocks` holds what the capture lacks */
} RsRingState;

typedef struct {
    RsRingState state;
    gchar *prefix; /* of the rings' paths, NULL none */
    guint64
        replaced_bytes; /* or that, where the file is just as long: it took the capture's place */
    guint64 capture_bytes; /* ORPHANED: the capture counts up to here, then come `blocks` */
    GByteArray *blocks;    /* ORPHANED; of rs_recover_look_now also LIVE */
    GPtrArray *files;      /* char*: the rings */
    guint64 events;        /* of them in `blocks` */
} RsRecovery;

/* Looks for the rings of the capture whose META is `meta` (rs_capture_meta). Never fails: what
 * can't be read is not there. */
RsRecovery *rs_recover_look(GHashTable *meta);
/* What the process is, or was, in: `blocks` hold all definitions and the last events of each
 * thread, whether the capture has them or not, the calls that it is in, and an END (RS_END_RUNNING
 * where it lives). For reading beside a capture's META, not for appending. A living process is only
 * read. */
RsRecovery *rs_recover_look_now(GHashTable *meta);
void rs_recovery_free(RsRecovery *recovery);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RsRecovery, rs_recovery_free)

/* TRUE where `blocks` adds to what the capture has: not where it was closed and its rings are
 * empty. */
gboolean rs_recovery_adds(const RsRecovery *recovery, const RsBlocks *capture);

/* Appends to the capture and removes the rings. Two at once: the second finds nothing to do. */
gboolean rs_recover_append(const gchar *capture, const RsRecovery *recovery, GError **error);
/* Does what is to be done for one capture: looks, appends, removes. Returns FALSE on failure;
 * *ret_events (may be NULL) counts what was saved. */
gboolean rs_recover(const gchar *capture, guint64 *ret_events, GError **error);

/* TRUE where a process of that pid with that start time (field 22 of /proc/<pid>/stat) runs. */
gboolean rs_process_lives(gint64 pid, guint64 start);

G_END_DECLS
#endif
