/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.h - what a model learns: a named vector of parameters and its gradient.
 */
#ifndef TRAIN_TENSOR_H
#define TRAIN_TENSOR_H

#include <stdint.h>

/* A test of derivatives is built with double. */
#ifndef TRAIN_REAL
#define TRAIN_REAL float
#endif
typedef TRAIN_REAL train_real;

struct train_tensor {
    char name[32]; /* "layer1.weight" */
    uint64_t count;
    train_real *value, *gradient;
};

/* Zeros, aligned for vectors and to be freed; NULL: no memory. */
train_real *train_zeros(uint64_t count);
/* splitmix64 */
uint64_t train_random(uint64_t *state);
/* Equal only where all parameters have the same bits. */
uint64_t train_checksum(const struct train_tensor *tensor, unsigned n);

#endif
