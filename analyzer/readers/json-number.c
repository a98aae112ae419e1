/* SPDX-License-Identifier: Apache-2.0 */
/* json-number.c - numbers and texts of spans that json-scan.c found. */
#include <math.h>

#include "json-scan.h"

#define EXPONENT_MAX 400
#define NS_MOST      ((G_GINT64_CONSTANT(1) << 62) - 1) /* two of them have a difference */
#define REPLACEMENT  "\xef\xbf\xbd"

static const gchar *read_exponent(const gchar *p, const gchar *end, gint *ret)
{
    gboolean negative = p < end && *p == '-';
    gint v = 0;
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p >= end || !g_ascii_isdigit(*p))
        return NULL;
    for (; p < end && g_ascii_isdigit(*p); p++)
        v = MIN(v * 10 + (*p - '0'), EXPONENT_MAX);
    *ret = negative ? -v : v;
    return p;
}

/* All digits as one row, and where the point stands in it. */
typedef struct {
    gchar row[48];
    gint n;      /* digits kept */
    gint before; /* of the row's digits, so many stand before the point; may be beyond the row */
    gboolean negative;
} Row;

static gboolean read_row(const RsJsonSpan *s, Row *r)
{
    const gchar *p = s->at, *end = s->at + s->n;
    gint exponent = 0, digits = 0;
    gboolean point = FALSE;
    *r = (Row){.negative = p < end && *p == '-'};
    p += r->negative;
    for (; p < end && (g_ascii_isdigit(*p) || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = TRUE;
            continue;
        }
        digits++;
        if (r->n > 0 || *p != '0') {
            if (r->n < (gint)sizeof r->row)
                r->row[r->n++] = *p;
            r->before += !point;
        } else {
            r->before -= point; /* a zero behind the point that leads */
        }
    }
    if (digits == 0)
        return FALSE;
    if (p < end && (*p | 0x20) == 'e' && !(p = read_exponent(p + 1, end, &exponent)))
        return FALSE;
    r->before += exponent;
    return p == end;
}

/* The digits [from, to) of the row, zeros where it has none. */
static guint64 part_of_row(const Row *r, gint from, gint to)
{
    guint64 v = 0;
    for (gint i = from; i < to; i++)
        v = v * 10 + (guint64)(i >= 0 && i < r->n ? r->row[i] - '0' : 0);
    return v;
}

static gboolean is_number(const RsJsonSpan *s)
{
    return s->type == RS_JSON_NUMBER || s->type == RS_JSON_STRING;
}

/* A whole part of up to 16 digits and a fraction: what traces are full of. */
static gboolean read_plain(const RsJsonSpan *s, guint unit_digits, gint64 *ret_ns)
{
    const gchar *p = s->at, *end = s->at + s->n;
    gint64 v = 0;
    guint fraction = 0;
    if (s->n > 20)
        return FALSE;
    for (; p < end && (guchar)(*p - '0') < 10 && p - s->at <= 16; p++)
        v = v * 10 + (*p - '0');
    if (p == s->at || p - s->at > 16 || v > NS_MOST / 1000)
        return FALSE;
    if (p < end && *p == '.' && p + 1 < end)
        for (p++; p < end && fraction < unit_digits && (guchar)(*p - '0') < 10; p++, fraction++)
            v = v * 10 + (*p - '0');
    if (p != end)
        return FALSE;
    for (; fraction < unit_digits; fraction++)
        v *= 10;
    *ret_ns = v;
    return TRUE;
}

gboolean rs_json_ns(const RsJsonSpan *s, guint unit_digits, gint64 *ret_ns, guint32 *ret_millionths)
{
    Row r;
    *ret_millionths = 0;
    if (s->type == RS_JSON_NUMBER && read_plain(s, unit_digits, ret_ns))
        return TRUE;
    if (!is_number(s) || !read_row(s, &r))
        return FALSE;
    gint whole = r.before + (gint)unit_digits; /* digits of whole nanoseconds */
    if (r.n > 0 && whole > 19)
        return FALSE;
    guint64 ns = part_of_row(&r, 0, whole);
    if (ns > (guint64)NS_MOST)
        return FALSE;
    guint32 rest = (guint32)part_of_row(&r, whole, whole + 6);
    if (r.negative && rest) { /* millionths count upwards */
        ns++;
        rest = 1000000 - rest;
    }
    *ret_ns = r.negative ? -(gint64)ns : (gint64)ns;
    *ret_millionths = rest;
    return TRUE;
}

static gboolean read_whole(const RsJsonSpan *s, guint64 *ret, gboolean *ret_negative)
{
    Row r;
    if (!is_number(s) || !read_row(s, &r) || (r.n > 0 && r.before > 20))
        return FALSE;
    for (gint i = MAX(r.before, 0); i < r.n; i++)
        if (r.row[i] != '0')
            return FALSE;
    guint64 v = 0;
    for (gint i = 0; r.n > 0 && i < r.before; i++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (guint64)(i < r.n ? r.row[i] - '0' : 0), &v))
            return FALSE;
    *ret = v;
    *ret_negative = r.negative;
    return r.n == 0 || r.before > 0;
}

gboolean rs_json_u64(const RsJsonSpan *s, guint64 *ret)
{
    guint64 v = 0;
    gboolean negative;
    if (s->type == RS_JSON_NUMBER && s->n <= 18) { /* what ids are, nearly always */
        const gchar *p = s->at, *end = s->at + s->n;
        for (; p < end && (guchar)(*p - '0') < 10; p++)
            v = v * 10 + (guint64)(*p - '0');
        *ret = v;
        if (p == end)
            return TRUE;
    }
    return read_whole(s, ret, &negative) && (!negative || *ret == 0);
}

gboolean rs_json_i64(const RsJsonSpan *s, gint64 *ret)
{
    guint64 v;
    gboolean negative;
    if (!read_whole(s, &v, &negative) || v > (guint64)G_MAXINT64 + negative)
        return FALSE;
    *ret = negative ? (gint64)(0 - v) : (gint64)v;
    return TRUE;
}

gboolean rs_json_double(const RsJsonSpan *s, gdouble *ret)
{
    gchar text[64], *end;
    if (s->type == RS_JSON_WORD) {
        *ret = RS_JSON_IS(s, "true") ? 1 : 0;
        return RS_JSON_IS(s, "true") || RS_JSON_IS(s, "false");
    }
    if (!is_number(s) || s->n == 0 || s->n >= sizeof text)
        return FALSE;
    memcpy(text, s->at, s->n);
    text[s->n] = '\0';
    *ret = g_ascii_strtod(text, &end);
    return *end == '\0' && isfinite(*ret);
}

/* ---- texts ---- */

static gint hex_digits(const gchar *p, const gchar *end)
{
    gint v = 0;
    if (end - p < 4)
        return -1;
    for (guint i = 0; i < 4; i++) {
        if (!g_ascii_isxdigit(p[i]))
            return -1;
        v = v << 4 | g_ascii_xdigit_value(p[i]);
    }
    return v;
}

/* \uXXXX, or two of them: `p` stands behind the first u. Returns what follows. */
static const gchar *add_unicode(GString *out, const gchar *p, const gchar *end)
{
    gint high = hex_digits(p, end), low;
    if (high < 0) {
        g_string_append(out, REPLACEMENT);
        return p;
    }
    p += 4;
    if (high >= 0xd800 && high < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
        (low = hex_digits(p + 2, end)) >= 0xdc00 && low < 0xe000) {
        g_string_append_unichar(out, 0x10000 + (gunichar)((high - 0xd800) << 10 | (low - 0xdc00)));
        return p + 6;
    }
    if (high == 0 || (high >= 0xd800 && high < 0xe000))
        g_string_append(out, REPLACEMENT);
    else
        g_string_append_unichar(out, (gunichar)high);
    return p;
}

static const gchar *add_escape(GString *out, const gchar *p, const gchar *end)
{
    static const gchar from[] = "bfnrt", to[] = "\b\f\n\r\t";
    if (p >= end)
        return p;
    if (*p == 'u')
        return add_unicode(out, p + 1, end);
    const gchar *known = strchr(from, *p);
    g_string_append_c(out, known && *p ? to[known - from] : *p);
    return p + 1;
}

static void unescape(const RsJsonSpan *s, GString *out)
{
    const gchar *p = s->at, *end = s->at + s->n;
    while (p < end) {
        const gchar *slash = memchr(p, '\\', (gsize)(end - p));
        g_string_append_len(out, p, (slash ? slash : end) - p);
        if (!slash)
            break;
        p = add_escape(out, slash + 1, end);
    }
}

/* Bytes that are no UTF-8, and zero bytes, become U+FFFD. */
static void make_valid(GString *out)
{
    const gchar *bad;
    if (g_utf8_validate_len(out->str, out->len, &bad))
        return;
    GString *good = g_string_sized_new(out->len + 16);
    const gchar *p = out->str, *end = out->str + out->len;
    while (p < end) {
        gboolean all = g_utf8_validate_len(p, (gsize)(end - p), &bad);
        g_string_append_len(good, p, bad - p);
        if (all)
            break;
        g_string_append(good, REPLACEMENT);
        p = bad + 1;
    }
    g_string_assign(out, good->str);
    g_string_free(good, TRUE);
}

void rs_json_text(const RsJsonSpan *s, GString *out)
{
    g_string_truncate(out, 0);
    if (s->escaped)
        unescape(s, out);
    else
        g_string_append_len(out, s->at, s->n);
    make_valid(out);
}
