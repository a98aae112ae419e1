/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - a reader of a format of another tool: a table entry.
 *
 * A reader knows no analysis: it adds processes, tracks and events to the builder
 * (model-builder.h), with a warning for each loss and place. The format is found by content: the
 * readers are asked in the order of rs_readers, and the first that knows the head reads the file.
 */
#ifndef RS_READERS_READER_H
#define RS_READERS_READER_H

#include "../model-builder.h"
#include "../run.h"
#include "input.h"

G_BEGIN_DECLS

typedef struct {
    gint32 rank;         /* the user said so for this file (--rank), or its name does; -1 */
    gboolean rank_given; /* by the user: whatever the file says */
    RsProgress progress; /* may be NULL */
    gpointer data;
} RsReadOptions;

typedef struct {
    /* `head`: the first bytes, unpacked; zero bytes follow. */
    gboolean (*knows)(const gchar *head, gsize bytes);
    /* Damage is no error, but a warning: FALSE and RS_ERROR_UNREADABLE only where nothing could be
     * read. */
    gboolean (*read)(RsBuilder *b, RsInput *input, const RsReadOptions *options, GError **error);
} RsReader;

/* Ends with NULL. */
extern const RsReader *const rs_readers[];

G_END_DECLS
#endif
