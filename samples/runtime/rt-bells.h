/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-bells.h - wakes the background thread of a rank: for its own callers, and for ranks of its
 * host that have sent it something.
 *
 * Model: each rank has a bell, a number that ringing increases, in memory that others reach
 * (rt-alloc.h). Rank 0 reaches those of its host, and these reach that of rank 0: all messages go
 * from or to it. Where a bell can't be reached, on another host or otherwise, ringing it does
 * nothing, and that rank must look by itself now and then: rt_bells_are_whole tells it so.
 *
 * To miss nothing, read the number, look for what there is to do, and only then wait.
 *
 * Threads: ring from any, the rest by the background thread. Errors: negative errno.
 */
#ifndef RT_BELLS_H
#define RT_BELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "rt-fabric.h"
#include "rt-topology.h"

struct rt_bells;

/* Collective; hosts[r] is that of rank r. NULL: *ret_error. */
struct rt_bells *rt_bells_new(struct rt_fabric *f, const char (*hosts)[RT_HOST_MAX],
                              int *ret_error);
/* NULL-safe. Other ranks may still ring: what they write to is kept, for the next rt_bells_new. */
void rt_bells_free(struct rt_bells *b);

/* Whoever sends to this rank rings. */
bool rt_bells_are_whole(const struct rt_bells *b);

/* What `rank` waits for may have come; costs no system call while it is awake. */
void rt_bells_ring(struct rt_bells *b, int rank);
uint32_t rt_bells_number(const struct rt_bells *b);
/* Sleeps until the number isn't `number` any more, or so long; RT_BELLS_FOREVER. It may also return
 * for nothing. */
void rt_bells_wait(struct rt_bells *b, uint32_t number, uint64_t at_most_ns);

#define RT_BELLS_FOREVER UINT64_MAX

#endif
