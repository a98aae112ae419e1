/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-links.h - TCP connections between any two ranks, made when they are first used: one a
 * direction and tag.
 *
 * Every rank listens; who wants to send connects, and says by the job's word who it is. Connections
 * that came before they were asked for are kept. Threads: one at a time. Errors: negative errno.
 */
#ifndef RT_LINKS_H
#define RT_LINKS_H

#include "rt-net.h"
#include "rt-transport-tcp.h"

/* Known to the ranks of one job alone. */
struct rt_word {
    unsigned char bytes[16];
};

struct rt_links {
    struct rt_tcp_links base; /* for transports; `listener` listens */
    int rank, size;
    struct rt_word word;
    union rt_net_place *places; /* by rank: where it listens; owned */
    struct rt_link *waiting;    /* connected, not asked for */
};

/* Closes the listener and what nobody has asked for. */
void rt_links_release(struct rt_links *links);

void rt_links_prepare(struct rt_links *links);
/* The next that has come with this tag, from any rank; -EAGAIN none. */
int rt_links_next(struct rt_links *links, int tag, int *ret_rank);

#endif
