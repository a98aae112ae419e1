/* SPDX-License-Identifier: Apache-2.0 */
#include "adam.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <tgmath.h>

int adam_init(struct adam *adam, struct train_tensor *tensor, unsigned n)
{
    *adam = (struct adam){.tensor = tensor, .n = n, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    adam->moment = calloc(2 * n, sizeof *adam->moment);
    adam->name = calloc(2 * n, sizeof *adam->name);
    bool made = adam->moment && adam->name;
    for (unsigned i = 0; made && i < 2 * n; i++) {
        adam->moment[i] = train_zeros(tensor[i / 2].count);
        snprintf(adam->name[i], sizeof adam->name[i], "%s.%s", i % 2 ? "square" : "mean",
                 tensor[i / 2].name);
        made = adam->moment[i];
    }
    if (made)
        return 0;
    adam_release(adam);
    return -ENOMEM;
}

void adam_release(struct adam *adam)
{
    for (unsigned i = 0; adam->moment && i < 2 * adam->n; i++)
        free(adam->moment[i]);
    free(adam->moment);
    free(adam->name);
    *adam = (struct adam){0};
}

void adam_step(struct adam *adam, double rate)
{
    adam->steps++;
    const train_real b1 = (train_real)adam->beta1, b2 = (train_real)adam->beta2;
    const train_real correction = (train_real)(1 / (1 - pow(adam->beta2, (double)adam->steps)));
    const train_real by = (train_real)(rate / (1 - pow(adam->beta1, (double)adam->steps)));
    const train_real epsilon = (train_real)adam->epsilon;
    for (unsigned i = 0; i < adam->n; i++) {
        const struct train_tensor *t = &adam->tensor[i];
        train_real *restrict mean = adam->moment[2 * i], *restrict square = adam->moment[2 * i + 1];
        train_real *restrict value = t->value;
        const train_real *restrict gradient = t->gradient;
        for (uint64_t k = 0; k < t->count; k++) {
            const train_real g = gradient[k];
            mean[k] = b1 * mean[k] + (1 - b1) * g;
            square[k] = b2 * square[k] + (1 - b2) * g * g;
            value[k] -= by * mean[k] / (sqrt(square[k] * correction) + epsilon);
        }
    }
}

void adam_state(struct adam *adam, struct rt_parameter *ret)
{
    for (unsigned i = 0; i < 2 * adam->n; i++)
        ret[i] = (struct rt_parameter){adam->name[i], adam->moment[i], adam->tensor[i / 2].count,
                                       RT_FLOAT32};
    ret[2 * adam->n] = (struct rt_parameter){"adam.steps", &adam->steps, 1, RT_INT64};
}
