/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of devices that are no real ones: enough for programs that print, compare or divide by
 * them. What a program would launch kernels by is that of a small device of capability 9.0.
 */
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "cudart.h"

#define ATTRIBUTES_END 148 /* of version 13.0 */

static unsigned flags_of_device[CUDART_DEVICES_MAX]; /* atomic */

static size_t memory_bytes(void)
{
    struct sysinfo info;
    return sysinfo(&info) == 0 ? (size_t)info.totalram * info.mem_unit : 0;
}

static struct cudaDeviceProp properties(int device)
{
    struct cudaDeviceProp p = {
        .totalGlobalMem = memory_bytes(),
        .sharedMemPerBlock = 48 << 10,
        .sharedMemPerMultiprocessor = 228 << 10,
        .sharedMemPerBlockOptin = 227 << 10,
        .regsPerBlock = 65536,
        .regsPerMultiprocessor = 65536,
        .warpSize = 32,
        .memPitch = 0x7fffffff,
        .maxThreadsPerBlock = 1024,
        .maxThreadsPerMultiProcessor = 2048,
        .maxBlocksPerMultiProcessor = 32,
        .maxThreadsDim = {1024, 1024, 64},
        .maxGridSize = {0x7fffffff, 65535, 65535},
        .totalConstMem = 64 << 10,
        .major = 9,
        .multiProcessorCount = 1,
        .textureAlignment = 512,
        .texturePitchAlignment = 32,
        .surfaceAlignment = 512,
        .canMapHostMemory = 1,
        .concurrentKernels = 1,
        .pciBusID = device,
        .asyncEngineCount = 1,
        .unifiedAddressing = 1,
        .memoryBusWidth = 64,
        .l2CacheSize = 1 << 20,
        .managedMemory = 1,
        .concurrentManagedAccess = 1,
        .pageableMemoryAccess = 1,
        .hostNativeAtomicSupported = 1,
        .canUseHostPointerForRegisteredMem = 1,
        .hostRegisterSupported = 1,
        .hostNumaId = -1,
        .deviceNumaId = -1,
    };
    snprintf(p.name, sizeof p.name, "hostnccl stand-in");
    memcpy(p.uuid.bytes, "hostnccl-device", sizeof p.uuid.bytes);
    p.uuid.bytes[sizeof p.uuid.bytes - 1] = (char)device;
    return p;
}

CUDART_EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    if (!prop)
        return cudart_result(cudaErrorInvalidValue);
    if (!cudart_device_exists(device))
        return cudart_result(cudaErrorInvalidDevice);
    *prop = properties(device);
    return cudaSuccess;
}

/* What agrees with the properties; all else is something that the stand-in hasn't. */
static int attribute(enum cudaDeviceAttr attr, const struct cudaDeviceProp *p)
{
    switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock:
        return p->maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
    case cudaDevAttrMaxBlockDimZ:
        return p->maxThreadsDim[attr - cudaDevAttrMaxBlockDimX];
    case cudaDevAttrMaxGridDimX:
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
        return p->maxGridSize[attr - cudaDevAttrMaxGridDimX];
    case cudaDevAttrMaxSharedMemoryPerBlock:
        return (int)p->sharedMemPerBlock;
    case cudaDevAttrWarpSize:
        return p->warpSize;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
        return 1000000;
    case cudaDevAttrMultiProcessorCount:
        return p->multiProcessorCount;
    case cudaDevAttrCanMapHostMemory:
        return p->canMapHostMemory;
    case cudaDevAttrConcurrentKernels:
        return p->concurrentKernels;
    case cudaDevAttrPciBusId:
        return p->pciBusID;
    case cudaDevAttrGlobalMemoryBusWidth:
        return p->memoryBusWidth;
    case cudaDevAttrL2CacheSize:
        return p->l2CacheSize;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        return p->maxThreadsPerMultiProcessor;
    case cudaDevAttrAsyncEngineCount:
        return p->asyncEngineCount;
    case cudaDevAttrUnifiedAddressing:
        return p->unifiedAddressing;
    case cudaDevAttrComputeCapabilityMajor:
        return p->major;
    case cudaDevAttrComputeCapabilityMinor:
        return p->minor;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        return (int)p->sharedMemPerMultiprocessor;
    case cudaDevAttrManagedMemory:
        return p->managedMemory;
    case cudaDevAttrPageableMemoryAccess:
        return p->pageableMemoryAccess;
    case cudaDevAttrConcurrentManagedAccess:
        return p->concurrentManagedAccess;
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
        return p->canUseHostPointerForRegisteredMem;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        return (int)p->sharedMemPerBlockOptin;
    case cudaDevAttrHostRegisterSupported:
        return p->hostRegisterSupported;
    default:
        return 0;
    }
}

CUDART_EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    if (!value || (int)attr < 1 || (int)attr >= ATTRIBUTES_END)
        return cudart_result(cudaErrorInvalidValue);
    if (!cudart_device_exists(device))
        return cudart_result(cudaErrorInvalidDevice);
    const struct cudaDeviceProp p = properties(device);
    *value = attribute(attr, &p);
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    if (!pciBusId || len <= 0 || !cudart_device_exists(device))
        return cudart_result(cudaErrorInvalidValue);
    int need = snprintf(pciBusId, (size_t)len, "0000:%02x:00.0", (unsigned)device);
    return cudart_result(need < len ? cudaSuccess : cudaErrorInvalidValue);
}

CUDART_EXPORT cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    if (!device || !pciBusId)
        return cudart_result(cudaErrorInvalidValue);
    if (sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = function = 0;
        if (sscanf(pciBusId, "%x:%x.%x", &bus, &slot, &function) < 2)
            return cudart_result(cudaErrorInvalidValue);
    }
    if (domain != 0 || slot != 0 || function != 0 || bus > 255 || !cudart_device_exists((int)bus))
        return cudart_result(cudaErrorInvalidDevice);
    *device = (int)bus;
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    if (flags & ~(unsigned)cudaDeviceMask)
        return cudart_result(cudaErrorInvalidValue);
    __atomic_store_n(&flags_of_device[cudart_device()], flags, __ATOMIC_RELAXED);
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    if (!flags)
        return cudart_result(cudaErrorInvalidValue);
    *flags = __atomic_load_n(&flags_of_device[cudart_device()], __ATOMIC_RELAXED);
    return cudaSuccess;
}

/* There is nothing to set up. */
CUDART_EXPORT cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
    if (!cudart_device_exists(device))
        return cudart_result(cudaErrorInvalidDevice);
    if (flags & ~(unsigned)cudaInitDeviceFlagsAreValid)
        return cudart_result(cudaErrorInvalidValue);
    if (flags & cudaInitDeviceFlagsAreValid)
        __atomic_store_n(&flags_of_device[device], deviceFlags, __ATOMIC_RELAXED);
    return cudaSuccess;
}

/* Memory and streams stay: what another library of the process has of them is its own affair. */
CUDART_EXPORT cudaError_t cudaDeviceReset(void)
{
    cudaError_t error = cudaDeviceSynchronize();
    cudart_peer_reset(cudart_device());
    return error;
}
