/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "rt-fault.h"

static int64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Work, not sleep: a slow rank needs its processor. */
static void compute_for(int64_t ns)
{
    static volatile double sink;
    const int64_t end = cpu_ns() + ns;
    double x = 1;
    do
        for (int i = 0; i < 2000; i++)
            x = x * 1.0000001 + 1e-9;
    while (cpu_ns() < end);
    sink = x;
    (void)sink;
}

void rt_faults_compute(const struct rt_faults *f, int rank)
{
    for (int i = 0; i < f->n; i++)
        if (f->fault[i].kind == RT_FAULT_SLOW_RANK && f->fault[i].rank == rank)
            compute_for((int64_t)(f->fault[i].ms * 1e6));
}

void rt_faults_step(const struct rt_faults *f, int rank, int64_t step)
{
    for (int i = 0; i < f->n; i++) {
        const struct rt_fault *fault = &f->fault[i];
        if (fault->kind == RT_FAULT_DIE && fault->rank == rank && fault->step == step)
            kill(getpid(), fault->signal);
    }
}
