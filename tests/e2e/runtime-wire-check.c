/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-wire-check - one rank of a test of compression and Adasum in the runtime; exit 1 and a
 * line where a result is wrong.
 *
 * Inputs are numbers that 16 bits hold, and whose sums they hold, so that results are exact.
 * RUNTIME_CHECK_DEFAULT=fp16: RT_COMPRESSION is that; only the default is checked.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rank-check.h"
#include "rt-reference.h"
#include "rt.h"

static const struct rt_options none = {.compression = RT_COMPRESSION_NONE};
static const struct rt_options fp16 = {.compression = RT_COMPRESSION_FP16};
static const struct rt_options bf16 = {.compression = RT_COMPRESSION_BF16};

/* ---- results ---- */

struct given {
    char name[64];
    enum { ALLREDUCE, GROUP, REDUCESCATTER, WAYS } way;
    enum rt_type type, wire;
    enum rt_op op;
    uint64_t count;
    bool in_place, scaled;
    void *in[2], *out[2]; /* the second: of a group */
    int handle;
};

static const uint64_t counts[] = {0, 1, 13, 4099};
enum { COUNTS = sizeof counts / sizeof *counts, ROW = 3, TENSORS = WAYS * 2 * 2 * RT_OP_COUNT * 4 };

static struct given given_of(int t)
{
    struct given g = {.way = t % WAYS, .count = counts[t / 7 % COUNTS]};
    snprintf(g.name, sizeof g.name, "wire.%d", t);
    g.type = t / WAYS % 2 ? RT_FLOAT64 : RT_FLOAT32;
    g.wire = t / WAYS / 2 % 2 ? RT_BFLOAT16 : RT_FLOAT16;
    g.op = (enum rt_op)(t / WAYS / 4 % RT_OP_COUNT);
    g.in_place = g.way != REDUCESCATTER && t % 5 < 2;
    g.scaled = g.op != RT_PROD && t % 7 < 3;
    return g;
}

static void fill_wide(const struct given *g, void *data, uint64_t count, int tensor)
{
    for (uint64_t i = 0; i < count; i++)
        set_element(data, i, g->type, rank_value(rt_rank(), tensor, i, g->wire, g->op));
}

/* An average is the exact one, rounded to the tensor's own type. */
static double expected(const struct given *g, int tensor, uint64_t i)
{
    if (g->op != RT_AVG)
        return reduced_value(rt_size(), tensor, i, g->wire, g->op);
    double sum = 0;
    for (int r = 0; r < rt_size(); r++)
        sum += rank_value(r, tensor, i, g->wire, g->op);
    return g->type == RT_FLOAT32 ? (double)(float)(sum / rt_size()) : sum / rt_size();
}

static void begin(struct given *g, int tensor)
{
    const struct rt_options *o = g->wire == RT_FLOAT16 ? &fp16 : &bf16;
    const double before = g->scaled ? 0.5 : 1, after = g->scaled ? 2 : 1;
    const uint64_t count = g->count * (g->way == REDUCESCATTER ? ROW : 1);
    struct rt_group_member members[2];
    for (int m = 0; m < 2; m++) {
        g->in[m] = malloc(count * 8 + 1);
        g->out[m] = g->in_place ? g->in[m] : malloc(count * 8 + 1);
        fill_wide(g, g->in[m], count, 2 * tensor + m);
        members[m] = (struct rt_group_member){g->in[m], g->out[m], g->count};
    }
    if (g->way == ALLREDUCE)
        g->handle = rt_allreduce_async(g->name, g->in[0], g->out[0], count, g->type, g->op, before,
                                       after, o);
    else if (g->way == GROUP)
        g->handle =
            rt_grouped_allreduce_async(g->name, members, 2, g->type, g->op, before, after, o);
    else
        g->handle = rt_reducescatter_async(g->name, g->in[0], g->out[0], g->count, ROW, g->type,
                                           g->op, before, after, o);
    CHECK(g->handle >= 0, "%s", g->name);
}

static void end(struct given *g, int tensor)
{
    uint64_t first = 0, count = g->count;
    CHECK(rt_wait(g->handle) == 0, "%s", g->name);
    if (g->way == REDUCESCATTER) {
        for (int r = 0; r < rt_rank(); r++)
            first += rt_rows_of(g->count, r) * ROW;
        count = rt_rows_of(g->count, rt_rank()) * ROW;
    }
    for (int m = 0; m < (g->way == GROUP ? 2 : 1); m++)
        for (uint64_t i = 0; i < count; i++) {
            double want = expected(g, 2 * tensor + m, first + i),
                   got = element(g->out[m], i, g->type);
            CHECK(got == want,
                  "%s, type %d as %d, reduction %d, way %d, [%llu] is %.17g, not %.17g", g->name,
                  (int)g->type, (int)g->wire, (int)g->op, (int)g->way, (unsigned long long)i, got,
                  want);
        }
    for (int m = 0; m < 2; m++) {
        if (!g->in_place)
            free(g->out[m]);
        free(g->in[m]);
    }
}

static void check_compression(void)
{
    static struct given given[TENSORS];
    for (int t = 0; t < TENSORS; t++) {
        const int other = (t * 7 + rt_rank() * 31) % TENSORS;
        given[other] = given_of(other);
        begin(&given[other], other);
    }
    for (int t = 0; t < TENSORS; t++)
        end(&given[t], t);
}

/* ---- what 16 bits do ---- */

static void reduce(const char *name, void *data, uint64_t count, enum rt_type type, enum rt_op op,
                   const struct rt_options *options)
{
    int handle = rt_allreduce_async(name, data, data, count, type, op, 1, 1, options);
    CHECK(rt_wait(handle) == 0, "%s", name);
}

static void check_range(void)
{
    const bool last = rt_rank() == rt_size() - 1;
    float a[] = {last ? NAN : 1, last ? -INFINITY : 1, 57344, 1e-9f, 1 + 0x1p-12f};
    float b[5], c[5];
    memcpy(b, a, sizeof a);
    memcpy(c, a, sizeof a);
    reduce("half", a, 5, RT_FLOAT32, RT_AVG, &fp16);
    reduce("brain", b, 5, RT_FLOAT32, RT_MAX, &bf16);
    reduce("whole", c, 5, RT_FLOAT32, RT_MAX, &none);
    CHECK(isnan(a[0]) && a[1] == -INFINITY && a[2] == 57344 && a[3] == 0 && a[4] == 1,
          "%g %g %g %g %g", a[0], a[1], a[2], a[3], a[4]);
    CHECK(isnan(b[0]) && b[2] == 57344 && fabsf(b[3] - 1e-9f) < 1e-11f && b[4] == 1, "%g %g %g %g",
          b[0], b[2], b[3], b[4]);
    CHECK(isnan(c[0]) && c[2] == 57344 && c[3] == 1e-9f && c[4] == 1 + 0x1p-12f, "%g %g %g", c[2],
          c[3], c[4]);
    /* a sum that float16 can't hold */
    a[0] = last ? 65504 : 65504.0f / 2;
    reduce("sum", a, 1, RT_FLOAT32, RT_SUM, &fp16);
    CHECK(rt_size() == 1 ? a[0] == 65504 : isinf(a[0]), "%g", a[0]);
}

/* Only floats of 32 and 64 bits are compressed; the option says nothing to others. */
static void check_other_types(void)
{
    int32_t word = 70001;
    uint16_t half;
    reduce("int", &word, 1, RT_INT32, RT_MAX, &fp16);
    CHECK(word == 70001, "%d", word);
    set_element(&half, 0, RT_FLOAT16, 1 + 0x1p-10);
    reduce("float16", &half, 1, RT_FLOAT16, RT_MAX, &bf16);
    CHECK(element(&half, 0, RT_FLOAT16) == 1 + 0x1p-10, "%g", element(&half, 0, RT_FLOAT16));
}

static void check_refusals(void)
{
    const struct rt_options unknown = {.compression = RT_COMPRESSION_COUNT};
    float data[2] = {0};
    const bool last = rt_rank() == rt_size() - 1;
    char want[64];
    CHECK(rt_allreduce_async("x", data, data, 2, RT_FLOAT32, RT_SUM, 1, 1, &unknown) == -EINVAL &&
              strstr(rt_error(), "tensor x: unknown compression"),
          "unknown");
    if (rt_size() == 1)
        return;
    int handle =
        rt_allreduce_async("x", data, data, 2, RT_FLOAT32, RT_SUM, 1, 1, last ? &bf16 : &fp16);
    CHECK(rt_wait(handle) == -EINVAL && strstr(rt_error(), "tensor x; compression: rank 0 fp16, "),
          "text");
    snprintf(want, sizeof want, "rank %d bf16", rt_size() - 1);
    CHECK(strstr(rt_error(), want), "text");
    handle = rt_reducescatter_async("x", data, data, 2, 1, RT_FLOAT32, RT_SUM, 1, 1,
                                    last ? NULL : &fp16);
    CHECK(rt_wait(handle) == -EINVAL && strstr(rt_error(), "compression: rank 0 fp16, "), "text");
    snprintf(want, sizeof want, "rank %d none", rt_size() - 1);
    CHECK(strstr(rt_error(), want), "text");
}

/* A rank that has joined brings zeros of the wire's type. */
static void check_join(void)
{
    int last = -1;
    if (rt_rank() > 0) {
        double data[300];
        for (int i = 0; i < 300; i++)
            data[i] = i + rt_rank();
        reduce("joined", data, 300, RT_FLOAT64, RT_SUM, &fp16);
        for (int i = 0; i < 300; i++)
            CHECK(data[i] == (rt_size() - 1) * i + rt_size() * (rt_size() - 1) / 2, "[%d] is %g", i,
                  data[i]);
    }
    CHECK(rt_wait(rt_join_async(&last, NULL)) == 0, "join");
}

static void check_default(void)
{
    float fine[] = {1e-9f, 1 + 0x1p-12f}, coarse[] = {1e-9f, 1 + 0x1p-12f};
    reduce("coarse", coarse, 2, RT_FLOAT32, RT_MAX, NULL);
    reduce("fine", fine, 2, RT_FLOAT32, RT_MAX, &none);
    CHECK(coarse[0] == 0 && coarse[1] == 1, "%g %.9g", coarse[0], coarse[1]);
    CHECK(fine[0] == 1e-9f && fine[1] == 1 + 0x1p-12f, "%g %.9g", fine[0], fine[1]);
    reduce("brain", fine, 1, RT_FLOAT32, RT_MAX, &bf16);
    CHECK(fine[0] > 0, "%g", fine[0]);
}

/* ---- Adasum ---- */

enum { LENGTH = 1001, VECTORS = 6 };

/* Of odd vectors ranks share no index: their sum comes; of even ones all ranks' are equal: those
 * come. What goes as one is still reduced each by itself. */
static float vector_value(int rank, int vector, int i)
{
    const float value = (float)((i + vector) % 23 - 11);
    return vector % 2 == 0 || i % rt_size() == rank ? value : 0;
}

static void fill_vector(float *data, int vector)
{
    for (int i = 0; i < LENGTH; i++)
        data[i] = vector_value(rt_rank(), vector, i);
}

static void check_vector(const float *data, int vector, float factor)
{
    for (int i = 0; i < LENGTH; i++) {
        const float want = (float)((i + vector) % 23 - 11) * factor;
        CHECK(fabsf(data[i] - want) <= 1e-2f, "vector %d [%d] is %g, not %g", vector, i,
              (double)data[i], (double)want);
    }
}

static void check_adasum(void)
{
    static float data[VECTORS][LENGTH], grouped[2][LENGTH], small[LENGTH];
    int handles[VECTORS], last = -1;
    const struct rt_group_member members[] = {{grouped[0], grouped[0], LENGTH},
                                              {grouped[1], grouped[1], LENGTH}};
    for (int v = 0; v < VECTORS; v++) {
        char name[16];
        snprintf(name, sizeof name, "adasum.%d", v);
        fill_vector(data[v], v);
        handles[v] =
            rt_allreduce_async(name, data[v], data[v], LENGTH, RT_FLOAT32, RT_ADASUM, 0.5, 4, NULL);
    }
    fill_vector(grouped[0], 0);
    fill_vector(grouped[1], 1);
    fill_vector(small, 3);
    const int group =
        rt_grouped_allreduce_async("pair", members, 2, RT_FLOAT32, RT_ADASUM, 1, 1, NULL);
    for (int v = 0; v < VECTORS; v++) {
        CHECK(rt_wait(handles[v]) == 0, "%d", v);
        check_vector(data[v], v, 2);
    }
    CHECK(rt_wait(group) == 0, "group");
    check_vector(grouped[0], 0, 1);
    check_vector(grouped[1], 1, 1);
    reduce("as float16", small, LENGTH, RT_FLOAT32, RT_ADASUM, &fp16);
    check_vector(small, 3, 1);

    /* who has joined brings zeros, and doesn't know how the group is divided */
    if (rt_size() > 1 && rt_rank() > 0) {
        memset(grouped, 0, sizeof grouped);
        for (int i = 0; i < LENGTH; i++) {
            grouped[0][i] = (float)(i % 23 - 11);
            grouped[1][i] = (i + 1) % rt_size() == rt_rank() ? 1 : 0;
        }
        const int after =
            rt_grouped_allreduce_async("pair", members, 2, RT_FLOAT32, RT_ADASUM, 1, 1, NULL);
        CHECK(rt_wait(after) == 0, "group");
        check_vector(grouped[0], 0, 1);
        for (int i = 0; i < LENGTH; i++)
            CHECK(fabsf(grouped[1][i] - ((i + 1) % rt_size() != 0)) < 1e-5f, "[%d] is %g", i,
                  (double)grouped[1][i]);
    }
    CHECK(rt_wait(rt_join_async(&last, NULL)) == 0, "join");
}

static void check_adasum_refusals(void)
{
    int32_t words[2] = {0};
    float data[2] = {0};
    CHECK(rt_allreduce_async("x", words, words, 2, RT_INT32, RT_ADASUM, 1, 1, NULL) == -EINVAL &&
              strstr(rt_error(), "adasum is for allreduces of floats, not for ALLREDUCE of int32"),
          "int32");
    CHECK(rt_reducescatter_async("x", data, data, 2, 1, RT_FLOAT32, RT_ADASUM, 1, 1, NULL) ==
                  -EINVAL &&
              strstr(rt_error(), "not for REDUCESCATTER of float32"),
          "reducescatter");
    if (rt_size() == 1)
        return;
    int handle = rt_allreduce_async("x", data, data, 2, RT_FLOAT32,
                                    rt_rank() == 0 ? RT_ADASUM : RT_SUM, 1, 1, NULL);
    CHECK(rt_wait(handle) == -EINVAL && strstr(rt_error(), "reduction: rank 0 adasum, rank 1 sum"),
          "text");
}

int main(void)
{
    if (rt_init() < 0) {
        fprintf(stderr, "rt_init: %s\n", rt_error());
        return 2;
    }
    if (getenv("RUNTIME_CHECK_DEFAULT")) {
        check_default();
    } else {
        check_compression();
        check_range();
        check_other_types();
        check_refusals();
        check_join();
        check_adasum();
        check_adasum_refusals();
    }
    if (rt_shutdown() < 0) {
        fprintf(stderr, "rt_shutdown: %s\n", rt_error());
        return 1;
    }
    return 0;
}
