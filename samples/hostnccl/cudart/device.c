/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cudart.h"

#define DEVICES_DEFAULT 8

static __thread int current_device;
static __thread cudaError_t last_error;

/* ---- errors ---- */

static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver", "driver too old for the runtime"},
    {cudaErrorMissingConfiguration, "cudaErrorMissingConfiguration", "no launch was configured"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no device"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "no such device"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel runs on the stand-in for a device"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid stream or event"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "illegal state of the stream or graph"},
    {cudaErrorNotReady, "cudaErrorNotReady", "not ready"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled",
     "peer access has not been enabled"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the memory range is already registered"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "an operation on the stream failed"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "not supported by the stand-in"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

cudaError_t cudart_result(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

CUDART_EXPORT const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            return errors[i].name;
    return "unrecognized error code";
}

CUDART_EXPORT const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            return errors[i].text;
    return "unrecognized error code";
}

CUDART_EXPORT cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

CUDART_EXPORT cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

/* ---- devices ---- */

/* A wrong value is no device, and is said once: a result has no text of its own. */
static int device_count(void)
{
    static bool said; /* atomic */
    const char *text = getenv("HOSTNCCL_DEVICES");
    if (!text)
        return DEVICES_DEFAULT;
    char *end;
    long n = strtol(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && n <= CUDART_DEVICES_MAX)
        return (int)n;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        fprintf(stderr,
                "hostcudart: HOSTNCCL_DEVICES is '%s', expected a number from 0 to %d: there is no "
                "device\n",
                text, CUDART_DEVICES_MAX);
    return 0;
}

int cudart_device(void)
{
    return current_device;
}

bool cudart_device_exists(int device)
{
    return device >= 0 && device < device_count();
}

CUDART_EXPORT cudaError_t cudaDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return cudart_result(cudaErrorInvalidValue);
    *driverVersion = CUDART_VERSION;
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
    return cudaDriverGetVersion(runtimeVersion);
}

CUDART_EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
    if (!count)
        return cudart_result(cudaErrorInvalidValue);
    *count = device_count();
    return cudart_result(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

CUDART_EXPORT cudaError_t cudaGetDevice(int *device)
{
    if (!device)
        return cudart_result(cudaErrorInvalidValue);
    *device = current_device;
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaSetDevice(int device)
{
    if (!cudart_device_exists(device))
        return cudart_result(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority,
                                                           int *greatestPriority)
{
    if (leastPriority)
        *leastPriority = 0;
    if (greatestPriority)
        *greatestPriority = 0;
    return cudaSuccess;
}
