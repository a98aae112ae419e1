/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-files.h - which files a user means by the paths of a run: found by content, not by name.
 */
#ifndef RS_ANALYZER_RUN_FILES_H
#define RS_ANALYZER_RUN_FILES_H

#include "left-out.h"
#include "readers/reader.h"

G_BEGIN_DECLS

typedef struct {
    gchar *path;
    guint64 bytes;
    gboolean named;         /* by the user, not found in a folder */
    const RsReader *reader; /* of a trace */
} RsRunFile;

typedef struct {
    GPtrArray *captures; /* RsRunFile, by path within a folder */
    GPtrArray *traces;   /* RsRunFile: of other tools; none where there are captures */
    RsLeftOut *others;   /* what lies in a folder of traces and is none */
    gchar *sqlite;       /* the one SQLite file, NULL none */
    gboolean from_folder;
    GHashTable *seen; /* device and number of each file to its RsRunFile */
} RsRunFiles;

/* The first bytes of a regular file, zeros behind its end; returns how many there were, or -1 and
 * `error`. Never waits, as a pipe without a writer would make it. */
#define RS_RUN_FILE_HEAD 16
gssize rs_run_file_read_head(const gchar *path, gchar head[RS_RUN_FILE_HEAD], GError **error);
gboolean rs_run_file_head_is_sqlite(const gchar head[RS_RUN_FILE_HEAD]);

/* NULL and RS_ERROR where a path is nothing that can be read. */
RsRunFiles *rs_run_files_find(const gchar *const *paths, GError **error);
void rs_run_files_free(RsRunFiles *files);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RsRunFiles, rs_run_files_free)

G_END_DECLS
#endif
