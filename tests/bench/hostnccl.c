/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stand-in NCCL costs over rt_coll, by which it works: bench-hostnccl [ROUNDS]
 *
 * Two ranks, threads of one process, float, sum, in place. The contenders take turns, round by
 * round; a round's time is the slower rank's. "one by one" waits for each operation, "in a row" for
 * a batch of them. Buffers are private (the same for both), or what ncclMemAlloc and rt_alloc give.
 * Ratios are medians of the rounds'; every sum is checked. Status 2: one was wrong.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include <nccl.h>

#include "bench.h"
#include "rt-alloc.h"
#include "rt-transport-shm.h"

#define RANKS      2
#define ROUNDS_MAX 101
#define LARGEST    (64u << 20)
#define VALUE      0x1p-100f /* doubles with each sum */

enum contender { COLL, NCCL_SINGLE, NCCL_ROW, CONTENDERS };

struct rank {
    int rank;
    pthread_t thread;
    ncclComm_t comm;
    cudaStream_t stream;
    struct rt_transport_shm shm;
    float *shared[2], *private; /* shared: by rt_alloc, by ncclMemAlloc */
};

static struct rank ranks[RANKS];
static pthread_barrier_t barrier;
static unsigned rounds = 21;
static double slowest[RANKS];
static ncclUniqueId id;
static void *region;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench-hostnccl: %s: %s\n", what, ncclGetLastError(NULL));
    exit(2);
}

static void set(float *data, size_t count)
{
    for (size_t i = 0; i < count; i++)
        data[i] = VALUE;
}

static void sum_once(struct rank *r, enum contender c, float *data, size_t count)
{
    if (c == COLL) {
        must(rt_allreduce(&r->shm.base, data, data, count, RT_FLOAT32, RT_SUM) == 0, "rt_coll");
        return;
    }
    must(ncclAllReduce(data, data, count, ncclFloat32, ncclSum, r->comm, r->stream) == 0, "NCCL");
    if (c == NCCL_SINGLE)
        must(cudaStreamSynchronize(r->stream) == 0, "synchronize");
}

/* The slower rank's seconds for one operation. */
static double play_round(struct rank *r, enum contender c, float *data, size_t count, unsigned n)
{
    set(data, count);
    pthread_barrier_wait(&barrier);
    double begin = bench_seconds();
    for (unsigned i = 0; i < n; i++)
        sum_once(r, c, data, count);
    must(cudaStreamSynchronize(r->stream) == 0, "synchronize");
    slowest[r->rank] = (bench_seconds() - begin) / n;
    float expected = VALUE;
    for (unsigned i = 0; i < n; i++)
        expected *= RANKS;
    must(data[0] == expected && data[count - 1] == expected, "a wrong sum");
    pthread_barrier_wait(&barrier);
    double time = slowest[0] > slowest[1] ? slowest[0] : slowest[1];
    pthread_barrier_wait(&barrier);
    return time;
}

static void measure(struct rank *r, size_t bytes, bool is_private)
{
    double time[CONTENDERS][ROUNDS_MAX], ratio[CONTENDERS][ROUNDS_MAX];
    unsigned n = bytes <= 64 << 10 ? 50 : bytes <= 4 << 20 ? 8 : 2;
    for (unsigned k = 0; k < rounds; k++) {
        for (int c = 0; c < CONTENDERS; c++) {
            float *data = is_private ? r->private : r->shared[c != COLL];
            time[c][k] = play_round(r, (enum contender)c, data, bytes / sizeof *data, n);
        }
        for (int c = 0; c < CONTENDERS; c++)
            ratio[c][k] = time[c][k] / time[COLL][k];
    }
    if (r->rank != 0)
        return;
    printf("%10zu %-8s %12.2f %12.2f %12.2f\n", bytes, is_private ? "private" : "shared",
           bench_median(time[COLL], rounds) * 1e6, bench_median(ratio[NCCL_SINGLE], rounds),
           bench_median(ratio[NCCL_ROW], rounds));
    fflush(stdout);
}

static void *rank_main(void *argument)
{
    struct rank *r = argument;
    void *p = NULL;
    must(cudaSetDevice(r->rank) == 0 && cudaStreamCreate(&r->stream) == 0, "stream");
    must(ncclCommInitRank(&r->comm, RANKS, id, r->rank) == 0, "communicator");
    must(rt_transport_shm_init(&r->shm, region, r->rank, RANKS) == 0, "transport");
    must((r->shared[0] = rt_alloc(LARGEST)) != NULL, "rt_alloc");
    must(ncclMemAlloc(&p, LARGEST) == 0, "ncclMemAlloc");
    r->shared[1] = p;
    must(cudaMalloc(&p, LARGEST) == 0, "cudaMalloc");
    r->private = p;
    for (size_t bytes = 8; bytes <= LARGEST; bytes *= 8)
        for (int is_private = 0; is_private < 2; is_private++)
            measure(r, bytes, is_private);
    must(ncclCommDestroy(r->comm) == 0, "ncclCommDestroy");
    rt_transport_shm_release(&r->shm);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = (unsigned)strtoul(argv[1], NULL, 10);
    must(rounds > 0 && rounds <= ROUNDS_MAX, "rounds");
    region = aligned_alloc(4096, (rt_shm_bytes(RANKS) + 4095) & ~(size_t)4095);
    must(region != NULL, "memory");
    memset(region, 0, rt_shm_bytes(RANKS));
    must(ncclGetUniqueId(&id) == 0, "id");
    pthread_barrier_init(&barrier, NULL, RANKS);
    printf("%10s %-8s %12s %12s %12s\n", "bytes", "buffers", "rt_coll us", "one by one",
           "in a row");
    for (int i = 0; i < RANKS; i++) {
        ranks[i].rank = i;
        must(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]) == 0, "thread");
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
    free(region);
    return 0;
}
