/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt_coll's allreduce against MPI_Allreduce: mpirun -np 2 coll [ROUNDS]
 *
 * For each size, rounds of the three contenders take turns: MPI_Allreduce, rt_allreduce over shared
 * memory, rt_allreduce over MPI messages. A round's time is that of the slowest rank; medians over
 * the rounds are compared. Prints a table, and the ratio of rt_coll's better one to MPI (below 1:
 * faster).
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rt-transport-mpi.h"
#include "rt-transport-shm.h"

#define ROUNDS_MAX     201
#define SMALLEST_BYTES 8u
#define LARGEST_BYTES  (64u << 20)

enum contender { BY_MPI, BY_SHM, BY_MESSAGES, CONTENDERS };

struct bench {
    int rank, size, rounds;
    float *in, *out;
    struct rt_transport_shm shm;
    struct rt_transport *messages;
};

/* One file without a name, opened by all through its maker's descriptor. */
static void *shared_region(int rank, size_t bytes)
{
    int name[2] = {(int)getpid(), -1};
    char path[64];
    if (rank == 0) {
        name[1] = memfd_create("coll-bench", MFD_CLOEXEC);
        if (ftruncate(name[1], (off_t)bytes) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Bcast(name, 2, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", name[0], name[1]);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || region == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    close(fd);
    MPI_Barrier(MPI_COMM_WORLD);
    return region;
}

static void reduce_once(struct bench *b, enum contender who, uint64_t count)
{
    if (who == BY_MPI)
        MPI_Allreduce(b->in, b->out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else
        rt_allreduce(who == BY_SHM ? &b->shm.base : b->messages, b->in, b->out, count, RT_FLOAT32,
                     RT_SUM);
}

/* Seconds per allreduce in one round, on the slowest rank. */
static double one_round(struct bench *b, enum contender who, uint64_t count, int times)
{
    double mine, slowest;
    MPI_Barrier(MPI_COMM_WORLD);
    reduce_once(b, who, count);
    double start = MPI_Wtime();
    for (int i = 0; i < times; i++)
        reduce_once(b, who, count);
    mine = (MPI_Wtime() - start) / times;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int times_for(uint64_t bytes)
{
    uint64_t times = (2u << 20) / bytes;
    return times < 1 ? 1 : times > 400 ? 400 : (int)times;
}

/* The ratio of the better of rt_coll's to MPI's. */
static double one_size(struct bench *b, uint64_t bytes)
{
    double seconds[CONTENDERS][ROUNDS_MAX], median[CONTENDERS];
    for (int r = 0; r < b->rounds; r++)
        for (int who = 0; who < CONTENDERS; who++)
            seconds[who][r] =
                one_round(b, (enum contender)who, bytes / sizeof(float), times_for(bytes));
    for (int who = 0; who < CONTENDERS; who++) {
        qsort(seconds[who], (size_t)b->rounds, sizeof(double), compare);
        median[who] = seconds[who][b->rounds / 2];
    }
    double best = median[BY_SHM] < median[BY_MESSAGES] ? median[BY_SHM] : median[BY_MESSAGES];
    if (b->rank == 0)
        printf("%10llu %12.2f %12.2f %12.2f %8.2f\n", (unsigned long long)bytes,
               median[BY_MPI] * 1e6, median[BY_SHM] * 1e6, median[BY_MESSAGES] * 1e6,
               best / median[BY_MPI]);
    fflush(stdout);
    return best / median[BY_MPI];
}

int main(int argc, char **argv)
{
    struct bench b = {.rounds = argc > 1 ? atoi(argv[1]) : 15};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.size);
    if (b.rounds < 1 || b.rounds > ROUNDS_MAX)
        b.rounds = 15;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    b.messages = rt_transport_mpi_new(&comm, 0, NULL, 0);
    void *region = shared_region(b.rank, rt_shm_bytes(b.size));
    b.in = malloc(LARGEST_BYTES);
    b.out = malloc(LARGEST_BYTES);
    if (!b.messages || rt_transport_shm_init(&b.shm, region, b.rank, b.size) || !b.in || !b.out)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < LARGEST_BYTES / sizeof(float); i++)
        b.in[i] = (float)((i * 31 + (size_t)b.rank * 7) % 1021);
    memset(b.out, 0, LARGEST_BYTES);
    if (b.rank == 0)
        printf("allreduce of float, %d ranks, medians of %d rounds, microseconds\n"
               "%10s %12s %12s %12s %8s\n",
               b.size, b.rounds, "bytes", "MPI", "rt_coll shm", "rt_coll MPI", "ratio");
    double worst = 0;
    for (uint64_t bytes = SMALLEST_BYTES; bytes <= LARGEST_BYTES; bytes *= 2) {
        double ratio = one_size(&b, bytes);
        worst = ratio > worst ? ratio : worst;
    }
    if (b.rank == 0)
        printf("worst ratio %.2f\n", worst);
    rt_transport_shm_release(&b.shm);
    rt_transport_mpi_free(b.messages);
    free(b.in);
    free(b.out);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
