/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-reading.h - the files of a run, read one after the other into one builder.
 *
 * One that holds nothing does not spoil the others: it is left out, with its reason.
 */
#ifndef RS_ANALYZER_RUN_READING_H
#define RS_ANALYZER_RUN_READING_H

#include "run-files.h"

G_BEGIN_DECLS

typedef struct {
    RsBuilder *b;
    RsLeftOut *left_out;
    RsProgress progress; /* the caller's; NULL none */
    gpointer data;
    guint64 bytes, bytes_done, current_bytes;
} RsRunReading;

void rs_run_reading_init(RsRunReading *r, RsProgress progress, gpointer data);
void rs_run_reading_clear(RsRunReading *r);

/* How much of one file is read, for its reader: `data` is the RsRunReading. NULL: nobody asks. */
RsProgress rs_run_reading_progress(const RsRunReading *r);

/* Reads file `i`, or says why not. */
typedef gboolean (*RsRunFileRead)(gpointer reader, guint i, GError **error);
/* Reads `files` (RsRunFile) by `read`. FALSE and the first error where none can be read. */
gboolean rs_run_reading_all(RsRunReading *r, const GPtrArray *files, RsRunFileRead read,
                            gpointer reader, GError **error);
/* The model of what was read; the builder is used up. `alone`: one file is all that was meant. */
RsModel *rs_run_reading_finish(RsRunReading *r, gboolean alone);

G_END_DECLS
#endif
