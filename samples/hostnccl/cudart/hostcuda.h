/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostcuda.h - what the stand-in CUDA runtime has for the stand-in NCCL alone: work on streams that
 * knows when it is queued, and can be captured into a graph and run again; memory that is NCCL's.
 *
 * Memory: `argument` is the work's until `release`, which is called once, whether it ran or not; if
 * hostcuda_launch fails it stays the caller's. Work that was captured is a template: each launch
 * of the graph runs what `copy` makes of it, which is released after it ran; without `copy` the
 * argument itself is run each time: launches of one executable graph don't overlap, those of two
 * may.
 */
#ifndef HOSTNCCL_HOSTCUDA_H
#define HOSTNCCL_HOSTCUDA_H

#include <stdbool.h>

#include "cuda_runtime_api.h"

struct hostcuda_work {
    void (*run)(void *argument);     /* on the stream's thread */
    void (*release)(void *argument); /* NULL: nothing to do */
    /* NULL, or called with the stream's lock held, so in the order in which works stand on it */
    void (*queued)(void *argument);
    void *(*copy)(const void *template); /* NULL: no memory */
    enum cudaGraphNodeType type;         /* as which it stands in a graph */
};

cudaError_t hostcuda_launch(cudaStream_t stream, const struct hostcuda_work *work, void *argument);
/* In a work: the stream it runs on has failed. */
void hostcuda_fail_stream(cudaError_t error);
/* Device memory that another allocator gave, for cudaPointerGetAttributes. Remove: false where it
 * isn't such memory. */
cudaError_t hostcuda_memory_add(const void *p, size_t bytes);
bool hostcuda_memory_remove(const void *p);
/* Where `p` lies in such memory, and how much there is from it on. */
bool hostcuda_memory_find(const void *p, size_t *ret_offset, size_t *ret_left);

#endif
