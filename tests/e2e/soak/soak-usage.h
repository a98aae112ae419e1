/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soak-usage.h - what a process holds, and whether it holds more and more of it.
 *
 * For tests. Model: measured at points where the program holds nothing that it won't hold for ever.
 * The first fifth of a run fills caches and pools; the least of each quantity over the second fifth
 * is compared with the least over the last: what leaks a little each round shows, what swings
 * doesn't.
 */
#ifndef SOAK_USAGE_H
#define SOAK_USAGE_H

#include <stdbool.h>
#include <stdint.h>

enum { SOAK_HEAP_BYTES, SOAK_PSS_BYTES, SOAK_DESCRIPTORS, SOAK_THREADS, SOAK_QUANTITIES };

struct soak {
    uint64_t begin_ns, length_ns;
    uint64_t rounds, seen[2]; /* in the second and in the last fifth */
    uint64_t least[2][SOAK_QUANTITIES];
};

void soak_begin(struct soak *s, double seconds);
/* Measures, where it is time to; true once the time is over. */
bool soak_round(struct soak *s);
/* Prints a line; true where nothing has grown. */
bool soak_end(const struct soak *s, const char *who, int rank);

/* A sequence of numbers that is the same on all ranks. */
uint32_t soak_random(uint64_t *state);

#endif
