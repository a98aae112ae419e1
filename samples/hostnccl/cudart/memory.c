/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "cudart.h"

#define ALIGNMENT 256
#define PITCH     512

/* What cudaFree and cudaFreeAsync take, and what cudaFreeHost does. */
#define DEVICE_KINDS (1u << CUDART_DEVICE | 1u << CUDART_MANAGED)
#define HOST_KINDS   (1u << CUDART_HOST)

static cudaError_t allocate(void **ret, size_t size, enum cudart_kind kind, unsigned flags)
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
        cudaError_t error = cudart_memory_add(p, size, kind, flags);
        if (error != cudaSuccess) { /* a range that was freed behind our back is in the way */
            free(p);
            return error;
        }
    }
    *ret = p;
    return cudaSuccess;
}

/* For calls that a capture doesn't see. */
static cudaError_t allocate_now(void **ret, size_t size, enum cudart_kind kind, unsigned flags)
{
    cudaError_t error = cudart_unsafe();
    return cudart_result(error == cudaSuccess ? allocate(ret, size, kind, flags) : error);
}

CUDART_EXPORT cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    return allocate_now(devPtr, size, CUDART_DEVICE, 0);
}

/* Rows begin where a texture could. */
CUDART_EXPORT cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    size_t bytes, row;
    if (!devPtr || !pitch)
        return cudart_result(cudaErrorInvalidValue);
    if (__builtin_add_overflow(width, (size_t)PITCH - 1, &row) ||
        __builtin_mul_overflow(row & ~(size_t)(PITCH - 1), height, &bytes))
        return cudart_result(cudaErrorMemoryAllocation);
    cudaError_t error = allocate_now(devPtr, bytes, CUDART_DEVICE, 0);
    if (error == cudaSuccess)
        *pitch = row & ~(size_t)(PITCH - 1);
    return error;
}

/* Freed memory may still be in use by queued work: CUDA waits for its device, and so do we. */
static cudaError_t free_now(void *p, unsigned kinds)
{
    struct cudart_memory found;
    if (!p)
        return cudaSuccess;
    cudaError_t error = cudart_unsafe();
    if (error == cudaSuccess && !cudart_memory_find(p, &found))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && !cudart_memory_retire(p, kinds, true))
        error = cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return cudart_result(error);
    error = cudart_quiesce_device(found.device);
    if (error != cudaSuccess) {
        cudart_memory_retire(p, kinds, false);
    } else {
        cudart_memory_remove(p, kinds);
        free(p);
    }
    return cudart_result(error);
}

CUDART_EXPORT cudaError_t cudaFree(void *devPtr)
{
    return free_now(devPtr, DEVICE_KINDS);
}

CUDART_EXPORT cudaError_t cudaMallocHost(void **ptr, size_t size)
{
    return allocate_now(ptr, size, CUDART_HOST, cudaHostAllocDefault);
}

#define HOST_FLAGS (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)

CUDART_EXPORT cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
    if (flags & ~(unsigned)HOST_FLAGS)
        return cudart_result(cudaErrorInvalidValue);
    return allocate_now(pHost, size, CUDART_HOST, flags);
}

CUDART_EXPORT cudaError_t cudaFreeHost(void *ptr)
{
    return free_now(ptr, HOST_KINDS);
}

CUDART_EXPORT cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    if (size == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return cudart_result(cudaErrorInvalidValue);
    return allocate_now(devPtr, size, CUDART_MANAGED, flags);
}

static void do_nothing(void *argument)
{
}

static void remove_and_free(void *p)
{
    cudart_memory_remove(p, DEVICE_KINDS);
    free(p);
}

/* In a capture: the memory is there from now on, at the address that the graph's nodes have. */
CUDART_EXPORT cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    static const struct hostcuda_work work = {.run = do_nothing, .type = cudaGraphNodeTypeMemAlloc};
    void *p = NULL;
    cudaError_t error = devPtr ? allocate(&p, size, CUDART_DEVICE, 0) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = hostcuda_launch(hStream, &work, NULL);
    if (error == cudaSuccess)
        *devPtr = p;
    else if (p)
        remove_and_free(p);
    return cudart_result(error);
}

/* In a capture: a graph that runs again needs its memory again, so it goes with the graph. */
CUDART_EXPORT cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
    static const struct hostcuda_work work = {
        .run = do_nothing, .release = remove_and_free, .type = cudaGraphNodeTypeMemFree};
    if (!devPtr)
        return cudaSuccess;
    if (!cudart_memory_retire(devPtr, DEVICE_KINDS, true))
        return cudart_result(cudaErrorInvalidValue);
    cudaError_t error = hostcuda_launch(hStream, &work, devPtr);
    if (error != cudaSuccess)
        cudart_memory_retire(devPtr, DEVICE_KINDS, false);
    return error;
}

CUDART_EXPORT cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    struct sysinfo info;
    if (!free_bytes || !total)
        return cudart_result(cudaErrorInvalidValue);
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

/* ---- between devices: the same memory ---- */

static cudaError_t check_peer_copy(void *dst, int dst_device, const void *src, int src_device,
                                   size_t count)
{
    if (!cudart_device_exists(dst_device) || !cudart_device_exists(src_device))
        return cudaErrorInvalidDevice;
    return check_copy(dst, src, count, cudaMemcpyDefault);
}

/* Behind stream 0 of both devices and of the caller's. */
CUDART_EXPORT cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice,
                                         size_t count)
{
    cudaError_t error = check_peer_copy(dst, dstDevice, src, srcDevice, count);
    if (error == cudaSuccess)
        error = cudart_finish_legacy_of(dstDevice);
    if (error == cudaSuccess)
        error = cudart_finish_legacy_of(srcDevice);
    if (error != cudaSuccess)
        return cudart_result(error);
    return cudaMemcpy(dst, src, count, cudaMemcpyDefault);
}

CUDART_EXPORT cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src,
                                              int srcDevice, size_t count, cudaStream_t stream)
{
    cudaError_t error = check_peer_copy(dst, dstDevice, src, srcDevice, count);
    if (error != cudaSuccess)
        return cudart_result(error);
    return cudaMemcpyAsync(dst, src, count, cudaMemcpyDefault, stream);
}
