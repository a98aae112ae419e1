/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json-scan.h - JSON values in a piece of text, found in place: no tree, no copy, no allocation.
 *
 * Model: a value is a span of the text; what is inside an object is looked at by scanning it again.
 * Text: RS_JSON_PADDING readable bytes, not part of it, follow its end. A value that does not end
 * before the text does is RS_JSON_MORE: the caller gets more text and begins again.
 * Tolerant: raw control bytes in strings, commas before a closing bracket, bare words and numbers
 * of any form are values; what is inside nested values is not looked at beyond its brackets and
 * strings. Nesting costs a counter, not a stack.
 * Threads: none of this has state of its own.
 */
#ifndef RS_READERS_JSON_SCAN_H
#define RS_READERS_JSON_SCAN_H

#include <glib.h>
#include <string.h>

G_BEGIN_DECLS

#define RS_JSON_PADDING 64

typedef enum {
    RS_JSON_NONE,   /* no such value */
    RS_JSON_STRING, /* the span is what stands between the quotes */
    RS_JSON_NUMBER, /* begins like one; rs_json_ns and rs_json_u64 tell whether it is */
    RS_JSON_WORD,   /* true, false, null, NaN, -Infinity, anything else that is bare */
    RS_JSON_OBJECT, /* with its brackets */
    RS_JSON_ARRAY,
} RsJsonType;

typedef struct {
    const gchar *at;
    guint32 n;
    guint8 type;    /* RsJsonType */
    guint8 escaped; /* a string with a backslash */
    guint8 odd; /* a word that JSON does not have, raw control bytes, nesting beyond the limit */
} RsJsonSpan;

typedef struct {
    RsJsonSpan key, value;
} RsJsonField;

typedef enum { RS_JSON_DONE, RS_JSON_MORE, RS_JSON_BAD } RsJsonState;

#define RS_JSON_DEPTH_MAX 512 /* deeper values are odd: they are skipped as a whole */

/* The first byte at or after `p` that is no white space; `end` where there is none. */
static inline const gchar *rs_json_skip_space(const gchar *p, const gchar *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* The value at `p`, which is no white space. *ret_next: behind it, or where it goes wrong. */
RsJsonState rs_json_value(const gchar *p, const gchar *end, RsJsonSpan *ret,
                          const gchar **ret_next);
/* The object at `p`: its fields, of more than `max` the first; *ret_n counts those found. */
RsJsonState rs_json_object(const gchar *p, const gchar *end, RsJsonField *fields, guint max,
                           guint *ret_n, const gchar **ret_next);
/* The items of an array that was found whole, one after the other: `*at` begins at the span's
 * first byte. FALSE at its end, or where it makes no sense. */
gboolean rs_json_next_item(const RsJsonSpan *array, const gchar **at, RsJsonSpan *ret);
/* The field of an object that was found whole; RS_JSON_NONE where it has none. */
RsJsonSpan rs_json_find(const RsJsonSpan *object, const gchar *key);

static inline gboolean rs_json_is(const RsJsonSpan *s, const gchar *text, gsize n)
{
    return s->n == n && memcmp(s->at, text, n) == 0;
}
#define RS_JSON_IS(span, literal) rs_json_is(span, literal, sizeof(literal) - 1)

/* Microseconds, in decimal, as nanoseconds and millionths of one; exact, without a floating-point
 * number in between. What is finer is cut off. A number in a string counts. `unit_digits`: 3 for
 * microseconds, 0 for nanoseconds. FALSE: no number, or not within +-2^62 ns. */
gboolean rs_json_ns(const RsJsonSpan *s, guint unit_digits, gint64 *ret_ns,
                    guint32 *ret_millionths);
/* A whole number from 0 to 2^64 - 1, also in a string or with ".0"; FALSE: none. */
gboolean rs_json_u64(const RsJsonSpan *s, guint64 *ret);
gboolean rs_json_i64(const RsJsonSpan *s, gint64 *ret);
gboolean rs_json_double(const RsJsonSpan *s, gdouble *ret);
/* The text of a string, unescaped, or of any other value as it stands: valid UTF-8, bytes that are
 * none and \u0000 replaced by U+FFFD. `out` is cleared first. */
void rs_json_text(const RsJsonSpan *s, GString *out);

G_END_DECLS
#endif
