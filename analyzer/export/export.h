/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.h - a run as one file for other tools: one row of the table is one format.
 *
 * Files are written under a temporary name beside `path`, with mode 0600, and renamed when they are
 * whole: a reader never sees half of one, and on failure an older file stays as it is. What is no
 * regular file is never replaced: that is an error.
 * Memory: beside the model, a few bytes an event.
 */
#ifndef RS_ANALYZER_EXPORT_H
#define RS_ANALYZER_EXPORT_H

#include "analysis.h"
#include "run.h"

G_BEGIN_DECLS

typedef struct {
    const RsModel *model;
    const RsResults
        *results;        /* NULL: SQLite's result tables stay empty; chrome and csv need none */
    RsProgress progress; /* may be NULL */
    gpointer data;
} RsExport;

typedef struct {
    const gchar *name, *help;
    gboolean (*write)(const RsExport *what, const gchar *path, GError **error);
} RsExportFormat;

extern const RsExportFormat rs_export_formats[]; /* ends with a NULL name */
const RsExportFormat *rs_export_format_find(const gchar *name);

gboolean rs_export_chrome(const RsExport *what, const gchar *path, GError **error);
gboolean rs_export_sqlite(const RsExport *what, const gchar *path, GError **error);
gboolean rs_export_csv(const RsExport *what, const gchar *path, GError **error);

/* Removes the file that is being written under its temporary name, if any: for a signal handler of
 * a process that then ends. */
void rs_export_abandon(void);

/* A model of what lies in the scope: events that overlap its time, of its ranks, and of `kinds`
 * (bits 1 << RsKind, 0 all); collectives and messages lose the members that are not in it. Times
 * stay those of the run, and so do instances' arrivals. Returned: free with rs_model_free. */
RsModel *rs_model_cut(const RsModel *model, const RsScope *scope, guint kinds);

G_END_DECLS
#endif
