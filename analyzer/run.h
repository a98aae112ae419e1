/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - opens whatever a user calls a run: a run folder, captures, an exported SQLite file,
 * traces of other tools (readers/reader.h).
 *
 * The format is found by content. Several paths are ranks of one run. A damaged input gives what it
 * holds, with a warning for each loss; only an input that holds nothing is an error.
 */
#ifndef RS_ANALYZER_RUN_H
#define RS_ANALYZER_RUN_H

#include "model.h"

G_BEGIN_DECLS

#define RS_ERROR rs_error_quark()
GQuark rs_error_quark(void);
typedef enum {
    RS_ERROR_USAGE,      /* exit 2 */
    RS_ERROR_UNREADABLE, /* exit 2: no such file, not a run, newer version, nothing in it */
    RS_ERROR_IO,         /* exit 2: could not write */
} RsError;

/* Called now and then with the share done, 0..1; may be NULL. */
typedef void (*RsProgress)(gdouble share, const gchar *what, gpointer data);

/* Reads `paths` (NULL-terminated) into a finished model. NULL and `error` where nothing is
 * readable; the message names path, place and remedy. */
RsModel *rs_run_open(const gchar *const *paths, RsProgress progress, gpointer data, GError **error);

typedef struct {
    const gint32 *ranks; /* of the traces, in the order in which they are named (in a folder: by
                          * name, 2 before 10), whatever they say of themselves */
    guint n_ranks;       /* 0: as they say */
} RsRunOptions;
/* The same; `options` may be NULL. RS_ERROR_USAGE where they don't fit the files. */
RsModel *rs_run_open_as(const gchar *const *paths, const RsRunOptions *options, RsProgress progress,
                        gpointer data, GError **error);
/* What the run's processes are in now, or were in when they died: the last events of each, its open
 * calls, and how it ended. Of captures whose rings are on this host, and of those that were closed,
 * the beginning alone is read. Living processes are not disturbed. */
RsModel *rs_run_look(const gchar *const *paths, RsProgress progress, gpointer data, GError **error);

G_END_DECLS
#endif
