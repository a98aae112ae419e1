/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-shm-group.h - a transport through shared memory for ranks of one machine that another
 * transport connects.
 *
 * The region is a file without a path (rt-memory-file.h), of the rank with place 0: nothing of it
 * stays, whoever is killed whenever, and it takes no room in /dev/shm. Threads: as a transport.
 */
#ifndef RT_SHM_GROUP_H
#define RT_SHM_GROUP_H

#include "rt-coll.h"

/* All ranks of `by` together; places are the same. `by` isn't needed any longer. NULL with errno
 * set: EOPNOTSUPP, on all ranks alike, some rank can't reach the region, or there is none; else
 * what `by` has met. */
struct rt_transport *rt_shm_group_new(struct rt_transport *by);
void rt_shm_group_free(struct rt_transport *t); /* NULL-safe */

#endif
