/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-soak [--seconds N] [--seed N] - one rank: random operations through the runtime, results
 * checked; heap, memory and descriptors must stay. Exit status 1: wrong, or grown.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt.h"
#include "soak-usage.h"

#define COUNT_MAX 20000u
#define BATCH     8

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d: line %d: %s (%s)\n", rt_rank(), __LINE__, #condition,        \
                    rt_error());                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct operation {
    int kind, root, handle;
    uint32_t count;
    char name[32];
    int32_t *in, *out;
    struct rt_parts parts;
};

static int32_t value(int rank, uint64_t i)
{
    return (rank + 1) * (int32_t)(i % 97 + 1);
}

/* What each rank gives of an uneven operation: none, too. */
static uint64_t rows_of(const struct operation *o, int rank)
{
    return (o->count + (uint32_t)rank * 7) % 50;
}

enum { ALLREDUCE, BROADCAST, ALLGATHER, REDUCESCATTER, ALLTOALL, GROUP, COMPRESSED, ADASUM, KINDS };

/* Of floats: sums that 16 bits hold, and what all ranks have alike, which Adasum leaves as it is.
 */
static int start_floats(struct operation *o)
{
    const struct rt_options fp16 = {.compression = RT_COMPRESSION_FP16};
    float *in = (float *)o->in, *out = (float *)o->out;
    for (uint32_t i = 0; i < o->count; i++)
        in[i] = (float)value(o->kind == ADASUM ? 0 : rt_rank(), i);
    if (o->kind == ADASUM)
        return rt_allreduce_async(o->name, in, out, o->count, RT_FLOAT32, RT_ADASUM, 1, 1, NULL);
    return rt_allreduce_async(o->name, in, out, o->count, RT_FLOAT32, RT_SUM, 1, 1, &fp16);
}

static int start_group(struct operation *o)
{
    const uint32_t first = o->count / 3;
    const struct rt_group_member members[] = {{o->in, o->out, first},
                                              {o->in + first, o->out + first, o->count - first}};
    return rt_grouped_allreduce_async(o->name, members, 2, RT_INT32, RT_SUM, 1, 1, NULL);
}

static int start(struct operation *o)
{
    uint64_t splits[64];
    int size = rt_size(), rank = rt_rank();
    for (uint32_t i = 0; i < o->count; i++)
        o->in[i] = value(rank, i);
    switch (o->kind) {
    case ALLREDUCE:
        return rt_allreduce_async(o->name, o->in, o->out, o->count, RT_INT32, RT_SUM, 1, 1, NULL);
    case BROADCAST:
        return rt_broadcast_async(o->name, o->in, o->count, RT_INT32, o->root, NULL);
    case ALLGATHER:
        return rt_allgather_async(o->name, o->in, rows_of(o, rank), 2, RT_INT32, &o->parts, NULL);
    case REDUCESCATTER:
        return rt_reducescatter_async(o->name, o->in, o->out, o->count / 2, 2, RT_INT32, RT_SUM, 1,
                                      1, NULL);
    case GROUP:
        return start_group(o);
    case COMPRESSED:
    case ADASUM:
        return start_floats(o);
    default:
        for (int r = 0; r < size; r++)
            splits[r] = rows_of(o, r) / (uint64_t)size;
        return rt_alltoall_async(o->name, o->in, splits, 2, RT_INT32, &o->parts, NULL);
    }
}

static void check_sums(const int32_t *data, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        CHECK(data[i] == rt_size() * (rt_size() + 1) / 2 * (int32_t)((first + i) % 97 + 1));
}

static void check_floats(const struct operation *o)
{
    const float *out = (const float *)o->out;
    const int ranks = o->kind == ADASUM ? 1 : rt_size() * (rt_size() + 1) / 2;
    for (uint64_t i = 0; i < o->count; i++)
        CHECK(fabsf(out[i] - (float)(ranks * (int)(i % 97 + 1))) <=
              (o->kind == ADASUM ? 1e-3f : 0));
}

static void check_gathered(const struct operation *o)
{
    const int32_t *at = o->parts.data;
    for (int r = 0; r < rt_size(); r++) {
        CHECK(o->parts.rows[r] == rows_of(o, r));
        for (uint64_t i = 0; i < 2 * rows_of(o, r); i++)
            CHECK(*at++ == value(r, i));
    }
}

static void check(const struct operation *o)
{
    uint64_t first = 0;
    switch (o->kind) {
    case ALLREDUCE:
    case GROUP:
        check_sums(o->out, 0, o->count);
        break;
    case COMPRESSED:
    case ADASUM:
        check_floats(o);
        break;
    case BROADCAST:
        for (uint32_t i = 0; i < o->count; i++)
            CHECK(o->in[i] == value(o->root, i));
        break;
    case ALLGATHER:
        check_gathered(o);
        break;
    case REDUCESCATTER:
        for (int r = 0; r < rt_rank(); r++)
            first += rt_rows_of(o->count / 2, r);
        check_sums(o->out, 2 * first, 2 * rt_rows_of(o->count / 2, rt_rank()));
        break;
    default:
        CHECK(o->parts.total ==
              (uint64_t)rt_size() * (rows_of(o, rt_rank()) / (uint64_t)rt_size()));
    }
}

/* Several at once; each rank hands them over in an order of its own. */
static void run(struct operation *o)
{
    for (int i = 0; i < BATCH; i++) {
        struct operation *mine = &o[(i + rt_rank()) % BATCH];
        mine->handle = start(mine);
        CHECK(mine->handle >= 0);
    }
    for (int i = 0; i < BATCH; i++) {
        CHECK(rt_wait(o[i].handle) == 0);
        check(&o[i]);
        rt_parts_clear(&o[i].parts);
    }
}

/* The largest of each kind, fused as far as they ever are: buffers that are kept have then grown to
 * what they will be. */
static void fill_buffers(struct operation *o)
{
    for (int round = 0; round < 10 * KINDS; round++) {
        for (int i = 0; i < BATCH; i++) {
            o[i].kind = round % KINDS;
            o[i].count = COUNT_MAX + 99;
            o[i].root = round % rt_size();
            snprintf(o[i].name, sizeof o[i].name, "largest.%d.%d", o[i].kind, i);
        }
        run(o);
    }
}

/* With names that come again and names that never do. */
static void batch(struct operation *o, uint64_t *state, uint64_t round)
{
    for (int i = 0; i < BATCH; i++) {
        uint32_t kind = soak_random(state) % KINDS, small = soak_random(state) % 4;
        o[i].kind = (int)kind;
        o[i].count = soak_random(state) % (small ? 300 : COUNT_MAX) + 100;
        o[i].root = (int)(soak_random(state) % (uint32_t)rt_size());
        if (soak_random(state) % 2)
            snprintf(o[i].name, sizeof o[i].name, "again.%d", i);
        else
            snprintf(o[i].name, sizeof o[i].name, "once.%llu", (unsigned long long)round * 8 + i);
    }
    run(o);
}

/* Now and then all have run out of data. */
static void join(void)
{
    int last = -1;
    CHECK(rt_wait(rt_barrier_async(NULL)) == 0);
    CHECK(rt_wait(rt_join_async(&last, NULL)) == 0 && last >= 0);
}

static bool is_over(bool mine)
{
    int32_t flag = rt_rank() == 0 && mine;
    CHECK(rt_wait(rt_allreduce_async("over", &flag, &flag, 1, RT_INT32, RT_MAX, 1, 1, NULL)) == 0);
    return flag;
}

int main(int argc, char **argv)
{
    struct operation operations[BATCH] = {{0}};
    struct soak soak;
    double seconds = 5;
    uint64_t state = 1, round = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            state = strtoull(argv[i + 1], NULL, 10);
        else
            return 2;
    }
    CHECK(rt_init() == 0);
    int rank = rt_rank();
    for (int i = 0; i < BATCH; i++) {
        operations[i].in = malloc((COUNT_MAX + 100) * sizeof(int32_t));
        operations[i].out = malloc((COUNT_MAX + 100) * sizeof(int32_t));
        CHECK(operations[i].in && operations[i].out);
    }
    fill_buffers(operations);
    soak_begin(&soak, seconds);
    do {
        for (int i = 0; i < 5; i++)
            batch(operations, &state, round++);
        join();
    } while (!is_over(soak_round(&soak)));
    for (int i = 0; i < BATCH; i++) {
        free(operations[i].in);
        free(operations[i].out);
    }
    CHECK(rt_shutdown() == 0);
    return soak_end(&soak, "runtime", rank) ? 0 : 1;
}
