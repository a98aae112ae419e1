/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - a small network that learns: three dense layers, their gradients, synthetic data.
 *
 * Model: inputs are points around class centres of a fixed geometry; the network tells the class.
 * Each rank draws its own points, the centres are the same; or they are items with a number, the
 * same on every rank, generated or of a data set. All loops are plain C that gcc
 * vectorises: the sizes here need no BLAS, and a program that brings its own threads would blur
 * which rank is slow. Arithmetic is float; the same inputs give the same bits.
 * Memory: all of struct net belongs to it. Threads: one.
 */
#ifndef NET_H
#define NET_H

#include <stdbool.h>
#include <stdint.h>

#include "idx.h"
#include "tensor.h"

#define NET_LAYERS  3
#define NET_CLASSES 10
#define NET_INPUTS  128
#define NET_TENSORS (2 * NET_LAYERS) /* weights and bias of each layer */

struct net {
    int width[NET_LAYERS + 1]; /* inputs of layer i; outputs of the last */
    int batch;                 /* the most rows */
    int rows;                  /* of the batch at hand */
    bool adds;                 /* backward adds to the gradients, rather than sets them */
    bool divides;              /* ... by the rows: means, rather than sums */
    struct train_tensor
        tensor[NET_TENSORS];           /* layer i: 2 i weights (rows: outputs), 2 i + 1 bias */
    float *activation[NET_LAYERS + 1]; /* batch rows; [0] the inputs */
    float *error[NET_LAYERS + 1];      /* of the loss by the activation */
    float *centres;
    int *label;
    uint64_t seed, random; /* random: this rank's data */
};

/* `size` scales the hidden layers: about 2 MiB of parameters at 1. -ENOMEM. */
int net_init(struct net *net, double size, int batch, uint64_t seed, int rank);
/* ... with so many inputs; generated data want NET_INPUTS. */
int net_init_for(struct net *net, int inputs, double size, int batch, uint64_t seed, int rank);
void net_release(struct net *net);

/* A new batch. */
void net_load(struct net *net);
/* As if so many had been loaded. */
void net_skip(struct net *net, uint64_t batches);
/* Those items, of `data` or, NULL, generated. */
void net_load_items(struct net *net, const struct idx_data *data, const uint64_t *item, int rows);
/* Returns the batch's mean loss. */
float net_forward(struct net *net);
/* Gradients of layer `i`; from the last to the first. */
void net_backward(struct net *net, int layer);
void net_descend(struct net *net, float rate);

/* Equal only where all parameters have the same bits. */
uint64_t net_checksum(const struct net *net);

#endif
