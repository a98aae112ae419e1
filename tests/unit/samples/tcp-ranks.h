/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp-ranks.h - ranks over TCP on this host's loopback, as threads or processes; rt-ranks.h over
 * shared memory.
 *
 * For tests. Each rank listens on a port that the system gives, so that jobs don't get into each
 * other's way, and begins when all do. Over IPv6 where that is wanted and there is any.
 */
#ifndef TCP_RANKS_H
#define TCP_RANKS_H

#include "rt-links.h"
#include "rt-ranks.h"

#define TCP_RANKS_MAX 16

/* A rank; its links are released when it returns. */
typedef int links_fn(struct rt_links *links, void *argument);
int run_links(int size, bool processes, bool v6, links_fn *fn, void *argument);

/* As run_ranks. `block_bytes` 0: the transport's own. */
int run_ranks_tcp(int size, bool processes, bool v6, uint64_t block_bytes, rank_fn *fn,
                  void *argument);

#endif
