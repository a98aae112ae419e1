/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traces.h - traces of other tools for tests: those in cases/, and texts written to a file.
 *
 * What cases/ holds is small and made by hand; each file stands for its kind.
 */
#ifndef RS_TESTS_TRACES_H
#define RS_TESTS_TRACES_H

#include "run.h"

/* Opens cases/NAME; the test fails where it can't be read. */
RsModel *tr_open(const gchar *name);
/* ... or opens it and is told why not. Returned: free it. */
gchar *tr_fail(const gchar *name);
/* A trace of this text, which may hold zero bytes where n >= 0. */
RsModel *tr_read(const gchar *text, gssize n);
gchar *tr_fail_to_read(const gchar *text, gssize n);
/* A new folder for the test to write into, removed by tr_remove. */
gchar *tr_make_folder(void);
void tr_remove(gchar *folder);

guint tr_count(const RsModel *m, const gchar *name);  /* events of this name */
guint32 tr_find(const RsModel *m, const gchar *name); /* the only one */
gint64 tr_start(const RsModel *m, const gchar *name);
gint64 tr_duration(const RsModel *m, const gchar *name);
/* A warning that holds `text`, NULL none. */
const RsWarning *tr_warning(const RsModel *m, const gchar *text);

#endif
