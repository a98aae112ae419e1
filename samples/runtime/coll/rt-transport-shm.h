/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-transport-shm.h - a transport of rt_coll through shared memory, between processes or threads.
 *
 * Model: a region of rt_shm_bytes(size) bytes, zeroed, mapped by all ranks (each at its own
 * address); for every ordered pair a queue of slots lies in it. A waiting rank spins for some
 * microseconds, then sleeps in a futex; every 100 ms it looks whether the peers it waits for are
 * alive (pid and start time of the process, so a number used again is not taken for them). A rank
 * whose wait fails has left, as far as the others see, so that failure spreads. Buffers of rt_alloc
 * (rt-alloc.h) are reached directly by all (rt_transport_ops.meet).
 *
 * Memory: the region and the transport are the caller's. Pages are touched when first used.
 *
 * Threads: one rank is used by one thread at a time; rt_transport_shm_abort from any thread.
 */
#ifndef RT_TRANSPORT_SHM_H
#define RT_TRANSPORT_SHM_H

#include "rt-alloc.h"
#include "rt-coll.h"

/* Own counters towards one peer: messages posted and finished, so that they keep their order. */
struct rt_shm_pair {
    uint32_t sends_posted, sends_done;
    uint32_t recvs_posted, recvs_done;
    uint64_t sent, received; /* slots */
    uint64_t freed;          /* of those sent, known to be free again */
};

/* What is known of a rank's heap. */
struct rt_shm_heap {
    struct rt_memory_name name; /* the one that ranks have spoken about; 0: none yet */
    char *base;               /* NULL: some rank can't reach it */
};

struct rt_transport_shm {
    struct rt_transport base;
    void *region;
    struct rt_shm_pair *pairs; /* by peer */
    struct rt_shm_heap *heaps; /* by rank */
    struct rt_request *awaits; /* one for each peer */
    uint64_t meetings;         /* that this rank was in */
    uint64_t last_read;        /* what others must have come to before the next one */
    uint32_t is_crowded;       /* more ranks than processors */
    uint32_t aborted;          /* atomic */
};

uint64_t rt_shm_bytes(int size);

/* Take place `rank` in the region: -EBUSY if taken. Doesn't wait for the others. What could not be
 * made for want of memory may be released. */
int rt_transport_shm_init(struct rt_transport_shm *t, void *region, int rank, int size);
/* Leave: peers that still wait for this rank get -ECONNRESET. The region may be unmapped then. */
void rt_transport_shm_release(struct rt_transport_shm *t);
/* End this rank's waits, now and later, with -ECANCELED. */
void rt_transport_shm_abort(struct rt_transport_shm *t);
/* Peers that wait for this rank, now or later, get -ECONNRESET; all that is left is to release it. */
void rt_transport_shm_leave(struct rt_transport_shm *t);

/* Is the process that took place `rank` alive and not released? Places not yet taken count as
 * alive. */
int rt_shm_peer_alive(const struct rt_transport_shm *t, int rank);

#endif
