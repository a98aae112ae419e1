/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform in [-1, 1). */
static float next_float(uint64_t *state)
{
    return (float)(next_random(state) >> 40) / (1 << 23) - 1;
}

static float *zeros(uint64_t n)
{
    float *data = aligned_alloc(64, (n * sizeof *data + 63) / 64 * 64);
    if (data)
        memset(data, 0, n * sizeof *data);
    return data;
}

static bool make_tensor(struct net_tensor *t, int layer, const char *what, uint64_t count)
{
    snprintf(t->name, sizeof t->name, "layer%d.%s", layer + 1, what);
    t->count = count;
    t->value = zeros(count);
    t->gradient = zeros(count);
    return t->value && t->gradient;
}

static bool make_layers(struct net *net, uint64_t *random)
{
    for (int i = 0; i < NET_LAYERS; i++) {
        struct net_tensor *weight = &net->tensor[2 * i], *bias = &net->tensor[2 * i + 1];
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
    net->centres = zeros(NET_CLASSES * NET_INPUTS);
    net->label = calloc((size_t)net->batch, sizeof *net->label);
    if (!net->centres || !net->label)
        return false;
    for (int k = 0; k < NET_CLASSES * NET_INPUTS; k++)
        net->centres[k] = next_float(random);
    for (int i = 0; i <= NET_LAYERS; i++) {
        net->activation[i] = zeros((uint64_t)net->batch * (uint64_t)net->width[i]);
        net->error[i] = zeros((uint64_t)net->batch * (uint64_t)net->width[i]);
        if (!net->activation[i] || !net->error[i])
            return false;
    }
    return true;
}

int net_init(struct net *net, double size, int batch, uint64_t seed, int rank)
{
    uint64_t shared = seed;
    int middle = (int)(704 * sqrt(size));
    *net = (struct net){.width = {NET_INPUTS, middle, (int)(568 * sqrt(size)), NET_CLASSES},
                        .batch = batch};
    if (!make_layers(net, &shared) || !make_data(net, &shared)) {
        net_release(net);
        return -ENOMEM;
    }
    net->random = seed * 1000003 + (uint64_t)rank + 1;
    return 0;
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

void net_load(struct net *net)
{
    for (int b = 0; b < net->batch; b++) {
        int label = (int)(next_random(&net->random) % NET_CLASSES);
        float *x = net->activation[0] + b * NET_INPUTS;
        net->label[b] = label;
        for (int k = 0; k < NET_INPUTS; k++)
            x[k] = net->centres[label * NET_INPUTS + k] + 1.5f * next_float(&net->random);
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
    for (int b = 0; b < net->batch; b++) {
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
    for (int b = 0; b < net->batch; b++)
        sum += row_loss(net->activation[NET_LAYERS] + b * NET_CLASSES,
                        net->error[NET_LAYERS] + b * NET_CLASSES, net->label[b]);
    return sum / (float)net->batch;
}

void net_backward(struct net *net, int i)
{
    const int in = net->width[i], out = net->width[i + 1];
    const struct net_tensor *weight = &net->tensor[2 * i], *bias = &net->tensor[2 * i + 1];
    memset(weight->gradient, 0, weight->count * sizeof(float));
    memset(bias->gradient, 0, bias->count * sizeof(float));
    memset(net->error[i], 0, (size_t)net->batch * (size_t)in * sizeof(float));
    for (int b = 0; b < net->batch; b++) {
        const float *x = net->activation[i] + b * in, *y = net->activation[i + 1] + b * out;
        const float *error = net->error[i + 1] + b * out;
        for (int o = 0; o < out; o++) {
            if (error[o] == 0 || (i < NET_LAYERS - 1 && y[o] <= 0))
                continue; /* the unit was off */
            float share = error[o] / (float)net->batch;
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
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, by words */
    for (int t = 0; t < NET_TENSORS; t++)
        for (uint64_t k = 0; k < net->tensor[t].count; k++) {
            uint32_t bits;
            memcpy(&bits, &net->tensor[t].value[k], sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3u;
        }
    return hash;
}
