/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mlp - trains a small network data-parallel on the runtime: every rank has the whole network and
 * its own data; gradients are averaged over all ranks, each as soon as its layer has it. Data are
 * drawn, generated items (--items) or MNIST's files (--data).
 * Prints the loss and, at the end, whether all ranks have the same parameters; exit 1 if not, or if
 * the loss hasn't fallen.
 */
#include <stdio.h>
#include <string.h>

#include "loop.h"
#include "net.h"

static struct net net;
static struct idx_data data;

static void load(void *self, const uint64_t *item, int rows)
{
    if (item)
        net_load_items(&net, data.items ? &data : NULL, item, rows);
    else
        net_load(&net);
}

static void skip(void *self, uint64_t batches)
{
    net_skip(&net, batches);
}

static double forward(void *self)
{
    return (double)net_forward(&net);
}

static void backward(void *self, unsigned part)
{
    net_backward(&net, (int)part);
}

static void optimize(void *self, double rate)
{
    net_descend(&net, (float)rate);
}

static void release(void *self)
{
    net_release(&net);
    idx_clear(&data);
}

static int make(struct train_model *ret, const struct train_options *o, int rows, int rank,
                char *message, size_t message_bytes)
{
    static const unsigned part_first[NET_LAYERS + 1] = {0, 2, 4, 6};
    if (o->data) {
        int result = idx_read(&data, o->data, NET_CLASSES, message, message_bytes);
        if (result < 0)
            return result;
    }
    uint64_t items = !o->data || (o->items && o->items < data.items) ? o->items : data.items;
    int inputs = o->data ? data.pixels : NET_INPUTS;
    int result = net_init_for(&net, inputs, o->size, items ? rows : o->batch, o->seed, rank);
    if (result < 0) {
        snprintf(message, message_bytes, "network: no memory");
        return result;
    }
    net.adds = true;
    net.divides = items == 0;
    *ret = (struct train_model){
        .items = items,
        .tensor = net.tensor,
        .tensors = NET_TENSORS,
        .parts = NET_LAYERS,
        .part_first = part_first,
        .load = load,
        .skip = skip,
        .forward = forward,
        .backward = backward,
        .optimize = optimize,
        .release = release,
    };
    snprintf(ret->description, sizeof ret->description, "mlp %d-%d-%d-%d on %s data", net.width[0],
             net.width[1], net.width[2], net.width[3], o->data ? "a file's" : "generated");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct train_program program = {
        .name = "mlp",
        .options = TRAIN_OPTIONS_SIZE | TRAIN_OPTIONS_DATA,
        .rate = 0.05,
        .make = make,
    };
    return train_main(argc, argv, &program);
}
