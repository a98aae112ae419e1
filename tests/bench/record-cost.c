/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-cost.c - what a recorded blocking call costs, beside the least that could record it.
 *
 *   LD_PRELOAD=libringscope.so record-cost [ROUNDS]
 *
 * Rounds alternate between three loops over the same call, of an MPI that does nothing:
 * MPI_Allreduce as a program makes it (the preloaded library's way: jump, wrapper, record, real
 * function); the real function between two time stamps and a 48-byte store into a ring of the same
 * size; the real function alone. Medians of the rounds. The bar (1.25) holds for the first over the
 * second, with the call itself taken off both: the stricter way to put it. Exit status 1: the call
 * was not recorded.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLS 4096       /* a round; a quarter of the ring at most */
#define SLOTS (1u << 15) /* as tracer/threads.c has */
#define BAR   1.25

typedef int allreduce_fn(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

struct slot { /* 48 bytes, as struct rs_event */
    uint32_t op, peer;
    uint64_t start, end, count;
    uint32_t comm, dtype, seq, redop;
};

static allreduce_fn *volatile real;
static struct slot *ring;
static volatile uint64_t head;
static int in, out;

static uint64_t stamp(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
#error "no time stamp counter known"
#endif
}

static void traced(void)
{
    for (int i = 0; i < CALLS; i++)
        MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void stamped(void)
{
    allreduce_fn *call = real;
    for (int i = 0; i < CALLS; i++) {
        uint64_t start = stamp();
        call(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        uint64_t end = stamp(), at = head;
        ring[at & (SLOTS - 1)] = (struct slot){1, 2, start, end, 1, 3, 4, (uint32_t)i, 5};
        head = at + 1;
    }
}

static void bare(void)
{
    allreduce_fn *call = real;
    for (int i = 0; i < CALLS; i++)
        call(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static double ns_per_call(void (*loop)(void))
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    loop();
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / CALLS;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

static void let_drain(void)
{
    struct timespec pause = {0, 10000000};
    nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 101;
    void (*const loops[3])(void) = {traced, stamped, bare};
    double *ns[3], m[3];
    void *library = dlopen("libfake-mpi.so", RTLD_LAZY | RTLD_NOLOAD);
    real = library ? (allreduce_fn *)dlsym(library, "PMPI_Allreduce") : NULL;
    ring = aligned_alloc(4096, SLOTS * sizeof *ring);
    if (rounds < 1 || !real || !ring)
        return 2;
    memset(ring, 1, SLOTS * sizeof *ring);
    for (int k = 0; k < 3; k++)
        if (!(ns[k] = malloc((size_t)rounds * sizeof **ns)))
            return 2;
    MPI_Init(&argc, &argv);
    for (int i = -3; i < rounds; i++) /* the first three warm up */
        for (int k = 0; k < 3; k++) {
            let_drain();
            double v = ns_per_call(loops[k]);
            if (i >= 0)
                ns[k][i] = v;
        }
    MPI_Finalize();
    for (int k = 0; k < 3; k++)
        m[k] = median(ns[k], rounds);
    double ratio = (m[0] - m[2]) / (m[1] - m[2]);
    if (ratio < 0.5) {
        fprintf(stderr, "record-cost: nothing was recorded: is libringscope.so preloaded, and does "
                        "fake-mpi.c have what tracer/mpi/flavour.h asks for?\n");
        return 1;
    }
    printf("traced %.1f ns, two stamps and 48 bytes %.1f ns, the call alone %.1f ns\n", m[0], m[1],
           m[2]);
    printf("record-cost: ratio %.3f with the call taken off both, %.3f with it; bar %.2f: %s\n",
           ratio, m[0] / m[1], BAR, ratio <= BAR ? "met" : "missed");
    return 0;
}
