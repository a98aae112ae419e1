/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-fault.h - planted faults: what RT_FAULT says, and the faults a program plays on itself.
 *
 * RT_FAULT is empty, or faults joined by ';', each a name and its parameters, all of them:
 *
 *   slow-rank:rank=2,ms=5        that rank computes 5 ms of processor time more, each step
 *   slow-link:hosts=0-1,mbps=200 sockets between those logical hosts carry 200 Mbit/s in all, each
 *                                way; optional flows=N: connections that share it (pacer.c)
 *   die:rank=3,step=9,signal=KILL
 *
 * An unknown fault, or parameter, is an error: a test that plants nothing proves nothing.
 * Nothing here says anything to a profiler: what is planted must be found by what it does.
 */
#ifndef RT_FAULT_H
#define RT_FAULT_H

#include <stddef.h>
#include <stdint.h>

enum rt_fault_kind { RT_FAULT_SLOW_RANK, RT_FAULT_SLOW_LINK, RT_FAULT_DIE, RT_FAULT_KIND_COUNT };

struct rt_fault {
    enum rt_fault_kind kind;
    int rank;     /* slow-rank, die */
    double ms;    /* slow-rank */
    int hosts[2]; /* slow-link: the lower first */
    double mbps;  /* slow-link */
    int flows;    /* slow-link; 0: not said */
    int64_t step; /* die */
    int signal;   /* die */
};

#define RT_FAULT_MAX 16

struct rt_faults {
    struct rt_fault fault[RT_FAULT_MAX];
    int n;
};

/* `text` may be NULL. -EINVAL, and the message says what is wrong where. */
int rt_faults_parse(struct rt_faults *ret, const char *text, char *message, size_t message_bytes);

/* From RT_FAULT. */
int rt_faults_read(struct rt_faults *ret, char *message, size_t message_bytes);

/* To call at the beginning of a step, and inside its computation. */
void rt_faults_step(const struct rt_faults *f, int rank, int64_t step);
void rt_faults_compute(const struct rt_faults *f, int rank);

#endif
