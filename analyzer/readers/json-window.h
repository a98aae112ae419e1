/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json-window.h - the piece of a file's text that is being scanned, as UTF-8.
 *
 * The window moves over the text block by block and keeps what the scanner has not done with; it
 * grows only where one value is longer than it. A byte order mark is left out; UTF-16 is told by
 * its mark or its zero bytes and recoded, and offsets are then those of the recoded text.
 */
#ifndef RS_READERS_JSON_WINDOW_H
#define RS_READERS_JSON_WINDOW_H

#include "input.h"
#include "json-scan.h"

G_BEGIN_DECLS

typedef enum { RS_JSON_UTF8, RS_JSON_UTF16_LE, RS_JSON_UTF16_BE } RsJsonCoding;

typedef struct {
    RsInput *input;
    gchar *buffer;
    gsize room;
    const gchar *end; /* of the text in the buffer; RS_JSON_PADDING bytes follow */
    guint64 offset;   /* of the buffer's first byte in the text */
    RsJsonCoding coding;
    gunichar2 half[2]; /* of UTF-16: a byte, or a unit, whose other half is in the next block */
    guint n_half_bytes;
    gboolean started;
} RsJsonWindow;

void rs_json_window_init(RsJsonWindow *window, RsInput *input);
void rs_json_window_release(RsJsonWindow *window);
/* Drops the text before *at and adds what follows; *at moves with its byte. FALSE: nothing
 * follows, the window is as it was. */
gboolean rs_json_window_more(RsJsonWindow *window, const gchar **at);
static inline guint64 rs_json_window_offset(const RsJsonWindow *w, const gchar *at)
{
    return w->offset + (guint64)(at - w->buffer);
}
/* The number of the line in which byte `offset` of the text stands, from 1: reads the input again.
 */
guint64 rs_json_window_line(RsJsonWindow *window, guint64 offset);

G_END_DECLS
#endif
