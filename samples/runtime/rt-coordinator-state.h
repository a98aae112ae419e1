/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-coordinator-state.h - what the files of the coordinator share.
 */
#ifndef RT_COORDINATOR_STATE_H
#define RT_COORDINATOR_STATE_H

#include "rt-cache.h"
#include "rt-coordinator.h"
#include "rt-index.h"
#include "rt-waiting.h"

struct rt_coordinator {
    int size;     /* of the job */
    int members;  /* ranks of this set */
    bool *member; /* by rank */
    uint64_t fusion_threshold;
    struct rt_cache *cache;
    uint32_t cache_capacity;
    uint64_t orders;           /* given */
    uint64_t *orders_read;     /* by rank, as it said last */
    struct rt_index waiting;   /* struct rt_waiting, those not ready */
    struct rt_waiting **ready; /* in the sequence of their orders, where `sorted` */
    unsigned ready_count, ready_room;
    bool sorted;
    uint64_t sequence; /* of the next that becomes ready */
    uint64_t now_ns;
    bool *leaving; /* by rank */
    int leaving_count;
    bool *joined; /* by rank */
    bool ended;   /* the last order was given */
};

/* Takes it from those that wait: it comes out in an order. -ENOMEM. */
int rt_coordinator_make_ready(struct rt_coordinator *c, struct rt_waiting *w);
/* Of one that fails: why. */
void rt_coordinator_say_why(const struct rt_coordinator *c, const struct rt_waiting *w,
                            struct rt_bytes *text);
/* How long ago it was first announced. */
double rt_coordinator_age_s(const struct rt_coordinator *c, const struct rt_waiting *w);

#endif
