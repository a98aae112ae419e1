/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reduction kernels of rt_coll, and of each type the end of an average, beside the sum of as
 * many float32, in turns, in cache: what one element costs, in that of float32's sum.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rt-coll.h"

enum {
    COUNT = 2048,
    BYTES = COUNT * RT_TYPE_BYTES_MAX,
    TIMES = 8,
    ROUNDS = 61,
    OPS = RT_OP_COUNT + 1
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char a[BYTES], b[BYTES], out[BYTES];

static double time_kernel(enum rt_type type, int op)
{
    double start = seconds();
    for (int i = 0; i < TIMES; i++)
        if (op < RT_OP_COUNT)
            rt_reduce(out, a, b, COUNT, type, (enum rt_op)op);
        else
            rt_average_end(out, COUNT, type, RT_AVG, 3);
    return seconds() - start;
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

/* Of the quickest: what else runs on the machine only adds. */
static double ratio(enum rt_type type, int op)
{
    double least = time_kernel(RT_FLOAT32, RT_SUM), kernel = time_kernel(type, op);
    for (int r = 1; r < ROUNDS; r++) {
        least = smaller(least, time_kernel(RT_FLOAT32, RT_SUM));
        kernel = smaller(kernel, time_kernel(type, op));
    }
    return kernel / least;
}

int main(void)
{
#define NAME(name, text, bytes) text,
    static const char *const names[] = {RT_TYPE_LIST(NAME)};
    /* small numbers in every type: no subnormals, which some processors are slow with */
    memset(a, 0x3c, sizeof a);
    memset(b, 0x3c, sizeof b);
    printf("%-12s %8s %8s %8s %8s %8s\n", "type", "sum", "product", "max", "min", "divide");
    for (int type = 0; type < RT_TYPE_COUNT; type++) {
        printf("%-12s", names[type]);
        for (int op = 0; op < OPS; op++)
            if (op != RT_AVG)
                printf(" %8.2f", ratio((enum rt_type)type, op));
        printf("\n");
    }
    return 0;
}
