/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphs.h - which CUDA streams are captured into a graph, as far as the program's own calls tell.
 *
 * CUDA isn't asked: while a stream is captured no call of ours is made. What begins and ends a
 * capture is seen by wrappers (cuda.api), as is what forks a stream into one: a wait for an event
 * that was recorded in it. Where a program's CUDA runtime is linked statically nothing is seen, and
 * NCCL's profiler interface, from its version 5 on, tells instead.
 * Memory: fixed; the 65th stream or the 257th event of captures at one time isn't kept.
 * Threads: all, without locks. `stream` is a handle; of cudaStreamPerThread, the thread's.
 */
#ifndef RS_TRACER_NCCL_GRAPHS_H
#define RS_TRACER_NCCL_GRAPHS_H

#include "core.h"

/* Captures under way; atomic. */
extern uint32_t rs_graph_captures RS_HIDDEN;

/* After the program's successful call, but for `end`, which takes CUDA's result. */
void rs_graph_begin(const void *stream) RS_HIDDEN;
void rs_graph_end(const void *stream, int result) RS_HIDDEN;
void rs_graph_recorded(const void *event, const void *stream) RS_HIDDEN;
void rs_graph_waits(const void *stream, const void *event) RS_HIDDEN;
bool rs_graph_holds(const void *stream) RS_HIDDEN;

/* For every call: one load where nothing is captured. */
static inline bool rs_graph_captures_any(void)
{
    return RS_UNLIKELY(__atomic_load_n(&rs_graph_captures, __ATOMIC_RELAXED) > 0);
}

static inline bool rs_graph_is_captured(const void *stream)
{
    return rs_graph_captures_any() && rs_graph_holds(stream);
}

#endif
