/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-options.h - rt-bench's command line, with the letters of nccl-tests.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdint.h>

#include "rt-types.h"

struct bench_options {
    const char *collective;
    uint64_t smallest, largest, step; /* bytes; step 0: by factor */
    double factor;
    int iterations, warm_up, root;
    int check;           /* 0: no */
    int types, ops;      /* how many */
    int type[16], op[8]; /* places in what follows */
};

struct bench_word {
    const char *name; /* nccl-tests' */
    int value;        /* enum rt_type, enum rt_op */
};
extern const struct bench_word bench_types[], bench_ops[]; /* end with a name of NULL */

/* Prints to stderr, or the help to stdout, and ends the program where the line isn't right. */
struct bench_options bench_options_read(int argc, char **argv, const char *const *collectives);

#endif
