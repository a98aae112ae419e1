/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - data-parallel training of any model on the runtime: options, planted faults, shards of
 * the data, gradients averaged while backward goes on, checkpoints, and the end's verdict.
 */
#ifndef TRAIN_LOOP_H
#define TRAIN_LOOP_H

#include "options.h"
#include "train-model.h"

struct train_program {
    const char *name;
    unsigned options; /* groups beside BASE and LOOP */
    double rate;      /* of learning, by default */
    /* A model for batches of at most `rows`. 0 or a negative errno, and the message says why. */
    int (*make)(struct train_model *ret, const struct train_options *o, int rows, int rank,
                char *message, size_t message_bytes);
};

/* Returns main's: 1 where parameters differ between ranks, the loss hasn't fallen in 10 or more
 * steps, or a checkpoint was not written; 2 wrong options. */
int train_main(int argc, char **argv, const struct train_program *program);

#endif
