/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "cudart.h"

#define ALIGNMENT 256

static cudaError_t allocate(void **ret, size_t size)
{
    if (!ret)
        return cudaErrorInvalidValue;
    if (size > SIZE_MAX - ALIGNMENT)
        return cudaErrorMemoryAllocation;
    void *p = NULL;
    if (size > 0) {
        p = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1));
        if (!p)
            return cudaErrorMemoryAllocation;
    }
    *ret = p;
    return cudaSuccess;
}

/* For calls that a capture doesn't see. */
static cudaError_t allocate_now(void **ret, size_t size)
{
    cudaError_t error = cudart_unsafe();
    return error == cudaSuccess ? allocate(ret, size) : error;
}

CUDART_EXPORT cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    return cudart_result(allocate_now(devPtr, size));
}

/* Freed memory may still be in use by queued work: CUDA waits for the device, and so do we. */
CUDART_EXPORT cudaError_t cudaFree(void *devPtr)
{
    if (!devPtr)
        return cudaSuccess;
    cudaError_t error = cudart_unsafe();
    if (error == cudaSuccess)
        error = cudart_quiesce_device(cudart_device());
    if (error == cudaSuccess)
        free(devPtr);
    return cudart_result(error);
}

CUDART_EXPORT cudaError_t cudaMallocHost(void **ptr, size_t size)
{
    return cudart_result(allocate_now(ptr, size));
}

CUDART_EXPORT cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
    return cudart_result(allocate_now(pHost, size));
}

CUDART_EXPORT cudaError_t cudaFreeHost(void *ptr)
{
    return cudaFree(ptr);
}

CUDART_EXPORT cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    return cudart_result(allocate_now(devPtr, size));
}

static void do_nothing(void *argument)
{
}

/* In a capture: the memory is there from now on, at the address that the graph's nodes have. */
CUDART_EXPORT cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    static const struct hostcuda_work work = {.run = do_nothing, .type = cudaGraphNodeTypeMemAlloc};
    void *p = NULL;
    cudaError_t error = devPtr ? allocate(&p, size) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = hostcuda_launch(hStream, &work, NULL);
    if (error == cudaSuccess)
        *devPtr = p;
    else
        free(p);
    return cudart_result(error);
}

/* In a capture: a graph that runs again needs its memory again, so it goes with the graph. */
CUDART_EXPORT cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
    static const struct hostcuda_work work = {
        .run = do_nothing, .release = free, .type = cudaGraphNodeTypeMemFree};
    return devPtr ? hostcuda_launch(hStream, &work, devPtr) : cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    return cudart_result(ptr ? cudart_unsafe() : cudaErrorInvalidValue);
}

CUDART_EXPORT cudaError_t cudaHostUnregister(void *ptr)
{
    return cudart_result(ptr ? cudart_unsafe() : cudaErrorInvalidValue);
}

CUDART_EXPORT cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
    if (!pDevice || !pHost)
        return cudart_result(cudaErrorInvalidValue);
    *pDevice = pHost;
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    struct sysinfo info;
    if (sysinfo(&info) != 0)
        return cudart_result(cudaErrorUnknown);
    *free_bytes = (size_t)info.freeram * info.mem_unit;
    *total = (size_t)info.totalram * info.mem_unit;
    return cudaSuccess;
}

/* ---- copies ---- */

/* Before what is done at once, behind stream 0. */
static cudaError_t finish_for_host(void)
{
    cudaError_t error = cudart_finish_legacy();
    return error == cudaSuccess ? cudart_unsafe() : error;
}

static cudaError_t check_copy(const void *dst, const void *src, size_t count,
                              enum cudaMemcpyKind kind)
{
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    return count > 0 && (!dst || !src) ? cudaErrorInvalidValue : cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaMemcpy(void *dst, const void *src, size_t count,
                                     enum cudaMemcpyKind kind)
{
    cudaError_t error = check_copy(dst, src, count, kind);
    if (error == cudaSuccess)
        error = finish_for_host();
    if (error == cudaSuccess && count > 0)
        memmove(dst, src, count);
    return cudart_result(error);
}

struct copy {
    void *dst;
    const void *src; /* NULL: fill with `value` */
    size_t count;
    int value;
};

static void run_copy(void *argument)
{
    struct copy *c = argument;
    if (c->src)
        memmove(c->dst, c->src, c->count);
    else
        memset(c->dst, c->value, c->count);
}

static cudaError_t put_copy(cudaStream_t stream, struct copy copy)
{
    struct copy *c = malloc(sizeof *c);
    if (!c)
        return cudart_result(cudaErrorMemoryAllocation);
    *c = copy;
    struct hostcuda_work work = {
        .run = run_copy,
        .release = free,
        .type = copy.src ? cudaGraphNodeTypeMemcpy : cudaGraphNodeTypeMemset,
    };
    cudaError_t error = hostcuda_launch(stream, &work, c);
    if (error != cudaSuccess)
        free(c);
    return error;
}

CUDART_EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
                                          enum cudaMemcpyKind kind, cudaStream_t stream)
{
    cudaError_t error = check_copy(dst, src, count, kind);
    if (error != cudaSuccess || count == 0)
        return cudart_result(error);
    return put_copy(stream, (struct copy){dst, src, count, 0});
}

CUDART_EXPORT cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
    if (count > 0 && !devPtr)
        return cudart_result(cudaErrorInvalidValue);
    cudaError_t error = finish_for_host();
    if (error == cudaSuccess && count > 0)
        memset(devPtr, value, count);
    return cudart_result(error);
}

CUDART_EXPORT cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count,
                                          cudaStream_t stream)
{
    if (count == 0)
        return cudaSuccess;
    if (!devPtr)
        return cudart_result(cudaErrorInvalidValue);
    return put_copy(stream, (struct copy){devPtr, NULL, count, value});
}
