/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define BUCKETS 256
#define PAGE    4096u

static struct rs_nvtx_schema *buckets[BUCKETS]; /* atomic heads */
static uint64_t next_id = RS_NVTX_ID_DYNAMIC;   /* atomic */
static unsigned given;                          /* under the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- memory of the program, which may not be there ---- */

bool rs_nvtx_copy(void *to, const void *from, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
    return from && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

static bool is_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* Up to the end of a page at a time: what is behind it need not be there. */
bool rs_nvtx_copy_text(char *to, size_t room, const void *from, size_t width)
{
    const char *at = from;
    room -= room % width;
    for (size_t n = 0; n + width < room;) {
        size_t part = PAGE - (uintptr_t)at % PAGE;
        part = part < room - width - n ? part : room - width - n;
        if (!rs_nvtx_copy(to + n, at, part))
            return false;
        for (size_t i = n - n % width; i + width <= n + part; i += width)
            if (is_zero(to + i, width))
                return true;
        n += part;
        at += part;
    }
    memset(to + room - width, 0, width);
    return true;
}

/* What is registered must be there: where the kernel doesn't serve, it is read as it is. */
static bool take(void *to, const void *from, size_t bytes)
{
    if (rs_nvtx_copy(to, from, bytes))
        return true;
    if (!from || (errno != ENOSYS && errno != EPERM))
        return false;
    memcpy(to, from, bytes);
    return true;
}

static struct rs_nvtx_text *take_text(const char *from, char *label)
{
    char text[RS_NVTX_TEXT_MAX];
    if (!from || !rs_nvtx_copy_text(text, sizeof(text), from, 1))
        return NULL;
    if (label)
        snprintf(label, RS_NVTX_LABEL_MAX, "%.*s", RS_NVTX_LABEL_MAX - 1, text);
    return rs_nvtx_text_new(text);
}

/* ---- types ---- */

size_t rs_nvtx_type_bytes(uint64_t type)
{
    static const uint8_t bytes[] = {
        [RS_NVTX_CHAR] = 1,
        [RS_NVTX_UCHAR] = 1,
        [RS_NVTX_SHORT] = sizeof(short),
        [RS_NVTX_USHORT] = sizeof(short),
        [RS_NVTX_INT] = sizeof(int),
        [RS_NVTX_UINT] = sizeof(int),
        [RS_NVTX_LONG] = sizeof(long),
        [RS_NVTX_ULONG] = sizeof(long),
        [RS_NVTX_LONGLONG] = sizeof(long long),
        [RS_NVTX_ULONGLONG] = sizeof(long long),
        [RS_NVTX_INT8] = 1,
        [RS_NVTX_UINT8] = 1,
        [RS_NVTX_INT16] = 2,
        [RS_NVTX_UINT16] = 2,
        [RS_NVTX_INT32] = 4,
        [RS_NVTX_UINT32] = 4,
        [RS_NVTX_INT64] = 8,
        [RS_NVTX_UINT64] = 8,
        [RS_NVTX_FLOAT] = sizeof(float),
        [RS_NVTX_DOUBLE] = sizeof(double),
        [RS_NVTX_LONGDOUBLE] = sizeof(long double),
        [RS_NVTX_SIZE] = sizeof(size_t),
        [RS_NVTX_ADDRESS] = sizeof(void *),
        [RS_NVTX_WCHAR] = sizeof(wchar_t),
        [RS_NVTX_CHAR8] = 1,
        [RS_NVTX_CHAR16] = 2,
        [RS_NVTX_CHAR32] = 4,
        [RS_NVTX_BYTE] = 1,
        [RS_NVTX_INT128] = 16,
        [RS_NVTX_UINT128] = 16,
        [RS_NVTX_FLOAT16] = 2,
        [RS_NVTX_FLOAT32] = 4,
        [RS_NVTX_FLOAT64] = 8,
        [RS_NVTX_FLOAT128] = 16,
        [RS_NVTX_BF16] = 2,
        [RS_NVTX_TF32] = 4,
        [RS_NVTX_CATEGORY] = 4,
        [RS_NVTX_COLOR] = 4,
        [RS_NVTX_SCOPE] = 8,
        [RS_NVTX_PID32] = 4,
        [RS_NVTX_PID64] = 8,
        [RS_NVTX_TID32] = 4,
        [RS_NVTX_TID64] = 8,
        [RS_NVTX_REGISTERED] = sizeof(void *),
    };
    return type < sizeof(bytes) ? bytes[type] : 0;
}

size_t rs_nvtx_char_bytes(uint64_t type)
{
    switch (type) {
    case RS_NVTX_CHAR:
    case RS_NVTX_CHAR8:
    case RS_NVTX_STRING:
    case RS_NVTX_STRING_UTF8:
        return 1;
    case RS_NVTX_CHAR16:
    case RS_NVTX_STRING_UTF16:
        return 2;
    case RS_NVTX_WCHAR:
        return sizeof(wchar_t);
    case RS_NVTX_CHAR32:
    case RS_NVTX_STRING_UTF32:
        return 4;
    default:
        return 0;
    }
}

/* ---- registration ---- */

static struct rs_nvtx_schema *new_schema(const void *domain, uint64_t id, size_t count)
{
    if (count == 0 || count > RS_NVTX_ENTRIES_MAX)
        return NULL;
    struct rs_nvtx_schema *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    bool own = id >= RS_NVTX_ID_STATIC && id < RS_NVTX_ID_DYNAMIC;
    s->id = own ? id : __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED);
    s->domain = own ? domain : NULL;
    s->count = (unsigned)count;
    s->align = 1;
    return s;
}

static void discard(struct rs_nvtx_schema *s)
{
    free(s->entries);
    free(s->values);
    free(s);
}

static uint64_t publish(struct rs_nvtx_schema *s)
{
    pthread_mutex_lock(&lock);
    bool room = given < RS_NVTX_SCHEMAS_MAX;
    given += room;
    if (room) {
        struct rs_nvtx_schema **head = &buckets[s->id % BUCKETS];
        s->next = *head;
        __atomic_store_n(head, s, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    uint64_t id = room ? s->id : 0;
    if (!room)
        discard(s);
    return id;
}

const struct rs_nvtx_schema *rs_nvtx_schema_find(const void *domain, uint64_t id)
{
    const struct rs_nvtx_schema *s = __atomic_load_n(&buckets[id % BUCKETS], __ATOMIC_ACQUIRE);
    while (s && (s->id != id || (id < RS_NVTX_ID_DYNAMIC && s->domain != domain)))
        s = s->next;
    return s;
}

static bool take_entries(struct rs_nvtx_schema *s, const struct rs_nvtx_schema_entry *from)
{
    s->entries = calloc(s->count, sizeof(*s->entries));
    for (unsigned i = 0; s->entries && i < s->count; i++) {
        struct rs_nvtx_schema_entry e;
        struct rs_nvtx_entry *to = &s->entries[i];
        if (!take(&e, from + i, sizeof(e)))
            return false;
        *to = (struct rs_nvtx_entry){e.flags, e.type, e.detail, e.offset, NULL, ""};
        to->name = take_text(e.name, to->label);
        if (!to->label[0]) {
            snprintf(to->label, sizeof(to->label), "field %u", i);
            to->name = rs_nvtx_text_new(to->label);
        }
    }
    return s->entries != NULL;
}

static size_t align_of(const struct rs_nvtx_schema *s, size_t natural)
{
    return s->pack && s->pack < natural ? s->pack : natural;
}

/* What a layout without a size takes, and its alignment: of simple fields and nested layouts. */
static void measure(struct rs_nvtx_schema *s, const void *domain)
{
    size_t at = 0;
    for (unsigned i = 0; i < s->count; i++) {
        const struct rs_nvtx_entry *e = &s->entries[i];
        const struct rs_nvtx_schema *inner = rs_nvtx_schema_find(domain, e->type);
        size_t one = inner ? inner->bytes : rs_nvtx_type_bytes(e->type), bytes = one;
        size_t natural = inner ? inner->align : one > 8 ? 16 : one;
        bool is_array = e->flags & RS_NVTX_FLAG_ARRAY || rs_nvtx_char_bytes(e->type) > 0;
        if (is_array && e->detail > 0 &&
            __builtin_mul_overflow(one ? one : rs_nvtx_char_bytes(e->type), e->detail, &bytes))
            bytes = SIZE_MAX / 2;
        if (e->flags & (RS_NVTX_FLAG_POINTER | RS_NVTX_FLAG_FROM_BASE | RS_NVTX_FLAG_FROM_HERE))
            bytes = natural = sizeof(void *);
        natural = align_of(s, natural ? natural : 1);
        s->align = natural > s->align ? natural : s->align;
        at = e->offset ? e->offset : (at + natural - 1) / natural * natural;
        at = at > SIZE_MAX / 4 ? SIZE_MAX / 4 : at;
        at += bytes > SIZE_MAX / 4 ? SIZE_MAX / 4 : bytes;
    }
    if (!s->bytes)
        s->bytes = (at + s->align - 1) / s->align * s->align;
}

uint64_t rs_nvtx_schema_add(const void *domain, const struct rs_nvtx_schema_attributes *from)
{
    static const uint64_t needed =
        RS_NVTX_SCHEMA_HAS_TYPE | RS_NVTX_SCHEMA_HAS_ENTRIES | RS_NVTX_SCHEMA_HAS_COUNT;
    struct rs_nvtx_schema_attributes a;
    if (!take(&a, from, sizeof(a)) || (a.field_mask & needed) != needed)
        return 0;
    uint64_t mask = a.field_mask;
    struct rs_nvtx_schema *s = new_schema(domain, mask & RS_NVTX_SCHEMA_HAS_ID ? a.id : 0, a.count);
    if (!s)
        return 0;
    if (!take_entries(s, a.entries)) {
        discard(s);
        return 0;
    }
    s->name = mask & RS_NVTX_SCHEMA_HAS_NAME ? take_text(a.name, NULL) : NULL;
    s->pack = mask & RS_NVTX_SCHEMA_HAS_PACK && a.pack <= 64 ? a.pack : 0;
    s->is_known = a.type == RS_NVTX_SCHEMA_STATIC || a.type == RS_NVTX_SCHEMA_DYNAMIC;
    s->bytes = mask & RS_NVTX_SCHEMA_HAS_BYTES ? a.bytes : 0;
    measure(s, domain);
    if (a.type == RS_NVTX_SCHEMA_DYNAMIC)
        s->bytes = 0;
    return publish(s);
}

static bool take_values(struct rs_nvtx_schema *s, const struct rs_nvtx_enum_entry *from)
{
    s->values = calloc(s->count, sizeof(*s->values));
    for (unsigned i = 0; s->values && i < s->count; i++) {
        struct rs_nvtx_enum_entry e;
        if (!take(&e, from + i, offsetof(struct rs_nvtx_enum_entry, is_flag) + 1))
            return false;
        struct rs_nvtx_value *to = &s->values[i];
        to->value = e.value;
        to->is_flag = e.is_flag != 0;
        to->name = take_text(e.name, to->label);
    }
    return s->values != NULL;
}

uint64_t rs_nvtx_enum_add(const void *domain, const struct rs_nvtx_enum_attributes *from)
{
    static const uint64_t needed = RS_NVTX_ENUM_HAS_ENTRIES | RS_NVTX_ENUM_HAS_COUNT;
    struct rs_nvtx_enum_attributes a;
    if (!take(&a, from, sizeof(a)) || (a.field_mask & needed) != needed)
        return 0;
    uint64_t mask = a.field_mask;
    size_t bytes = mask & RS_NVTX_ENUM_HAS_BYTES ? a.bytes : sizeof(int);
    struct rs_nvtx_schema *s = new_schema(domain, mask & RS_NVTX_ENUM_HAS_ID ? a.id : 0, a.count);
    if (!s)
        return 0;
    if (!take_values(s, a.entries)) {
        discard(s);
        return 0;
    }
    s->is_enum = true;
    s->is_known = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    s->bytes = s->align = bytes;
    s->name = mask & RS_NVTX_ENUM_HAS_NAME ? take_text(a.name, NULL) : NULL;
    return publish(s);
}
