/* SPDX-License-Identifier: Apache-2.0 */
#include "contexts.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FNV_START 14695981039346656037u
#define FNV_PRIME 1099511628211u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_gloo_context *contexts; /* atomic; entries are never freed */

struct rs_gloo_context *rs_gloo_context_find(const void *handle)
{
    struct rs_gloo_context *c = __atomic_load_n(&contexts, __ATOMIC_ACQUIRE);
    while (c && c->handle != handle)
        c = c->next;
    return c;
}

static void reset(struct rs_gloo_context *c, int32_t rank, int32_t size)
{
    struct rs_gloo_context fresh = {
        .next = c->next, .handle = c->handle, .rank = rank, .size = size};
    *c = fresh;
}

/* Nobody uses a context whose constructor runs: an old one's entry can be taken as it is. */
void rs_gloo_context_made(const void *handle, int32_t rank, int32_t size)
{
    int saved = errno;
    pthread_mutex_lock(&lock);
    struct rs_gloo_context *c = rs_gloo_context_find(handle);
    if (c) {
        reset(c, rank, size);
    } else if ((c = calloc(1, sizeof *c))) {
        c->next = contexts;
        c->handle = handle;
        reset(c, rank, size);
        __atomic_store_n(&contexts, c, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
}

/* ---- identities ---- */

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
    for (const unsigned char *p = bytes, *end = p + n; p < end; p++)
        h = (h ^ *p) * FNV_PRIME;
    return h;
}

void rs_gloo_mesh_add(struct rs_gloo_mesh *m, const void *bytes, size_t n)
{
    m->hash = hash_bytes(m->bytes ? m->hash : FNV_START, bytes, n);
    m->bytes += n;
}

void rs_gloo_context_connected(struct rs_gloo_context *c, const struct rs_gloo_mesh *m)
{
    if (m->bytes)
        c->identity = rs_hash_mix(rs_hash_mix(RS_COMM_GLOO, (uint64_t)c->size), m->hash);
}

/* Of this process alone: what is done on it is timed, and matched with nobody's. */
static uint64_t identity_here(const struct rs_gloo_context *c)
{
    static unsigned made;
    const char *domain = rs_core->domain();
    uint64_t h = rs_hash_mix(rs_core->run_hash(), RS_COMM_GLOO);
    h = domain ? hash_bytes(h, domain, strlen(domain)) : h;
    h = rs_hash_mix(rs_hash_mix(h, (uint64_t)getpid()), (uintptr_t)c->handle);
    return rs_hash_mix(h, __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED));
}

/* Gloo's world is the run's where neither MPI nor a launcher says more. */
static void tell_rank(int32_t rank, int32_t size)
{
    static unsigned done;
    if (!rs_core->rank_told && !__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
        rs_core->set_rank(rank, size);
}

static struct rs_comm *define(struct rs_gloo_context *c)
{
    bool known = c->identity != 0;
    struct rs_comm *comm = rs_core->define_comm(RS_COMM_GLOO, (uintptr_t)c->handle,
                                                known ? c->identity : identity_here(c), 0, c->rank,
                                                c->size, NULL, -1, NULL);
    if (comm && known && c->size > 1)
        tell_rank(c->rank, c->size);
    if (!known && c->size > 1)
        rs_core->meta("off.gloo.matching", "a Gloo context was not connected by connectFullMesh as "
                                           "this tracer knows it: its calls are not matched");
    return comm;
}

struct rs_comm *rs_gloo_context_comm(struct rs_gloo_context *c)
{
    struct rs_comm *comm = __atomic_load_n(&c->comm, __ATOMIC_ACQUIRE);
    if (RS_LIKELY(comm != NULL))
        return comm;
    int saved = errno;
    pthread_mutex_lock(&lock);
    comm = c->comm ? c->comm : define(c);
    __atomic_store_n(&c->comm, comm, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return comm;
}

/* ---- numbers ---- */

/* Notes a tag; false: it came before, or is so old that nobody knows. */
static bool is_new(struct rs_gloo_context *c, uint32_t tag)
{
    uint64_t *place = &c->seen[tag / 32 % RS_GLOO_TAGS], bit = (uint64_t)1 << tag % 32;
    uint64_t word = __atomic_load_n(place, __ATOMIC_RELAXED), then;
    do {
        uint32_t number = (uint32_t)(word >> 32);
        if ((number > tag / 32 && (uint32_t)word) || (number == tag / 32 && (word & bit)))
            return false;
        then = number == tag / 32 ? word | bit : (uint64_t)(tag / 32) << 32 | bit;
    } while (
        !__atomic_compare_exchange_n(place, &word, then, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return true;
}

/* Past all tags that were numbers. */
static void start_counting(struct rs_gloo_context *c)
{
    uint32_t next = 0;
    for (int i = 0; i < RS_GLOO_TAGS; i++) {
        uint64_t word = __atomic_load_n(&c->seen[i], __ATOMIC_RELAXED);
        uint32_t tags = (uint32_t)word;
        uint32_t past =
            (uint32_t)(word >> 32) * 32 + 32 - (tags ? (uint32_t)__builtin_clz(tags) : 32);
        next = tags && past > next ? past : next;
    }
    __atomic_store_n(&c->next_number, next, __ATOMIC_RELAXED);
    __atomic_store_n(&c->counting, 1, __ATOMIC_RELEASE);
}

/* Is it the first one, or as the first one was? */
static bool is_first(uint32_t *first, uint32_t value)
{
    uint32_t none = 0, known = __atomic_load_n(first, __ATOMIC_RELAXED);
    if (RS_LIKELY(known != 0))
        return known == value + 1;
    return __atomic_compare_exchange_n(first, &none, value + 1, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED) ||
           none == value + 1;
}

/* Threads that take turns on tags of their own need not do so in the same order on all ranks. */
static bool has_order(struct rs_gloo_context *c, uint32_t tag, uint32_t thread)
{
    uint32_t several =
        (is_first(&c->first_tag, tag) ? 0u : 1u) | (is_first(&c->first_thread, thread) ? 0u : 2u);
    uint32_t known = __atomic_load_n(&c->lost, __ATOMIC_RELAXED);
    if (RS_UNLIKELY(several & ~known))
        known = __atomic_or_fetch(&c->lost, several, __ATOMIC_RELAXED);
    return (known & 3) != 3;
}

bool rs_gloo_number(struct rs_gloo_context *c, bool has_tag, uint32_t tag, uint32_t thread,
                    uint32_t *ret_number)
{
    bool counting = __atomic_load_n(&c->counting, __ATOMIC_ACQUIRE);
    if (RS_LIKELY(!counting && has_tag && is_new(c, tag))) {
        *ret_number = tag;
        return true;
    }
    if (!counting)
        start_counting(c);
    if (!has_order(c, has_tag ? tag : UINT32_MAX - 1, thread)) {
        int saved = errno;
        if (!(__atomic_fetch_or(&c->lost, 4, __ATOMIC_RELAXED) & 4))
            rs_core->meta("off.gloo.matching", "several threads use tags of their own, again and "
                                               "again, on one Gloo context: its calls are not "
                                               "matched");
        errno = saved;
        return false;
    }
    *ret_number = __atomic_fetch_add(&c->next_number, 1, __ATOMIC_RELAXED);
    return true;
}
