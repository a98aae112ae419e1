// SPDX-License-Identifier: Apache-2.0
// An NCCL program in C++, with the forms that CUDA has for C++ alone; compiled against hostnccl's
// headers and, where they are, the vendor's. Prints the line that failed.
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>
#include <nccl.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((int)(call) != 0) {                                                                    \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, #call);                                \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int sum_captured(ncclComm_t comm, cudaStream_t stream, float *device, size_t count)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    OK(cudaStreamGetCaptureInfo(stream, &status));
    OK(status != cudaStreamCaptureStatusActive);
    OK(ncclAllReduce(device, device, count, ncclFloat, ncclProd, comm, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, NULL, NULL, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphInstantiate(&exec, graph));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    return 0;
}

int main()
{
    const size_t count = 1000;
    float *device, *host, *managed;
    double *pooled;
    cudaEvent_t begin, end;
    cudaStream_t stream;
    cudaDeviceProp properties;
    ncclComm_t comm;
    std::vector<float> values(count, 3.0f);

    OK(cudaGetDeviceProperties(&properties, 0));
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&begin, cudaEventBlockingSync));
    OK(cudaEventCreate(&end));
    OK(cudaMalloc(&device, count * sizeof *device));
    OK(cudaMallocHost(&host, count * sizeof *host));
    OK(cudaMallocManaged(&managed, count * sizeof *managed));
    OK(cudaMallocAsync(&pooled, count * sizeof *pooled, stream));
    OK(cudaEventRecord(begin));
    OK(cudaMemcpyAsync(device, values.data(), count * sizeof *device, cudaMemcpyHostToDevice));
    OK(cudaMemsetAsync(managed, 0, count * sizeof *managed));
    OK(cudaEventRecord(end));
    OK(cudaStreamWaitEvent(stream, end));
    OK(ncclCommInitAll(&comm, 1, nullptr));
    OK(sum_captured(comm, stream, device, count));
    OK(cudaMemcpy(host, device, count * sizeof *host, cudaMemcpyDefault));
    OK(host[count - 1] != 3.0f);
    float ms = -1;
    OK(cudaEventElapsedTime(&ms, begin, end));
    OK(ms < 0);
    OK(ncclCommDestroy(comm));
    OK(cudaFreeAsync(pooled, stream));
    OK(cudaFree(device));
    OK(cudaFree(managed));
    OK(cudaFreeHost(host));
    OK(cudaEventDestroy(begin));
    OK(cudaEventDestroy(end));
    OK(cudaStreamDestroy(stream));
    return 0;
}
