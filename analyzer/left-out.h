/* SPDX-License-Identifier: Apache-2.0 */
/* left-out.h - the files of a run that are not read, by reason: a line each, not one for each of a
 * thousand ranks. */
#ifndef RS_ANALYZER_LEFT_OUT_H
#define RS_ANALYZER_LEFT_OUT_H

#include "model-builder.h"

G_BEGIN_DECLS

typedef GPtrArray RsLeftOut;

RsLeftOut *rs_left_out_new(void); /* g_ptr_array_unref frees it */
void rs_left_out_add(RsLeftOut *list, const gchar *path, const gchar *why);
/* `what`: the files' name where there are several, "captures". */
void rs_left_out_warn(const RsLeftOut *list, RsBuilder *b, const gchar *what);

/* What an error says after the path that it begins with. */
const gchar *rs_left_out_reason(const GError *error, const gchar *path);

G_END_DECLS
#endif
