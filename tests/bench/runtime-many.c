/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's allreduce of 1,000 tensors of 1 KiB a step: mpirun -np 2 bench-runtime-many
 * [ROUNDS]
 *
 * Three ways take turns, round by round: each tensor waited for before the next is handed over; all
 * handed over, then waited for (fused as they become ready); all as one group. A round's time is
 * that of the slowest rank. Prints medians, the ratios to the first way (below 1: faster), and last
 * how much faster fusion is, with its bar; status 1: missed, or a sum was wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "rt.h"

enum { TENSORS = 1000, LENGTH = 256, ROUNDS_MAX = 101 };
enum way { ONE_BY_ONE, FUSED, GROUPED, WAYS };

static float in[TENSORS][LENGTH], out[TENSORS][LENGTH];
static double seconds[WAYS][ROUNDS_MAX];

static void check(int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "%s\n", rt_error());
    exit(1);
}

static int hand_over(int i)
{
    char name[32];
    snprintf(name, sizeof name, "tensor.%d", i);
    int handle = rt_allreduce_async(name, in[i], out[i], LENGTH, RT_FLOAT32, RT_SUM, 1, 1, NULL);
    check(handle);
    return handle;
}

static void step(enum way way)
{
    static int handles[TENSORS];
    static struct rt_group_member members[TENSORS];
    for (int i = 0; i < TENSORS && way != GROUPED; i++) {
        handles[i] = hand_over(i);
        if (way == ONE_BY_ONE)
            check(rt_wait(handles[i]));
    }
    for (int i = 0; i < TENSORS && way == FUSED; i++)
        check(rt_wait(handles[i]));
    for (int i = 0; i < TENSORS && way == GROUPED; i++)
        members[i] = (struct rt_group_member){in[i], out[i], LENGTH};
    if (way == GROUPED)
        check(rt_wait(
            rt_grouped_allreduce_async("group", members, TENSORS, RT_FLOAT32, RT_SUM, 1, 1, NULL)));
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double slowest(double value)
{
    check(
        rt_wait(rt_allreduce_async("slowest", &value, &value, 1, RT_FLOAT64, RT_MAX, 1, 1, NULL)));
    return value;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

int main(int argc, char **argv)
{
    static const char *const names[WAYS] = {"one by one", "fused", "group"};
    int rounds = argc > 1 ? atoi(argv[1]) : 11;
    if (rounds < 1 || rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    check(rt_init());
    for (int i = 0; i < TENSORS; i++)
        for (int k = 0; k < LENGTH; k++)
            in[i][k] = (float)(i + k);
    for (int r = -1; r < rounds; r++) /* the first warms up */
        for (int way = 0; way < WAYS; way++) {
            check(rt_wait(rt_barrier_async(NULL)));
            double begin = now();
            step((enum way)way);
            double took = slowest(now() - begin);
            if (r >= 0)
                seconds[way][r] = took;
        }
    for (int i = 0; i < TENSORS; i++)
        for (int k = 0; k < LENGTH; k++)
            if (out[i][k] != (float)(i + k) * (float)rt_size()) {
                fprintf(stderr, "tensor %d: a wrong sum\n", i);
                return 1;
            }
    double first = median(seconds[ONE_BY_ONE], rounds);
    for (int way = 0; way < WAYS && rt_rank() == 0; way++) {
        double took = median(seconds[way], rounds);
        printf("%-10s %9.3f ms a step, %.4f\n", names[way], took * 1e3, took / first);
    }
    int missed = rt_rank() == 0 ? bench_judge("one by one over fused, 1,000 tensors of 1 KiB",
                                              first / median(seconds[FUSED], rounds), ">=", 10)
                                : 0;
    check(rt_shutdown());
    return missed;
}
