/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-shm-inside.h - what the files of the shared-memory transport share; of no use to others.
 */
#ifndef RT_SHM_INSIDE_H
#define RT_SHM_INSIDE_H

#include "rt-transport-shm.h"

/* What a rank says of its buffers; its `number` says how far it is. Only the rank writes it. */
struct rt_shm_post {
    uint64_t number; /* atomic, grows */
    uint64_t in, out, bytes;
    struct rt_memory_name heap; /* 0: the buffers are in none */
    uint8_t reaches;          /* this rank has mapped all heaps that were new */
    char spare[7];
};
_Static_assert(sizeof(struct rt_shm_post) == 64, "a line");

struct rt_shm_post *rt_shm_post_of(const struct rt_transport_shm *t, int rank);
/* Publishes what this rank has written in its post, and wakes who sleeps. */
void rt_shm_advance_post(struct rt_transport_shm *t, uint64_t number);
/* Waits until every peer's number is at least this one. 0 or as rt_transport_ops.wait. */
int rt_shm_await_posts(struct rt_transport_shm *t, uint64_t number);

int rt_shm_meet(struct rt_transport *t, const void *in, void *out, uint64_t bytes,
                struct rt_reach *ret);
int rt_shm_part(struct rt_transport *t);

#endif
