/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rt-index.h"

struct slot {
    struct rt_tensor tensor;
    bool used;
    uint64_t since;        /* order */
    uint32_t older, newer; /* in the order of use; RT_SLOT_NONE at the ends */
};

/* What a slot held. */
struct past {
    struct past *next;
    struct rt_tensor tensor;
    uint32_t slot;
    uint64_t since, until; /* orders; after the last it was gone */
};

struct rt_cache {
    struct slot **slots; /* each on its own: the index borrows names */
    uint32_t count;      /* those up to the highest that was stored */
    uint32_t oldest, newest;
    struct rt_index names;
    bool keeps_past;
    struct past *past, **past_end; /* in the sequence of orders */
};

struct rt_cache *rt_cache_new(bool keeps_past)
{
    struct rt_cache *c = calloc(1, sizeof *c);
    if (c) {
        c->oldest = c->newest = RT_SLOT_NONE;
        c->keeps_past = keeps_past;
        c->past_end = &c->past;
    }
    return c;
}

void rt_cache_free(struct rt_cache *c)
{
    if (!c)
        return;
    rt_cache_forget_past(c, UINT64_MAX);
    for (uint32_t i = 0; i < c->count; i++)
        free(c->slots[i]);
    free(c->slots);
    rt_index_release(&c->names);
    free(c);
}

const struct rt_tensor *rt_cache_at(const struct rt_cache *c, uint32_t slot)
{
    return slot < c->count && c->slots[slot]->used ? &c->slots[slot]->tensor : NULL;
}

/* The index holds a slot's number, one more: 0 is none. */
uint32_t rt_cache_find(const struct rt_cache *c, const char *name)
{
    const uintptr_t found = (uintptr_t)rt_index_find(&c->names, 0, name);
    return found ? (uint32_t)(found - 1) : RT_SLOT_NONE;
}

static int grow_to(struct rt_cache *c, uint32_t slot)
{
    if (slot < c->count)
        return 0;
    if (slot >= RT_CACHE_CAPACITY_MAX)
        return -EPROTO;
    struct slot **grown = realloc(c->slots, ((size_t)slot + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    c->slots = grown;
    while (c->count <= slot) {
        struct slot *s = calloc(1, sizeof *s);
        if (!s)
            return -ENOMEM;
        c->slots[c->count++] = s;
    }
    return 0;
}

/* ---- in the order of use ---- */

static void unlink_slot(struct rt_cache *c, const struct slot *s)
{
    *(s->older == RT_SLOT_NONE ? &c->oldest : &c->slots[s->older]->newer) = s->newer;
    *(s->newer == RT_SLOT_NONE ? &c->newest : &c->slots[s->newer]->older) = s->older;
}

static void link_newest(struct rt_cache *c, uint32_t slot)
{
    struct slot *s = c->slots[slot];
    s->older = c->newest;
    s->newer = RT_SLOT_NONE;
    *(s->older == RT_SLOT_NONE ? &c->oldest : &c->slots[s->older]->newer) = slot;
    c->newest = slot;
}

void rt_cache_touch(struct rt_cache *c, uint32_t slot)
{
    unlink_slot(c, c->slots[slot]);
    link_newest(c, slot);
}

uint32_t rt_cache_choose(const struct rt_cache *c, uint32_t capacity)
{
    /* slots are filled in their order, and never emptied */
    return c->count < capacity ? c->count : c->oldest;
}

/* ---- what is there, what was ---- */

static int keep_past(struct rt_cache *c, uint32_t slot, uint64_t until)
{
    struct past *p = malloc(sizeof *p);
    if (!p)
        return -ENOMEM;
    *p = (struct past){NULL, c->slots[slot]->tensor, slot, c->slots[slot]->since, until};
    *c->past_end = p;
    c->past_end = &p->next;
    return 0;
}

int rt_cache_store(struct rt_cache *c, uint32_t slot, const struct rt_tensor *tensor,
                   uint64_t order)
{
    const uint32_t found = rt_cache_find(c, tensor->name);
    if (found != RT_SLOT_NONE && found != slot)
        return -EPROTO;
    int error = grow_to(c, slot);
    if (error)
        return error;
    struct slot *s = c->slots[slot];
    if (s->used && c->keeps_past)
        error = keep_past(c, slot, order);
    if (error)
        return error;
    if (s->used) {
        rt_index_remove(&c->names, 0, s->tensor.name);
        unlink_slot(c, s);
    }
    s->tensor = *tensor;
    s->since = order;
    s->used = rt_index_add(&c->names, 0, s->tensor.name, (void *)((uintptr_t)slot + 1)) == 0;
    if (!s->used)
        return -ENOMEM;
    link_newest(c, slot);
    return 0;
}

const struct rt_tensor *rt_cache_at_order(const struct rt_cache *c, uint32_t slot, uint64_t order)
{
    const struct rt_tensor *now = rt_cache_at(c, slot);
    if (!now || c->slots[slot]->since <= order)
        return now;
    for (const struct past *p = c->past; p; p = p->next)
        if (p->slot == slot && p->since <= order && order < p->until)
            return &p->tensor;
    return NULL;
}

void rt_cache_forget_past(struct rt_cache *c, uint64_t order)
{
    while (c->past && c->past->until <= order) {
        struct past *p = c->past;
        c->past = p->next;
        free(p);
    }
    if (!c->past)
        c->past_end = &c->past;
}
