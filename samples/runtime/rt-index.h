/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-index.h - finds things by set and name.
 *
 * Memory: names are borrowed from the things, and must stay while they are in. Starts zeroed.
 * Threads: one at a time.
 */
#ifndef RT_INDEX_H
#define RT_INDEX_H

#include <stdint.h>

struct rt_index {
    struct rt_index_entry {
        const char *name; /* NULL: none */
        void *thing;
        uint32_t hash;
        int32_t set;
    } * entries;
    uint32_t count, room; /* a power of two, or 0 */
};

void rt_index_release(struct rt_index *index);
void *rt_index_find(const struct rt_index *index, int set, const char *name); /* NULL: none */
/* There is none of that name. -ENOMEM. */
int rt_index_add(struct rt_index *index, int set, const char *name, void *thing);
void rt_index_remove(struct rt_index *index, int set, const char *name);
/* The next thing from *at on, which starts at 0; NULL at the end. Nothing is added or removed
 * meanwhile. */
void *rt_index_next(const struct rt_index *index, uint32_t *at);

#endif
