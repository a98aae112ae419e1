/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce over two hosts, piece by piece: while some pieces are between the hosts, others are
 * reduced or gathered inside them, so that the link never waits for that. The first and the last
 * pieces are short: nothing is on the link before the first is reduced, or after the last is there.
 *
 * Cost: with m ranks a host, a + S b between the hosts, for all ranks of one together, plus that of
 * one short piece inside: a reduce-scatter and an allgather over m, and the reduction of a part.
 * Between two hosts an allreduce is an exchange: as few bytes as there can be, in one step.
 *
 * Bits: depend on the layout and on the count.
 */
#include <errno.h>

#include "rt-cost.h"
#include "rt-step.h"
#include "rt-two-hosts.h"

/* Of a rank in a piece at most. */
#define PART_BYTES  ((uint64_t)240 << 10)
#define SHORT_BYTES RT_TWO_HOSTS_SHORT_BYTES
#define DEPTH       4 /* pieces under way at once */
/* A part goes as several messages where one would wait for the other host's word, which would come
 * behind all that is on its way from there. */
#define MESSAGES_MAX 4

double rt_cost_two_hosts(const struct rt_cost *inside, const struct rt_cost *across, int per_host,
                         double bytes)
{
    const double part = bytes / per_host < SHORT_BYTES ? bytes / per_host : SHORT_BYTES;
    const double share = (per_host - 1) * part;
    return across->a + bytes * across->b + part * across->g + 2 * (per_host - 1) * inside->a +
           2 * share * inside->b + share * inside->g;
}

struct piece {
    uint64_t first, count, mine_first, mine; /* elements */
    struct rt_request requests[2 * MESSAGES_MAX];
    unsigned n;
};

struct work {
    struct rt_transport *all;
    const struct rt_inside_way *inside;
    int partner, n, m, local; /* over there; all ranks; those of a host; this one's number there */
    const void *in;
    void *out;
    char *received;                 /* DEPTH parts */
    uint64_t count, begun, longest; /* elements; of the longest piece so far */
    enum rt_type type;
    enum rt_op op, partial;
    struct piece pieces[DEPTH];
};

/* At most twice the one before, half of what is left. */
static struct piece next_piece(struct work *w)
{
    const uint64_t m = (uint64_t)w->m, rest = w->count - w->begun;
    const uint64_t most = m * (PART_BYTES / rt_type_bytes(w->type));
    const uint64_t least = m * (SHORT_BYTES / rt_type_bytes(w->type));
    uint64_t count = rt_min_u64(rt_min_u64(2 * w->longest, most), rest / 2 / m * m);
    count = rt_min_u64(count < least ? least : count, rest);
    struct piece p = {.first = w->begun, .count = count};
    p.mine_first = p.first + rt_part_first(count, w->m, w->local);
    p.mine = rt_part_count(count, w->m, w->local);
    w->begun += count;
    w->longest = count > w->longest ? count : w->longest;
    return p;
}

static int exchange(const struct work *w, struct piece *p, char *part, char *received)
{
    const uint64_t bytes = p->mine * rt_type_bytes(w->type);
    const uint64_t at_once = w->all->at_once_bytes ? w->all->at_once_bytes : w->all->block_bytes;
    const uint64_t least = (bytes + MESSAGES_MAX - 1) / MESSAGES_MAX;
    const uint64_t message = least > at_once ? least : at_once;
    int error = 0;
    for (uint64_t at = 0; at < bytes && !error; at += message)
        error = w->all->ops->recv(w->all, received + at, rt_min_u64(message, bytes - at),
                                  w->partner, &p->requests[p->n++]);
    for (uint64_t at = 0; at < bytes && !error; at += message)
        error = w->all->ops->send(w->all, part + at, rt_min_u64(message, bytes - at), w->partner,
                                  &p->requests[p->n++]);
    return error;
}

/* What this host has of piece `k` sets out, and that of the other is awaited. */
static int begin(struct work *w, unsigned k)
{
    struct piece *p = &w->pieces[k % DEPTH];
    *p = next_piece(w);
    char *part = rt_at_mutable(w->out, p->mine_first, w->type);
    const void *in =
        rt_average_begin(rt_at_mutable(w->out, p->first, w->type), rt_at(w->in, p->first, w->type),
                         p->count, w->type, w->op, w->n);
    int error = w->inside->reduce_scatter(w->inside->data, in, part, p->count, w->type, w->partial);
    return error ? error : exchange(w, p, part, w->received + k % DEPTH * PART_BYTES);
}

static int end(struct work *w, unsigned k)
{
    struct piece *p = &w->pieces[k % DEPTH];
    void *part = rt_at_mutable(w->out, p->mine_first, w->type);
    int error = p->n > 0 ? w->all->ops->wait(w->all, p->requests, p->n) : 0;
    if (error)
        return error;
    rt_reduce(part, part, w->received + k % DEPTH * PART_BYTES, p->mine, w->type, w->partial);
    rt_average_end(part, p->mine, w->type, w->op, w->n);
    return w->inside->allgather(w->inside->data, part, rt_at_mutable(w->out, p->first, w->type),
                                p->count, w->type);
}

bool rt_two_hosts_fits(const struct rt_transport *all, const struct rt_layout *l, uint64_t bytes)
{
    return l->host_count == 2 && all->block_bytes >= PART_BYTES &&
           rt_layout_local_size(l, 0) == rt_layout_local_size(l, 1) &&
           bytes > 2 * (uint64_t)rt_layout_local_size(l, 0) * SHORT_BYTES;
}

int rt_allreduce_two_hosts(struct rt_transport *all, const struct rt_layout *l,
                           const struct rt_inside_way *inside, const void *in, void *out,
                           uint64_t count, enum rt_type type, enum rt_op op)
{
    const int local = l->local[all->rank], there = 1 - l->host[all->rank];
    struct work w = {.all = all,
                     .inside = inside,
                     .partner = l->ranks[l->first[there] + local],
                     .n = all->size,
                     .m = rt_layout_local_size(l, 0),
                     .local = local,
                     .in = in,
                     .out = out,
                     .count = count,
                     .type = type,
                     .op = op,
                     .partial = rt_partial_op(type, op)};
    w.received = rt_scratch(w.all, RT_SCRATCH_PIECES, DEPTH * PART_BYTES);
    int error = w.received ? 0 : -ENOMEM;

    /* A piece begins when the one DEPTH before it has ended. */
    unsigned begun = 0, ended = 0;
    while (!error && (w.begun < count || ended < begun)) {
        if (w.begun < count && begun - ended < DEPTH)
            error = begin(&w, begun++);
        else
            error = end(&w, ended++);
    }
    return error;
}
