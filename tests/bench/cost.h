/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.h - what a recorded call costs, beside the least that could record it.
 *
 * Rounds alternate between three loops over the same call, of a library that does nothing: the call
 * as a program makes it (the preloaded library's way: jump, wrapper, record, real function); the
 * real function between two time stamps and a 48-byte store into a ring of the same size; the real
 * function alone. Medians of the rounds.
 */
#ifndef RS_BENCH_COST_H
#define RS_BENCH_COST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLS 4096       /* a round; a quarter of the ring at most */
#define SLOTS (1u << 15) /* as tracer/threads.c has */

struct slot { /* 48 bytes, as struct rs_event */
    uint32_t op, peer;
    uint64_t start, end, count;
    uint32_t comm, dtype, seq, redop;
};

static struct slot *ring;
static volatile uint64_t head;

static uint64_t stamp(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
#error "no time stamp counter known"
#endif
}

static inline void store(uint64_t start, uint64_t end, uint32_t seq)
{
    uint64_t at = head;
    ring[at & (SLOTS - 1)] = (struct slot){1, 2, start, end, 1, 3, 4, seq, 5};
    head = at + 1;
}

static double ns_per_call(void (*loop)(void))
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    loop();
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / CALLS;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

static void let_drain(void)
{
    struct timespec pause = {0, 10000000};
    nanosleep(&pause, NULL);
}

struct cost {
    double traced, stamped, bare; /* ns a call */
    double ratio;                 /* of the first to the second, with the third taken off both */
};

/* The loops make CALLS calls each. false: no memory. */
static bool measure_cost(void (*const loops[3])(void), int rounds, struct cost *ret)
{
    double *ns[3], m[3];
    ring = aligned_alloc(4096, SLOTS * sizeof *ring);
    if (!ring)
        return false;
    memset(ring, 1, SLOTS * sizeof *ring);
    for (int k = 0; k < 3; k++)
        if (!(ns[k] = malloc((size_t)rounds * sizeof **ns)))
            return false;
    for (int i = -3; i < rounds; i++) /* the first three warm up */
        for (int k = 0; k < 3; k++) {
            let_drain();
            double v = ns_per_call(loops[k]);
            if (i >= 0)
                ns[k][i] = v;
        }
    for (int k = 0; k < 3; k++)
        m[k] = median(ns[k], rounds);
    *ret = (struct cost){m[0], m[1], m[2], (m[0] - m[2]) / (m[1] - m[2])};
    printf("traced %.1f ns, two stamps and 48 bytes %.1f ns, the call alone %.1f ns\n", m[0], m[1],
           m[2]);
    return true;
}

#endif
