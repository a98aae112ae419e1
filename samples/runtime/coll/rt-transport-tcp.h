/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-transport-tcp.h - a transport of rt_coll over TCP.
 *
 * Model: to each peer one connection a direction, made when it is first used; where it comes from
 * is the business of `links`, which several transports may share: each has a tag of its own. A
 * message is its length and its bytes. Waiting sleeps in poll.
 *
 * Threads: one at a time for all transports of one `links`.
 * Errors: -ECONNRESET the peer has closed, or isn't there any more; -EMSGSIZE; -ETIMEDOUT.
 */
#ifndef RT_TRANSPORT_TCP_H
#define RT_TRANSPORT_TCP_H

#include "rt-coll.h"

/* Sockets are nonblocking; whoever got one closes it. */
struct rt_tcp_links {
    /* A new connection to `rank`, which will get it by `in` with this rank and tag. */
    int (*out)(struct rt_tcp_links *links, int rank, int tag);
    /* The one that `rank` has made so; -EAGAIN: not yet. Then `news` becomes readable. */
    int (*in)(struct rt_tcp_links *links, int rank, int tag);
    /* Whether `rank`, which made none, still can; asked each second. -ECONNRESET: it is gone. */
    int (*check)(struct rt_tcp_links *links, int rank);
    int news; /* a descriptor for poll */
    /* Waits that last until then, CLOCK_MONOTONIC's, end with -ETIMEDOUT; 0: none does. */
    uint64_t deadline_ns;
    int late; /* then: a rank that was waited for */
};

/* Over ranks[0], ranks[1], ..., of which ranks[rank] is this one. Local. NULL with errno set. */
struct rt_transport *rt_transport_tcp_new(struct rt_tcp_links *links, int tag, const int *ranks,
                                          int size, int rank);
void rt_transport_tcp_free(struct rt_transport *t); /* NULL-safe */
bool rt_transport_is_tcp(const struct rt_transport *t);

#endif
