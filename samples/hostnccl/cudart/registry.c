/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory the runtime knows of. Ranges don't overlap: the tree takes those that do for equal.
 * An address is kept inverted, so that a leak checker doesn't find what the program has lost.
 */
#include <search.h>
#include <stdlib.h>

#include "cudart.h"

struct range {
    uintptr_t inverted;
    size_t bytes;
    struct cudart_memory what;
    bool retired;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static void *ranges;

/* Memory stays the child's own copy, if the parent wasn't just changing the tree. */
void cudart_registry_after_fork(void)
{
    registry_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static uintptr_t begin_of(const struct range *r)
{
    return ~r->inverted;
}

static int compare(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (begin_of(x) + x->bytes <= begin_of(y))
        return -1;
    return begin_of(y) + y->bytes <= begin_of(x);
}

static struct range *find(const void *p, size_t bytes)
{
    const struct range key = {.inverted = ~(uintptr_t)p, .bytes = bytes};
    void *node = tfind(&key, &ranges, compare);
    return node ? *(struct range **)node : NULL;
}

cudaError_t cudart_memory_add(const void *p, size_t bytes, enum cudart_kind kind, unsigned flags)
{
    struct range *r = malloc(sizeof *r);
    if (!r)
        return cudaErrorMemoryAllocation;
    *r = (struct range){~(uintptr_t)p, bytes, {kind, cudart_device(), flags}, false};
    pthread_mutex_lock(&registry_lock);
    void *node = tsearch(r, &ranges, compare);
    bool ok = node && *(struct range **)node == r;
    pthread_mutex_unlock(&registry_lock);
    if (!ok)
        free(r);
    return ok     ? cudaSuccess
           : node ? cudaErrorHostMemoryAlreadyRegistered
                  : cudaErrorMemoryAllocation;
}

bool cudart_memory_find(const void *p, struct cudart_memory *ret)
{
    pthread_mutex_lock(&registry_lock);
    const struct range *r = find(p, 1);
    if (r)
        *ret = r->what;
    pthread_mutex_unlock(&registry_lock);
    return r != NULL;
}

/* The registry is locked. */
static struct range *find_whole(const void *p, unsigned kinds)
{
    struct range *r = find(p, 1);
    return r && begin_of(r) == (uintptr_t)p && (kinds >> r->what.kind & 1) ? r : NULL;
}

bool cudart_memory_retire(const void *p, unsigned kinds, bool retired)
{
    pthread_mutex_lock(&registry_lock);
    struct range *r = find_whole(p, kinds);
    bool ok = r && r->retired != retired;
    if (ok)
        r->retired = retired;
    pthread_mutex_unlock(&registry_lock);
    return ok;
}

bool cudart_memory_remove(const void *p, unsigned kinds)
{
    pthread_mutex_lock(&registry_lock);
    struct range *r = find_whole(p, kinds);
    if (r)
        tdelete(r, &ranges, compare);
    pthread_mutex_unlock(&registry_lock);
    free(r);
    return r != NULL;
}

CUDART_EXPORT cudaError_t hostcuda_memory_add(const void *p, size_t bytes)
{
    return cudart_memory_add(p, bytes, CUDART_DEVICE_ELSEWHERE, 0);
}

CUDART_EXPORT bool hostcuda_memory_remove(const void *p)
{
    return cudart_memory_remove(p, 1u << CUDART_DEVICE_ELSEWHERE);
}

CUDART_EXPORT bool hostcuda_memory_find(const void *p, size_t *ret_offset, size_t *ret_left)
{
    pthread_mutex_lock(&registry_lock);
    const struct range *r = find(p, 1);
    bool found = r && r->what.kind == CUDART_DEVICE_ELSEWHERE;
    if (found) {
        *ret_offset = (uintptr_t)p - begin_of(r);
        *ret_left = r->bytes - *ret_offset;
    }
    pthread_mutex_unlock(&registry_lock);
    return found;
}

/* ---- what a program can ask ---- */

static enum cudaMemoryType type_of(enum cudart_kind kind)
{
    switch (kind) {
    case CUDART_HOST:
    case CUDART_REGISTERED:
        return cudaMemoryTypeHost;
    case CUDART_MANAGED:
        return cudaMemoryTypeManaged;
    default:
        return cudaMemoryTypeDevice;
    }
}

CUDART_EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                                   const void *ptr)
{
    struct cudart_memory found;
    if (!attributes)
        return cudart_result(cudaErrorInvalidValue);
    *attributes = (struct cudaPointerAttributes){.type = cudaMemoryTypeUnregistered,
                                                 .device = cudaInvalidDeviceId,
                                                 .hostPointer = (void *)ptr};
    if (!cudart_memory_find(ptr, &found))
        return cudaSuccess;
    attributes->type = type_of(found.kind);
    attributes->device = found.device;
    attributes->devicePointer = (void *)ptr;
    if (attributes->type == cudaMemoryTypeDevice)
        attributes->hostPointer = NULL;
    return cudaSuccess;
}

static bool find_pinned(const void *p, struct cudart_memory *ret)
{
    return p && cudart_memory_find(p, ret) && type_of(ret->kind) == cudaMemoryTypeHost;
}

CUDART_EXPORT cudaError_t cudaHostGetFlags(unsigned int *pFlags, void *pHost)
{
    struct cudart_memory found;
    if (!pFlags || !find_pinned(pHost, &found))
        return cudart_result(cudaErrorInvalidValue);
    *pFlags = found.flags;
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
    struct cudart_memory found;
    if (!pDevice || flags != 0 || !find_pinned(pHost, &found))
        return cudart_result(cudaErrorInvalidValue);
    *pDevice = pHost;
    return cudaSuccess;
}

/* ---- the program's own memory ---- */

#define REGISTER_FLAGS                                                                             \
    (cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory |                \
     cudaHostRegisterReadOnly)

CUDART_EXPORT cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    cudaError_t error = !ptr || size == 0 || (flags & ~(unsigned)REGISTER_FLAGS) ||
                                size > UINTPTR_MAX - (uintptr_t)ptr
                            ? cudaErrorInvalidValue
                            : cudart_unsafe();
    if (error == cudaSuccess)
        error = cudart_memory_add(ptr, size, CUDART_REGISTERED, flags);
    return cudart_result(error);
}

CUDART_EXPORT cudaError_t cudaHostUnregister(void *ptr)
{
    cudaError_t error = ptr ? cudart_unsafe() : cudaErrorInvalidValue;
    if (error == cudaSuccess && !cudart_memory_remove(ptr, 1u << CUDART_REGISTERED))
        error = cudaErrorHostMemoryNotRegistered;
    return cudart_result(error);
}
