/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-wire.h - how a tensor that is to be reduced goes on the wire, and comes back: its type there,
 * and what scales do on either side of it.
 *
 * Model: compression makes 16 bits of float32 and float64 (no other type). Between pack and unpack
 * the numbers are of the type `type` and are reduced by `op`. Averages of floats of 16 or 8 bits are
 * sums there: what they would soon not hold, the sum of all ranks, is divided by a power of two
 * before, and the rest of the average is made after; each side rounds once, scales and all.
 * Threads: none of its own.
 */
#ifndef RT_WIRE_H
#define RT_WIRE_H

#include "rt-coll.h"
#include "rt-message.h"

struct rt_wire {
    enum rt_type type; /* on the wire */
    enum rt_op op;     /* what is left for the reduction to do */
    enum rt_type own_type;
    double before;         /* times this */
    double after, divisor; /* times this, by that */
};

/* The type on the wire alone. */
enum rt_type rt_wire_type(const struct rt_tensor *tensor);
struct rt_wire rt_wire_of(const struct rt_tensor *tensor, int ranks);

/* `to` has numbers of the wire's type, `in` the tensor's; they may be one where those are the same.
 */
void rt_wire_pack(const struct rt_wire *w, void *to, const void *in, uint64_t count);
void rt_wire_unpack(const struct rt_wire *w, void *out, const void *from, uint64_t count);
/* Packing changes nothing: the numbers could be reduced where they are. */
bool rt_wire_is_plain(const struct rt_wire *w);

#endif
