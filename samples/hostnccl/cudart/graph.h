/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - what a capture builds and a launch runs.
 *
 * Model: a body is a list of nodes in the order of capture, each in a lane. A launch goes through
 * it once: lane 0 is the stream it is launched on, the others streams of the executable graph's; a
 * mark remembers how far its lane has come, and a join makes its lane wait for that.
 * Memory: a body is counted; once its capture is over it doesn't change.
 */
#ifndef HOSTNCCL_GRAPH_H
#define HOSTNCCL_GRAPH_H

#include "cudart.h"

struct CUgraphNode_st {
    enum { NODE_WORK, NODE_MARK, NODE_JOIN } kind;
    unsigned lane, mark;
    struct hostcuda_work work;
    void *argument;
};

struct cudart_body {
    uint32_t references; /* atomic */
    int device;
    unsigned lanes, marks;
    size_t count, capacity;
    cudaGraphNode_t *nodes;
};

struct CUgraph_st {
    uint32_t magic;
    bool capturing;
    struct cudart_body *body;
};

cudaGraph_t cudart_graph_new(int device);
/* Takes `argument`, on success. */
cudaError_t cudart_graph_add_work(cudaGraph_t graph, unsigned lane,
                                  const struct hostcuda_work *work, void *argument);
/* Marks have the numbers 0, 1, ... */
cudaError_t cudart_graph_add_mark(cudaGraph_t graph, unsigned lane);
cudaError_t cudart_graph_add_join(cudaGraph_t graph, unsigned lane, unsigned mark);

#endif
