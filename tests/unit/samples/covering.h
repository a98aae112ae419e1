/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covering.h - a covering array of strength two: rows in which every value of a parameter meets
 * every value of every other one.
 *
 * For tests of many parameters, too many to try all combinations: most faults need two values to
 * meet. Built greedily, by chance; the seed decides which rows. All ranks of a run must have the
 * same.
 */
#ifndef COVERING_H
#define COVERING_H

#include <stdint.h>

#define COVERING_PARAMETERS_MAX 8
#define COVERING_LEVELS_MAX     24

struct covering {
    unsigned parameters, count;
    unsigned levels[COVERING_PARAMETERS_MAX]; /* values of each */
    uint8_t (*rows)[COVERING_PARAMETERS_MAX];
};

/* -ENOMEM, -EINVAL. */
int covering_make(struct covering *ret, const unsigned *levels, unsigned parameters, uint64_t seed);
void covering_free(struct covering *c);

/* Of the environment's variable, else of the clock; prints it, so that a failure can be had again.
 */
uint64_t covering_seed(const char *variable);

#endif
