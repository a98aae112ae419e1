/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device per process, with MPI, as NCCL's user guide has it: rank 0's id goes to all by
 * MPI_Bcast, the device is the rank's place on its host. What NCCL does is compared with what MPI
 * does with the same. Rank 0 prints "N ranks: right".
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>
#include <nccl.h>

#define COUNT 4099

static int rank, size;
static ncclComm_t comm;
static cudaStream_t stream;
static int64_t *in, *out; /* device memory: `size` times COUNT */
static int64_t *host_in, *expected, *got;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "rank %d of %d: %s: %s\n", rank, size, what, ncclGetLastError(NULL));
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}
#define NCCL(call) must((call) == ncclSuccess, #call)
#define CUDA(call) must((call) == cudaSuccess, #call)

static void open_all(void)
{
    MPI_Comm host;
    ncclUniqueId id;
    int local;
    size_t bytes = (size_t)size * COUNT * sizeof *in;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &local);
    MPI_Comm_free(&host);
    if (rank == 0)
        NCCL(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    CUDA(cudaSetDevice(local));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc((void **)&in, bytes));
    CUDA(cudaMalloc((void **)&out, bytes));
    host_in = malloc(bytes);
    expected = malloc(bytes);
    got = malloc(bytes);
    must(host_in && expected && got, "memory");
    for (size_t i = 0; i < (size_t)size * COUNT; i++)
        host_in[i] = rank * 1000003 + (int64_t)(i % 2003) - 999;
    CUDA(cudaMemcpyAsync(in, host_in, bytes, cudaMemcpyHostToDevice, stream));
    NCCL(ncclCommInitRank(&comm, size, id, rank));
}

/* `out` holds what MPI put into `expected`. */
static void compare(const char *what, size_t count)
{
    CUDA(cudaMemcpyAsync(got, out, count * sizeof *got, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    must(memcmp(got, expected, count * sizeof *got) == 0, what);
}

static void collectives(void)
{
    NCCL(ncclAllReduce(in, out, COUNT, ncclInt64, ncclSum, comm, stream));
    MPI_Allreduce(host_in, expected, COUNT, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    compare("allreduce", COUNT);
    NCCL(ncclAllGather(in, out, COUNT, ncclInt64, comm, stream));
    MPI_Allgather(host_in, COUNT, MPI_INT64_T, expected, COUNT, MPI_INT64_T, MPI_COMM_WORLD);
    compare("allgather", (size_t)size * COUNT);
    NCCL(ncclReduceScatter(in, out, COUNT, ncclInt64, ncclMin, comm, stream));
    MPI_Reduce_scatter_block(host_in, expected, COUNT, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    compare("reduce-scatter", COUNT);
    NCCL(ncclAlltoAll(in, out, COUNT, ncclInt64, comm, stream));
    MPI_Alltoall(host_in, COUNT, MPI_INT64_T, expected, COUNT, MPI_INT64_T, MPI_COMM_WORLD);
    compare("all-to-all", (size_t)size * COUNT);
    for (int root = 0; root < size; root++) {
        NCCL(ncclScatter(in, out, COUNT, ncclInt64, root, comm, stream));
        MPI_Scatter(host_in, COUNT, MPI_INT64_T, expected, COUNT, MPI_INT64_T, root,
                    MPI_COMM_WORLD);
        compare("scatter", COUNT);
    }
}

/* MPI's ranks and NCCL's are the same, in the parts of a split too. */
static void parts(void)
{
    int color = rank % 2, key = -rank, mpi_rank, nccl_rank, mpi_size, nccl_size;
    MPI_Comm mpi_part;
    ncclComm_t part;
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &mpi_part);
    NCCL(ncclCommSplit(comm, color, key, &part, NULL));
    MPI_Comm_rank(mpi_part, &mpi_rank);
    MPI_Comm_size(mpi_part, &mpi_size);
    NCCL(ncclCommUserRank(part, &nccl_rank));
    NCCL(ncclCommCount(part, &nccl_size));
    must(mpi_rank == nccl_rank && mpi_size == nccl_size, "a part's ranks");
    NCCL(ncclAllGather(in, out, COUNT, ncclInt64, part, stream));
    MPI_Allgather(host_in, COUNT, MPI_INT64_T, expected, COUNT, MPI_INT64_T, mpi_part);
    compare("a part's allgather", (size_t)mpi_size * COUNT);
    NCCL(ncclCommDestroy(part));
    MPI_Comm_free(&mpi_part);
}

static void ring(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    NCCL(ncclGroupStart());
    NCCL(ncclSend(in, COUNT, ncclInt64, next, comm, stream));
    NCCL(ncclRecv(out, COUNT, ncclInt64, before, comm, stream));
    NCCL(ncclGroupEnd());
    MPI_Sendrecv(host_in, COUNT, MPI_INT64_T, next, 0, expected, COUNT, MPI_INT64_T, before, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compare("ring", COUNT);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    open_all();
    collectives();
    parts();
    ring();
    NCCL(ncclCommFinalize(comm));
    NCCL(ncclCommDestroy(comm));
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
    CUDA(cudaStreamDestroy(stream));
    free(host_in);
    free(expected);
    free(got);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks: right\n", size);
    MPI_Finalize();
    return 0;
}
