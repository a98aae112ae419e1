/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank, argv[1], never hands over a tensor that the others wait for: they must be told so and
 * get an error, rank 0 also where it is the one; afterwards all go on. Run with
 * RT_STALL_WARNING_TIME and RT_STALL_SHUTDOWN_TIME. The others' errors go to standard output.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rt.h"

static int reduce(const char *name, float *value)
{
    int handle = rt_allreduce_async(name, value, value, 1, RT_FLOAT32, RT_SUM, 1, 1, NULL);
    return handle < 0 ? handle : rt_wait(handle);
}

int main(int argc, char **argv)
{
    if (argc != 2 || rt_init() < 0)
        return 9;
    float one = 1;
    if (rt_rank() != atoi(argv[1])) {
        int error = reduce("late", &one);
        printf("rank %d: %s: %s\n", rt_rank(), error == -ETIMEDOUT ? "timed out" : "?", rt_error());
        fflush(stdout);
    }
    int error;
    do /* whoever missed the other one is here early, and may be told the same */
        one = 1;
    while ((error = reduce("after", &one)) == -ETIMEDOUT);
    if (error < 0 || one != (float)rt_size()) {
        fprintf(stderr, "rank %d: what came after is %g: %s\n", rt_rank(), (double)one, rt_error());
        return 1;
    }
    return rt_shutdown() < 0;
}
