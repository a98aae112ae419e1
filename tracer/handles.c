/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handles.c - what raw handles mean: chained hash tables, read without a lock.
 *
 * Entries are never freed and their handle never changes. A handle that is freed or used again gets
 * a new object: the entry's pointer changes, and the epoch grows so that threads' caches are stale.
 */
#include <errno.h>
#include <string.h>

#include "state.h"

#define BUCKETS 1024u

struct entry {
    struct entry *next;
    uint64_t handle;
    uint32_t api;
    void *object; /* atomic; NULL: freed */
};
struct table {
    struct entry *bucket[BUCKETS]; /* atomic heads */
};
static struct table comms, dtypes, redops;
static struct table interned; /* types by what they are: kind as `api`, a hash as `handle` */
static uint32_t comm_count, dtype_count, redop_count;

static unsigned bucket_of(uint32_t api, uint64_t handle)
{
    return (unsigned)(rs_hash_mix(api, handle) % BUCKETS);
}

static struct entry *find(struct table *t, uint32_t api, uint64_t handle)
{
    struct entry *e = __atomic_load_n(&t->bucket[bucket_of(api, handle)], __ATOMIC_ACQUIRE);
    while (e && (e->handle != handle || e->api != api))
        e = e->next;
    return e;
}

static void *object_of(struct table *t, uint32_t api, uint64_t handle)
{
    struct entry *e = find(t, api, handle);
    return e ? __atomic_load_n(&e->object, __ATOMIC_ACQUIRE) : NULL;
}

static void grow_epoch(void)
{
    __atomic_fetch_add(&rs_state.epoch, 1, __ATOMIC_RELEASE);
}

/* Locked. */
static void set(struct table *t, uint32_t api, uint64_t handle, void *object)
{
    struct entry *e = find(t, api, handle);
    if (e) {
        __atomic_store_n(&e->object, object, __ATOMIC_RELEASE);
        grow_epoch();
        return;
    }
    e = rs_memory_keep(sizeof(*e));
    if (!e)
        return;
    struct entry **head = &t->bucket[bucket_of(api, handle)];
    *e = (struct entry){.next = *head, .handle = handle, .api = api, .object = object};
    __atomic_store_n(head, e, __ATOMIC_RELEASE);
}

static void forget(struct table *t, uint32_t api, uint64_t handle)
{
    struct entry *e = find(t, api, handle);
    if (!e || !e->object)
        return;
    __atomic_store_n(&e->object, NULL, __ATOMIC_RELEASE);
    grow_epoch();
}

/* ---- communicators ---- */

static bool append_comm(const struct rs_comm *c, uint64_t handle, uint64_t parent, int32_t device,
                        const char *name)
{
    uint32_t members = c->members ? (uint32_t)c->size : 0;
    size_t bytes = (sizeof(struct rs_def_comm) + members * sizeof(int32_t) + 7) & ~(size_t)7;
    struct rs_def_comm d = {.def = {.kind = RS_DEF_COMM, .id = c->id}};
    d.def.bytes = (uint32_t)bytes;
    d.identity = c->identity;
    d.parent = parent;
    d.handle = handle;
    d.tick = rs_tick();
    d.api = c->api;
    d.rank = c->rank;
    d.size = c->size;
    d.member_count = members;
    d.name = name ? rs_defs_string_locked(name, strlen(name)) : 0;
    d.device = device;
    return rs_defs_append(&d, sizeof(d), c->members, members * sizeof(int32_t));
}

static struct rs_comm *new_comm(enum rs_comm_api api, uint64_t identity, int32_t rank, int32_t size,
                                const int32_t *members)
{
    struct rs_comm *c = rs_memory_keep(sizeof(*c));
    if (!c)
        return NULL;
    *c = (struct rs_comm){.identity = identity, .rank = rank, .size = size, .api = api};
    if (members && size > 0) {
        c->members = rs_memory_keep((size_t)size * sizeof(int32_t));
        if (c->members)
            memcpy(c->members, members, (size_t)size * sizeof(int32_t));
    }
    return c;
}

static struct rs_comm *define_comm(enum rs_comm_api api, uint64_t handle, uint64_t identity,
                                   uint64_t parent, int32_t rank, int32_t size,
                                   const int32_t *members, int32_t device, const char *name)
{
    int saved = errno;
    rs_lock();
    struct rs_comm *c =
        rs_state.control || rs_life_start() ? new_comm(api, identity, rank, size, members) : NULL;
    if (c) {
        c->id = comm_count + 1;
        if (append_comm(c, handle, parent, device, name))
            comm_count++;
        else
            c->id = 0;
        set(&comms, api, handle, c);
    }
    rs_unlock();
    errno = saved;
    return c;
}

static struct rs_comm *find_comm(enum rs_comm_api api, uint64_t handle)
{
    return object_of(&comms, api, handle);
}

static void forget_comm(enum rs_comm_api api, uint64_t handle)
{
    rs_lock();
    forget(&comms, api, handle);
    rs_unlock();
}

/* ---- types and reductions ---- */

static struct rs_type *new_type(uint16_t kind, uint32_t *count, uint32_t name, uint64_t size)
{
    struct rs_def_type d = {.def = {.kind = kind, .bytes = sizeof(d), .id = *count + 1}};
    d.size_bytes = size;
    d.name = name;
    struct rs_type *type = rs_memory_keep(sizeof(*type));
    if (!type)
        return NULL;
    *type = (struct rs_type){.name = name, .size_bytes = size};
    if (rs_defs_append(&d, sizeof(d), NULL, 0))
        type->id = ++*count;
    return type;
}

/* Programs make and free a type in every step: one of the same name and size is the same here. */
static struct rs_type *intern_type(uint16_t kind, uint32_t *count, const char *text, uint64_t size)
{
    uint32_t name = rs_defs_string_locked(text, strlen(text));
    uint64_t key = rs_hash_mix(name, size);
    struct rs_type *type = object_of(&interned, kind, key);
    if (type && type->name == name && type->size_bytes == size)
        return type;
    type = new_type(kind, count, name, size);
    if (type)
        set(&interned, kind, key, type);
    return type;
}

static struct rs_type *define_type(struct table *t, uint16_t kind, uint32_t *count, uint32_t api,
                                   uint64_t handle, const char *name, uint64_t size)
{
    int saved = errno;
    rs_lock();
    struct rs_type *type =
        rs_state.control || rs_life_start() ? intern_type(kind, count, name, size) : NULL;
    if (type)
        set(t, api, handle, type);
    rs_unlock();
    errno = saved;
    return type;
}

static struct rs_type *find_dtype(uint32_t api, uint64_t handle)
{
    return object_of(&dtypes, api, handle);
}

static struct rs_type *define_dtype(uint32_t api, uint64_t handle, const char *name, uint64_t size)
{
    return define_type(&dtypes, RS_DEF_DTYPE, &dtype_count, api, handle, name, size);
}

static struct rs_type *find_redop(uint32_t api, uint64_t handle)
{
    return object_of(&redops, api, handle);
}

static struct rs_type *define_redop(uint32_t api, uint64_t handle, const char *name)
{
    return define_type(&redops, RS_DEF_REDOP, &redop_count, api, handle, name, 0);
}

static void forget_type(uint32_t api, uint64_t handle)
{
    rs_lock();
    forget(&dtypes, api, handle);
    forget(&redops, api, handle);
    rs_unlock();
}

void rs_handles_fill(struct rs_core *core)
{
    core->find_comm = find_comm;
    core->define_comm = define_comm;
    core->forget_comm = forget_comm;
    core->find_dtype = find_dtype;
    core->define_dtype = define_dtype;
    core->find_redop = find_redop;
    core->define_redop = define_redop;
    core->forget_type = forget_type;
}
