/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-cache.h - tensors that ranks have agreed about, in numbered slots: afterwards a number says
 * what a description said.
 *
 * Model: rank 0 chooses the slot, the least recently used one where all are full, and its orders
 * tell the others; so all hold the same, each as far as it has read orders, which are counted from
 * 1 on. What rank 0 has replaced it keeps in mind until every rank has read the order that did it:
 * a rank's number means what that rank had read.
 */
#ifndef RT_CACHE_H
#define RT_CACHE_H

#include "rt-message.h"

#define RT_CACHE_CAPACITY_MAX 1000000

struct rt_cache;

/* NULL: no memory. */
struct rt_cache *rt_cache_new(bool keeps_past);
void rt_cache_free(struct rt_cache *c); /* NULL-safe */

/* NULL: the slot is empty. Valid until something is stored. */
const struct rt_tensor *rt_cache_at(const struct rt_cache *c, uint32_t slot);
/* The slot of the tensor of that name, whatever else is said of it; RT_SLOT_NONE. */
uint32_t rt_cache_find(const struct rt_cache *c, const char *name);
/* The order of that number puts it there, in place of what was there; it is then the last used.
 * -ENOMEM, -EPROTO: no such slot, or the name is in another one. */
int rt_cache_store(struct rt_cache *c, uint32_t slot, const struct rt_tensor *tensor,
                   uint64_t order);

/* ---- rank 0 ---- */

/* It is the last used. */
void rt_cache_touch(struct rt_cache *c, uint32_t slot);
/* Where to store a name that isn't there: an empty one of `capacity` slots, or the least recently
 * used; RT_SLOT_NONE where there are no slots. */
uint32_t rt_cache_choose(const struct rt_cache *c, uint32_t capacity);
/* What it held after the order of that number; NULL: nothing, or it is forgotten. */
const struct rt_tensor *rt_cache_at_order(const struct rt_cache *c, uint32_t slot, uint64_t order);
/* All ranks have read the order of that number. */
void rt_cache_forget_past(struct rt_cache *c, uint64_t order);

#endif
