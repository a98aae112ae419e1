/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt_coll's allreduce on one host against another's: mpirun -np 2 bench-coll [OPTION...]
 *
 *     --rounds N       rounds of each size (11)
 *     --smallest BYTES, --largest BYTES  the shortest and the longest buffer (8, 256 MiB)
 *     --every N        N-th power of two only (1)
 *     --median X       bar: times as fast as the other in the median of sizes (2)
 *     --each X         bar: at every size (1)
 *     --no-memcpy      no bar of bandwidth
 *
 * The other is the MPI that this is built with, or Gloo (bench-coll-gloo). Float, sum, in place.
 * For each size the contenders take turns, round by round; a round's time is that of the slowest
 * rank, and what is printed is the median of the rounds' ratios. Every result is checked. The last
 * lines are ratios with their bars; status 1: one was missed, 2: nothing was measured or a sum was
 * wrong.
 */
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "coll-other.h"
#include "rt-transport-shm.h"

#define ROUNDS_MAX  101
#define MORE_ROUNDS 5
#define SCALE       0x1p-100f /* room for sums of sums */

enum contender { OTHER, SHARED, PRIVATE, COPY, CONTENDERS };

struct bench {
    int rank, size;
    unsigned rounds, every;
    uint64_t smallest, largest;
    double bar_median, bar_each;
    bool copies;
    float *data[CONTENDERS]; /* each contender's own */
    float *copy_from;
    struct rt_transport_shm shm;
    /* results, one a size */
    unsigned sizes, copied_sizes;
    double speedup[64], share[64];
};

static void fail(const char *text)
{
    fprintf(stderr, "bench-coll: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* One file without a name, opened by all through its maker's descriptor. */
static void *shared_region(int rank, size_t bytes)
{
    int name[2] = {(int)getpid(), -1};
    char path[64];
    if (rank == 0) {
        name[1] = memfd_create("coll-bench", MFD_CLOEXEC);
        if (ftruncate(name[1], (off_t)bytes) != 0)
            fail("ftruncate");
    }
    MPI_Bcast(name, 2, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", name[0], name[1]);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || region == MAP_FAILED)
        fail("no shared memory");
    close(fd);
    MPI_Barrier(MPI_COMM_WORLD);
    return region;
}

/* ---- one round ---- */

static float value(uint64_t i, int rank)
{
    return (float)((i * 31 + (uint64_t)rank * 7) % 1021 + 1) * SCALE;
}

static void reduce_once(struct bench *b, enum contender who, uint64_t count)
{
    if (who == OTHER)
        other_allreduce(b->data[OTHER], count);
    else if (who == COPY)
        memcpy(b->data[COPY], b->copy_from, count * sizeof(float));
    else if (rt_allreduce(&b->shm.base, b->data[who], b->data[who], count, RT_FLOAT32, RT_SUM) != 0)
        fail("rt_allreduce failed");
}

/* After `times` sums in place each is `size` times the one before. */
static void check(const struct bench *b, enum contender who, uint64_t count, unsigned times)
{
    const double factor = pow(b->size, times - 1);
    for (uint64_t i = 0; i < count && who != COPY; i++) {
        float sum = 0;
        for (int r = 0; r < b->size; r++)
            sum += value(i, r);
        if (!(fabs(b->data[who][i] / factor - (double)sum) <= 1e-4 * (double)sum)) {
            fprintf(stderr, "contender %d, element %llu of %llu: %g, expected %g\n", (int)who,
                    (unsigned long long)i, (unsigned long long)count, (double)b->data[who][i],
                    (double)sum * factor);
            fail("a wrong sum");
        }
    }
}

/* Sums grow by `size` each time, and must stay finite. */
static unsigned times_for(const struct bench *b, uint64_t bytes)
{
    const double most = 180 / log2(b->size);
    const double enough = (double)(2u << 20) / (double)bytes;
    return enough < 1 ? 1 : enough > most ? (unsigned)most : (unsigned)enough;
}

static double one_round(struct bench *b, enum contender who, uint64_t count)
{
    const unsigned times = times_for(b, count * sizeof(float));
    for (uint64_t i = 0; i < count; i++)
        b->data[who][i] = value(i, b->rank);
    MPI_Barrier(MPI_COMM_WORLD);
    reduce_once(b, who, count);
    double begin = bench_seconds(), slowest;
    for (unsigned i = 0; i < times; i++)
        reduce_once(b, who, count);
    double mine = (bench_seconds() - begin) / times;
    check(b, who, count, times + 1);
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* ---- sizes ---- */

static void one_size(struct bench *b, uint64_t bytes)
{
    double seconds[CONTENDERS][MORE_ROUNDS * ROUNDS_MAX], faster[MORE_ROUNDS * ROUNDS_MAX],
        private[MORE_ROUNDS * ROUNDS_MAX];
    double share[MORE_ROUNDS * ROUNDS_MAX];
    /* short rounds are cheap, and one of them is soon spoilt by what else runs on the machine */
    const unsigned rounds = bytes <= 1u << 20 ? b->rounds * MORE_ROUNDS : b->rounds;
    for (unsigned r = 0; r < rounds; r++) {
        for (int who = 0; who < CONTENDERS; who++)
            seconds[who][r] = one_round(b, (enum contender)who, bytes / sizeof(float));
        faster[r] = seconds[OTHER][r] / seconds[SHARED][r];
        private[r] = seconds[OTHER][r] / seconds[PRIVATE][r];
        share[r] = seconds[COPY][r] / seconds[SHARED][r];
    }
    const double speedup = bench_median(faster, rounds);
    const double of_memcpy = bench_median(share, rounds);
    b->speedup[b->sizes++] = speedup;
    if (bytes >= 1u << 20 && bytes <= 64u << 20)
        b->share[b->copied_sizes++] = of_memcpy;
    if (b->rank == 0)
        printf("%10llu %12.2f %12.2f %12.2f %8.2f %8.2f %8.2f\n", (unsigned long long)bytes,
               bench_median(seconds[OTHER], rounds) * 1e6,
               bench_median(seconds[SHARED], rounds) * 1e6,
               bench_median(seconds[PRIVATE], rounds) * 1e6, speedup, bench_median(private, rounds),
               of_memcpy);
    fflush(stdout);
}

static int judge(struct bench *b)
{
    char what[128];
    double least = b->speedup[0], least_share = b->copied_sizes ? b->share[0] : 0;
    for (unsigned i = 0; i < b->sizes; i++)
        least = b->speedup[i] < least ? b->speedup[i] : least;
    for (unsigned i = 0; i < b->copied_sizes; i++)
        least_share = b->share[i] < least_share ? b->share[i] : least_share;
    int missed = 0;
    snprintf(what, sizeof what, "%d ranks, %s over rt_coll, at the worst size", b->size,
             other_name);
    missed |= bench_judge(what, least, ">=", b->bar_each);
    snprintf(what, sizeof what, "%d ranks, %s over rt_coll, in the median of sizes", b->size,
             other_name);
    missed |= bench_judge(what, bench_median(b->speedup, b->sizes), ">=", b->bar_median);
    if (b->copies && b->copied_sizes > 0)
        missed |= bench_judge("bandwidth over memcpy's, 1 to 64 MiB, at the worst size",
                              least_share, ">=", 0.75);
    return missed;
}

static void read_options(struct bench *b, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *given = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--no-memcpy") == 0) {
            b->copies = false;
            continue;
        }
        if (strcmp(argv[i], "--rounds") == 0)
            b->rounds = (unsigned)atoi(given);
        else if (strcmp(argv[i], "--smallest") == 0)
            b->smallest = strtoull(given, NULL, 10);
        else if (strcmp(argv[i], "--largest") == 0)
            b->largest = strtoull(given, NULL, 10);
        else if (strcmp(argv[i], "--every") == 0)
            b->every = (unsigned)atoi(given);
        else if (strcmp(argv[i], "--median") == 0)
            b->bar_median = atof(given);
        else if (strcmp(argv[i], "--each") == 0)
            b->bar_each = atof(given);
        else
            fail("unknown option");
        i++;
    }
    if (b->rounds < 1 || b->rounds > ROUNDS_MAX || b->smallest < sizeof(float) ||
        b->largest < b->smallest || b->every < 1 || b->every > 8)
        fail("an option has no sense");
}

static void set_up(struct bench *b)
{
    void *region = shared_region(b->rank, rt_shm_bytes(b->size));
    if (rt_transport_shm_init(&b->shm, region, b->rank, b->size))
        fail("no transport");
    b->data[SHARED] = rt_alloc(b->largest);
    b->data[OTHER] = malloc(b->largest);
    b->data[PRIVATE] = malloc(b->largest);
    b->data[COPY] = malloc(b->largest);
    b->copy_from = malloc(b->largest);
    for (int who = 0; who < CONTENDERS; who++)
        if (!b->data[who] || !b->copy_from)
            fail("no memory");
    for (int who = 0; who < CONTENDERS; who++)
        memset(b->data[who], 0, b->largest);
    memset(b->copy_from, 0, b->largest);
}

int main(int argc, char **argv)
{
    static struct bench b = {.rounds = 11,
                             .every = 1,
                             .smallest = 8,
                             .largest = 256u << 20,
                             .bar_median = 2,
                             .bar_each = 1,
                             .copies = true};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.size);
    if (b.size < 2)
        fail("needs two ranks or more: mpirun -np 2 bench-coll");
    read_options(&b, argc, argv);
    set_up(&b);
    other_begin(b.rank, b.size);
    if (b.rank == 0)
        printf("allreduce, float, sum, in place, %d ranks, medians of %u rounds, microseconds;\n"
               "times as fast as %s; bandwidth over memcpy's in all ranks at once\n"
               "%10s %12s %12s %12s %8s %8s %8s\n",
               b.size, b.rounds, other_name, "bytes", other_name, "rt_alloc", "private", "faster",
               "private", "memcpy");
    for (uint64_t bytes = b.smallest; bytes <= b.largest; bytes <<= b.every)
        one_size(&b, bytes);
    int missed = b.rank == 0 ? judge(&b) : 0;
    MPI_Bcast(&missed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    other_end();
    rt_transport_shm_release(&b.shm);
    MPI_Finalize();
    return missed;
}
