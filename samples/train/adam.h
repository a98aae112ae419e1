/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adam.h - the optimizer Adam (Kingma and Ba 2015, algorithm 1, with bias corrections).
 */
#ifndef TRAIN_ADAM_H
#define TRAIN_ADAM_H

#include "rt.h"
#include "tensor.h"

struct adam {
    struct train_tensor *tensor; /* borrowed */
    unsigned n;
    train_real **moment; /* 2 n: mean and square of gradient i in 2 i and 2 i + 1 */
    int64_t steps;
    double beta1, beta2, epsilon; /* 0.9, 0.999 and 1e-8 by init */
    char (*name)[48];
};

/* -ENOMEM. */
int adam_init(struct adam *adam, struct train_tensor *tensor, unsigned n);
void adam_release(struct adam *adam);
void adam_step(struct adam *adam, double rate);

/* What it remembers, to be shared and kept: 2 n + 1 entries, which point into it. */
void adam_state(struct adam *adam, struct rt_parameter *ret);

#endif
