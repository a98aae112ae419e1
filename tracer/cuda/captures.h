/* SPDX-License-Identifier: Apache-2.0 */
/* captures.h - what the wrappers of cuda.api tell of streams that are captured: nccl/graphs.h. */
#ifndef RS_TRACER_CUDA_CAPTURES_H
#define RS_TRACER_CUDA_CAPTURES_H

#include "nccl/graphs.h"
#include "waits.h"

static inline void rs_hook_cudaStreamBeginCapture(cudaError_t result, cudaStream_t stream, int mode)
{
    (void)mode;
    if (result == 0)
        rs_graph_begin(stream);
}

static inline void rs_hook_cudaStreamBeginCaptureToGraph(cudaError_t result, cudaStream_t stream,
                                                         void *graph, const void *dependencies,
                                                         const void *data, size_t n, int mode)
{
    (void)graph, (void)dependencies, (void)data, (void)n, (void)mode;
    if (result == 0)
        rs_graph_begin(stream);
}

static inline void rs_hook_cudaStreamEndCapture(cudaError_t result, cudaStream_t stream,
                                                void *graph)
{
    (void)graph;
    rs_graph_end(stream, result);
}

static inline void rs_hook_cudaEventRecordWithFlags(cudaError_t result, cudaEvent_t event,
                                                    cudaStream_t stream, unsigned flags)
{
    if (rs_graph_captures_any() && result == 0 && flags == 0)
        rs_graph_recorded(event, stream);
}

static inline void rs_hook_cudaEventRecord(cudaError_t result, cudaEvent_t event,
                                           cudaStream_t stream)
{
    rs_hook_cudaEventRecordWithFlags(result, event, stream, 0);
}

static inline void rs_hook_cudaStreamWaitEvent(cudaError_t result, cudaStream_t stream,
                                               cudaEvent_t event, unsigned flags)
{
    if (rs_graph_captures_any() && result == 0 && flags == 0)
        rs_graph_waits(stream, event);
}

#endif
