/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL operations captured into CUDA graphs. What is captured is drawn, by HOSTNCCL_SEED, the same
 * on all ranks; each rank also computes what all ranks must have. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nccl-cases.h"
#include "nccl-check.h"

enum { PART = 37, RANKS_MAX = 8, COUNT_MAX = PART * RANKS_MAX, OPS_MAX = 12 };

enum kind { ALLREDUCE, BROADCAST, SHIFT, ALLTOALL, GROUP_OF_TWO, HOST, KINDS };

struct drawn {
    enum kind kind;
    int root;
    bool aside; /* on a forked stream */
};

/* One rank's data, and all ranks' as they must be. */
struct world {
    ncclComm_t comm;
    int rank, size;
    unsigned seed;
    uint32_t *data, *other; /* as device memory */
    uint32_t must[RANKS_MAX][COUNT_MAX], old[RANKS_MAX][COUNT_MAX];
    cudaStream_t stream, side;
    cudaEvent_t fork, join;
    struct drawn ops[OPS_MAX];
    int ops_count;
};

static void stir(uint32_t *data, int rank, int count)
{
    for (int i = 0; i < count; i++)
        data[i] = data[i] * 3 + (uint32_t)rank;
}

static void host_stir(void *argument)
{
    struct world *w = argument;
    stir(w->data, w->rank, PART * w->size);
}

/* ---- what must come out ---- */

static void must_sum(struct world *w, int from, int count)
{
    for (int i = from; i < from + count; i++) {
        uint32_t sum = 0;
        for (int r = 0; r < w->size; r++)
            sum += w->old[r][i];
        for (int r = 0; r < w->size; r++)
            w->must[r][i] = sum;
    }
}

static void must_do(struct world *w, const struct drawn *op)
{
    int count = PART * w->size;
    memcpy(w->old, w->must, sizeof w->old);
    for (int r = 0; r < w->size; r++) {
        if (op->kind == HOST)
            stir(w->must[r], r, count);
        if (op->kind == BROADCAST)
            memcpy(w->must[r], w->old[op->root], (size_t)count * 4);
        if (op->kind == SHIFT)
            memcpy(w->must[r], w->old[(r + w->size - 1) % w->size], (size_t)count * 4);
        for (int from = 0; from < w->size && op->kind == ALLTOALL; from++)
            memcpy(&w->must[r][from * PART], &w->old[from][r * PART], PART * 4);
    }
    if (op->kind == ALLREDUCE)
        must_sum(w, 0, count);
    if (op->kind == GROUP_OF_TWO) {
        must_sum(w, 0, PART);
        for (int r = 0; r < w->size && count > PART; r++)
            memcpy(&w->must[r][PART], &w->old[op->root][PART], (size_t)(count - PART) * 4);
    }
}

/* ---- what is called ---- */

static int call(struct world *w, const struct drawn *op, cudaStream_t stream)
{
    size_t count = (size_t)PART * (size_t)w->size, bytes = count * 4;
    int next = (w->rank + 1) % w->size, before = (w->rank + w->size - 1) % w->size;
    switch (op->kind) {
    case ALLREDUCE:
        return ncclAllReduce(w->data, w->data, count, ncclUint32, ncclSum, w->comm, stream);
    case BROADCAST:
        return ncclBroadcast(w->data, w->data, count, ncclUint32, op->root, w->comm, stream);
    case SHIFT:
        OK(ncclGroupStart());
        OK(ncclSend(w->data, count, ncclUint32, next, w->comm, stream));
        OK(ncclRecv(w->other, count, ncclUint32, before, w->comm, stream));
        OK(ncclGroupEnd());
        return cudaMemcpyAsync(w->data, w->other, bytes, cudaMemcpyDeviceToDevice, stream);
    case ALLTOALL:
        OK(ncclAlltoAll(w->data, w->other, PART, ncclUint32, w->comm, stream));
        return cudaMemcpyAsync(w->data, w->other, bytes, cudaMemcpyDeviceToDevice, stream);
    case GROUP_OF_TWO:
        OK(ncclGroupStart());
        OK(ncclAllReduce(w->data, w->data, PART, ncclUint32, ncclSum, w->comm, stream));
        OK(ncclBroadcast(w->data + PART, w->data + PART, count - PART, ncclUint32, op->root,
                         w->comm, stream));
        return ncclGroupEnd();
    default:
        return cudaLaunchHostFunc(stream, host_stir, w);
    }
}

static int call_all(struct world *w)
{
    for (int i = 0; i < w->ops_count; i++) {
        if (!w->ops[i].aside) {
            OK(call(w, &w->ops[i], w->stream));
            continue;
        }
        OK(cudaEventRecord(w->fork, w->stream));
        OK(cudaStreamWaitEvent(w->side, w->fork, 0));
        OK(call(w, &w->ops[i], w->side));
        OK(cudaEventRecord(w->join, w->side));
        OK(cudaStreamWaitEvent(w->stream, w->join, 0));
    }
    return 0;
}

static void draw(struct world *w)
{
    w->ops_count = 1 + rand_r(&w->seed) % OPS_MAX;
    for (int i = 0; i < w->ops_count; i++)
        w->ops[i] = (struct drawn){(enum kind)(rand_r(&w->seed) % KINDS),
                                   rand_r(&w->seed) % w->size, rand_r(&w->seed) % 2};
    for (int r = 0; r < w->size; r++)
        for (int i = 0; i < COUNT_MAX; i++)
            w->must[r][i] = (uint32_t)rand_r(&w->seed);
    memcpy(w->data, w->must[w->rank], (size_t)PART * (size_t)w->size * 4);
}

static int capture(struct world *w, cudaGraphExec_t *ret)
{
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    OK(call_all(w));
    OK(cudaStreamEndCapture(w->stream, &graph));
    OK(cudaGraphInstantiate(ret, graph, 0));
    return cudaGraphDestroy(graph);
}

static int check_data(struct world *w)
{
    OK(cudaStreamSynchronize(w->stream));
    CHECK(memcmp(w->data, w->must[w->rank], (size_t)PART * (size_t)w->size * 4) == 0);
    return 0;
}

/* Launches of the graph, and between them the same calls without it. */
static int replay_once(struct world *w)
{
    cudaGraphExec_t exec;
    draw(w);
    OK(capture(w, &exec));
    OK(check_data(w)); /* as before: nothing has run */
    int launches = rand_r(&w->seed) % 6;
    for (int i = 0; i < launches; i++) {
        bool plain = rand_r(&w->seed) % 4 == 0;
        OK(plain ? call_all(w) : (int)cudaGraphLaunch(exec, w->stream));
        for (int k = 0; k < w->ops_count; k++)
            must_do(w, &w->ops[k]);
        if (rand_r(&w->seed) % 2)
            OK(check_data(w));
    }
    OK(check_data(w));
    return cudaGraphExecDestroy(exec);
}

static int make_world(struct world *w, ncclComm_t comm, int rank, int size)
{
    const char *seed = getenv("HOSTNCCL_SEED");
    size_t bytes = (size_t)PART * (size_t)size * 4;
    w->comm = comm;
    w->rank = rank;
    w->size = size;
    w->seed = (seed ? (unsigned)strtoull(seed, NULL, 10) : 1) + (unsigned)size;
    OK(cudaMalloc((void **)&w->data, bytes));
    OK(cudaMalloc((void **)&w->other, bytes));
    OK(cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&w->side, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&w->fork, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&w->join, cudaEventDisableTiming));
    return 0;
}

static int free_world(struct world *w)
{
    OK(cudaStreamDestroy(w->stream));
    OK(cudaStreamDestroy(w->side));
    OK(cudaEventDestroy(w->fork));
    OK(cudaEventDestroy(w->join));
    OK(cudaFree(w->data));
    return cudaFree(w->other);
}

static int replay_case(ncclComm_t comm, int rank, int size)
{
    struct world *w = calloc(1, sizeof *w);
    CHECK(w);
    OK(make_world(w, comm, rank, size));
    for (int i = 0; i < 25; i++)
        OK(replay_once(w));
    OK(free_world(w));
    free(w);
    return 0;
}

/* ---- ends ---- */

/* One stream of a group is captured, the other isn't: refused, and neither is harmed. */
static int mixed_case(ncclComm_t comm, int rank, int size)
{
    struct world *w = calloc(1, sizeof *w);
    CHECK(w);
    OK(make_world(w, comm, rank, size));
    draw(w);
    OK(cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    OK(ncclGroupStart());
    OK(ncclAllReduce(w->data, w->data, PART, ncclUint32, ncclSum, comm, w->stream));
    OK(ncclAllReduce(w->data, w->data, PART, ncclUint32, ncclSum, comm, w->side));
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    CHECK(strstr(ncclGetLastError(comm), "captured into the same graph"));
    OK(cudaStreamEndCapture(w->stream, NULL));
    OK(check_data(w));
    OK(replay_once(w));
    OK(free_world(w));
    free(w);
    return 0;
}

static void *destroy_comm(void *argument)
{
    return (void *)(intptr_t)ncclCommDestroy(argument);
}

/* As in NCCL from 2.26 on, the communicator's end waits for graphs that hold it. */
static int destroy_case(ncclComm_t comm, int rank, int size)
{
    struct world *w = calloc(1, sizeof *w);
    cudaGraphExec_t exec;
    pthread_t thread;
    void *result = NULL;
    CHECK(w);
    OK(make_world(w, comm, rank, size));
    draw(w);
    w->ops[0].kind = ALLREDUCE; /* one at least */
    OK(capture(w, &exec));
    OK(pthread_create(&thread, NULL, destroy_comm, comm));
    for (int i = 0; i < 3; i++) {
        OK(cudaGraphLaunch(exec, w->stream));
        for (int k = 0; k < w->ops_count; k++)
            must_do(w, &w->ops[k]);
    }
    OK(check_data(w));
    OK(cudaGraphExecDestroy(exec));
    OK(pthread_join(thread, &result));
    CHECK(result == NULL);
    OK(free_world(w));
    free(w);
    return 0;
}

/* An abort doesn't wait; a launch then fails its stream, and nothing else. */
static int abort_case(ncclComm_t comm, int rank, int size)
{
    struct world *w = calloc(1, sizeof *w);
    cudaGraphExec_t exec;
    CHECK(w);
    OK(make_world(w, comm, rank, size));
    draw(w);
    w->ops[0].kind = ALLREDUCE;
    OK(capture(w, &exec));
    OK(ncclCommAbort(comm));
    for (int i = 0; i < 2; i++) {
        OK(cudaGraphLaunch(exec, w->stream));
        CHECK(cudaStreamSynchronize(w->stream) == cudaErrorLaunchFailure);
    }
    OK(cudaGraphExecDestroy(exec));
    OK(free_world(w));
    free(w);
    return 0;
}

/* The ends of a message differ in size: both are told who and how much, whoever is first. */
static int sizes_case(ncclComm_t comm, int rank, int size)
{
    ncclResult_t async = ncclSuccess;
    cudaStream_t stream;
    uint32_t *data;
    OK(cudaStreamCreate(&stream));
    OK(cudaMalloc((void **)&data, 100 * sizeof *data));
    if (rank == 0)
        OK(ncclSend(data, 30, ncclUint32, 1, comm, stream));
    if (rank == 1)
        OK(ncclRecv(data, 30, ncclUint32, 0, comm, stream));
    OK(cudaStreamSynchronize(stream));
    if (rank == 0)
        OK(ncclSend(data, 50, ncclUint32, 1, comm, stream));
    if (rank == 0) { /* the send may be through already: what comes after it is told, or refused */
        const ncclResult_t next = ncclRecv(data, 10, ncclUint32, 1, comm, stream);
        CHECK(next == ncclSuccess || next == ncclInvalidUsage);
    }
    if (rank == 1)
        OK(ncclRecv(data, 20, ncclUint32, 0, comm, stream));
    if (rank < 2) {
        CHECK(cudaStreamSynchronize(stream) == cudaErrorLaunchFailure);
        OK(ncclCommGetAsyncError(comm, &async));
        CHECK(async == ncclInvalidUsage);
        CHECK(strstr(ncclGetLastError(comm), "message number 1 from rank 0 to rank 1: 200 bytes "
                                             "are sent, 80 received"));
    }
    OK(cudaFree(data));
    OK(cudaStreamDestroy(stream));
    return ncclCommAbort(comm);
}

const struct nccl_case nccl_graph_cases[] = {
    {"message-sizes", sizes_case, 1}, {"graph-replay", replay_case, 0},
    {"graph-mixed", mixed_case, 0},   {"graph-destroy", destroy_case, 1},
    {"graph-abort", abort_case, 1},
};
const int nccl_graph_case_count = sizeof nccl_graph_cases / sizeof *nccl_graph_cases;
