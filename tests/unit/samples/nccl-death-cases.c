/* SPDX-License-Identifier: Apache-2.0 */
/* The middle rank dies in a call of each kind: the others notice, and are told who it was. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nccl-cases.h"
#include "nccl-check.h"

/* One call of each kind, by what the case is named for. */
static ncclResult_t call_once(const char *kind, ncclComm_t comm, int rank, int size, float *data,
                              cudaStream_t stream)
{
    enum { COUNT = 5000 };
    int to = (rank + 1) % size, from = (rank + size - 1) % size, victim = size / 2;
    float *out = data + size * COUNT;
    if (strcmp(kind, "allreduce") == 0)
        return ncclAllReduce(data, data, COUNT, ncclFloat32, ncclMax, comm, stream);
    if (strcmp(kind, "reduce") == 0)
        return ncclReduce(data, data, COUNT, ncclFloat32, ncclMax, 0, comm, stream);
    if (strcmp(kind, "broadcast") == 0)
        return ncclBroadcast(data, data, COUNT, ncclFloat32, victim, comm, stream);
    if (strcmp(kind, "allgather") == 0)
        return ncclAllGather(data, out, COUNT, ncclFloat32, comm, stream);
    if (strcmp(kind, "reducescatter") == 0)
        return ncclReduceScatter(data, out, COUNT, ncclFloat32, ncclMax, comm, stream);
    if (strcmp(kind, "alltoall") == 0)
        return ncclAlltoAll(data, out, COUNT, ncclFloat32, comm, stream);
    if (strcmp(kind, "gather") == 0)
        return ncclGather(data, out, COUNT, ncclFloat32, victim, comm, stream);
    if (strcmp(kind, "scatter") == 0)
        return ncclScatter(data, out, COUNT, ncclFloat32, victim, comm, stream);
    ncclGroupStart();
    ncclSend(data, COUNT, ncclFloat32, to, comm, stream);
    ncclRecv(out, COUNT, ncclFloat32, from, comm, stream);
    return ncclGroupEnd();
}

static bool names_the_dead(const char *text, int victim)
{
    char expected[32];
    snprintf(expected, sizeof expected, "rank %d (process ", victim);
    return strstr(text, expected) && strstr(text, ") died");
}

static int die_in(const char *kind, ncclComm_t comm, int rank, int size)
{
    cudaStream_t stream;
    ncclResult_t async = ncclSuccess;
    cudaError_t error = cudaSuccess;
    int victim = size / 2;
    OK(cudaStreamCreate(&stream));
    float *data = NULL;
    size_t bytes = (size_t)(2 * size) * 5000 * sizeof *data;
    OK(cudaMalloc((void **)&data, bytes));
    memset(data, 0, bytes);
    OK(call_once(kind, comm, rank, size, data, stream));
    OK(cudaStreamSynchronize(stream));
    if (rank == victim)
        kill(getpid(), SIGKILL);
    /* what doesn't need the victim may still succeed; in the end it is noticed */
    for (int i = 0; i < 1000 && error == cudaSuccess; i++) {
        if (call_once(kind, comm, rank, size, data, stream) != ncclSuccess)
            break;
        error = cudaStreamSynchronize(stream);
    }
    CHECK(error == cudaErrorLaunchFailure);
    OK(ncclCommGetAsyncError(comm, &async));
    CHECK(async == ncclRemoteError);
    CHECK(names_the_dead(ncclGetLastError(comm), victim));
    CHECK(call_once(kind, comm, rank, size, data, stream) == ncclRemoteError);
    OK(cudaStreamSynchronize(stream)); /* said once */
    OK(ncclCommAbort(comm));
    cudaFree(data);
    OK(cudaStreamDestroy(stream));
    return 0;
}

#define DIE_CASE(name, kind)                                                                       \
    static int name(ncclComm_t comm, int rank, int size)                                           \
    {                                                                                              \
        return die_in(kind, comm, rank, size);                                                     \
    }
DIE_CASE(die_allreduce, "allreduce")
DIE_CASE(die_reduce, "reduce")
DIE_CASE(die_broadcast, "broadcast")
DIE_CASE(die_allgather, "allgather")
DIE_CASE(die_reducescatter, "reducescatter")
DIE_CASE(die_alltoall, "alltoall")
DIE_CASE(die_gather, "gather")
DIE_CASE(die_scatter, "scatter")
DIE_CASE(die_messages, "messages")

/* Then the others go on without it. */
static int die_split(ncclComm_t comm, int rank, int size)
{
    ncclComm_t half = NULL, rest = NULL;
    int victim = size / 2;
    float data[1];
    if (rank == victim)
        kill(getpid(), SIGKILL);
    CHECK(ncclCommSplit(comm, 0, rank, &half, NULL) == ncclRemoteError);
    CHECK(!half && names_the_dead(ncclGetLastError(NULL), victim));
    OK(ncclCommShrink(comm, &victim, 1, &rest, NULL, NCCL_SHRINK_ABORT));
    data[0] = 1;
    OK(ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, rest, NULL));
    OK(cudaStreamSynchronize(NULL));
    CHECK(data[0] == (float)(size - 1));
    OK(ncclCommDestroy(rest));
    OK(ncclCommAbort(comm));
    return 0;
}

const struct nccl_case nccl_death_cases[] = {
    {"die-allreduce", die_allreduce, 1},
    {"die-reduce", die_reduce, 1},
    {"die-broadcast", die_broadcast, 1},
    {"die-allgather", die_allgather, 1},
    {"die-reducescatter", die_reducescatter, 1},
    {"die-alltoall", die_alltoall, 1},
    {"die-gather", die_gather, 1},
    {"die-scatter", die_scatter, 1},
    {"die-messages", die_messages, 1},
    {"die-split", die_split, 1},
};
const int nccl_death_case_count = sizeof nccl_death_cases / sizeof *nccl_death_cases;
