/* SPDX-License-Identifier: Apache-2.0 */
/* cudart-check.h - what tests of captures share; after cmocka.h. */
#ifndef CUDART_CHECK_H
#define CUDART_CHECK_H

#include "cuda_runtime.h"

#define OK(call) assert_int_equal(call, cudaSuccess)

static inline cudaStream_t new_stream(void)
{
    cudaStream_t s;
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
}

static inline cudaStream_t new_capture(enum cudaStreamCaptureMode mode)
{
    cudaStream_t s = new_stream();
    OK(cudaStreamBeginCapture(s, mode));
    return s;
}

static inline enum cudaStreamCaptureStatus status_of(cudaStream_t s)
{
    enum cudaStreamCaptureStatus status = (enum cudaStreamCaptureStatus)99;
    OK(cudaStreamIsCapturing(s, &status));
    return status;
}

static inline cudaGraphExec_t end_and_instantiate(cudaStream_t s)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}

static inline void lead(cudaStream_t from, cudaStream_t to)
{
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    OK(cudaEventRecord(event, from));
    OK(cudaStreamWaitEvent(to, event, 0));
    OK(cudaEventDestroy(event));
}

#endif
