/* SPDX-License-Identifier: Apache-2.0 */
#include "json-window.h"

#define BOM_UTF8 "\xef\xbb\xbf"

static RsJsonCoding find_coding(RsInput *input)
{
    gsize n;
    const guint8 *h = (const guint8 *)rs_input_head(input, &n);
    if (n >= 2 && h[0] == 0xff && h[1] == 0xfe)
        return RS_JSON_UTF16_LE;
    if (n >= 2 && h[0] == 0xfe && h[1] == 0xff)
        return RS_JSON_UTF16_BE;
    if (n >= 4 && h[0] && !h[1] && h[2] && !h[3])
        return RS_JSON_UTF16_LE;
    return n >= 4 && !h[0] && h[1] && !h[2] && h[3] ? RS_JSON_UTF16_BE : RS_JSON_UTF8;
}

void rs_json_window_init(RsJsonWindow *w, RsInput *input)
{
    *w = (RsJsonWindow){.input = input, .coding = find_coding(input)};
    w->buffer = g_malloc0(RS_JSON_PADDING);
    w->end = w->buffer;
    rs_input_rewind(input);
}

void rs_json_window_release(RsJsonWindow *w)
{
    g_clear_pointer(&w->buffer, g_free);
}

/* Room for `n` more bytes behind the text. */
static gchar *make_room(RsJsonWindow *w, gsize n)
{
    gsize used = (gsize)(w->end - w->buffer);
    if (w->room < used + n + RS_JSON_PADDING) {
        w->room = MAX(w->room * 2, used + n + RS_JSON_PADDING);
        w->buffer = g_realloc(w->buffer, w->room);
    }
    w->end = w->buffer + used;
    return w->buffer + used;
}

/* ---- UTF-16 ---- */

static gunichar2 unit_at(const RsJsonWindow *w, const guint8 *p)
{
    return w->coding == RS_JSON_UTF16_LE ? (gunichar2)(p[0] | p[1] << 8)
                                         : (gunichar2)(p[0] << 8 | p[1]);
}

static gchar *put_char(gchar *to, gunichar c)
{
    return to + g_unichar_to_utf8(c, to);
}

/* What is no pair of surrogates becomes U+FFFD; a half at the block's end waits for the next. */
static gsize recode(RsJsonWindow *w, const gchar *block, gsize n, gchar *to)
{
    g_autofree guint8 *all = g_malloc(n + 4);
    gchar *start = to;
    memcpy(all, w->half, w->n_half_bytes);
    memcpy(all + w->n_half_bytes, block, n);
    n += w->n_half_bytes;
    gsize at = 0;
    while (at + 2 <= n) {
        gunichar2 u = unit_at(w, all + at);
        gboolean high = u >= 0xd800 && u < 0xdc00;
        if (high && at + 4 > n)
            break;
        gunichar2 next = high ? unit_at(w, all + at + 2) : 0;
        at += 2;
        if (high && next >= 0xdc00 && next < 0xe000) {
            to = put_char(to, 0x10000 + (gunichar)((u - 0xd800) << 10 | (next - 0xdc00)));
            at += 2;
        } else if (u != 0xfeff) {
            to = put_char(to, u >= 0xd800 && u < 0xe000 ? 0xfffd : u);
        }
    }
    w->n_half_bytes = (guint)(n - at);
    memcpy(w->half, all + at, w->n_half_bytes);
    return (gsize)(to - start);
}

/* ---- moving on ---- */

static gsize append(RsJsonWindow *w, const gchar *block, gsize n)
{
    if (w->coding != RS_JSON_UTF8) /* 3 bytes at most for each 2 */
        return recode(w, block, n, make_room(w, 2 * n + 16));
    if (!w->started && n >= 3 && memcmp(block, BOM_UTF8, 3) == 0) {
        block += 3;
        n -= 3;
        w->offset += 3;
    }
    memcpy(make_room(w, n), block, n);
    return n;
}

gboolean rs_json_window_more(RsJsonWindow *w, const gchar **at)
{
    gsize n, keep = (gsize)(w->end - *at);
    const gchar *block = rs_input_next(w->input, &n);
    if (!block)
        return FALSE;
    w->offset += (guint64)(*at - w->buffer);
    if (*at != w->buffer)
        memmove(w->buffer, *at, keep);
    w->end = w->buffer + keep;
    gsize added = append(w, block, n);
    w->started = TRUE;
    w->end = w->buffer + keep + added;
    memset(w->buffer + keep + added, 0, RS_JSON_PADDING);
    *at = w->buffer;
    return TRUE;
}

guint64 rs_json_window_line(RsJsonWindow *w, guint64 offset)
{
    guint64 line = 1;
    RsInput *input = w->input;
    rs_json_window_release(w);
    rs_json_window_init(w, input);
    for (const gchar *at = w->buffer; rs_json_window_more(w, &at); at = w->end) {
        const gchar *stop = offset - w->offset < (guint64)(w->end - w->buffer)
                                ? w->buffer + (offset - w->offset)
                                : w->end;
        for (const gchar *p = at; p < stop; p++)
            line += *p == '\n';
        if (stop < w->end)
            break;
    }
    return line;
}
