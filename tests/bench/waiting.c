/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks cost while they wait: mpirun -np 2 bench-waiting [ROUNDS]
 *
 * The last rank comes 200 ms late to an allreduce of 4 KiB, round by round in one of four ways:
 * through the runtime (handed over, then rt_wait), by rt_coll through shared memory, by rt_coll
 * through MPI's messages, by MPI_Allreduce. The late rank sleeps. Printed is the processor time of
 * all threads of a waiting rank, as a share of the time that it waited: the rank's median, of the
 * rank that took most. 1 is a core. Last the bar of the first two; status 1: missed, 2: an error.
 */
#include <mpi.h>
#include <stdint.h>
#include <sys/resource.h>

#include "bench.h"
#include "rt-shm-group.h"
#include "rt-transport-mpi.h"
#include "rt.h"

enum { COUNT = 1024, ROUNDS_MAX = 101, LATE_NS = 200000000 };
enum way { RUNTIME, SHARED_MEMORY, MESSAGES, BY_MPI, WAYS };
static const char *const names[WAYS] = {"the runtime", "rt_coll, shared memory",
                                        "rt_coll, MPI's messages", "MPI_Allreduce"};

static int rank, size;
static float data[COUNT];
static struct rt_transport *by_memory, *by_messages;

static void fail(const char *text)
{
    fprintf(stderr, "bench-waiting: %s: %s\n", text, rt_error());
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void reduce(enum way way)
{
    int error = 0;
    if (way == BY_MPI)
        MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
    else if (way == RUNTIME)
        error = rt_wait(
            rt_allreduce_async("tensor", data, data, COUNT, RT_FLOAT32, RT_MAX, 1, 1, NULL));
    else
        error = rt_allreduce(way == MESSAGES ? by_messages : by_memory, data, data, COUNT,
                             RT_FLOAT32, RT_MAX);
    if (error)
        fail(names[way]);
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static double one_round(enum way way)
{
    const struct timespec late = {.tv_nsec = LATE_NS};
    reduce(way); /* all begin here */
    const double begin = bench_seconds(), cpu = cpu_seconds();
    if (rank == size - 1)
        nanosleep(&late, NULL);
    reduce(way);
    return (cpu_seconds() - cpu) / (bench_seconds() - begin);
}

static void begin(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    if (rt_init() != 0)
        fail("rt_init");
    by_messages = rt_transport_mpi_new(&world, 7, NULL, size);
    by_memory = by_messages ? rt_shm_group_new(by_messages) : NULL;
    if (!by_memory)
        fail("transports");
}

static void end(void)
{
    rt_transport_mpi_free(by_messages);
    MPI_Barrier(MPI_COMM_WORLD);
    rt_shm_group_free(by_memory);
    if (rt_shutdown() != 0)
        fail("rt_shutdown");
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 5;
    double shares[WAYS][ROUNDS_MAX], most[WAYS];
    int provided = 0, missed = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rounds < 1 || rounds > ROUNDS_MAX || size < 2)
        fail("needs two ranks or more, and a number of rounds");
    begin();
    for (int r = 0; r < rounds; r++)
        for (int way = 0; way < WAYS; way++)
            shares[way][r] = one_round((enum way)way);
    for (int way = 0; way < WAYS; way++) {
        double mine = rank == size - 1 ? 0 : bench_median(shares[way], (unsigned)rounds);
        MPI_Allreduce(&mine, &most[way], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%-24s %.4f of a core while waiting\n", names[way], most[way]);
    }
    for (int way = 0; way <= SHARED_MEMORY && rank == 0; way++) {
        char what[100];
        snprintf(what, sizeof what, "a core's share of a waiting rank, %d ranks, %s", size,
                 names[way]);
        missed |= bench_judge(what, most[way], "<=", 0.05);
    }
    MPI_Bcast(&missed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    end();
    return missed;
}
