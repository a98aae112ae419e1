/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits.h - calls that wait for the device, recorded so that the analyzer can tell when a thread
 * waited for NCCL: an NCCL call itself only enqueues.
 *
 * They go with NCCL's part, and only on threads that have recorded something before: a program
 * that uses CUDA alone leaves no file. A program whose CUDA runtime is linked statically (the
 * default of nvcc) calls its own and is not seen. Where two runtimes are loaded the first is
 * called.
 */
#ifndef RS_TRACER_CUDA_WAITS_H
#define RS_TRACER_CUDA_WAITS_H

#include "core.h"

#define RS_EXPORT             __attribute__((visibility("default")))
#define RS_CUDA_ERROR_UNKNOWN 999

typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

/* The real function, NULL where no CUDA runtime is loaded; `slot` keeps it. */
void *rs_cuda_function(void **slot, const char *name, uint16_t op) RS_HIDDEN;
/* The call ended now: records it. */
void rs_cuda_waited(struct rs_thread *t, uint16_t op, uint64_t start, bool failed) RS_HIDDEN;

static inline struct rs_thread *rs_cuda_recording(void)
{
    return rs_self && (rs_core->parts & RS_PART_NCCL) ? rs_thread_if_recording() : NULL;
}

#endif
