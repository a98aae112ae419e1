/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-member.h - a rank's side of the agreement about what to work on: what it announces, and how it
 * reads orders.
 *
 * Model: a tensor that the response cache holds as this rank has it is announced by a bit, else in
 * full. An announcement says how many orders this rank had read, for rank 0 to know what the bits
 * mean. No communication, no threads: the caller's.
 */
#ifndef RT_MEMBER_H
#define RT_MEMBER_H

#include "rt-cache.h"

struct rt_member;

struct rt_member *rt_member_new(void);    /* NULL: no memory */
void rt_member_free(struct rt_member *m); /* NULL-safe */

/* Notes that this rank has it ready. -ENOMEM. */
int rt_member_announce(struct rt_member *m, const struct rt_tensor *tensor);
/* Appends what was noted since, if anything, to a message: one for rt_coordinator_hear. */
void rt_member_put(struct rt_member *m, struct rt_bytes *to);
/* Reads the next order, in the sequence rank 0 gave them: all its tensors are told in full then.
 * Nothing is noted meanwhile that wasn't put. -EPROTO, -ENOMEM. */
int rt_member_get_order(struct rt_member *m, struct rt_reader *from, struct rt_order *ret);

/* The announcement's form: this head, the bits by slot, the tensors. */
struct rt_announcement {
    uint64_t orders_read;
    uint32_t bit_bytes, tensors;
};

#endif
