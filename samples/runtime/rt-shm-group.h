/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-shm-group.h - a transport through shared memory for some ranks of one machine, made by each
 * for itself.
 *
 * They find the region by its name in /dev/shm, which goes when all have come. Errors: NULL with
 * errno set.
 */
#ifndef RT_SHM_GROUP_H
#define RT_SHM_GROUP_H

#include "rt-coll.h"

/* `name` is theirs alone, and names a file. */
struct rt_transport *rt_shm_group_new(const char *name, int rank, int size);
void rt_shm_group_free(struct rt_transport *t); /* NULL-safe */

#endif
