/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-lifeline.h - notices that a rank is gone, whatever the fabric is doing.
 *
 * Model: every rank keeps a TCP connection to rank 0, on which nothing is said but farewells, of
 * deaths, and whether one is there. Where one ends without, its process was killed, or ended
 * without rt_shutdown: rank 0 tells the others who it was. Each has a thread for it that sleeps in
 * poll. A child of a fork closes its copies, or its parent's death would go unnoticed.
 *
 * A host that is cut off, or without power, closes nothing. So the kernels ask each other for a
 * sign of life (TCP's keepalive): none for `timeout_s` seconds, and a tenth of it, at least a
 * second, more, and the connection ends as if the rank had. As kernels answer, a rank that is
 * stopped, or has too much to do, is alive. Rank 0 says so of each rank that is cut off from it,
 * these say so of rank 0.
 *
 * A process that is stopped, by a signal, a debugger or a container's freezer, would leave all that
 * work with it waiting without a word. So rank 0 asks each rank, and each rank 0, whether it is
 * there, which the other's thread answers; who hasn't for `warning_ns` is said, and why where its
 * process can be seen from here; again after as long; and when it answers again. At least a second:
 * a host may have much to do. Time in which the asking one was stopped itself doesn't count.
 *
 * Where a rank finds no way to rank 0 the job goes on without a lifeline for it, and says so once.
 */
#ifndef RT_LIFELINE_H
#define RT_LIFELINE_H

#include "rt-fabric.h"
#include "rt-topology.h"

struct rt_lifeline;

/* Called by the lifeline's thread. `text` names the rank: "rank 3 (host1, process 4711) ...". */
typedef void rt_news_fn(void *data, const char *text);

struct rt_lifeline_user {
    unsigned timeout_s;  /* 0: silence of a host is no death */
    uint64_t warning_ns; /* 0: silence of a rank is not said */
    rt_news_fn *died;    /* called once */
    rt_news_fn *warn;
    void *data;
};

#define RT_HOST_TIMEOUT_MAX_S 32767 /* as Linux takes it */

/* Collective. NULL with *ret_error set and a message. */
struct rt_lifeline *rt_lifeline_new(struct rt_fabric *f, const char (*hosts)[RT_HOST_MAX],
                                    const struct rt_lifeline_user *user, int *ret_error,
                                    char *message, size_t message_bytes);
/* Waits so long for news of a death; whether there was one. */
int rt_lifeline_wait(struct rt_lifeline *l, int ms);
/* Farewell: what happens to the others from now on is no death. After all have agreed to end.
 * NULL-safe. */
void rt_lifeline_free(struct rt_lifeline *l);
/* Without farewell, where this rank alone can't go on: to the others it is a death. `why`, where
 * it isn't NULL, they are told. NULL-safe. */
void rt_lifeline_cut(struct rt_lifeline *l, const char *why);

#endif
