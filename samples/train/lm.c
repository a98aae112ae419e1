/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lm - trains a small transformer language model of bytes data-parallel on the runtime, by Adam;
 * the text is a file's (--text) or made up. A row is a piece of `context` bytes, of which each is
 * to be told from those before it. Gradients of a layer are on their way while backward is in the
 * next.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "adam.h"
#include "blas.h"
#include "loop.h"
#include "text.h"
#include "transformer.h"

static struct transformer model;
static struct adam adam;
static struct text text;
static struct rt_parameter *state;
static int batch;

static void load(void *self, const uint64_t *item, int rows)
{
    batch = rows;
    for (int i = 0; i < rows; i++)
        transformer_set_row(&model, i, text.data + item[i] * (uint64_t)model.shape.context);
}

static double forward(void *self)
{
    return transformer_forward(&model, batch);
}

static void backward(void *self, unsigned part)
{
    transformer_backward(&model, part);
}

static void optimize(void *self, double rate)
{
    adam_step(&adam, rate);
}

static void release(void *self)
{
    adam_release(&adam);
    transformer_release(&model);
    text_clear(&text);
    free(state);
}

static int get_text(const struct train_options *o, char *message, size_t message_bytes)
{
    const uint64_t context = (uint64_t)o->context;
    int result;
    if (o->text)
        result = text_read(&text, o->text, message, message_bytes);
    else
        result = text_make(&text, (o->items ? o->items : 4096) * context + 1, o->seed);
    if (result == -ENOMEM)
        snprintf(message, message_bytes, "no memory for the text");
    if (result == 0 && text.bytes < context + 1) {
        snprintf(message, message_bytes,
                 "%s: %llu bytes; a row of --context %llu needs %llu at least",
                 o->text ? o->text : "text", (unsigned long long)text.bytes,
                 (unsigned long long)context, (unsigned long long)context + 1);
        return -EINVAL;
    }
    return result;
}

static int make(struct train_model *ret, const struct train_options *o, int rows, int rank,
                char *message, size_t message_bytes)
{
    const struct transformer_shape shape = {o->context, o->width, o->layers, o->heads};
    int result = get_text(o, message, message_bytes);
    if (result < 0)
        return result;
    result = transformer_init(&model, &shape, rows, o->seed);
    if (result == 0)
        result = adam_init(&adam, model.tensor, model.tensors);
    state = result == 0 ? calloc(2 * model.tensors + 1, sizeof *state) : NULL;
    if (!state) {
        snprintf(message, message_bytes, "model: no memory");
        return -ENOMEM;
    }
    adam_state(&adam, state);
    uint64_t items = (text.bytes - 1) / (uint64_t)o->context;
    *ret = (struct train_model){
        .items = o->items && o->items < items ? o->items : items,
        .tensor = model.tensor,
        .tensors = model.tensors,
        .state = state,
        .states = 2 * model.tensors + 1,
        .parts = model.parts,
        .part_first = model.part_first,
        .load = load,
        .forward = forward,
        .backward = backward,
        .optimize = optimize,
        .release = release,
    };
    snprintf(ret->description, sizeof ret->description,
             "lm of %d layers, width %d, %d heads, context %d on %s text", o->layers, o->width,
             o->heads, o->context, o->text ? "a file's" : "made-up");
    if (rank == 0)
        printf("matrix products: %s\n", blas_name());
    return 0;
}

int main(int argc, char **argv)
{
    static const struct train_program program = {
        .name = "lm",
        .options = TRAIN_OPTIONS_LM,
        .rate = 0.003,
        .make = make,
    };
    return train_main(argc, argv, &program);
}
