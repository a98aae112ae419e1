/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - clock, median, and a line that says ratio, bar, met or missed. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double bench_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline int bench_compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts the values. */
static inline double bench_median(double *values, unsigned n)
{
    qsort(values, n, sizeof *values, bench_compare);
    return values[n / 2];
}

/* 1: missed. What is no number misses. */
static inline int bench_judge(const char *what, double ratio, const char *relation, double bar)
{
    int met = strcmp(relation, ">=") == 0 ? ratio >= bar : ratio <= bar;
    printf("RATIO %.4g BAR %s %g %s: %s\n", ratio, relation, bar, met ? "met" : "MISSED", what);
    fflush(stdout);
    return !met;
}

#endif
