/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the command line that all training programs share.
 */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdint.h>

struct train_options {
    int steps;     /* --steps */
    double size;   /* --size: about 2 MiB of parameters times this */
    uint64_t seed; /* --seed */
    int batch;     /* --batch: rows of one rank */
    float rate;    /* --rate: of learning */
};

/* Prints to stderr, or the help to stdout, and ends the program where the line isn't right. */
struct train_options train_options_read(int argc, char **argv);

#endif
