/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-traces.h - traces of other tools as one run: each file a rank, unless it says that it holds
 * several.
 */
#ifndef RS_ANALYZER_RUN_TRACES_H
#define RS_ANALYZER_RUN_TRACES_H

#include "run-files.h"

G_BEGIN_DECLS

/* Whether `options` (may be NULL) fit the files: FALSE and RS_ERROR_USAGE. */
gboolean rs_run_traces_check(const RsRunFiles *files, const RsRunOptions *options, GError **error);
/* NULL and `error` where none of them can be read. */
RsModel *rs_run_traces_open(const RsRunFiles *files, const RsRunOptions *options,
                            RsProgress progress, gpointer data, GError **error);

G_END_DECLS
#endif
