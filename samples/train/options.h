/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the command line that all training programs share.
 */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Which of them a program has; those of the others are errors. */
enum train_option_group {
    TRAIN_OPTIONS_BASE = 1, /* --steps to --rate */
    TRAIN_OPTIONS_SIZE = 2, /* --size */
    TRAIN_OPTIONS_LOOP = 4, /* what train_main does */
    TRAIN_OPTIONS_DATA = 8, /* --data */
    TRAIN_OPTIONS_LM = 16,  /* --text, and the shape */
};

/* Each has the help of its option in options.c. What wasn't given and has no default there is 0. */
struct train_options {
    int steps;
    double size; /* about 2 MiB of parameters times this */
    uint64_t seed;
    int batch; /* rows of one rank, in one pass */
    float rate;

    uint64_t global_batch, items;
    int passes, warm_up, every;
    bool scale_rate, resume;
    const char *checkpoint, *data, *text; /* of argv */
    int context, width, layers, heads;
};

/* Of base and size. Prints to stderr, or the help to stdout, and ends the program where the line
 * isn't right. */
struct train_options train_options_read(int argc, char **argv);
/* Of these groups, `rate` by default. */
struct train_options train_options_read_for(int argc, char **argv, unsigned groups, double rate);

#endif
