/* SPDX-License-Identifier: Apache-2.0 */
#include "json-scan.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* ---- finding bytes: 16 at a time; beyond `end` there is padding ---- */

/* The next quote or backslash; *raw: a control byte stands before it. */
static inline const gchar *find_string_end(const gchar *p, const gchar *end, guint8 *raw)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    const __m128i last_control = _mm_set1_epi8(0x1f);
    for (; p < end; p += 16) {
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(c, quote), _mm_cmpeq_epi8(c, slash));
        __m128i low = _mm_cmpeq_epi8(_mm_max_epu8(c, last_control), last_control);
        guint32 found = (guint32)_mm_movemask_epi8(hit);
        guint32 control = (guint32)_mm_movemask_epi8(low);
        if (found == 0 && control == 0)
            continue;
        guint at = found ? (guint)__builtin_ctz(found) : 16;
        if (p + at >= end)
            at = (guint)(end - p);
        if (control & ((1u << at) - 1))
            *raw = 1;
        if (found || p + 16 >= end)
            return p + at;
    }
    return end;
#else
    for (; p < end && *p != '"' && *p != '\\'; p++)
        *raw |= (guchar)*p < 0x20;
    return p;
#endif
}

/* The next quote or bracket. */
static inline const gchar *find_structure(const gchar *p, const gchar *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');
    const __m128i lower = _mm_set1_epi8(0x20); /* makes '[' to '{' and ']' to '}' */
    for (; p < end; p += 16) {
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i l = _mm_or_si128(c, lower);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(c, quote),
                                   _mm_or_si128(_mm_cmpeq_epi8(l, open), _mm_cmpeq_epi8(l, close)));
        guint32 found = (guint32)_mm_movemask_epi8(hit);
        if (found) {
            p += __builtin_ctz(found);
            return p < end ? p : end;
        }
    }
    return end;
#else
    while (p < end && *p != '"' && *p != '{' && *p != '}' && *p != '[' && *p != ']')
        p++;
    return p;
#endif
}

/* ---- values ---- */

/* `p` stands behind the opening quote. */
static RsJsonState scan_string(const gchar *p, const gchar *end, RsJsonSpan *ret,
                               const gchar **ret_next)
{
    ret->at = p;
    ret->type = RS_JSON_STRING;
    ret->escaped = ret->odd = 0;
    for (;;) {
        p = find_string_end(p, end, &ret->odd);
        if (p + 1 >= end && (p >= end || *p == '\\')) {
            *ret_next = end;
            return RS_JSON_MORE;
        }
        if (*p == '"')
            break;
        ret->escaped = 1;
        p += 2;
    }
    ret->n = (guint32)(p - ret->at);
    *ret_next = p + 1;
    return RS_JSON_DONE;
}

/* Brackets balance, whatever their shape; `p` stands on the first. */
static RsJsonState scan_nested(const gchar *p, const gchar *end, RsJsonSpan *ret,
                               const gchar **ret_next)
{
    guint depth = 0;
    RsJsonSpan inner;
    ret->at = p;
    ret->type = *p == '{' ? RS_JSON_OBJECT : RS_JSON_ARRAY;
    ret->escaped = ret->odd = 0;
    for (;;) {
        p = find_structure(p, end);
        if (p >= end) {
            *ret_next = end;
            return RS_JSON_MORE;
        }
        if (*p == '"') {
            RsJsonState state = scan_string(p + 1, end, &inner, &p);
            if (state != RS_JSON_DONE) {
                *ret_next = p;
                return state;
            }
            continue;
        }
        if (*p == '{' || *p == '[')
            ret->odd |= ++depth > RS_JSON_DEPTH_MAX;
        else
            depth--;
        p++;
        if (depth == 0)
            break;
    }
    ret->n = (guint32)(p - ret->at);
    *ret_next = p;
    return RS_JSON_DONE;
}

static inline gboolean ends_word(gchar c)
{
    switch (c) {
    case ',':
    case '}':
    case ']':
    case ' ':
    case '\n':
    case '\r':
    case '\t':
    case '"':
    case '{':
    case '[':
    case ':':
        return TRUE;
    default:
        return FALSE;
    }
}

static RsJsonState scan_word(const gchar *p, const gchar *end, RsJsonSpan *ret,
                             const gchar **ret_next)
{
    ret->at = p;
    ret->escaped = ret->odd = 0;
    while (p < end && !ends_word(*p))
        p++;
    ret->n = (guint32)(p - ret->at);
    *ret_next = p;
    if (p >= end)
        return RS_JSON_MORE;
    if (ret->n == 0)
        return RS_JSON_BAD;
    gchar c = *ret->at;
    gboolean hex = ret->n > 1 && c == '0' && (ret->at[1] | 0x20) == 'x';
    if ((c >= '0' && c <= '9' && !hex) || (c == '-' && g_ascii_isdigit(ret->at[1]))) {
        ret->type = RS_JSON_NUMBER;
    } else {
        ret->type = RS_JSON_WORD;
        ret->odd =
            !RS_JSON_IS(ret, "true") && !RS_JSON_IS(ret, "false") && !RS_JSON_IS(ret, "null");
    }
    return RS_JSON_DONE;
}

RsJsonState rs_json_value(const gchar *p, const gchar *end, RsJsonSpan *ret, const gchar **ret_next)
{
    if (p >= end) {
        *ret_next = end;
        return RS_JSON_MORE;
    }
    if (*p == '"')
        return scan_string(p + 1, end, ret, ret_next);
    if (*p == '{' || *p == '[')
        return scan_nested(p, end, ret, ret_next);
    return scan_word(p, end, ret, ret_next);
}

/* "key": value; *p stands on the key's quote, then behind the value. */
static RsJsonState scan_field(const gchar **p, const gchar *end, RsJsonField *f)
{
    RsJsonState state = scan_string(*p + 1, end, &f->key, p);
    if (state != RS_JSON_DONE)
        return state;
    *p = rs_json_skip_space(*p, end);
    if (*p >= end)
        return RS_JSON_MORE;
    if (**p != ':')
        return RS_JSON_BAD;
    *p = rs_json_skip_space(*p + 1, end);
    return rs_json_value(*p, end, &f->value, p);
}

RsJsonState rs_json_object(const gchar *p, const gchar *end, RsJsonField *fields, guint max,
                           guint *ret_n, const gchar **ret_next)
{
    RsJsonField surplus;
    guint n = 0;
    RsJsonState state = RS_JSON_MORE;
    p++;
    for (;;) {
        p = rs_json_skip_space(p, end);
        if (p < end && *p == ',') {
            p++;
            continue;
        }
        if (p < end && *p == '}') {
            p++;
            state = RS_JSON_DONE;
        } else if (p < end && *p == '"') {
            state = scan_field(&p, end, n < max ? &fields[n] : &surplus);
            n++;
            const gchar *next = rs_json_skip_space(p, end);
            if (state == RS_JSON_DONE && next < end && (*next == ',' || *next == '}'))
                continue;
            if (state == RS_JSON_DONE) {
                p = next;
                state = next < end ? RS_JSON_BAD : RS_JSON_MORE;
            }
        } else {
            state = p < end ? RS_JSON_BAD : RS_JSON_MORE;
        }
        break;
    }
    *ret_n = n;
    *ret_next = p;
    return state;
}

gboolean rs_json_next_item(const RsJsonSpan *array, const gchar **at, RsJsonSpan *ret)
{
    const gchar *end = array->at + array->n, *p = *at;
    if (p == array->at)
        p++;
    p = rs_json_skip_space(p, end);
    if (p < end && *p == ',')
        p = rs_json_skip_space(p + 1, end);
    return p < end && *p != ']' && rs_json_value(p, end, ret, at) == RS_JSON_DONE;
}

RsJsonSpan rs_json_find(const RsJsonSpan *object, const gchar *key)
{
    const gchar *p = object->at + 1, *end = object->at + object->n;
    gsize n = strlen(key);
    RsJsonField f;
    RsJsonSpan found = {.type = RS_JSON_NONE};
    if (object->type != RS_JSON_OBJECT)
        return found;
    for (;;) {
        p = rs_json_skip_space(p, end);
        if (p < end && *p == ',')
            p = rs_json_skip_space(p + 1, end);
        if (p >= end || *p != '"' || scan_field(&p, end, &f) != RS_JSON_DONE)
            return found;
        if (rs_json_is(&f.key, key, n))
            found = f.value; /* of several the last counts, as JSON parsers have it */
    }
}
