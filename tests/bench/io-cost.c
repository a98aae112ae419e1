/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io-cost.c - what the tracer adds to quick calls on files, which it does not record.
 *
 *   LD_PRELOAD=libringscope.so io-cost [ROUNDS]
 *
 * Rounds alternate between the C library's function as a program calls it (the preloaded library's
 * way) and the real one, found in libc.so itself. Medians of the rounds, in ns a call. It is a
 * capture by a call of the MPI that does nothing (fake-mpi.c).
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CALLS 2000

typedef ssize_t pread_fn(int, void *, size_t, off_t);
typedef ssize_t read_fn(int, void *, size_t);
typedef size_t fread_fn(void *, size_t, size_t, FILE *);

static char memory[1 << 16];
static int fd, zero;
static FILE *stream;
static read_fn *real_read;
static pread_fn *real_pread;
static fread_fn *real_fread;

static void one_byte(int traced)
{
    ssize_t n = traced ? read(zero, memory, 1) : real_read(zero, memory, 1);
    (void)n;
}

static void four_kib(int traced)
{
    ssize_t n = traced ? pread(fd, memory, 4096, 0) : real_pread(fd, memory, 4096, 0);
    (void)n;
}

static void small_fread(int traced)
{
    size_t n = traced ? fread(memory, 1, 16, stream) : real_fread(memory, 1, 16, stream);
    (void)n;
}

static double ns_per_call(void (*call)(int), int traced)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < CALLS; i++)
        call(traced);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / CALLS;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void measure(const char *what, void (*call)(int), int rounds)
{
    double *ns[2] = {calloc((size_t)rounds, sizeof(double)),
                     calloc((size_t)rounds, sizeof(double))};
    for (int i = 0; ns[0] && ns[1] && i < 2 * rounds; i++)
        ns[i % 2][i / 2] = ns_per_call(call, i % 2);
    for (int k = 0; k < 2; k++)
        qsort(ns[k], (size_t)rounds, sizeof(double), compare);
    printf("%-28s %7.1f ns, traced %7.1f ns\n", what, ns[0][rounds / 2], ns[1][rounds / 2]);
    free(ns[0]);
    free(ns[1]);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 201;
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (!libc || rounds < 1)
        return 2;
    real_read = (read_fn *)dlsym(libc, "read");
    real_pread = (pread_fn *)dlsym(libc, "pread64");
    real_fread = (fread_fn *)dlsym(libc, "fread");
    zero = open("/dev/zero", O_RDONLY);
    FILE *f = tmpfile();
    stream = fopen("/dev/zero", "r");
    MPI_Init(&argc, &argv);
    MPI_Allreduce(memory, memory, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!f || !stream || fwrite(memory, 1, sizeof memory, f) != sizeof memory || fflush(f))
        return 2;
    fd = fileno(f);
    measure("read of a byte of /dev/zero", one_byte, rounds);
    measure("pread of 4 KiB of a file", four_kib, rounds);
    measure("fread of 16 bytes", small_fread, rounds);
    MPI_Finalize();
    return 0;
}
