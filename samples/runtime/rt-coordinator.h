/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-coordinator.h - rank 0's memory of which ranks have which tensors ready, and its decisions.
 *
 * Model: announcements go in, one per rank and tensor; a tensor that all ranks have announced comes
 * out in an order: of those that are complete the highest priority first (what any rank gave it),
 * then in the sequence in which they became complete. Where ranks disagree about it (kind, type,
 * shape, group, operation, scales, root) it comes out as an error that names what each rank said. A
 * rank that has joined counts as ready for everything, but it is no root; the order to join comes
 * when all have, and names the last as root. Once a rank has announced its shutdown, tensors that
 * it hasn't announced fail; when all have, an order of kind RT_SHUTDOWN is the last. Tensors that
 * wait for ranks are known with their age, and can be given up. No communication, no threads, no
 * clock: the caller's.
 *
 * Each process set has a coordinator of its own: "all ranks" are the set's, by their numbers in the
 * job. That of all the job's ranks alone hears of shutdown and gives the last order; to the others
 * it is told with rt_coordinator_leave.
 */
#ifndef RT_COORDINATOR_H
#define RT_COORDINATOR_H

#include <stdbool.h>

#include "rt-message.h"

struct rt_coordinator;

/* The cache keeps `cache_capacity` tensors. NULL: no memory. */
struct rt_coordinator *rt_coordinator_new(int size, uint64_t fusion_threshold,
                                          uint32_t cache_capacity);
/* Of some ranks of the job, which has `size`. */
struct rt_coordinator *rt_coordinator_new_of(const int *ranks, int n, int size,
                                             uint64_t fusion_threshold, uint32_t cache_capacity);
void rt_coordinator_free(struct rt_coordinator *c); /* NULL-safe */

/* `rank` has `tensor` ready. -ENOMEM; -EPROTO: that rank has announced it already. */
int rt_coordinator_announce(struct rt_coordinator *c, int rank, const struct rt_tensor *tensor);

/* Reads what that rank put with rt_member_put. -ENOMEM, -EPROTO. */
int rt_coordinator_hear(struct rt_coordinator *c, int rank, struct rt_reader *from);

/* `rank` has announced its shutdown. */
bool rt_coordinator_has_left(const struct rt_coordinator *c, int rank);
/* That of another set says so; again, or of a rank that isn't in this set: nothing happens. */
int rt_coordinator_leave(struct rt_coordinator *c, int rank);
/* The set ends: what waits comes out as errors. -ENOMEM. */
int rt_coordinator_close(struct rt_coordinator *c);

/* What is announced from now on is so old then. */
void rt_coordinator_set_time(struct rt_coordinator *c, uint64_t now_ns);
/* A line for each tensor that some ranks have waited for so long, the oldest first: its name, for
 * how long, and for which ranks. Returns how many. */
unsigned rt_coordinator_say_stalled(const struct rt_coordinator *c, uint64_t after_ns,
                                    struct rt_bytes *text);
/* They come out as errors, for the ranks that have announced them. -ENOMEM. */
int rt_coordinator_give_up(struct rt_coordinator *c, uint64_t after_ns);

/* Which of two coordinators' next orders goes first: the higher priority, then what has waited
 * longer. NULL, or one that has none, comes last; NULL: neither has any. */
struct rt_coordinator *rt_coordinator_first_of(struct rt_coordinator *a, struct rt_coordinator *b);
/* 1 and the next order, which the caller clears; 0 none now; -ENOMEM. */
int rt_coordinator_next(struct rt_coordinator *c, struct rt_order *ret);

#endif
