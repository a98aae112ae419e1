/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-alloc.h - memory that the other ranks of a host can reach, so that nothing is copied for them.
 *
 * Model: a process has one heap: a file without a path (rt-memory-file.h), mapped as a whole.
 * rt_alloc takes from it, rt_free gives the pages back to the system. Another process maps the file
 * once, and finds everything in it by its offset. Who can't works as with any other memory.
 *
 * Memory: where there can be no heap, or it is full (64 GiB), rt_alloc gives ordinary memory:
 * slower for ranks, but no error. What fork left to a child is still the parent's memory, shared
 * with it; the child's rt_alloc begins a heap of its own, and freeing what isn't in it does
 * nothing.
 *
 * Threads: any.
 */
#ifndef RT_ALLOC_H
#define RT_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "rt-memory-file.h"

/* Aligned to a page, from 2 MiB on to 2 MiB. NULL: no memory. */
void *rt_alloc(uint64_t bytes);
/* NULL-safe. No rank may still be at work on it. */
void rt_free(void *p);

/* ---- for transports ---- */

/* Do `bytes` from `p` on lie in this process's heap? Then where. */
bool rt_heap_find(const void *p, uint64_t bytes, struct rt_memory_name *ret_name,
                  uint64_t *ret_offset);

/* Maps another process's heap, or finds this one's. NULL: can't. Any offset that lies in something
 * allocated may be used, also such as came later. */
char *rt_heap_map(const struct rt_memory_name *name);
/* NULL-safe. */
void rt_heap_unmap(char *base);

#endif
