/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What compression does to gradients: averages over ranks, made as the runtime makes them, beside
 * those of float32; and what packing and unpacking cost, in the time of the sum of as many float32.
 *
 * Gradients are drawn from a normal distribution, or a log-normal one whose logarithm to base 2 has
 * a deviation of 3 (that of many networks' gradients is near to such), each of the given size; each
 * rank's is half common to all ranks. Printed: the share of averages that become zero, or subnormal
 * on the wire, and the median relative error of the others.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rt-wire.h"

enum { COUNT = 2048 };

/* ---- numbers ---- */

static uint64_t seed = 1;

static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return ((double)(seed >> 11) + 0.5) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static double log_normal(void)
{
    return exp2(3 * normal()) * (uniform() < 0.5 ? -1 : 1);
}

/* ---- the average of `ranks` ranks, by a tree ---- */

static void average(const struct rt_tensor *t, int ranks, const float *in, float *out)
{
    const struct rt_wire w = rt_wire_of(t, ranks);
    const uint64_t bytes = COUNT * rt_type_bytes(w.type);
    char *parts = malloc((size_t)ranks * bytes);
    if (!parts)
        exit(1);
    for (int r = 0; r < ranks; r++)
        rt_wire_pack(&w, parts + (uint64_t)r * bytes, in + (size_t)r * COUNT, COUNT);
    rt_average_begin(parts, parts, COUNT, w.type, w.op, ranks);
    for (int apart = 1; apart < ranks; apart *= 2)
        for (int r = 0; r + apart < ranks; r += 2 * apart) {
            char *mine = parts + (uint64_t)r * bytes;
            rt_reduce(mine, mine, mine + (uint64_t)apart * bytes, COUNT, w.type, w.op);
        }
    rt_average_end(parts, COUNT, w.type, w.op, ranks);
    rt_wire_unpack(&w, out, parts, COUNT);
    free(parts);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Below this in the result, what was on the wire was subnormal. */
static double least_normal(const struct rt_tensor *t, int ranks)
{
    const struct rt_wire w = rt_wire_of(t, ranks);
    return (w.type == RT_FLOAT16 ? 0x1p-14 : 0x1p-126) * w.after / w.divisor;
}

static void print_row(const char *name, double size, int ranks, enum rt_compression compression,
                      int power, const float *in, const float *exact)
{
    static float out[COUNT];
    static double errors[COUNT];
    struct rt_tensor t = {.type = RT_FLOAT32, .op = RT_AVG, .compression = (uint8_t)compression};
    unsigned zero = 0, subnormal = 0, n = 0;
    t.prescale = ldexp(1, power);
    t.postscale = ldexp(1, -power);
    average(&t, ranks, in, out);
    for (int i = 0; i < COUNT; i++) {
        if (out[i] == 0)
            zero += exact[i] != 0;
        else if (fabs((double)out[i]) < least_normal(&t, ranks))
            subnormal++;
        else
            errors[n++] = fabs((double)out[i] / (double)exact[i] - 1);
    }
    qsort(errors, n, sizeof *errors, compare);
    printf("%-10s %8.0e %5d %-5s 2^%-3d %9.3f %9.3f %12.1e\n", name, size, ranks,
           rt_compression_name(compression), power, (double)zero / COUNT, (double)subnormal / COUNT,
           n > 0 ? errors[n / 2] : (double)NAN);
}

static void print_rows(const char *name, double (*draw)(void), double size, int ranks)
{
    static float exact[COUNT];
    float *in = malloc((size_t)ranks * COUNT * sizeof *in);
    const struct rt_tensor t = {.type = RT_FLOAT32, .op = RT_AVG, .prescale = 1, .postscale = 1};
    if (!in)
        exit(1);
    for (int i = 0; i < COUNT; i++) {
        const double common = draw();
        for (int r = 0; r < ranks; r++)
            in[r * COUNT + i] = (float)(size * (common + draw()) / 2);
    }
    average(&t, ranks, in, exact);
    print_row(name, size, ranks, RT_COMPRESSION_FP16, 0, in, exact);
    print_row(name, size, ranks, RT_COMPRESSION_FP16, 10, in, exact);
    print_row(name, size, ranks, RT_COMPRESSION_BF16, 0, in, exact);
    free(in);
}

/* ---- what it costs ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum { PACK, UNPACK, SUM, WHATS };

static double time_of(int what, const struct rt_wire *w)
{
    static float a[COUNT], b[COUNT];
    enum { TIMES = 20 };
    const double start = seconds();
    for (int i = 0; i < TIMES; i++)
        if (what == PACK)
            rt_wire_pack(w, b, a, COUNT);
        else if (what == UNPACK)
            rt_wire_unpack(w, a, b, COUNT);
        else
            rt_reduce(a, a, b, COUNT, RT_FLOAT32, RT_SUM);
    return seconds() - start;
}

static void print_cost(enum rt_compression compression, int ranks)
{
    const struct rt_tensor t = {.type = RT_FLOAT32,
                                .op = RT_AVG,
                                .compression = (uint8_t)compression,
                                .prescale = 1,
                                .postscale = 1};
    const struct rt_wire w = rt_wire_of(&t, ranks);
    double least[WHATS] = {1, 1, 1};
    for (int round = 0; round < 61; round++)
        for (int what = 0; what < WHATS; what++)
            least[what] = fmin(least[what], time_of(what, &w));
    printf("%-5s average over %d ranks: pack %.2f, unpack %.2f\n", rt_compression_name(compression),
           ranks, least[PACK] / least[SUM], least[UNPACK] / least[SUM]);
}

int main(void)
{
    static const double sizes[] = {1e-2, 1e-4, 1e-6, 1e-8};
    printf("%-10s %8s %5s %-5s %-5s %9s %9s %12s\n", "gradients", "size", "ranks", "wire", "scale",
           "zero", "subnormal", "median error");
    for (int ranks = 8; ranks <= 512; ranks *= 64)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            print_rows("normal", normal, sizes[i], ranks);
            print_rows("log-normal", log_normal, sizes[i], ranks);
        }
    printf("\nin the time of the sum of as many float32:\n");
    for (int ranks = 7; ranks <= 8; ranks++) {
        print_cost(RT_COMPRESSION_FP16, ranks);
        print_cost(RT_COMPRESSION_BF16, ranks);
    }
    return 0;
}
