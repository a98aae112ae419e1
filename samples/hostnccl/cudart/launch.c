/* SPDX-License-Identifier: Apache-2.0 */
/* Work of others on streams. */
#include <stdlib.h>

#include "cudart.h"

CUDART_EXPORT cudaError_t hostcuda_launch(cudaStream_t stream, const struct hostcuda_work *work,
                                          void *argument)
{
    cudaStream_t s = cudart_stream_hold(stream);
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudaError_t error = cudart_stream_put(s, work, argument);
    cudart_stream_drop(s);
    return cudart_result(error);
}

CUDART_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
    struct hostcuda_work work = {.run = fn, .type = cudaGraphNodeTypeHost};
    return fn ? hostcuda_launch(stream, &work, userData) : cudart_result(cudaErrorInvalidValue);
}

struct callback {
    cudaStream_t stream;
    cudaStreamCallback_t fn;
    void *argument;
};

static void run_callback(void *argument)
{
    struct callback *c = argument;
    c->fn(c->stream, cudaSuccess, c->argument);
}

/* CUDA doesn't capture these. */
CUDART_EXPORT cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                                void *userData, unsigned int flags)
{
    static const struct hostcuda_work work = {.run = run_callback, .release = free};
    cudaStream_t s = cudart_stream_hold(stream);
    if (!s || !callback || flags != 0) {
        if (s)
            cudart_stream_drop(s);
        return cudart_result(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    }
    cudaError_t error = cudart_capture_forbids_stream(s);
    struct callback *c = error == cudaSuccess ? malloc(sizeof *c) : NULL;
    if (c) {
        *c = (struct callback){stream, callback, userData};
        error = cudart_stream_put(s, &work, c);
        if (error != cudaSuccess)
            free(c);
    } else if (error == cudaSuccess) {
        error = cudaErrorMemoryAllocation;
    }
    cudart_stream_drop(s);
    return cudart_result(error);
}
