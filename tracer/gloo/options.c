/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define RECENT    256 /* buffers */
#define LOOKS     16  /* at a place, before it is said that it tells nothing */
#define ELEMENT   4096
#define LIST_MOST (1 << 20)

/* ---- buffers ---- */

/* class UnboundBuffer of gloo/transport: its public, constant members. */
struct buffer {
    const void *functions;
    const void *memory;
    size_t bytes;
};

static const void *recent[RECENT];
static unsigned made;       /* atomic */
static unsigned other_kind; /* atomic: a buffer is not as above */

void rs_gloo_buffer_made(const void *buffer, const void *memory, size_t bytes)
{
    const struct buffer *b = buffer;
    if (b->memory != memory || b->bytes != bytes)
        __atomic_store_n(&other_kind, 1, __ATOMIC_RELAXED);
    unsigned i = __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED) % RECENT;
    __atomic_store_n(&recent[i], buffer, __ATOMIC_RELAXED);
}

static bool is_buffer(const void *p)
{
    unsigned newest = __atomic_load_n(&made, __ATOMIC_RELAXED);
    for (unsigned i = 1; p && i <= RECENT; i++)
        if (__atomic_load_n(&recent[(newest - i) % RECENT], __ATOMIC_RELAXED) == p)
            return true;
    return false;
}

/* ---- places in the options ---- */

static uint64_t word(const void *options, unsigned at)
{
    uint64_t v;
    memcpy(&v, (const char *)options + at, sizeof v);
    return v;
}

static uint32_t half(const void *options, unsigned at)
{
    uint32_t v;
    memcpy(&v, (const char *)options + at, sizeof v);
    return v;
}

/* The begin of a std::vector of 8-byte things, NULL where there is none, or it is empty. */
static const void *list(const void *options, unsigned at, uint64_t *ret_n)
{
    uint64_t begin = word(options, at), end = word(options, at + 8), room = word(options, at + 16);
    *ret_n = (end - begin) / 8;
    if (!begin || begin % 8 || end % 8 || room % 8 || end <= begin || room < end ||
        *ret_n > LIST_MOST)
        return NULL;
    return (const void *)(uintptr_t)begin;
}

/* The first buffer at a place, NULL none. `safe`: it may be anything else. */
static const struct buffer *buffer_at(const void *options, unsigned at, bool is_list, bool safe)
{
    uint64_t n;
    const void *p = NULL, *begin = NULL;
    if (!is_list)
        return (const void *)(uintptr_t)word(options, at);
    begin = list(options, at, &n);
    if (!begin)
        return NULL;
    if (!safe)
        return *(const void *const *)begin;
    struct iovec to = {&p, sizeof p}, from = {(void *)(uintptr_t)begin, sizeof p};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof p ? p : NULL;
}

static const struct buffer *in_of(const void *options, const struct rs_gloo_options *o, bool safe)
{
    return o->in ? buffer_at(options, o->in, o->lists & RS_GLOO_IN_LIST, safe) : NULL;
}

static const struct buffer *out_of(const void *options, const struct rs_gloo_options *o, bool safe)
{
    return o->out ? buffer_at(options, o->out, o->lists & RS_GLOO_OUT_LIST, safe) : NULL;
}

/* ---- proof ---- */

static bool agrees(const void *options, const struct rs_gloo_options *o, const struct buffer *b,
                   const struct rs_gloo_context *c)
{
    uint64_t element = o->element_bytes ? word(options, o->element_bytes) : 1;
    int32_t root = o->root ? (int32_t)half(options, o->root) : 0;
    if (root < 0 || root >= c->size || element == 0 || element > ELEMENT || b->bytes % element)
        return false;
    return !o->elements || o->count != RS_GLOO_ELEMENTS ||
           word(options, o->elements) * element == b->bytes;
}

static enum rs_gloo_layout judge(const void *options, const struct rs_gloo_options *o,
                                 const struct rs_gloo_context *c)
{
    if (__atomic_load_n(&other_kind, __ATOMIC_RELAXED))
        return RS_GLOO_UNKNOWN;
    const struct buffer *in = in_of(options, o, true), *out = out_of(options, o, true);
    const struct buffer *b = is_buffer(out) ? out : is_buffer(in) ? in : NULL;
    if (!b)
        return RS_GLOO_UNCHECKED;
    return agrees(options, o, b, c) ? RS_GLOO_KNOWN : RS_GLOO_UNKNOWN;
}

static void say_unknown(void)
{
    static unsigned done;
    if (!__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
        rs_core->meta("off.gloo.sizes", "the options of some calls of Gloo are not laid out as in "
                                        "the versions that this tracer knows, or could not be "
                                        "checked: these calls have no sizes");
}

static bool is_known(const void *options, const struct rs_gloo_options *o,
                     const struct rs_gloo_context *c, struct rs_gloo_site *site)
{
    uint32_t layout = __atomic_load_n(&site->layout, __ATOMIC_RELAXED);
    if (RS_LIKELY(layout == RS_GLOO_KNOWN))
        return true;
    int saved = errno;
    if (layout == RS_GLOO_UNCHECKED) {
        layout = judge(options, o, c);
        __atomic_store_n(&site->layout, layout, __ATOMIC_RELAXED);
    }
    if (layout == RS_GLOO_UNKNOWN ||
        (layout == RS_GLOO_UNCHECKED &&
         __atomic_add_fetch(&site->looks, 1, __ATOMIC_RELAXED) == LOOKS))
        say_unknown();
    errno = saved;
    return layout == RS_GLOO_KNOWN;
}

/* ---- reading ---- */

static uint64_t own_of_list(const void *options, const struct rs_gloo_options *o, int32_t rank,
                            int32_t size)
{
    uint64_t n, own = 0;
    const void *begin = list(options, o->elements, &n);
    if (begin && n == (uint64_t)size)
        memcpy(&own, (const char *)begin + 8 * (size_t)rank, sizeof own);
    return own;
}

static void count(const void *options, const struct rs_gloo_options *o, struct rs_gloo_told *ret)
{
    const struct rs_gloo_context *c = ret->context;
    const struct buffer *in = in_of(options, o, false), *out = out_of(options, o, false);
    uint64_t given = in ? in->bytes / ret->element_bytes : 0;
    uint64_t got = out ? out->bytes / ret->element_bytes : 0;
    uint64_t size = (uint64_t)c->size;
    switch ((enum rs_gloo_count)o->count) {
    case RS_GLOO_ELEMENTS:
        ret->count = word(options, o->elements);
        break;
    case RS_GLOO_IN:
        ret->count = in ? given : got;
        ret->total = got;
        break;
    case RS_GLOO_IN_SHARE:
        ret->count = (in ? given : got) / size;
        break;
    case RS_GLOO_OUT:
        ret->count = got;
        break;
    case RS_GLOO_OUT_SHARE:
        ret->count = got / size;
        break;
    case RS_GLOO_OWN:
        ret->count = in ? given : own_of_list(options, o, c->rank, c->size);
        ret->total = got;
        break;
    case RS_GLOO_NO_COUNT:
        break;
    }
}

void rs_gloo_options_read(const void *options, const struct rs_gloo_options *o,
                          struct rs_gloo_site *site, struct rs_gloo_told *ret)
{
    *ret = (struct rs_gloo_told){.root = -1, .element_bytes = 1};
    ret->context = rs_gloo_context_find((const void *)(uintptr_t)word(options, 0));
    if (!ret->context) {
        say_unknown();
        return;
    }
    if (!is_known(options, o, ret->context, site))
        return;
    ret->known = true;
    ret->tag = half(options, o->tag);
    ret->root = o->root ? (int32_t)half(options, o->root) : -1;
    if (o->element_bytes) {
        uint64_t element = word(options, o->element_bytes);
        ret->element_bytes = element ? element : 1;
    }
    if (o->count != RS_GLOO_NO_COUNT)
        count(options, o, ret);
}
