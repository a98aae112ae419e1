/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nvcc's object files call: a program with kernels in it loads and runs, up to the launch of
 * one. That is refused, as on a device that the kernel wasn't compiled for: nothing of it is for
 * this one. The program sees it where it looks for errors of launches.
 */
#include <string.h>

#include "cudart.h"

struct kernel;
struct three;

/* A registered kernel's handle; nobody looks into it. */
typedef struct kernel *kernel_handle;

#pragma GCC visibility push(default)
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, struct three *thread, struct three *block,
                            dim3 *of_block, dim3 *of_grid, int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext,
                              size_t size, int constant, int global);
void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(kernel_handle *ret, const void *host);
cudaError_t __cudaLaunchKernel(kernel_handle kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);
#pragma GCC visibility pop

/* ---- registration, at the program's begin ---- */

void **__cudaRegisterFatBinary(void *binary)
{
    static void *registered;
    return &registered;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
}

void __cudaUnregisterFatBinary(void **handle)
{
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, struct three *thread, struct three *block,
                            dim3 *of_block, dim3 *of_grid, int *warp_size)
{
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                       size_t size, int constant, int global)
{
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext,
                              size_t size, int constant, int global)
{
}

void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size)
{
}

char __cudaInitModule(void **handle)
{
    return 1;
}

/* ---- launches: kernel<<<grid, block, shared, stream>>>() is a push, then a stub that pops ---- */

static __thread struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    bool pushed;
} configuration;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    configuration.pushed = true;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    if (!configuration.pushed)
        return cudart_result(cudaErrorMissingConfiguration);
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    memcpy(stream, &configuration.stream, sizeof configuration.stream);
    configuration.pushed = false;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(kernel_handle *ret, const void *host)
{
    *ret = (kernel_handle)host;
    return cudaSuccess;
}

static cudaError_t refuse(cudaStream_t stream)
{
    cudaStream_t s = cudart_stream_hold(stream);
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudart_stream_drop(s);
    return cudart_result(cudaErrorNoKernelImageForDevice);
}

cudaError_t __cudaLaunchKernel(kernel_handle kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream)
{
    return refuse(stream);
}

CUDART_EXPORT cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim,
                                           void **args, size_t sharedMem, cudaStream_t stream)
{
    return refuse(stream);
}
