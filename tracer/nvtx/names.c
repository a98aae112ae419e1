/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thread-memory.h"

#define TEXT_MAGIC   0x74787674u
#define DOMAIN_MAGIC 0x6d6f6474u
#define BUCKETS      256
#define CACHED       256

/* An id and the generation it belongs to, in one word, so that both change at once. */
static uint32_t generation = 1;

struct rs_nvtx_text {
    uint32_t magic;
    uint64_t id; /* atomic: generation << 32 | id */
    char *text;
};

struct category {
    struct category *next;
    uint32_t number;
    struct rs_nvtx_text *name;
};

struct rs_nvtx_domain {
    uint32_t magic;
    struct rs_nvtx_text *name;
    struct category *categories[BUCKETS]; /* atomic heads; nodes are never changed or removed */
};

static struct rs_nvtx_domain default_domain = {.magic = DOMAIN_MAGIC};
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

/* Handles that were given out, so that a wild one is never followed. Append only. */
struct known {
    struct known *next;
    const void *handle;
};
static struct known *known[BUCKETS];

static unsigned bucket_of(const void *handle)
{
    uintptr_t v = (uintptr_t)handle;
    return (unsigned)((v >> 4) ^ (v >> 12)) % BUCKETS;
}

static void remember(const void *handle)
{
    struct known *k = malloc(sizeof(*k));
    if (!k)
        return;
    k->handle = handle;
    pthread_mutex_lock(&known_lock);
    k->next = known[bucket_of(handle)];
    __atomic_store_n(&known[bucket_of(handle)], k, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&known_lock);
}

static bool is_known(const void *handle)
{
    const struct known *k = __atomic_load_n(&known[bucket_of(handle)], __ATOMIC_ACQUIRE);
    while (k && k->handle != handle)
        k = k->next;
    return k != NULL;
}

struct rs_nvtx_text *rs_nvtx_text_new(const char *text)
{
    struct rs_nvtx_text *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->text = strndup(text ? text : "", RS_NVTX_TEXT_MAX);
    if (!t->text) {
        free(t);
        return NULL;
    }
    t->magic = TEXT_MAGIC;
    remember(t);
    return t;
}

static uint32_t resolve(struct rs_nvtx_text *t)
{
    uint64_t have = __atomic_load_n(&t->id, __ATOMIC_RELAXED);
    uint32_t now = __atomic_load_n(&generation, __ATOMIC_RELAXED);
    if (RS_LIKELY(have >> 32 == now))
        return (uint32_t)have;
    uint32_t id = t->text[0] ? rs_core->string(t->text, strlen(t->text)) : 0;
    __atomic_store_n(&t->id, (uint64_t)now << 32 | id, __ATOMIC_RELAXED);
    return id;
}

uint32_t rs_nvtx_text_id(struct rs_nvtx_text *text)
{
    return text && is_known(text) && text->magic == TEXT_MAGIC ? resolve(text) : 0;
}

const char *rs_nvtx_text_of(const struct rs_nvtx_text *text)
{
    return text && is_known(text) && text->magic == TEXT_MAGIC ? text->text : NULL;
}

struct rs_nvtx_domain *rs_nvtx_domain_new(const char *name)
{
    struct rs_nvtx_domain *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->name = rs_nvtx_text_new(name);
    d->magic = DOMAIN_MAGIC;
    remember(d);
    return d;
}

static struct rs_nvtx_domain *domain_of(struct rs_nvtx_domain *domain)
{
    bool good = domain && is_known(domain) && domain->magic == DOMAIN_MAGIC;
    return good ? domain : &default_domain;
}

uint32_t rs_nvtx_domain_id(struct rs_nvtx_domain *domain)
{
    struct rs_nvtx_domain *d = domain_of(domain);
    return d->name ? resolve(d->name) : 0;
}

void rs_nvtx_category_name(struct rs_nvtx_domain *domain, uint32_t category, const char *name)
{
    struct rs_nvtx_domain *d = domain_of(domain);
    struct category *c = malloc(sizeof(*c));
    if (!c)
        return;
    c->number = category;
    c->name = rs_nvtx_text_new(name);
    if (!c->name) {
        free(c);
        return;
    }
    /* At the head: a category named again has its new name from here on. */
    pthread_mutex_lock(&naming);
    c->next = d->categories[category % BUCKETS];
    __atomic_store_n(&d->categories[category % BUCKETS], c, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&naming);
}

uint32_t rs_nvtx_category_id(struct rs_nvtx_domain *domain, uint32_t category)
{
    if (category == 0)
        return 0;
    struct rs_nvtx_domain *d = domain_of(domain);
    struct category *c = __atomic_load_n(&d->categories[category % BUCKETS], __ATOMIC_ACQUIRE);
    while (c && c->number != category)
        c = c->next;
    if (c)
        return resolve(c->name);
    char number[16];
    snprintf(number, sizeof(number), "%u", category);
    return rs_nvtx_message_id(number);
}

uint32_t rs_nvtx_message_id(const char *message)
{
    static __thread struct {
        uint64_t hash;
        uint32_t bytes, generation, id;
    } * cache __attribute__((tls_model("initial-exec")));
    if (!message || !message[0])
        return 0;
    if (RS_UNLIKELY(!cache) && !rs_thread_memory(&cache, CACHED * sizeof *cache))
        return rs_core->string(message, strnlen(message, RS_NVTX_TEXT_MAX));
    uint64_t hash = 0xcbf29ce484222325u;
    uint32_t n = 0;
    for (; n < RS_NVTX_TEXT_MAX && message[n]; n++)
        hash = (hash ^ (unsigned char)message[n]) * 0x100000001b3u;
    uint32_t now = __atomic_load_n(&generation, __ATOMIC_RELAXED);
    /* By content, not by address: programs format messages into one buffer again and again. */
    unsigned i = (unsigned)(hash ^ hash >> 32) % CACHED;
    if (RS_UNLIKELY(cache[i].hash != hash || cache[i].bytes != n || cache[i].generation != now)) {
        cache[i].id = rs_core->string(message, n);
        cache[i].hash = hash;
        cache[i].bytes = n;
        cache[i].generation = now;
    }
    return cache[i].id;
}

const char *rs_nvtx_from_wide(const wchar_t *wide, char *ret)
{
    char *to = ret, *end = ret + RS_NVTX_TEXT_MAX - 5;
    for (; wide && *wide && to < end; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            c = 0xfffd;
        if (c < 0x80) {
            *to++ = (char)c;
            continue;
        }
        unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
        *to++ = (char)(lead[more] | c >> (6 * more));
        while (more--)
            *to++ = (char)(0x80 | (c >> (6 * more) & 0x3f));
    }
    *to = 0;
    return ret;
}

void rs_nvtx_names_forget(void)
{
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
}
