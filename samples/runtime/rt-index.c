/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Open addressing, at most half full; what follows a removed entry moves up. */

static uint32_t hash_of(int set, const char *name)
{
    uint32_t hash = 2166136261u ^ (uint32_t)set; /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash ^ hash >> 15;
}

void rt_index_release(struct rt_index *index)
{
    free(index->entries);
    *index = (struct rt_index){0};
}

/* Where it is, or the free place where it would be. */
static uint32_t place_of(const struct rt_index *index, uint32_t hash, int set, const char *name)
{
    uint32_t i = hash & (index->room - 1);
    for (;; i = (i + 1) & (index->room - 1)) {
        const struct rt_index_entry *e = &index->entries[i];
        if (!e->name || (e->hash == hash && e->set == set && strcmp(e->name, name) == 0))
            return i;
    }
}

void *rt_index_find(const struct rt_index *index, int set, const char *name)
{
    return index->room > 0 ? index->entries[place_of(index, hash_of(set, name), set, name)].thing
                           : NULL;
}

static int grow(struct rt_index *index)
{
    struct rt_index larger = {.count = index->count, .room = index->room ? index->room * 2 : 16};
    larger.entries = calloc(larger.room, sizeof *larger.entries);
    if (!larger.entries)
        return -ENOMEM;
    for (uint32_t i = 0; i < index->room; i++) {
        const struct rt_index_entry *e = &index->entries[i];
        if (e->name)
            larger.entries[place_of(&larger, e->hash, e->set, e->name)] = *e;
    }
    free(index->entries);
    *index = larger;
    return 0;
}

int rt_index_add(struct rt_index *index, int set, const char *name, void *thing)
{
    int error = (index->count + 1) * 2 > index->room ? grow(index) : 0;
    if (error)
        return error;
    const uint32_t hash = hash_of(set, name);
    index->entries[place_of(index, hash, set, name)] =
        (struct rt_index_entry){name, thing, hash, set};
    index->count++;
    return 0;
}

void rt_index_remove(struct rt_index *index, int set, const char *name)
{
    if (index->room == 0)
        return;
    const uint32_t mask = index->room - 1;
    uint32_t hole = place_of(index, hash_of(set, name), set, name);
    if (!index->entries[hole].name)
        return;
    for (uint32_t i = (hole + 1) & mask; index->entries[i].name; i = (i + 1) & mask) {
        const uint32_t home = index->entries[i].hash & mask;
        if (((i - home) & mask) >=
            ((i - hole) & mask)) { /* found from its home only over the hole */
            index->entries[hole] = index->entries[i];
            hole = i;
        }
    }
    index->entries[hole] = (struct rt_index_entry){0};
    index->count--;
}

void *rt_index_next(const struct rt_index *index, uint32_t *at)
{
    while (*at < index->room) {
        const struct rt_index_entry *e = &index->entries[(*at)++];
        if (e->name)
            return e->thing;
    }
    return NULL;
}
