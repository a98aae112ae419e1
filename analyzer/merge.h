/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - captures to PREFIX.json and PREFIX.sqlite, after saving what killed processes left in
 * their rings. Shared by `merge` and `run`.
 */
#ifndef RS_ANALYZER_MERGE_H
#define RS_ANALYZER_MERGE_H

#include "model.h"
#include "run.h"

G_BEGIN_DECLS

typedef struct {
    const gchar *path;    /* a run folder, one capture or one trace */
    const gchar *prefix;  /* NULL: PATH/run of a folder, the capture's name without .rsc, a trace's
                           * with -run in place of .json, .gz and .zst */
    const gchar *formats; /* "chrome,sqlite" or one of them; NULL both */
    RsProgress progress;  /* may be NULL */
    gpointer data;
    const RsRunOptions *options; /* may be NULL */
} RsMerge;

/* Returned: the model that was written; `ret_written` (may be NULL) takes the files' names, free
 * with g_strfreev. NULL and `error` where nothing could be read, or a file not be written. */
RsModel *rs_merge(const RsMerge *what, gchar ***ret_written, GError **error);

G_END_DECLS
#endif
