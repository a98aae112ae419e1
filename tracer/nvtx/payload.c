/* SPDX-License-Identifier: Apache-2.0 */
#include "payload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schemas.h"

#define DEPTH_MAX    4
#define ELEMENTS_MAX 8    /* of an array */
#define VALUES_MAX   64   /* entries whose value another one may take for its length */
#define BLOB_MAX     1024 /* of a payload that doesn't say its length */

/* ---- blocks ---- */

static struct block {
    struct rs_nvtx_fields fields; /* first */
    uint32_t next;                /* of the free ones: number + 1 */
} blocks[RS_NVTX_BLOCKS];
static uint64_t free_blocks; /* atomic: turn << 32 | number + 1 */
static uint32_t fresh;       /* atomic: blocks from here on were never used */
static uint32_t lost;        /* atomic */

static struct rs_nvtx_fields *claim(void)
{
    uint64_t head = __atomic_load_n(&free_blocks, __ATOMIC_ACQUIRE);
    while ((uint32_t)head) {
        struct block *b = &blocks[(uint32_t)head - 1];
        uint64_t next = (head >> 32) + 1;
        next = next << 32 | __atomic_load_n(&b->next, __ATOMIC_RELAXED);
        if (__atomic_compare_exchange_n(&free_blocks, &head, next, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return &b->fields;
    }
    if (__atomic_load_n(&fresh, __ATOMIC_RELAXED) >= RS_NVTX_BLOCKS)
        return NULL;
    uint32_t n = __atomic_fetch_add(&fresh, 1, __ATOMIC_RELAXED);
    return n < RS_NVTX_BLOCKS ? &blocks[n].fields : NULL;
}

void rs_nvtx_fields_release(struct rs_nvtx_fields *fields)
{
    if (!fields)
        return;
    struct block *b = (struct block *)(void *)fields;
    uint64_t head = __atomic_load_n(&free_blocks, __ATOMIC_ACQUIRE), next;
    do {
        __atomic_store_n(&b->next, (uint32_t)head, __ATOMIC_RELAXED);
        next = ((head >> 32) + 1) << 32 | (uint32_t)(b - blocks + 1);
    } while (!__atomic_compare_exchange_n(&free_blocks, &head, next, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
}

/* ---- fields ---- */

struct reader {
    const void *domain;
    struct rs_nvtx_what *what;
    uint32_t schema; /* id of the outermost one's name */
    unsigned depth;
};

static void count_lost(void)
{
    if (__atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED) == 0)
        rs_core->meta("off.nvtx.fields",
                      "some: more in one range, or in all open ones, than are kept");
}

static void add(struct reader *r, uint32_t name, uint16_t type, uint64_t value, uint32_t text)
{
    struct rs_nvtx_fields **fields = &r->what->fields;
    if (!*fields && (*fields = claim()))
        (*fields)->n = 0;
    if (!*fields || (*fields)->n == RS_NVTX_FIELDS_MAX) {
        count_lost();
        return;
    }
    (*fields)->field[(*fields)->n++] = (struct rs_nvtx_field){
        .value = value, .name = name, .text = text, .schema = r->schema, .type = type};
}

static uint64_t load(const void *p, size_t bytes)
{
    uint64_t v = 0;
    memcpy(&v, p, bytes <= 8 ? bytes : 8); /* little-endian */
    return v;
}

static uint64_t of_double(double d)
{
    uint64_t v;
    memcpy(&v, &d, sizeof(v));
    return v;
}

static double of_float_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return (double)f;
}

static double of_half(uint32_t h)
{
    uint32_t sign = (h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31)
        return of_float_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent)
        return of_float_bits(sign | (exponent + 112) << 23 | fraction << 13);
    double tiny = fraction / 16777216.0;
    return sign ? -tiny : tiny;
}

static double of_long_double(const void *p)
{
    long double v;
    memcpy(&v, p, sizeof(v));
    return (double)v;
}

/* Returns the kind of number, 0 where it is none that is kept. */
static uint16_t number_of(uint64_t type, const void *p, uint64_t *ret)
{
    uint64_t v = load(p, rs_nvtx_type_bytes(type)), high = 0;
    unsigned shift = 64 - 8 * (unsigned)(rs_nvtx_type_bytes(type) & 15);
    *ret = v;
    switch (type) {
    case RS_NVTX_CHAR:
    case RS_NVTX_SHORT:
    case RS_NVTX_INT:
    case RS_NVTX_LONG:
    case RS_NVTX_LONGLONG:
    case RS_NVTX_INT8:
    case RS_NVTX_INT16:
    case RS_NVTX_INT32:
    case RS_NVTX_INT64:
        *ret = (uint64_t)((int64_t)(v << shift) >> shift);
        return 2;
    case RS_NVTX_FLOAT:
    case RS_NVTX_FLOAT32:
    case RS_NVTX_TF32:
        *ret = of_double(of_float_bits((uint32_t)v));
        return 3;
    case RS_NVTX_BF16:
        *ret = of_double(of_float_bits((uint32_t)v << 16));
        return 3;
    case RS_NVTX_FLOAT16:
        *ret = of_double(of_half((uint32_t)v));
        return 3;
    case RS_NVTX_DOUBLE:
    case RS_NVTX_FLOAT64:
        return 3;
    case RS_NVTX_LONGDOUBLE:
        *ret = of_double(of_long_double(p));
        return 3;
    case RS_NVTX_INT128:
    case RS_NVTX_UINT128:
        memcpy(&high, (const char *)p + 8, 8);
        if (type == RS_NVTX_INT128)
            return high == (uint64_t)((int64_t)v >> 63) ? 2 : 0;
        return high == 0 ? 1 : 0;
    case RS_NVTX_FLOAT128:
        return 0;
    default:
        return 1;
    }
}

/* ---- texts ---- */

/* `n` characters of `width`, to where one is 0. */
static uint32_t text_id(const char *from, size_t n, size_t width)
{
    char text[RS_NVTX_TEXT_MAX];
    wchar_t wide[RS_NVTX_TEXT_MAX];
    if (width == 1) {
        n = strnlen(from, n < sizeof(text) - 1 ? n : sizeof(text) - 1);
        memcpy(text, from, n);
        text[n] = 0;
        return rs_nvtx_message_id(text);
    }
    size_t k = 0;
    for (size_t i = 0; i < n && k < RS_NVTX_TEXT_MAX - 1; i++) {
        uint32_t c = (uint32_t)load(from + i * width, width), low;
        if (c == 0)
            break;
        low = width == 2 && i + 1 < n ? (uint32_t)load(from + (i + 1) * width, width) : 0;
        if (c >= 0xd800 && c < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            i++;
        }
        wide[k++] = (wchar_t)c;
    }
    wide[k] = 0;
    return rs_nvtx_message_id(rs_nvtx_from_wide(wide, text));
}

static uint32_t text_behind(const void *pointer, size_t width)
{
    char text[RS_NVTX_TEXT_MAX];
    if (!pointer || !rs_nvtx_copy_text(text, sizeof(text), pointer, width))
        return 0;
    return text_id(text, sizeof(text) / width, width);
}

/* ---- entries ---- */

struct place {
    const char *base;
    size_t bytes; /* of the payload, or of the part of it that the layout is of */
    char prefix[RS_NVTX_LABEL_MAX];
};

static uint32_t name_of(const struct place *p, const struct rs_nvtx_entry *e, int element)
{
    char name[2 * RS_NVTX_LABEL_MAX + 16];
    if (!p->prefix[0] && element < 0)
        return rs_nvtx_text_id(e->name);
    if (element < 0)
        snprintf(name, sizeof(name), "%s%s", p->prefix, e->label);
    else
        snprintf(name, sizeof(name), "%s%s[%d]", p->prefix, e->label, element);
    return rs_nvtx_message_id(name);
}

/* The text of a value: its own, or those of the flags that make it up; 0 none. */
static uint32_t enum_text(const struct rs_nvtx_schema *s, uint64_t value)
{
    char text[RS_NVTX_TEXT_MAX] = "";
    size_t n = 0;
    uint64_t left = value;
    for (unsigned i = 0; i < s->count; i++)
        if (s->values[i].value == value)
            return rs_nvtx_text_id(s->values[i].name);
    for (unsigned i = 0; i < s->count; i++) {
        const struct rs_nvtx_value *v = &s->values[i];
        if (!v->is_flag || !v->value || (left & v->value) != v->value || n >= sizeof(text) - 1)
            continue;
        left &= ~v->value;
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? "|" : "", v->label);
    }
    return left == 0 ? rs_nvtx_message_id(text) : 0;
}

static void read_layout(struct reader *r, const struct rs_nvtx_schema *s, const struct place *p);

static void read_text(struct reader *r, const struct place *p, const struct rs_nvtx_entry *e,
                      uint32_t text)
{
    if (e->flags & RS_NVTX_FLAG_MESSAGE)
        r->what->name = text ? text : r->what->name;
    else if (!(e->flags & RS_NVTX_FLAG_HIDE))
        add(r, name_of(p, e, -1), 4, 0, text);
}

/* One value at `at`, all of whose bytes are there. Returns it as a number. */
static uint64_t read_value(struct reader *r, const struct place *p, const struct rs_nvtx_entry *e,
                           const struct rs_nvtx_schema *inner, size_t at, int element)
{
    const char *data = p->base + at;
    uint64_t value = 0;
    uint32_t text = 0;
    uint16_t type;
    if (inner && !inner->is_enum) {
        struct place within = {.base = data, .bytes = inner->bytes};
        if (element < 0)
            snprintf(within.prefix, sizeof(within.prefix), "%.60s%.60s.", p->prefix, e->label);
        else
            snprintf(within.prefix, sizeof(within.prefix), "%.60s%.60s[%u].", p->prefix, e->label,
                     (unsigned)element & 15);
        read_layout(r, inner, &within);
        return 0;
    }
    if (inner) {
        value = load(data, inner->bytes);
        type = 1;
        text = enum_text(inner, value);
    } else {
        type = number_of(e->type, data, &value);
    }
    if (e->type == RS_NVTX_COLOR)
        r->what->color = (uint32_t)value;
    else if (e->type == RS_NVTX_CATEGORY)
        r->what->category =
            rs_nvtx_category_id((struct rs_nvtx_domain *)r->domain, (uint32_t)value);
    else if (e->type == RS_NVTX_REGISTERED)
        read_text(r, p, e, rs_nvtx_text_id((struct rs_nvtx_text *)(uintptr_t)value));
    else if (type && !(e->flags & RS_NVTX_FLAG_HIDE))
        add(r, name_of(p, e, element), type, value, text);
    return value;
}

/* How many elements of `one` bytes an entry has at `at`, of what is there; `ret_bytes`: that they
 * take, 0 where the entry is none that is read. */
static size_t count_elements(const struct place *p, const struct rs_nvtx_entry *e,
                             const uint64_t *values, unsigned own, size_t at, size_t one,
                             size_t *ret_bytes)
{
    size_t room = at < p->bytes ? (p->bytes - at) / one : 0, n = 1;
    *ret_bytes = one;
    switch (e->flags & RS_NVTX_FLAG_ARRAY) {
    case 0:
        break;
    case RS_NVTX_ARRAY_FIXED:
        n = e->detail;
        break;
    case RS_NVTX_ARRAY_ZERO:
        for (n = 0; n < room; n++)
            if (memcmp(p->base + at + n * one, (const char[16]){0}, one <= 16 ? one : 16) == 0)
                break;
        *ret_bytes = (n + (n < room)) * one;
        return n;
    case RS_NVTX_ARRAY_LENGTH:
        n = e->detail < own && e->detail < VALUES_MAX ? values[e->detail] : 0;
        break;
    default: /* as another payload says */
        n = 0;
    }
    if (__builtin_mul_overflow(n, one, ret_bytes))
        *ret_bytes = SIZE_MAX / 2;
    return n < room ? n : room;
}

/* A text in the payload, or behind a pointer in it. Returns the bytes that it takes there. */
static size_t read_string(struct reader *r, const struct place *p, const struct rs_nvtx_entry *e,
                          const uint64_t *values, unsigned own, size_t at, size_t width)
{
    size_t room = at < p->bytes ? p->bytes - at : 0, bytes;
    struct rs_nvtx_entry as = *e;
    if (e->flags & RS_NVTX_FLAG_POINTER || (!(e->flags & RS_NVTX_FLAG_ARRAY) && e->detail == 0)) {
        void *pointer = NULL;
        if (room >= sizeof(pointer)) {
            memcpy(&pointer, p->base + at, sizeof(pointer));
            read_text(r, p, e, text_behind(pointer, width));
        }
        return sizeof(void *);
    }
    if (!(e->flags & RS_NVTX_FLAG_ARRAY))
        as.flags |= RS_NVTX_ARRAY_FIXED;
    size_t n = count_elements(p, &as, values, own, at, width, &bytes);
    if (room)
        read_text(r, p, e, text_id(p->base + at, n, width));
    return bytes;
}

static bool is_string(const struct rs_nvtx_entry *e)
{
    return e->type >= RS_NVTX_STRING ||
           (e->flags & (RS_NVTX_FLAG_ARRAY | RS_NVTX_FLAG_POINTER)) != 0;
}

/* Returns the bytes that the entry takes at `at`; 0: nobody knows, and none follows it. */
static size_t read_entry(struct reader *r, const struct place *p, const struct rs_nvtx_entry *e,
                         const struct rs_nvtx_schema *inner, uint64_t *values, unsigned own,
                         size_t at)
{
    size_t width = inner ? 0 : rs_nvtx_char_bytes(e->type), bytes;
    size_t one = inner ? inner->bytes : rs_nvtx_type_bytes(e->type);
    if (e->flags & (RS_NVTX_FLAG_FROM_BASE | RS_NVTX_FLAG_FROM_HERE))
        return sizeof(uint64_t);
    if (width && is_string(e))
        return read_string(r, p, e, values, own, at, width);
    if (e->flags & RS_NVTX_FLAG_POINTER)
        return sizeof(void *);
    if (one == 0 || (inner && !inner->is_known))
        return one;
    size_t n = count_elements(p, e, values, own, at, one, &bytes);
    bool is_array = (e->flags & RS_NVTX_FLAG_ARRAY) != 0;
    for (size_t i = 0; i < n && i < (is_array ? ELEMENTS_MAX : 1); i++) {
        uint64_t value = read_value(r, p, e, inner, at + i * one, is_array ? (int)i : -1);
        if (own < VALUES_MAX && i == 0)
            values[own] = value;
    }
    return bytes;
}

static size_t alignment(const struct rs_nvtx_schema *s, const struct rs_nvtx_entry *e,
                        const struct rs_nvtx_schema *inner)
{
    size_t one = inner ? inner->align : rs_nvtx_type_bytes(e->type);
    bool is_pointer =
        e->flags & (RS_NVTX_FLAG_POINTER | RS_NVTX_FLAG_FROM_BASE | RS_NVTX_FLAG_FROM_HERE);
    if (!inner && rs_nvtx_char_bytes(e->type))
        one = rs_nvtx_char_bytes(e->type);
    if (is_pointer || (!inner && e->type >= RS_NVTX_STRING && e->type < RS_NVTX_REGISTERED &&
                       !(e->flags & RS_NVTX_FLAG_ARRAY) && e->detail == 0))
        one = sizeof(void *);
    one = one > 16 ? 16 : one ? one : 1;
    return s->pack && s->pack < one ? s->pack : one;
}

static void read_layout(struct reader *r, const struct rs_nvtx_schema *s, const struct place *p)
{
    uint64_t values[VALUES_MAX] = {0};
    size_t at = 0;
    if (!s->is_known || s->is_enum || r->depth >= DEPTH_MAX)
        return;
    r->depth++;
    for (unsigned i = 0; i < s->count; i++) {
        const struct rs_nvtx_entry *e = &s->entries[i];
        const struct rs_nvtx_schema *inner = rs_nvtx_schema_find(r->domain, e->type);
        size_t align = alignment(s, e, inner);
        at = e->offset ? e->offset : (at + align - 1) / align * align;
        size_t bytes = read_entry(r, p, e, inner, values, i, at);
        /* Behind what nobody knows the length of, only those are found that say where they are. */
        bool unknown = bytes == 0 && e->flags == 0;
        at = unknown || bytes > SIZE_MAX / 4 || at > SIZE_MAX / 4 ? SIZE_MAX / 2 : at + bytes;
    }
    r->depth--;
}

/* ---- payloads ---- */

/* One value of a predefined type, without a layout. */
static void read_plain(struct reader *r, const struct rs_nvtx_payload *d)
{
    struct rs_nvtx_entry e = {.type = d->schema, .label = "value"};
    struct place p = {.base = d->data, .bytes = d->bytes};
    size_t width = rs_nvtx_char_bytes(d->schema), one = rs_nvtx_type_bytes(d->schema);
    uint32_t name = rs_nvtx_message_id(e.label);
    char copy[16];
    uint64_t value;
    if (d->bytes == RS_NVTX_SIZE_UNKNOWN && one && one <= sizeof(copy)) {
        if (!rs_nvtx_copy(copy, d->data, one))
            return;
        p.base = copy;
    }
    if (d->schema >= RS_NVTX_STRING && width) {
        uint32_t text = d->bytes == RS_NVTX_SIZE_UNKNOWN ? text_behind(d->data, width)
                                                         : text_id(p.base, d->bytes / width, width);
        add(r, name, 4, 0, text);
    } else if (one && d->schema != RS_NVTX_REGISTERED && d->bytes >= one) {
        uint16_t type = number_of(d->schema, p.base, &value);
        if (type)
            add(r, name, type, value, 0);
    }
}

static void read_payload(struct reader *r, const struct rs_nvtx_payload *d)
{
    char copy[BLOB_MAX];
    const struct rs_nvtx_schema *s = rs_nvtx_schema_find(r->domain, d->schema);
    struct place p = {.base = d->data, .bytes = d->bytes};
    r->schema = 0;
    if (!d->data || (!s && d->schema >= RS_NVTX_ID_REFERENCED))
        return;
    if (!s) {
        read_plain(r, d);
        return;
    }
    if (d->bytes == RS_NVTX_SIZE_UNKNOWN) {
        p.bytes = s->bytes;
        if (p.bytes == 0 || p.bytes > sizeof(copy) || !rs_nvtx_copy(copy, d->data, p.bytes))
            return;
        p.base = copy;
    }
    r->schema = s->name ? rs_nvtx_text_id(s->name) : 0;
    if (s->is_enum && s->is_known && p.bytes >= s->bytes) {
        uint64_t value = load(p.base, s->bytes);
        add(r, rs_nvtx_message_id("value"), 1, value, enum_text(s, value));
    } else {
        read_layout(r, s, &p);
    }
}

void rs_nvtx_payloads_read(const void *domain, const struct rs_nvtx_payload *payloads, size_t count,
                           struct rs_nvtx_what *what)
{
    int saved = errno;
    struct reader r = {.domain = domain, .what = what};
    for (size_t i = 0; payloads && i < count && i < RS_NVTX_PAYLOADS_MAX; i++)
        read_payload(&r, &payloads[i]);
    errno = saved;
}

/* ---- the record ---- */

/* Two of a slot, and of one schema. */
static unsigned lay(const struct rs_nvtx_fields *f, struct rs_thread *t, unsigned at)
{
    unsigned slots = 0;
    struct rs_ext_fields *x = NULL, dummy;
    for (uint32_t i = 0; f && i < f->n; i++) {
        const struct rs_nvtx_field *from = &f->field[i];
        if (!x || x->n == RS_EXT_FIELDS_MAX || x->schema != from->schema) {
            x = t ? rs_slot(t, at + slots) : &dummy;
            *x = (struct rs_ext_fields){.op = RS_EXT_FIELDS, .schema = from->schema};
            slots++;
        }
        x->field[x->n].value = from->value;
        x->field[x->n].name = from->name;
        x->field[x->n].text = from->text;
        x->type[x->n++] = from->type;
    }
    return slots;
}

unsigned rs_nvtx_fields_slots(const struct rs_nvtx_fields *fields)
{
    return lay(fields, NULL, 0);
}

void rs_nvtx_fields_put(struct rs_thread *t, unsigned at, const struct rs_nvtx_fields *fields)
{
    lay(fields, t, at);
}
