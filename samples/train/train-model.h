/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train-model.h - what a training loop asks of a model, whatever it is.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "rt.h"
#include "tensor.h"

struct train_model {
    void *self;
    char description[200]; /* what must be the same to go on from a checkpoint */
    uint64_t items; /* rows of its data; 0: it draws new ones for ever, on each rank others */
    struct train_tensor *tensor; /* what it learns; the model's */
    unsigned tensors;
    const struct rt_parameter *state; /* what its optimizer keeps beside; the model's */
    unsigned states;
    unsigned parts; /* backward goes from the last to the first */
    const unsigned
        *part_first; /* parts + 1: part p has tensors part_first[p] to part_first[p + 1] - 1 */

    /* A batch of `rows` of `item` (NULL: drawn), not more than the model was made for. */
    void (*load)(void *self, const uint64_t *item, int rows);
    /* As if so many batches had been drawn; NULL where it has items. */
    void (*skip)(void *self, uint64_t batches);
    /* Returns the batch's mean loss. */
    double (*forward)(void *self);
    /* Adds to the gradients of a part: of the mean over rows where it draws them, else of the sum.
     */
    void (*backward)(void *self, unsigned part);
    /* One step by the gradients. */
    void (*optimize)(void *self, double rate);
    void (*release)(void *self);
};

#endif
