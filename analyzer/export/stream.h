/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - text to a file, fast: a buffer, and numbers without printf.
 *
 * The first failure is kept; all later puts do nothing. The file appears under its name at finish
 * alone.
 */
#ifndef RS_EXPORT_STREAM_H
#define RS_EXPORT_STREAM_H

#include <glib.h>
#include <string.h>

G_BEGIN_DECLS

#define RS_STREAM_BYTES (256u << 10)

typedef struct {
    int fd, error; /* errno of the first failure */
    gsize used;
    guint64 written;
    gchar *path, *temporary;
    gchar buffer[RS_STREAM_BYTES];
} RsStream;

/* NULL and `error` where the file can't be made. */
RsStream *rs_stream_open(const gchar *path, GError **error);
/* Writes the rest, renames, frees; or removes the temporary file and says what failed. */
gboolean rs_stream_finish(RsStream *s, GError **error);
void rs_stream_cancel(RsStream *s);

void rs_stream_flush(RsStream *s);

static inline void rs_stream_put_len(RsStream *s, const gchar *text, gsize n)
{
    if (n > RS_STREAM_BYTES - s->used) {
        while (n > RS_STREAM_BYTES - s->used) { /* rarely: a long name, or a full buffer */
            gsize part = RS_STREAM_BYTES - s->used;
            memcpy(s->buffer + s->used, text, part);
            s->used += part;
            text += part;
            n -= part;
            rs_stream_flush(s);
        }
    }
    memcpy(s->buffer + s->used, text, n);
    s->used += n;
}
static inline void rs_stream_put(RsStream *s, const gchar *text)
{
    rs_stream_put_len(s, text, strlen(text));
}
void rs_stream_put_u64(RsStream *s, guint64 value);
void rs_stream_put_i64(RsStream *s, gint64 value);
/* Microseconds with three decimals, of nanoseconds. */
void rs_stream_put_us(RsStream *s, gint64 ns);

/* The temporary name for `path`, unique to this process. Returned: free it. */
gchar *rs_export_dup_temporary(const gchar *path);
/* Makes the empty file `temporary`, mode 0600; what is there under that name goes. The error names
 * `path`. */
gboolean rs_export_make_private(const gchar *temporary, const gchar *path, GError **error);

G_END_DECLS
#endif
