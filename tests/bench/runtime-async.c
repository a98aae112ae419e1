/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's allreduce from hand-over to rt_wait's return, one tensor at a time, against
 * MPI_Allreduce: mpirun -np 2 bench-runtime-async [ROUNDS]
 *
 * Float, sum, in place. For each size the contenders take turns, round by round; a round's time is
 * that of the slowest rank, and what is printed is the median of the rounds' ratios. Every result
 * is checked. The last line is the ratio at the worst size from 1 MiB on, with its bar; status 1:
 * it was missed, 2: nothing was measured or a sum was wrong.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>

#include "bench.h"
#include "rt.h"

enum { ROUNDS_MAX = 101 };
enum contender { BY_MPI, ALLOCATED, PRIVATE, CONTENDERS };

#define LARGEST_BYTES ((uint64_t)64 << 20)
#define BAR_BYTES     ((uint64_t)1 << 20)
#define SCALE         0x1p-100f /* room for sums of sums */

static float *data[CONTENDERS];
static int rank, size;

static void fail(const char *text)
{
    fprintf(stderr, "bench-runtime-async: %s: %s\n", text, rt_error());
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static float value(uint64_t i, int of_rank)
{
    return (float)((i * 31 + (uint64_t)of_rank * 7) % 1021 + 1) * SCALE;
}

static void reduce_once(enum contender who, uint64_t count)
{
    if (who == BY_MPI) {
        MPI_Allreduce(MPI_IN_PLACE, data[BY_MPI], (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        return;
    }
    int handle =
        rt_allreduce_async("tensor", data[who], data[who], count, RT_FLOAT32, RT_SUM, 1, 1, NULL);
    if (handle < 0 || rt_wait(handle) != 0)
        fail("rt_allreduce_async");
}

/* After `times` sums in place each is `size` times the one before. */
static void check(enum contender who, uint64_t count, unsigned times)
{
    const double factor = pow(size, times - 1);
    for (uint64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int r = 0; r < size; r++)
            sum += (double)value(i, r);
        if (!(fabs(data[who][i] / factor - sum) <= 1e-4 * sum))
            fail("a wrong sum");
    }
}

static double one_round(enum contender who, uint64_t count)
{
    const uint64_t bytes = count * sizeof(float);
    const unsigned times = bytes >= 2u << 20 ? 1 : bytes >= 256u << 10 ? 4 : 20;
    for (uint64_t i = 0; i < count; i++)
        data[who][i] = value(i, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    reduce_once(who, count);
    double begin = bench_seconds(), slowest;
    for (unsigned i = 0; i < times; i++)
        reduce_once(who, count);
    double mine = (bench_seconds() - begin) / times;
    check(who, count, times + 1);
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* The medians of the ratios to MPI: [0] of rt_buffer_alloc's memory, [1] of other. */
static void one_size(uint64_t bytes, unsigned rounds, double ret[2])
{
    double seconds[CONTENDERS][ROUNDS_MAX], faster[2][ROUNDS_MAX];
    for (unsigned r = 0; r < rounds; r++) {
        for (int who = 0; who < CONTENDERS; who++)
            seconds[who][r] = one_round((enum contender)who, bytes / sizeof(float));
        faster[0][r] = seconds[BY_MPI][r] / seconds[ALLOCATED][r];
        faster[1][r] = seconds[BY_MPI][r] / seconds[PRIVATE][r];
    }
    for (int i = 0; i < 2; i++)
        ret[i] = bench_median(faster[i], rounds);
    if (rank == 0)
        printf("%10llu %12.2f %12.2f %12.2f %8.2f %8.2f\n", (unsigned long long)bytes,
               bench_median(seconds[BY_MPI], rounds) * 1e6,
               bench_median(seconds[ALLOCATED], rounds) * 1e6,
               bench_median(seconds[PRIVATE], rounds) * 1e6, ret[0], ret[1]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 9, provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rounds < 1 || rounds > ROUNDS_MAX || size < 2)
        fail("needs two ranks or more, and a number of rounds");
    if (rt_init() != 0)
        fail("rt_init");
    data[BY_MPI] = malloc(LARGEST_BYTES);
    data[ALLOCATED] = rt_buffer_alloc(LARGEST_BYTES);
    data[PRIVATE] = malloc(LARGEST_BYTES);
    if (!data[BY_MPI] || !data[ALLOCATED] || !data[PRIVATE])
        fail("no memory");
    if (rank == 0)
        printf("allreduce of float from hand-over to wait, in place, %d ranks, medians of %d "
               "rounds,\nmicroseconds; times as fast as MPI_Allreduce\n"
               "%10s %12s %12s %12s %8s %8s\n",
               size, rounds, "bytes", "MPI", "rt_buffer", "other", "faster", "other");
    double least = INFINITY;
    for (uint64_t bytes = 32; bytes <= LARGEST_BYTES; bytes *= bytes < BAR_BYTES ? 8 : 2) {
        double faster[2];
        one_size(bytes, (unsigned)rounds, faster);
        if (bytes >= BAR_BYTES && faster[0] < least)
            least = faster[0];
    }
    int missed = rank == 0 ? bench_judge("MPI over the runtime's whole path, one tensor at a time, "
                                         "from 1 MiB on, at the worst size",
                                         least, ">=", 1)
                           : 0;
    MPI_Bcast(&missed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rt_shutdown() != 0)
        fail("rt_shutdown");
    rt_buffer_free(data[ALLOCATED]);
    free(data[PRIVATE]);
    free(data[BY_MPI]);
    MPI_Finalize();
    return missed;
}
