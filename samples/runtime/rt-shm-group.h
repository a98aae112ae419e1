/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-shm-group.h - a transport through shared memory for some ranks of one machine, made by each
 * for itself.
 *
 * They find the region by its name in /dev/shm, which goes when all have come; a rank may have left
 * by then, and the others find what it has said. Where one never comes the name stays, until
 * rt_shm_group_abandon. Threads: rt_shm_group_abandon from any, the rest as a transport. Errors:
 * NULL with errno set, EPROTO the region of this name is for another number of ranks.
 */
#ifndef RT_SHM_GROUP_H
#define RT_SHM_GROUP_H

#include "rt-coll.h"

/* `name` is theirs alone, and names a file. */
struct rt_transport *rt_shm_group_new(const char *name, int rank, int size);
void rt_shm_group_free(struct rt_transport *t); /* NULL-safe */
/* Some rank has died: nobody will come any more. Removes the names of this process's groups. */
void rt_shm_group_abandon(void);

#endif
