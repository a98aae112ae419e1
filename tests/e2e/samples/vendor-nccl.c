/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as a user of NCCL writes it, against the vendor's headers and linked to the vendor's
 * libraries: vendor-nccl RANK SIZE ID_FILE. Rank 0 writes the id. Prints one line if all is right.
 */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT 100003

#define CUDA(call)                                                                                 \
    do {                                                                                           \
        cudaError_t e = (call);                                                                    \
        if (e != cudaSuccess) {                                                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e));                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define NCCL(call)                                                                                 \
    do {                                                                                           \
        ncclResult_t e = (call);                                                                   \
        if (e != ncclSuccess) {                                                                    \
            fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(e), ncclGetLastError(NULL)); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static ncclUniqueId share_id(int rank, const char *path)
{
    ncclUniqueId id;
    char temporary[512];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    if (rank == 0) {
        NCCL(ncclGetUniqueId(&id));
        FILE *f = fopen(temporary, "w");
        if (!f || fwrite(&id, sizeof id, 1, f) != 1 || fclose(f) != 0 || rename(temporary, path))
            exit(1);
        return id;
    }
    FILE *f;
    while (!(f = fopen(path, "r")))
        usleep(1000);
    if (fread(&id, sizeof id, 1, f) != 1)
        exit(1);
    fclose(f);
    return id;
}

static float value(int rank, int i)
{
    return (float)(rank * 1000 + i % 997);
}

static int check_sums(const float *host, int size)
{
    for (int i = 0; i < COUNT; i++) {
        float sum = 0;
        for (int r = 0; r < size; r++)
            sum += value(r, i);
        if (host[i] != sum)
            return i + 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int rank = atoi(argv[1]), size = atoi(argv[2]), version;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    float *device, *host = malloc(COUNT * sizeof *host), ms;

    CUDA(cudaSetDevice(rank));
    ncclUniqueId id = share_id(rank, argv[3]);
    config.blocking = 1;
    config.commName = "vendor";
    NCCL(ncclCommInitRankConfig(&comm, size, id, rank, &config));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaEventCreate(&start));
    CUDA(cudaEventCreate(&stop));
    CUDA(cudaMalloc((void **)&device, COUNT * sizeof *device));
    for (int i = 0; i < COUNT; i++)
        host[i] = value(rank, i);
    CUDA(cudaMemcpyAsync(device, host, COUNT * sizeof *host, cudaMemcpyHostToDevice, stream));
    CUDA(cudaEventRecord(start, stream));
    NCCL(ncclAllReduce(device, device, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaEventRecord(stop, stream));
    CUDA(cudaMemcpyAsync(host, device, COUNT * sizeof *host, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaEventElapsedTime(&ms, start, stop));
    int wrong = check_sums(host, size);
    NCCL(ncclGetVersion(&version));
    NCCL(ncclCommDestroy(comm));
    CUDA(cudaFree(device));
    CUDA(cudaStreamDestroy(stream));
    if (wrong)
        printf("rank %d: element %d is %g\n", rank, wrong - 1, (double)host[wrong - 1]);
    else
        printf("rank %d of %d: right, NCCL %d\n", rank, size, version);
    free(host);
    return wrong != 0;
}
