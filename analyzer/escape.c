/* SPDX-License-Identifier: Apache-2.0 */
#include "escape.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The next character, G_MAXUINT32 for a byte that begins none; advances *p. */
static gunichar next_char(const gchar **p)
{
    gunichar c = g_utf8_get_char_validated(*p, -1);
    if (c == (gunichar)-1 || c == (gunichar)-2) {
        ++*p;
        return G_MAXUINT32;
    }
    *p = g_utf8_next_char(*p);
    return c;
}

/* Characters that have no look of their own, or change that of others. */
static gboolean is_treacherous(gunichar c)
{
    return (c >= 0x80 && c < 0xa0) || c == 0x061c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

void rs_escape_text(GString *out, const gchar *text)
{
    for (const gchar *p = text; p && *p;) {
        const gchar *begin = p;
        gunichar c = next_char(&p);
        if (c == G_MAXUINT32)
            g_string_append(out, "\xef\xbf\xbd");
        else if (c < 0x20 || c == 0x7f)
            g_string_append_printf(out, "\\x%02x", c);
        else if (is_treacherous(c))
            g_string_append_printf(out, "\\u{%04x}", c);
        else
            g_string_append_len(out, begin, p - begin);
    }
}

gchar *rs_escape_dup_text(const gchar *text)
{
    GString *s = g_string_new(NULL);
    rs_escape_text(s, text);
    return g_string_free(s, FALSE);
}

static void append_json_char(GString *out, gunichar c, const gchar *bytes, gsize n)
{
    switch (c) {
    case '"':
        g_string_append(out, "\\\"");
        break;
    case '\\':
        g_string_append(out, "\\\\");
        break;
    case '\n':
        g_string_append(out, "\\n");
        break;
    case '\t':
        g_string_append(out, "\\t");
        break;
    case G_MAXUINT32:
        g_string_append(out, "\\ufffd");
        break;
    default:
        if (c < 0x20 || c == 0x7f || (is_treacherous(c) && c < 0x10000))
            g_string_append_printf(out, "\\u%04x", c);
        else
            g_string_append_len(out, bytes, (gssize)n);
    }
}

void rs_escape_json(GString *out, const gchar *text)
{
    g_string_append_c(out, '"');
    for (const gchar *p = text; p && *p;) {
        gsize plain =
            strcspn(p, "\"\\\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11"
                       "\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f");
        gsize ascii = 0;
        while (ascii < plain && !(p[ascii] & 0x80))
            ascii++;
        g_string_append_len(out, p, (gssize)ascii);
        p += ascii;
        if (!*p)
            break;
        const gchar *begin = p;
        gunichar c = next_char(&p);
        append_json_char(out, c, begin, (gsize)(p - begin));
    }
    g_string_append_c(out, '"');
}

void rs_escape_json_double(GString *out, gdouble value)
{
    gchar text[G_ASCII_DTOSTR_BUF_SIZE] = "null", format[8];
    /* 15 digits are those that any double keeps; the tiny ones keep fewer */
    for (int n = fabs(value) < DBL_MIN ? 1 : 15; isfinite(value) && n <= 17; n++) {
        g_snprintf(format, sizeof format, "%%.%dg", n);
        g_ascii_formatd(text, sizeof text, format, value);
        gdouble again = g_ascii_strtod(text, NULL);
        if (memcmp(&again, &value, sizeof value) == 0)
            break;
    }
    g_string_append(out, text);
}

void rs_escape_csv(GString *out, const gchar *text)
{
    g_autofree gchar *plain = rs_escape_dup_text(text);
    gboolean formula = plain[0] && strchr("=+-@", plain[0]);
    if (formula) { /* a number is no formula */
        gchar *end;
        g_ascii_strtod(plain, &end);
        formula = end == plain || *end;
    }
    if (!formula && !strpbrk(plain, ",\"")) {
        g_string_append(out, plain);
        return;
    }
    g_string_append(out, formula ? "\"'" : "\"");
    for (const gchar *p = plain; *p; p++) {
        if (*p == '"')
            g_string_append_c(out, '"');
        g_string_append_c(out, *p);
    }
    g_string_append_c(out, '"');
}

static guint char_width(gunichar c)
{
    return g_unichar_iszerowidth(c) ? 0 : g_unichar_iswide(c) ? 2 : 1;
}

guint rs_text_width(const gchar *text)
{
    g_autofree gchar *plain = rs_escape_dup_text(text);
    guint width = 0;
    for (const gchar *p = plain; *p; p = g_utf8_next_char(p))
        width += char_width(g_utf8_get_char(p));
    return width;
}

void rs_text_pad(GString *out, const gchar *text, gint width)
{
    g_autofree gchar *plain = rs_escape_dup_text(text);
    guint room = (guint)ABS(width), used = 0;
    const gchar *end = plain;
    while (*end && used + char_width(g_utf8_get_char(end)) <= room) {
        used += char_width(g_utf8_get_char(end));
        end = g_utf8_next_char(end);
    }
    if (width < 0)
        g_string_append_printf(out, "%*s", (int)(room - used), "");
    g_string_append_len(out, plain, end - plain);
    if (width > 0)
        g_string_append_printf(out, "%*s", (int)(room - used), "");
}
