/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transformer.h - a small language model of bytes: what byte comes next?
 *
 * Model: a byte and its place each have a vector (embedding), whose sum goes through `layers`
 * layers, each adding to it causal self-attention of its normalised self, and then a perceptron (4
 * times as wide, GELU) of that; at the end it is normalised and projected to a score for each byte.
 * Loss is the cross entropy, mean over the positions of a row. Norms are layer norms with scale and
 * shift. Matrix products by blas.h, the rest plain C; gradients are exact (a test compares them
 * with differences). Parts for backward: 0 the embedding, 1 to `layers` the layers, layers + 1 the
 * head. Memory: all belongs to it but the text. Threads: one.
 */
#ifndef TRAIN_TRANSFORMER_H
#define TRAIN_TRANSFORMER_H

#include <stdint.h>

#include "tensor.h"

#define TRANSFORMER_BYTES         256 /* the vocabulary */
#define TRANSFORMER_LAYERS_MAX    64
#define TRANSFORMER_LAYER_TENSORS 12

struct transformer_shape {
    int context, width, layers, heads;
};

/* What a layer's forward leaves for its backward: N rows, N = rows of the batch times context. */
struct transformer_layer {
    train_real *in, *middle;   /* N x width: before attention, before the perceptron */
    train_real *norm1, *norm2; /* N x width */
    train_real *mean1, *rstd1, *mean2, *rstd2; /* N */
    train_real *qkv;                           /* N x 3 width */
    train_real *attention;                     /* rows x heads x context x context: after softmax */
    train_real *mixed;           /* N x width: what attention gives, before projection */
    train_real *hidden, *active; /* N x 4 width: before GELU, after */
};

struct transformer {
    struct transformer_shape shape;
    int rows_max, rows;
    unsigned tensors, parts;
    struct train_tensor *tensor;
    unsigned part_first[TRANSFORMER_LAYERS_MAX + 3];
    uint8_t *token, *next; /* rows x context */
    struct transformer_layer *layer;
    train_real *out, *norm, *mean, *rstd, *score;                              /* of the head */
    train_real *error, *error_wide, *error_qkv, *error_norm, *error_attention; /* of backward */
};

/* For batches of at most `rows`; `heads` divides `width`. -ENOMEM. */
int transformer_init(struct transformer *t, const struct transformer_shape *shape, int rows,
                     uint64_t seed);
void transformer_release(struct transformer *t);

/* Row `row` of the batch: context bytes, and each one's next: context + 1 of `text`. */
void transformer_set_row(struct transformer *t, int row, const uint8_t *text);
/* Of the first `rows` rows; returns their mean loss, 0 of none. */
double transformer_forward(struct transformer *t, int rows);
/* Adds a part's gradients, of the sum of the losses of forward's rows; from the last to 0. */
void transformer_backward(struct transformer *t, unsigned part);

#endif
