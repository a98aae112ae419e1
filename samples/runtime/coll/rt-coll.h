/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-coll.h - rt_coll: synchronous collective algorithms over buffers, over any transport.
 *
 * Model: a transport connects `size` ranks. Every rank calls the same function with the same count,
 * type, operation and root; when it returns 0, this rank's result is in place and its input may be
 * reused (others may still be at work). One algorithm is one file, whose head states its cost.
 * Costs are in: a, time of a message whatever its size; b, time per byte; g, time to reduce a byte;
 * n ranks; S bytes of the whole buffer.
 *
 * Buffers: `in` may equal `out` where a function says so, else they don't overlap. Counts are in
 * elements, may be 0 (nothing is sent then), need not divide by the number of ranks, and may pass
 * 2^32. Parts of a buffer go to ranks by rt_part_first.
 *
 * Threads: one call at a time on one transport; different transports are independent.
 *
 * Errors: 0 or a negative errno: -ECONNRESET a peer died or left, -ECANCELED aborted, -EMSGSIZE
 * ranks disagree about a message's size, -EINVAL, -ENOMEM, -EIO. After an error the contents of
 * `out` are undefined and the transport can only be released.
 *
 * Arithmetic: every step rounds to the element type, floats to nearest, ties to even. Integers
 * wrap. RT_AVG divides the sum once, at the end, toward zero for integers; float16 and float8,
 * whose sums are soon infinite, are first divided by a power of two, at least the number of ranks,
 * so that an average is as finite as what it is of (numbers near the smallest lose bits by that). A
 * NaN makes sum, product, max and min NaN; -0 is below 0. Of bool sum and max are "or"; product,
 * min and average (toward zero) "and"; any byte but 0 is true. All ranks get the same bits (of a
 * NaN: a NaN).
 */
#ifndef RT_COLL_H
#define RT_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rt-cost.h"
#include "rt-layout.h"
#include "rt-types.h"

/* First element of part `i` of `count` elements cut into `n` parts whose sizes differ by at most
 * one, the longer ones first; i = n gives `count`. */
static inline uint64_t rt_part_first(uint64_t count, int n, int i)
{
    uint64_t each = count / (uint64_t)n, longer = count % (uint64_t)n;
    return each * (uint64_t)i + ((uint64_t)i < longer ? (uint64_t)i : longer);
}
static inline uint64_t rt_part_count(uint64_t count, int n, int i)
{
    return rt_part_first(count, n, i + 1) - rt_part_first(count, n, i);
}

/* ---- transport: what carries messages ---- */

/* A posted send or receive. Storage is the poster's and must stay until it was waited for; the
 * words are the transport's. */
struct rt_request {
    uint64_t word[10];
};

struct rt_transport;

/* Where this process finds a rank's buffers. */
struct rt_reach {
    const void *in;
    void *out;
};

#define RT_DIRECT_RANKS_MAX 64 /* of more ranks each would wait for too many */

struct rt_transport_ops {
    /* Post a message to, or from, `peer` (not itself), of 1 to block_bytes bytes. Messages of a
     * pair match in the order they were posted; both sides give the same number of bytes. */
    int (*send)(struct rt_transport *t, const void *data, uint64_t bytes, int peer,
                struct rt_request *ret);
    int (*recv)(struct rt_transport *t, void *data, uint64_t bytes, int peer,
                struct rt_request *ret);
    /* Receive and reduce at once: out[i] = op(operand[i], incoming[i]); operand may be out. NULL
     * where a transport can't: then rt_coll receives into scratch and reduces afterwards. */
    int (*recv_reduce)(struct rt_transport *t, void *out, const void *operand, uint64_t count,
                       enum rt_type type, enum rt_op op, int peer, struct rt_request *ret);
    /* Wait until all are complete. All progress meanwhile, in any order. */
    int (*wait)(struct rt_transport *t, struct rt_request *requests, unsigned n);
    /* NULL where ranks never reach each other's memory. Every rank calls it with its own `in` and
     * `out`, each of `bytes`, with no message under way; at most
     * RT_DIRECT_RANKS_MAX ranks. 1: all ranks' buffers are in reach, as
     * ret[rank] says, until `part`, which every rank then calls; 0: not, on any rank. */
    int (*meet)(struct rt_transport *t, const void *in, void *out, uint64_t bytes,
                struct rt_reach *ret);
    /* Returns when all ranks have called it. */
    int (*part)(struct rt_transport *t);
};

#define RT_SCRATCH_COUNT 4

/* First member of every transport. `scratch` belongs to rt_coll; whoever releases a transport calls
 * rt_transport_release first. */
struct rt_transport {
    const struct rt_transport_ops *ops;
    int rank, size;
    uint64_t
        block_bytes; /* longest message, and what one step of an algorithm works on: a multiple of
                        64. Small where staying in cache counts, large where a message costs. */
    uint64_t at_once_bytes; /* longest message that sets out without a word from the peer; 0: any */
    struct rt_scratch {
        void *data;
        uint64_t bytes;
    } scratch[RT_SCRATCH_COUNT];
};

void rt_transport_release(struct rt_transport *t);

/* ---- allreduce: in and out have `count` elements; in may equal out ---- */

typedef int rt_allreduce_fn(struct rt_transport *t, const void *in, void *out, uint64_t count,
                            enum rt_type type, enum rt_op op);

/* Picks one of the others by size and number of ranks: what to call when in doubt. */
rt_allreduce_fn rt_allreduce;
rt_allreduce_fn rt_allreduce_ring;
rt_allreduce_fn rt_allreduce_recursive_doubling;
rt_allreduce_fn rt_allreduce_halving_doubling;
rt_allreduce_fn rt_allreduce_tree;
rt_allreduce_fn rt_allreduce_double_tree;
rt_allreduce_fn rt_allreduce_flat;
/* Where ranks reach each other's buffers (rt-alloc.h), else one of the others. */
rt_allreduce_fn rt_allreduce_direct;

/* What rt_allreduce takes for `bytes` of buffer. */
rt_allreduce_fn *rt_allreduce_choice(int size, uint64_t bytes);

struct rt_algorithm {
    const char *name;
    rt_allreduce_fn *fn;
    rt_cost_fn *cost; /* NULL: "auto" */
    bool same_bits;   /* an element's bits don't depend on what else is in the buffer, on its place
                         there or on the transport */
};
/* From 0 on; NULL past the last. The first is "auto". */
const struct rt_algorithm *rt_algorithm_at(unsigned i);
/* By name: "auto", "ring", "recursive-doubling", "halving-doubling" (or "rabenseifner"), "tree",
 * "double-tree", "flat"; NULL unknown. */
const struct rt_algorithm *rt_algorithm_find(const char *name);
rt_allreduce_fn *rt_allreduce_find(const char *name);
/* Their names, comma separated. */
const char *rt_allreduce_names(void);

/* ---- allreduce over hosts ---- */

struct rt_hosts {
    struct rt_transport *all;       /* every rank */
    struct rt_transport *inside;    /* those of this host, by layout->local; NULL: by `all` */
    const struct rt_layout *layout; /* of all->size ranks, the same on each */
};

/* Reduce-scatter inside the host, allreduce of the parts between hosts by `across`, allgather
 * inside. */
int rt_allreduce_hierarchical(const struct rt_hosts *hosts, rt_allreduce_fn *across, const void *in,
                              void *out, uint64_t count, enum rt_type type, enum rt_op op);
/* The same by rings alone, block by block. */
int rt_allreduce_two_level_ring(const struct rt_hosts *hosts, const void *in, void *out,
                                uint64_t count, enum rt_type type, enum rt_op op);
/* The middle of the first: of `data`, `count` elements, this rank's part by rt_layout_cut, which
 * has its host's sum, becomes that of all. RT_AVG can't be had in parts: rt_partial_op. */
int rt_allreduce_across(struct rt_transport *all, const struct rt_layout *layout, enum rt_cut cut,
                        rt_allreduce_fn *fn, void *data, uint64_t count, enum rt_type type,
                        enum rt_op op);

/* Adasum of floats (allreduce-adasum.c): `n` tensors of counts[i] elements lie one after the other
 * in `in` and `out`, each is reduced by itself. in may equal out. -EINVAL: no floats. */
int rt_allreduce_adasum(struct rt_transport *t, const void *in, void *out, const uint64_t *counts,
                        unsigned n, enum rt_type type);

/* ---- the others ---- */

/* `in` has `count` elements; `out` gets the reduced part of this rank: rt_part_count(count, size,
 * rank) elements. `out` may be that part's place in `in`, the rest of which is then kept. */
int rt_reduce_scatter_ring(struct rt_transport *t, const void *in, void *out, uint64_t count,
                           enum rt_type type, enum rt_op op);

/* `in` is this rank's part of `count` elements; `out` gets all. `in` may be its place in `out`. */
int rt_allgather_ring(struct rt_transport *t, const void *in, void *out, uint64_t count,
                      enum rt_type type);

/* As above, with parts of any lengths: counts[r] elements of rank r, 0 too; all ranks give the same
 * `counts`. */
int rt_allgatherv_ring(struct rt_transport *t, const void *in, void *out, const uint64_t *counts,
                       enum rt_type type);

/* `in` is one part for each rank, by rank, of send_counts[r] elements; `out` gets a part from each,
 * by rank, of recv_counts[r]: what rank r gives for this one. They don't overlap. */
int rt_alltoallv_pairwise(struct rt_transport *t, const void *in, const uint64_t *send_counts,
                          void *out, const uint64_t *recv_counts, enum rt_type type);

/* `data` of `root` to all. rt_broadcast picks. */
typedef int rt_broadcast_fn(struct rt_transport *t, void *data, uint64_t count, enum rt_type type,
                            int root);
rt_broadcast_fn rt_broadcast;
rt_broadcast_fn rt_broadcast_binomial;
rt_broadcast_fn rt_broadcast_chain;
rt_broadcast_fn *rt_broadcast_choice(int size, uint64_t bytes);

/* `out` is written on `root` only and may equal `in`; elsewhere it may be NULL. */
int rt_reduce_binomial(struct rt_transport *t, const void *in, void *out, uint64_t count,
                       enum rt_type type, enum rt_op op, int root);

/* Returns when every rank has called it. */
int rt_barrier(struct rt_transport *t);

/* ---- kernels ---- */

/* out[i] = op(a[i], b[i]); out may be a or b. RT_AVG adds. */
void rt_reduce(void *out, const void *a, const void *b, uint64_t count, enum rt_type type,
               enum rt_op op);
/* out[i] = in[i] * factor, rounded once; integers are cut toward zero, and what doesn't fit them
 * becomes the nearest that does. out may be in. */
void rt_scale(void *out, const void *in, uint64_t count, enum rt_type type, double factor);
/* out[i] = in[i] * *scalar, as RT_PROD does it. out may be in. */
void rt_multiply(void *out, const void *in, uint64_t count, enum rt_type type, const void *scalar);

/* What a part of the ranks reduces by, where what they get is reduced further: an average adds. */
static inline enum rt_op rt_partial_op(enum rt_type type, enum rt_op op)
{
    return op != RT_AVG ? op : type == RT_BOOL ? RT_PROD : RT_SUM;
}

/* Around an average over n ranks that is made as RT_AVG or as rt_partial_op says; nothing where
 * `op` is not RT_AVG. The first returns what is to be reduced: `in`, or `out`, which may be
 * `in` and then has scaled values. The second turns what was reduced into the average. */
const void *rt_average_begin(void *out, const void *in, uint64_t count, enum rt_type type,
                             enum rt_op op, int n);
void rt_average_end(void *data, uint64_t count, enum rt_type type, enum rt_op op, int n);
/* The power of two that the first divides by, and the second multiplies by: 1 for types whose sums
 * are as finite as their averages. */
int rt_average_power(enum rt_type type, int n);

#endif
