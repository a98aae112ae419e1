/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANDOM_STEP 0x9e3779b97f4a7c15u /* train_random's */

/* Uniform in [-1, 1). */
static float next_float(uint64_t *state)
{
    return (float)(train_random(state) >> 40) / (1 << 23) - 1;
}

static bool make_tensor(struct train_tensor *t, int layer, const char *what, uint64_t count)
{
    snprintf(t->name, sizeof t->name, "layer%d.%s", layer + 1, what);
    t->count = count;
    t->value = train_zeros(count);
    t->gradient = train_zeros(count);
    return t->value && t->gradient;
}

static bool make_layers(struct net *net, uint64_t *random)
{
    for (int i = 0; i < NET_LAYERS; i++) {
        struct train_tensor *weight = &net->tensor[2 * i], *bias = &net->tensor[2 * i + 1];
        if (!make_tensor(weight, i, "weight",
                         (uint64_t)net->width[i] * (uint64_t)net->width[i + 1]) ||
            !make_tensor(bias, i, "bias", (uint64_t)net->width[i + 1]))
            return false;
        float scale = sqrtf(3.0f / (float)net->width[i]);
        for (uint64_t k = 0; k < weight->count; k++)
            weight->value[k] = scale * next_float(random);
    }
    return true;
}

static bool make_data(struct net *net, uint64_t *random)
{
    net->centres = train_zeros(NET_CLASSES * NET_INPUTS);
    net->label = calloc((size_t)net->batch, sizeof *net->label);
    if (!net->centres || !net->label)
        return false;
    for (int k = 0; k < NET_CLASSES * NET_INPUTS; k++)
        net->centres[k] = next_float(random);
    for (int i = 0; i <= NET_LAYERS; i++) {
        net->activation[i] = train_zeros((uint64_t)net->batch * (uint64_t)net->width[i]);
        net->error[i] = train_zeros((uint64_t)net->batch * (uint64_t)net->width[i]);
        if (!net->activation[i] || !net->error[i])
            return false;
    }
    return true;
}

int net_init_for(struct net *net, int inputs, double size, int batch, uint64_t seed, int rank)
{
    uint64_t shared = seed;
    int middle = (int)(704 * sqrt(size));
    *net = (struct net){.width = {inputs, middle, (int)(568 * sqrt(size)), NET_CLASSES},
                        .batch = batch,
                        .rows = batch,
                        .divides = true,
                        .seed = seed};
    if (!make_layers(net, &shared) || !make_data(net, &shared)) {
        net_release(net);
        return -ENOMEM;
    }
    net->random = seed * 1000003 + (uint64_t)rank + 1;
    return 0;
}

int net_init(struct net *net, double size, int batch, uint64_t seed, int rank)
{
    return net_init_for(net, NET_INPUTS, size, batch, seed, rank);
}

void net_release(struct net *net)
{
    for (int i = 0; i < NET_TENSORS; i++) {
        free(net->tensor[i].value);
        free(net->tensor[i].gradient);
    }
    for (int i = 0; i <= NET_LAYERS; i++) {
        free(net->activation[i]);
        free(net->error[i]);
    }
    free(net->centres);
    free(net->label);
    memset(net, 0, sizeof *net);
}

/* A point of a drawn class in row `b`. */
static void draw_row(struct net *net, int b, uint64_t *random)
{
    int label = (int)(train_random(random) % NET_CLASSES);
    float *x = net->activation[0] + b * NET_INPUTS;
    net->label[b] = label;
    for (int k = 0; k < NET_INPUTS; k++)
        x[k] = net->centres[label * NET_INPUTS + k] + 1.5f * next_float(random);
}

void net_load(struct net *net)
{
    net->rows = net->batch;
    for (int b = 0; b < net->batch; b++)
        draw_row(net, b, &net->random);
}

void net_skip(struct net *net, uint64_t batches)
{
    net->random += batches * (uint64_t)net->batch * (1 + NET_INPUTS) * RANDOM_STEP;
}

void net_load_items(struct net *net, const struct idx_data *data, const uint64_t *item, int rows)
{
    net->rows = rows;
    for (int b = 0; b < rows; b++) {
        uint64_t random = (net->seed << 32 ^ item[b]) * 0xd1342543de82ef95u;
        if (!data) {
            draw_row(net, b, &random);
            continue;
        }
        const uint8_t *pixel = data->pixel + item[b] * (uint64_t)data->pixels;
        float *x = net->activation[0] + b * data->pixels;
        net->label[b] = data->label[item[b]];
        for (int k = 0; k < data->pixels; k++)
            x[k] = (float)pixel[k] / 255 - 0.5f;
    }
}

static float dot(const float *a, const float *b, int n)
{
    float part[16] = {0}, sum = 0;
    int k = 0;
    for (; k + 16 <= n; k += 16)
        for (int j = 0; j < 16; j++)
            part[j] += a[k + j] * b[k + j];
    for (; k < n; k++)
        sum += a[k] * b[k];
    for (int j = 0; j < 16; j++)
        sum += part[j];
    return sum;
}

static void add_scaled(float *restrict to, const float *restrict from, float factor, int n)
{
    for (int k = 0; k < n; k++)
        to[k] += factor * from[k];
}

static void layer_forward(struct net *net, int i)
{
    const int in = net->width[i], out = net->width[i + 1];
    const float *weight = net->tensor[2 * i].value, *bias = net->tensor[2 * i + 1].value;
    for (int b = 0; b < net->rows; b++) {
        const float *x = net->activation[i] + b * in;
        float *y = net->activation[i + 1] + b * out;
        for (int o = 0; o < out; o++) {
            float sum = bias[o] + dot(weight + o * in, x, in);
            y[o] = i < NET_LAYERS - 1 && sum < 0 ? 0 : sum;
        }
    }
}

/* Softmax and cross entropy of one row: the loss, and its error by the row. */
static float row_loss(const float *y, float *error, int label)
{
    float highest = y[0], sum = 0;
    for (int o = 1; o < NET_CLASSES; o++)
        highest = y[o] > highest ? y[o] : highest;
    for (int o = 0; o < NET_CLASSES; o++)
        sum += error[o] = expf(y[o] - highest);
    for (int o = 0; o < NET_CLASSES; o++)
        error[o] /= sum;
    float loss = -logf(error[label] > 1e-12f ? error[label] : 1e-12f);
    error[label] -= 1;
    return loss;
}

float net_forward(struct net *net)
{
    for (int i = 0; i < NET_LAYERS; i++)
        layer_forward(net, i);
    float sum = 0;
    for (int b = 0; b < net->rows; b++)
        sum += row_loss(net->activation[NET_LAYERS] + b * NET_CLASSES,
                        net->error[NET_LAYERS] + b * NET_CLASSES, net->label[b]);
    return net->rows ? sum / (float)net->rows : 0;
}

void net_backward(struct net *net, int i)
{
    const int in = net->width[i], out = net->width[i + 1];
    const struct train_tensor *weight = &net->tensor[2 * i], *bias = &net->tensor[2 * i + 1];
    const float divisor = net->divides ? (float)net->rows : 1;
    if (!net->adds) {
        memset(weight->gradient, 0, weight->count * sizeof(float));
        memset(bias->gradient, 0, bias->count * sizeof(float));
    }
    memset(net->error[i], 0, (size_t)net->rows * (size_t)in * sizeof(float));
    for (int b = 0; b < net->rows; b++) {
        const float *x = net->activation[i] + b * in, *y = net->activation[i + 1] + b * out;
        const float *error = net->error[i + 1] + b * out;
        for (int o = 0; o < out; o++) {
            if (error[o] == 0 || (i < NET_LAYERS - 1 && y[o] <= 0))
                continue; /* the unit was off */
            float share = error[o] / divisor;
            add_scaled(weight->gradient + o * in, x, share, in);
            bias->gradient[o] += share;
            if (i > 0)
                add_scaled(net->error[i] + b * in, weight->value + o * in, error[o], in);
        }
    }
}

void net_descend(struct net *net, float rate)
{
    for (int t = 0; t < NET_TENSORS; t++)
        add_scaled(net->tensor[t].value, net->tensor[t].gradient, -rate, (int)net->tensor[t].count);
}

uint64_t net_checksum(const struct net *net)
{
    return train_checksum(net->tensor, NET_TENSORS);
}
