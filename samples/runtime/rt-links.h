/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-links.h - TCP connections between any two ranks, made when they are first used: one a
 * direction and tag.
 *
 * Every rank listens; who wants to send connects, and says by the job's word who it is. Connections
 * that came before they were asked for are kept. Strangers are sent away, and cost nobody a wait:
 * a connection that hasn't said yet who it is lies beside; of very many, or where there are no more
 * descriptors, the one that has been silent longest is closed. Threads: one at a time. Errors:
 * negative errno, -EMFILE no more descriptors.
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
    struct rt_tcp_links base; /* for transports */
    int rank, size;
    struct rt_word word;
    union rt_net_place *places; /* by rank: where it listens; owned */
    int socket;                 /* that listens; -1: none */
    struct rt_link *callers;    /* connected, not known yet; the first came first */
    int caller_count;
    struct rt_link *waiting; /* connected, not asked for; the first came first */
};

void rt_links_prepare(struct rt_links *links);
/* Others come to `socket`, of rt_net_listen, which is the links' from now on. */
int rt_links_listen(struct rt_links *links, int socket);
/* Closes what listens, and what nobody has asked for. */
void rt_links_release(struct rt_links *links);

/* The next that has come with this tag, from any rank; -EAGAIN none. */
int rt_links_next(struct rt_links *links, int tag, int *ret_rank);

#endif
