/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h - one capture file into a model builder, as one process.
 *
 * A damaged capture gives what it holds and a warning with the offset of each loss. Definitions are
 * read before events, so that one that was lost early and repeated later still serves.
 */
#ifndef RS_ANALYZER_CAPTURE_H
#define RS_ANALYZER_CAPTURE_H

#include "blocks.h"
#include "model-builder.h"
#include "run.h"

G_BEGIN_DECLS

/* Reads the parts of one capture, in order: the file, then what was recovered from its rings.
 * `*ret_process` (may be NULL) is the process added. Error: not a capture, a newer version, or
 * nothing whole in it; then nothing was added. */
gboolean rs_capture_read(RsBuilder *b, RsBlocks *const *parts, guint n_parts, RsProgress progress,
                         gpointer data, guint32 *ret_process, GError **error);

/* The last value of each META key in the blocks. Returned: g_hash_table_unref it. */
GHashTable *rs_capture_meta(RsBlocks *blocks);

/* TRUE where the file begins like a capture, or is named like one. */
gboolean rs_capture_is_named(const gchar *path);

G_END_DECLS
#endif
