/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl-soak --seconds N [--ranks N] [--seed N] - random operations through hostnccl in processes of
 * their own (this program again), results checked; heap, memory and descriptors must stay.
 */
#include <nccl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nccl-id.h"
#include "soak-usage.h"

#define RANKS_MAX 8
#define COUNT_MAX 20000u

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d: line %d: %s (%s)\n", me.rank, __LINE__, #condition,          \
                    ncclGetLastError(NULL));                                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) CHECK((call) == 0)

extern char **environ;

static struct {
    int rank, size;
    uint64_t state; /* of the ranks' common numbers */
    cudaStream_t stream;
    int32_t *in, *out;
} me;

static uint32_t draw(uint32_t below)
{
    return soak_random(&me.state) % below;
}

static int32_t value(int rank, uint32_t i)
{
    return (rank + 1) * (int32_t)(i % 97 + 1);
}

static void prepare(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        me.in[i] = value(me.rank, i);
}

static void finish(cudaStream_t stream)
{
    OK(cudaStreamSynchronize(stream));
}

static void check_sum(const int32_t *data, uint32_t first, uint32_t count, int size)
{
    for (uint32_t i = 0; i < count; i++)
        CHECK(data[i] == size * (size + 1) / 2 * (int32_t)((first + i) % 97 + 1));
}

static void check_from(const int32_t *data, uint32_t first, uint32_t count, int rank)
{
    for (uint32_t i = 0; i < count; i++)
        CHECK(data[i] == value(rank, first + i));
}

/* ---- operations, of `count` elements for each rank ---- */

static void allreduce(ncclComm_t comm, uint32_t count, int root)
{
    OK(ncclAllReduce(me.in, me.out, count, ncclInt32, ncclSum, comm, me.stream));
    finish(me.stream);
    check_sum(me.out, 0, count, me.size);
}

static void rooted(ncclComm_t comm, uint32_t count, int root)
{
    OK(ncclReduce(me.in, me.out, count, ncclInt32, ncclSum, root, comm, me.stream));
    finish(me.stream);
    if (me.rank == root)
        check_sum(me.out, 0, count, me.size);
    OK(ncclBroadcast(me.in, me.out, count, ncclInt32, root, comm, me.stream));
    finish(me.stream);
    check_from(me.out, 0, count, root);
}

static void scattered(ncclComm_t comm, uint32_t count, int root)
{
    OK(ncclReduceScatter(me.in, me.out, count, ncclInt32, ncclSum, comm, me.stream));
    finish(me.stream);
    check_sum(me.out, (uint32_t)me.rank * count, count, me.size);
    OK(ncclScatter(me.in, me.out, count, ncclInt32, root, comm, me.stream));
    finish(me.stream);
    check_from(me.out, (uint32_t)me.rank * count, count, root);
}

static void gathered(ncclComm_t comm, uint32_t count, int root)
{
    OK(ncclAllGather(me.in, me.out, count, ncclInt32, comm, me.stream));
    finish(me.stream);
    for (int r = 0; r < me.size; r++)
        check_from(me.out + (uint32_t)r * count, 0, count, r);
    OK(ncclGather(me.in, me.out, count, ncclInt32, root, comm, me.stream));
    finish(me.stream);
    for (int r = 0; r < me.size && me.rank == root; r++)
        check_from(me.out + (uint32_t)r * count, 0, count, r);
}

static void exchanged(ncclComm_t comm, uint32_t count, int root)
{
    int to = (me.rank + 1) % me.size, from = (me.rank + me.size - 1) % me.size;
    OK(ncclAlltoAll(me.in, me.out, count, ncclInt32, comm, me.stream));
    finish(me.stream);
    for (int r = 0; r < me.size; r++)
        check_from(me.out + (uint32_t)r * count, (uint32_t)me.rank * count, count, r);
    OK(ncclGroupStart());
    OK(ncclSend(me.in, count, ncclInt32, to, comm, me.stream));
    OK(ncclRecv(me.out, count, ncclInt32, from, comm, me.stream));
    OK(ncclGroupEnd());
    finish(me.stream);
    check_from(me.out, 0, count, from);
}

/* Memory, a stream, an operation and an event of their own, in a group. */
static void with_things(ncclComm_t comm, uint32_t count, int root)
{
    cudaStream_t stream;
    cudaEvent_t event;
    ncclRedOp_t op;
    ncclWindow_t window;
    int32_t one = 1, *data = NULL;
    void *registered = NULL;
    OK(ncclMemAlloc((void **)&data, (count + 1) * sizeof *data));
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&event));
    OK(ncclRedOpCreatePreMulSum(&op, &one, ncclInt32, ncclScalarHostImmediate, comm));
    OK(ncclCommWindowRegister(comm, data, count + 1, &window, 0));
    OK(ncclCommRegister(comm, data, count + 1, &registered));
    OK(cudaMemcpyAsync(data, me.in, count * sizeof *data, cudaMemcpyDefault, stream));
    OK(ncclGroupStart());
    OK(ncclAllReduce(data, data, count, ncclInt32, op, comm, stream));
    OK(ncclAllReduce(me.in, me.out, count, ncclInt32, ncclSum, comm, stream));
    OK(ncclGroupEnd());
    OK(cudaEventRecord(event, stream));
    OK(cudaEventSynchronize(event));
    check_sum(data, 0, count, me.size);
    check_sum(me.out, 0, count, me.size);
    OK(ncclCommDeregister(comm, registered));
    OK(ncclCommWindowDeregister(comm, window));
    OK(ncclRedOpDestroy(op, comm));
    OK(cudaEventDestroy(event));
    finish(stream);
    OK(cudaStreamDestroy(stream));
    OK(ncclMemFree(data));
}

static void settle(ncclComm_t comm)
{
    ncclResult_t result = ncclInProgress;
    while (result == ncclInProgress) {
        OK(ncclCommGetAsyncError(comm, &result));
        sched_yield();
    }
    OK(result);
}

/* A communicator out of `comm`, another out of that, one without the root, one in the background.
 */
static void with_communicators(ncclComm_t comm, uint32_t count, int root)
{
    ncclComm_t same, half = NULL, smaller = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    CHECK(ncclCommSplit(comm, 0, me.rank, &same, &config) == ncclInProgress);
    settle(same);
    settle(comm);
    CHECK(ncclCommSplit(same, me.rank == root ? NCCL_SPLIT_NOCOLOR : 1, 0, &half, NULL) ==
          ncclInProgress);
    settle(same);
    allreduce(same, count, root);
    OK(ncclCommDestroy(half));
    CHECK(ncclCommRevoke(same, 0) == ncclInProgress);
    if (me.rank != root) {
        OK(ncclCommShrink(comm, &root, 1, &smaller, NULL, NCCL_SHRINK_DEFAULT));
        OK(ncclCommDestroy(smaller));
    }
    OK(ncclCommDestroy(same));
}

typedef void operation_fn(ncclComm_t comm, uint32_t count, int root);
static operation_fn *const operations[] = {allreduce, rooted,      scattered,         gathered,
                                           exchanged, with_things, with_communicators};

/* Rank 0's clock says when it is over. */
static bool is_over(ncclComm_t comm, bool mine)
{
    *me.in = me.rank == 0 && mine;
    OK(ncclAllReduce(me.in, me.out, 1, ncclInt32, ncclMax, comm, me.stream));
    finish(me.stream);
    return *me.out;
}

static int run(int rank, int size, const ncclUniqueId *id, double seconds, uint64_t seed)
{
    ncclComm_t comm;
    struct soak soak;
    me.rank = rank;
    me.size = size;
    me.state = seed;
    OK(cudaSetDevice(rank));
    OK(ncclCommInitRank(&comm, size, *id, rank));
    OK(cudaStreamCreate(&me.stream));
    size_t bytes = (size_t)size * COUNT_MAX * sizeof *me.in;
    OK(cudaMalloc((void **)&me.in, bytes));
    OK(cudaMalloc((void **)&me.out, bytes));
    soak_begin(&soak, seconds);
    do {
        for (int i = 0; i < 10; i++) {
            uint32_t operation = draw(sizeof operations / sizeof *operations);
            uint32_t count = draw(draw(4) ? 300 : COUNT_MAX) + 1;
            prepare(count * (uint32_t)size);
            operations[operation](comm, count, (int)draw((uint32_t)size));
        }
    } while (!is_over(comm, soak_round(&soak)));
    OK(cudaFree(me.in));
    OK(cudaFree(me.out));
    OK(cudaStreamDestroy(me.stream));
    OK(ncclCommDestroy(comm));
    return soak_end(&soak, "hostnccl", rank) ? 0 : 1;
}

/* ---- processes ---- */

static pid_t start(int rank, int size, double seconds, uint64_t seed, const char *id_text)
{
    char texts[4][32], id[NCCL_ID_TEXT_BYTES], self[] = "/proc/self/exe";
    snprintf(texts[0], sizeof texts[0], "%d", rank);
    snprintf(texts[1], sizeof texts[1], "%d", size);
    snprintf(texts[2], sizeof texts[2], "%f", seconds);
    snprintf(texts[3], sizeof texts[3], "%llu", (unsigned long long)seed);
    snprintf(id, sizeof id, "%s", id_text);
    char *arguments[] = {self, texts[0], texts[1], texts[2], texts[3], id, NULL};
    pid_t pid = -1;
    return posix_spawn(&pid, self, NULL, NULL, arguments, environ) == 0 ? pid : -1;
}

static int run_all(int size, double seconds, uint64_t seed)
{
    char id_text[NCCL_ID_TEXT_BYTES];
    ncclUniqueId id;
    int failed = 0;
    printf("hostnccl: %d ranks, %g s, --seed %llu\n", size, seconds, (unsigned long long)seed);
    fflush(stdout);
    if (ncclGetUniqueId(&id) != ncclSuccess)
        return 1;
    id_to_text(&id, id_text);
    for (int r = 0; r < size; r++)
        failed += start(r, size, seconds, seed, id_text) < 0;
    for (int r = 0; r < size; r++) {
        int status = -1;
        failed += wait(&status) < 0 || status != 0;
    }
    return failed > 0;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strncmp(argv[1], "--", 2) != 0) {
        ncclUniqueId id = id_of_text(argv[5]);
        return run(atoi(argv[1]), atoi(argv[2]), &id, atof(argv[3]), strtoull(argv[4], NULL, 10));
    }
    double seconds = 5;
    int size = 4;
    uint64_t seed = (uint64_t)time(NULL);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--ranks") == 0)
            size = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
        else
            return 2;
    }
    return size >= 2 && size <= RANKS_MAX ? run_all(size, seconds, seed) : 2;
}
