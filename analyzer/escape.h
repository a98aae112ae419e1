/* SPDX-License-Identifier: Apache-2.0 */
/*
 * escape.h - names from traces on their way into text, JSON and CSV.
 *
 * A name is whatever bytes a program put into a range or a file name: control bytes, terminal
 * escapes, bad UTF-8, right-to-left overrides. None of them may reach a terminal, break a table or
 * make a document unreadable. All functions append; text may be NULL, which is "".
 */
#ifndef RS_ANALYZER_ESCAPE_H
#define RS_ANALYZER_ESCAPE_H

#include <glib.h>

G_BEGIN_DECLS

/* For terminals: control bytes and invisible or reordering characters as \xNN and \u{NNNN}, bad
 * UTF-8 as U+FFFD, everything else as it is. Never contains a line break. */
void rs_escape_text(GString *out, const gchar *text);
gchar *rs_escape_dup_text(const gchar *text);

/* A JSON string with its quotes, in valid UTF-8. */
void rs_escape_json(GString *out, const gchar *text);

/* A JSON number, the shortest that reads back as `value`; null where it is not finite. */
void rs_escape_json_double(GString *out, gdouble value);

/* A CSV field (RFC 4180), quoted where it must be; one that a spreadsheet would take for a formula
 * gets a leading apostrophe. Control bytes as for terminals. */
void rs_escape_csv(GString *out, const gchar *text);

/* Columns that escaped text takes on a terminal. */
guint rs_text_width(const gchar *text);
/* Appends escaped `text` cut or padded to `width` columns; negative: aligned right. */
void rs_text_pad(GString *out, const gchar *text, gint width);

G_END_DECLS
#endif
