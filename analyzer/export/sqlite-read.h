/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite-read.h - a model from a file that rs_export_sqlite wrote: the same one, so the same
 * report.
 *
 * The file may be anybody's (sqlite-open.h): every number that is an index is checked before it
 * becomes one. An SQLite file of something else is an error that says so.
 */
#ifndef RS_EXPORT_SQLITE_READ_H
#define RS_EXPORT_SQLITE_READ_H

#include "run.h"

G_BEGIN_DECLS

RsModel *rs_sqlite_read(const gchar *path, RsProgress progress, gpointer data, GError **error);

G_END_DECLS
#endif
