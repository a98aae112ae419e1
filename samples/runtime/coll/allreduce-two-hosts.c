/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce over two hosts, piece by piece: while some pieces are between the hosts, others are
 * reduced or gathered inside them, so that the link never waits for that.
 *
 * Cost: with m ranks a host, S b between the hosts, for all ranks of one together, plus that of one
 * piece inside: a reduce-scatter and an allgather over m. Between two hosts an allreduce is an
 * exchange: as few bytes as there can be, in one step.
 *
 * Bits: depend on the layout and on the count.
 */
#include <errno.h>

#include "rt-step.h"
#include "rt-two-hosts.h"

/* Of a rank in a piece, at most; half of it at least: a message of that length MPI knows as sent
 * only when it is, so that a rank may then go and wait for its neighbours. */
#define PART_BYTES (512u << 10)
#define DEPTH      4 /* pieces under way at once */

struct work {
    struct rt_transport *all, *inside;
    int partner, n; /* over there; all ranks */
    const void *in;
    void *out;
    char *received; /* DEPTH parts */
    uint64_t count, part_room;
    int pieces; /* fewer than 2^31: 2^49 bytes */
    enum rt_type type;
    enum rt_op op, partial;
};

struct piece {
    uint64_t first, count, mine_first, mine; /* elements */
};

static struct piece piece_at(const struct work *w, int k)
{
    struct piece p = {.first = rt_part_first(w->count, w->pieces, k),
                      .count = rt_part_count(w->count, w->pieces, k)};
    p.mine_first = p.first + rt_part_first(p.count, w->inside->size, w->inside->rank);
    p.mine = rt_part_count(p.count, w->inside->size, w->inside->rank);
    return p;
}

static char *room_of(const struct work *w, int k)
{
    return w->received + (uint64_t)(k % DEPTH) * w->part_room;
}

/* What this host has of piece `k` sets out, and that of the other is awaited. */
static int begin(const struct work *w, int k, struct rt_request requests[2])
{
    const struct piece p = piece_at(w, k);
    const uint64_t bytes = p.mine * rt_type_bytes(w->type);
    void *part = rt_at_mutable(w->out, p.mine_first, w->type);
    const void *in =
        rt_average_begin(rt_at_mutable(w->out, p.first, w->type), rt_at(w->in, p.first, w->type),
                         p.count, w->type, w->op, w->n);
    int error = rt_reduce_scatter_ring(w->inside, in, part, p.count, w->type, w->partial);
    if (!error)
        error = w->all->ops->recv(w->all, room_of(w, k), bytes, w->partner, &requests[0]);
    if (!error)
        error = w->all->ops->send(w->all, part, bytes, w->partner, &requests[1]);
    return error;
}

static int end(const struct work *w, int k, struct rt_request requests[2])
{
    const struct piece p = piece_at(w, k);
    void *part = rt_at_mutable(w->out, p.mine_first, w->type);
    int error = w->all->ops->wait(w->all, requests, 2);
    if (error)
        return error;
    rt_reduce(part, part, room_of(w, k), p.mine, w->type, w->partial);
    rt_average_end(part, p.mine, w->type, w->op, w->n);
    return rt_allgather_ring(w->inside, part, rt_at_mutable(w->out, p.first, w->type), p.count,
                             w->type);
}

bool rt_two_hosts_fits(const struct rt_hosts *hosts, uint64_t bytes)
{
    const struct rt_layout *l = hosts->layout;
    return l->host_count == 2 && hosts->inside && hosts->all->block_bytes >= PART_BYTES &&
           rt_layout_local_size(l, 0) == rt_layout_local_size(l, 1) &&
           bytes > (uint64_t)rt_layout_local_size(l, 0) * PART_BYTES;
}

int rt_allreduce_two_hosts(const struct rt_hosts *hosts, const void *in, void *out, uint64_t count,
                           enum rt_type type, enum rt_op op)
{
    const struct rt_layout *l = hosts->layout;
    const int rank = hosts->all->rank, local = l->local[rank], m = hosts->inside->size;
    const uint64_t most = (uint64_t)m * (PART_BYTES / rt_type_bytes(type));
    struct work w = {.all = hosts->all,
                     .inside = hosts->inside,
                     .partner = l->ranks[l->first[1 - l->host[rank]] + local],
                     .n = hosts->all->size,
                     .in = in,
                     .out = out,
                     .count = count,
                     .pieces = (int)((count + most - 1) / most),
                     .part_room = PART_BYTES,
                     .type = type,
                     .op = op,
                     .partial = rt_partial_op(type, op)};
    struct rt_request requests[DEPTH][2];
    w.received = rt_scratch(w.all, RT_SCRATCH_A, DEPTH * w.part_room);
    int error = w.received ? 0 : -ENOMEM;

    /* A piece begins when the one DEPTH before it has ended. */
    for (int k = 0; k < w.pieces + DEPTH - 1 && !error; k++) {
        if (k < w.pieces)
            error = begin(&w, k, requests[k % DEPTH]);
        int oldest = k - (DEPTH - 1);
        if (oldest >= 0 && !error)
            error = end(&w, oldest, requests[oldest % DEPTH]);
    }
    return error;
}
