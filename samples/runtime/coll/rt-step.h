/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-step.h - the step that algorithms of rt_coll are made of: one message out, one in.
 *
 * Within rt_coll only. A step returns when its own two messages are complete. A count of 0 sends,
 * or receives, nothing; both sides know it. No message may be longer than the transport's block.
 */
#ifndef RT_STEP_H
#define RT_STEP_H

#include "rt-coll.h"

/* Which scratch: two for accumulators, one for steps that can't receive and reduce at once, one for
 * what comes while those are in use. */
enum { RT_SCRATCH_A, RT_SCRATCH_B, RT_SCRATCH_RECEIVE, RT_SCRATCH_PIECES };

static inline const char *rt_at(const void *data, uint64_t element, enum rt_type type)
{
    return (const char *)data + element * rt_type_bytes(type);
}
static inline char *rt_at_mutable(void *data, uint64_t element, enum rt_type type)
{
    return (char *)data + element * rt_type_bytes(type);
}
static inline uint64_t rt_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t rt_block_count(const struct rt_transport *t, enum rt_type type)
{
    return t->block_bytes / rt_type_bytes(type);
}

/* At least `bytes` of scratch number `which`; what it held is lost. NULL: no memory. */
void *rt_scratch(struct rt_transport *t, int which, uint64_t bytes);

/* `to` or `from` may be -1: not in this step. */
int rt_exchange(struct rt_transport *t, int to, const void *send, uint64_t send_count, int from,
                void *recv, uint64_t recv_count, enum rt_type type);

/* As above, and out[i] = op(operand[i], received[i]). `out` and `send` don't overlap. */
int rt_exchange_reduce(struct rt_transport *t, int to, const void *send, uint64_t send_count,
                       int from, void *out, const void *operand, uint64_t recv_count,
                       enum rt_type type, enum rt_op op);

/* Copies unless in = out. */
void rt_copy(void *out, const void *in, uint64_t count, enum rt_type type);

#endif
