/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-bits-check SEED - one rank of a test of the bits of what rounds: sums and averages of
 * tensors of many lengths, over and over, each rank in another order each time. Rank 0 prints a
 * hash of all results of the first time of allreduces, also compressed ones and Adasum's, and one
 * of its rows of reducescatters. With RT_DETERMINISTIC=1: exit 1 where bits differ between times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rt.h"

enum { TENSORS = 36, MEMBERS = 3, TIMES = 4 };
enum { REDUCED = 24, ADASUM = 28, SCATTERED = 32 }; /* first compressed, Adasum's, scattered */

static const uint64_t counts[] = {1, 3, 17, 64, 251, 1000, 4099, 20011};

struct tensor {
    uint64_t count;
    enum rt_op op;
    float *in, *out, *first;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Of many magnitudes: no order of summation rounds like another. A 1024th's sum fits float16. */
static float number(int rank, int tensor, uint64_t i)
{
    uint64_t mixed = mix(i * 64 + (uint64_t)rank * 8 + (uint64_t)tensor * 7919 + 1);
    return (float)((int64_t)mixed >> 40) / (float)(1 << (mixed % 24));
}

static void prepare(struct tensor *t, int tensor)
{
    t->count = counts[tensor % 8] + (uint64_t)tensor / 8;
    t->op = tensor % 5 == 4 ? RT_AVG : RT_SUM;
    t->in = malloc(t->count * sizeof(float));
    t->out = calloc(t->count, sizeof(float)); /* of what is scattered only a part is written */
    t->first = malloc(t->count * sizeof(float));
    for (uint64_t i = 0; i < t->count; i++)
        t->in[i] = number(rt_rank(), tensor, i) / (tensor >= REDUCED && tensor < ADASUM ? 1024 : 1);
}

static void shuffle(int *order, uint64_t random)
{
    for (int i = 0; i < TENSORS; i++)
        order[i] = i;
    for (int i = TENSORS - 1; i > 0; i--) {
        random = mix(random + (uint64_t)i);
        int j = (int)(random % ((uint64_t)i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

static int hand_over(const struct tensor *t, int tensor)
{
    char name[32];
    static const struct rt_options fp16 = {.compression = RT_COMPRESSION_FP16};
    snprintf(name, sizeof name, "bits.%d", tensor);
    if (tensor >= SCATTERED)
        return rt_reducescatter_async(name, t->in, t->out, t->count, 1, RT_FLOAT32, t->op, 1, 1,
                                      NULL);
    if (tensor >= REDUCED || tensor % 6 != 5)
        return rt_allreduce_async(name, t->in, t->out, t->count, RT_FLOAT32,
                                  tensor >= ADASUM ? RT_ADASUM : t->op, 1, 1,
                                  tensor >= REDUCED && tensor < ADASUM ? &fp16 : NULL);
    const uint64_t third = t->count / MEMBERS;
    struct rt_group_member members[MEMBERS];
    for (uint64_t m = 0; m < MEMBERS; m++)
        members[m] = (struct rt_group_member){t->in + m * third, t->out + m * third,
                                              m + 1 < MEMBERS ? third : t->count - 2 * third};
    return rt_grouped_allreduce_async(name, members, MEMBERS, RT_FLOAT32, t->op, 1, 1, NULL);
}

/* What is ready together depends on the order, and on how long ranks take in between. */
static void one_time(struct tensor *tensors, uint64_t random)
{
    int order[TENSORS], handles[TENSORS];
    shuffle(order, random);
    for (int i = 0; i < TENSORS; i++) {
        handles[i] = hand_over(&tensors[order[i]], order[i]);
        if (mix(random + (uint64_t)i) % 8 == 0)
            usleep((useconds_t)(random % 2000));
    }
    for (int i = 0; i < TENSORS; i++)
        if (handles[i] < 0 || rt_wait(handles[i]) != 0) {
            fprintf(stderr, "rank %d: %s\n", rt_rank(), rt_error());
            exit(2);
        }
}

static int compare_times(struct tensor *tensors, uint64_t seed)
{
    int differ = 0;
    for (int time = 0; time < TIMES; time++) {
        one_time(tensors, mix(seed + (uint64_t)time * 64 + (uint64_t)rt_rank()));
        for (int t = 0; t < TENSORS; t++) {
            const size_t bytes = tensors[t].count * sizeof(float);
            if (time == 0)
                memcpy(tensors[t].first, tensors[t].out, bytes);
            else
                differ += memcmp(tensors[t].first, tensors[t].out, bytes) != 0;
        }
    }
    return differ;
}

static uint64_t hash(const struct tensor *tensors, int from, int to)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int t = from; t < to; t++)
        for (size_t i = 0; i < tensors[t].count * sizeof(float); i++)
            h = (h ^ ((const unsigned char *)tensors[t].first)[i]) * 0x100000001b3u;
    return h;
}

int main(int argc, char **argv)
{
    struct tensor tensors[TENSORS];
    const char *deterministic = getenv("RT_DETERMINISTIC");
    if (rt_init() < 0) {
        fprintf(stderr, "rt_init: %s\n", rt_error());
        return 2;
    }
    for (int t = 0; t < TENSORS; t++)
        prepare(&tensors[t], t);
    int differ = compare_times(tensors, argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
    if (rt_rank() == 0)
        printf("hash %016llx, scattered %016llx, %d differ\n",
               (unsigned long long)hash(tensors, 0, SCATTERED),
               (unsigned long long)hash(tensors, SCATTERED, TENSORS), differ);
    for (int t = 0; t < TENSORS; t++) {
        free(tensors[t].in);
        free(tensors[t].out);
        free(tensors[t].first);
    }
    rt_shutdown();
    return differ > 0 && deterministic && *deterministic == '1';
}
