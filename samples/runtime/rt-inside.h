/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-inside.h - collectives among the ranks of one host, by NCCL.
 *
 * Every call returns when the result is there. Ranks are local ranks of some group. `in` may equal
 * `out`, or its place in it. Errors: -EIO and the message.
 */
#ifndef RT_INSIDE_H
#define RT_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rt-types.h"

#define RT_INSIDE_ID_BYTES 128

struct rt_inside_id {
    char bytes[RT_INSIDE_ID_BYTES];
};

struct rt_inside;

/* One rank makes the id and gives it to the others of its host. */
int rt_inside_make_id(struct rt_inside_id *ret);
/* It uses the device of that number, in all groups the same; where there are fewer, they begin
 * anew. Returns NULL on failure; rt_inside_error says why. */
struct rt_inside *rt_inside_new(const struct rt_inside_id *id, int rank, int size, int device);
void rt_inside_free(struct rt_inside *inside);
const char *rt_inside_error(void);

/* Memory that this host's ranks reach without a copy, if NCCL is the stand-in; else ordinary. NULL:
 * none. It outlives every rt_inside. */
void *rt_inside_alloc(uint64_t bytes);
/* NULL-safe. */
void rt_inside_free_memory(void *p);

/* The calls below take only types that NCCL has: not int16, uint16 and bool. */
bool rt_inside_has(enum rt_type type);

/* `in` has size * part_count elements, `out` gets this rank's part. */
int rt_inside_reduce_scatter(struct rt_inside *inside, const void *in, void *out,
                             uint64_t part_count, enum rt_type type, enum rt_op op);
int rt_inside_allgather(struct rt_inside *inside, const void *in, void *out, uint64_t part_count,
                        enum rt_type type);
int rt_inside_allreduce(struct rt_inside *inside, const void *in, void *out, uint64_t count,
                        enum rt_type type, enum rt_op op);
/* Parts by rank, one after the other, of any lengths; they don't overlap. */
int rt_inside_alltoall(struct rt_inside *inside, const void *in, const uint64_t *send_counts,
                       void *out, const uint64_t *recv_counts, int size, enum rt_type type);
int rt_inside_broadcast(struct rt_inside *inside, void *data, uint64_t count, enum rt_type type,
                        int root);

#endif
