/* SPDX-License-Identifier: Apache-2.0 */
#include "graph.h"

#include <stdlib.h>

#define GRAPH_MAGIC 0x47524150u
#define EXEC_MAGIC  0x45584543u

/* Where a mark stands in a launch. */
struct reached {
    unsigned lane;
    uint64_t ticket;
};

struct CUgraphExec_st {
    uint32_t magic;
    unsigned generation; /* its streams' */
    unsigned long long flags;
    struct cudart_body *body;
    pthread_mutex_t lock; /* what follows */
    cudaStream_t *lanes;  /* the first is the launch's */
    struct reached *marks;
    cudaStream_t last; /* of the last launch, held, and where that ends on it */
    uint64_t last_ticket;
};

/* ---- bodies ---- */

static void body_drop(struct cudart_body *body)
{
    if (__atomic_sub_fetch(&body->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; i < body->count; i++) {
        cudaGraphNode_t node = body->nodes[i];
        if (node->kind == NODE_WORK && node->work.release)
            node->work.release(node->argument);
        free(node);
    }
    free(body->nodes);
    free(body);
}

static struct cudart_body *body_hold(struct cudart_body *body)
{
    __atomic_fetch_add(&body->references, 1, __ATOMIC_RELAXED);
    return body;
}

static bool make_room(struct cudart_body *body)
{
    if (body->count < body->capacity)
        return true;
    size_t capacity = body->capacity ? 2 * body->capacity : 16;
    cudaGraphNode_t *more = realloc(body->nodes, capacity * sizeof(cudaGraphNode_t));
    if (!more)
        return false;
    body->nodes = more;
    body->capacity = capacity;
    return true;
}

static cudaError_t add(struct cudart_body *body, struct CUgraphNode_st node)
{
    cudaGraphNode_t made = make_room(body) ? malloc(sizeof *made) : NULL;
    if (!made)
        return cudaErrorMemoryAllocation;
    *made = node;
    body->nodes[body->count++] = made;
    return cudaSuccess;
}

cudaError_t cudart_graph_add_work(cudaGraph_t graph, unsigned lane,
                                  const struct hostcuda_work *work, void *argument)
{
    return add(graph->body, (struct CUgraphNode_st){NODE_WORK, lane, 0, *work, argument});
}

cudaError_t cudart_graph_add_mark(cudaGraph_t graph, unsigned lane)
{
    struct cudart_body *body = graph->body;
    cudaError_t error =
        add(body, (struct CUgraphNode_st){.kind = NODE_MARK, .lane = lane, .mark = body->marks});
    body->marks += error == cudaSuccess;
    return error;
}

cudaError_t cudart_graph_add_join(cudaGraph_t graph, unsigned lane, unsigned mark)
{
    return add(graph->body, (struct CUgraphNode_st){.kind = NODE_JOIN, .lane = lane, .mark = mark});
}

/* ---- graphs ---- */

cudaGraph_t cudart_graph_new(int device)
{
    cudaGraph_t graph = calloc(1, sizeof *graph);
    struct cudart_body *body = graph ? calloc(1, sizeof *body) : NULL;
    if (!body) {
        free(graph);
        return NULL;
    }
    *body = (struct cudart_body){.references = 1, .device = device, .lanes = 1};
    graph->magic = GRAPH_MAGIC;
    graph->body = body;
    return graph;
}

static bool is_graph(cudaGraph_t graph)
{
    return graph && graph->magic == GRAPH_MAGIC;
}

CUDART_EXPORT cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
    cudaGraph_t graph = pGraph && flags == 0 ? cudart_graph_new(cudart_device()) : NULL;
    if (!graph)
        return cudart_result(pGraph && flags == 0 ? cudaErrorMemoryAllocation
                                                  : cudaErrorInvalidValue);
    *pGraph = graph;
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    if (!is_graph(graph) || graph->capturing)
        return cudart_result(cudaErrorInvalidValue);
    graph->magic = 0;
    body_drop(graph->body);
    free(graph);
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes,
                                            size_t *numNodes)
{
    if (!is_graph(graph) || !numNodes)
        return cudart_result(cudaErrorInvalidValue);
    size_t room = *numNodes, n = 0;
    for (size_t i = 0; i < graph->body->count; i++) {
        if (graph->body->nodes[i]->kind != NODE_WORK)
            continue;
        if (nodes && n < room)
            nodes[n] = graph->body->nodes[i];
        n++;
    }
    for (size_t i = n; nodes && i < room; i++)
        nodes[i] = NULL;
    *numNodes = nodes && n > room ? room : n;
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType)
{
    if (!node || !pType)
        return cudart_result(cudaErrorInvalidValue);
    *pType = node->work.type;
    return cudaSuccess;
}

/* ---- executable graphs ---- */

static void exec_free(cudaGraphExec_t exec)
{
    for (unsigned i = 1; exec->lanes && i < exec->body->lanes; i++)
        if (exec->lanes[i])
            cudart_stream_end(exec->lanes[i]);
    if (exec->last)
        cudart_stream_drop(exec->last);
    body_drop(exec->body);
    pthread_mutex_destroy(&exec->lock);
    free(exec->lanes);
    free(exec->marks);
    free(exec);
}

static cudaGraphExec_t exec_new(struct cudart_body *body, unsigned long long flags)
{
    cudaGraphExec_t exec = calloc(1, sizeof *exec);
    if (!exec)
        return NULL;
    pthread_mutex_init(&exec->lock, NULL);
    exec->magic = EXEC_MAGIC;
    exec->generation = cudart_generation();
    exec->flags = flags;
    exec->body = body_hold(body);
    exec->lanes = calloc(body->lanes, sizeof(cudaStream_t));
    exec->marks = calloc(body->marks + 1, sizeof *exec->marks);
    bool ok = exec->lanes && exec->marks;
    for (unsigned i = 1; ok && i < body->lanes; i++)
        ok = (exec->lanes[i] = cudart_stream_new_lane(body->device)) != NULL;
    if (!ok) {
        exec_free(exec);
        return NULL;
    }
    return exec;
}

static bool is_exec(cudaGraphExec_t exec)
{
    return exec && exec->magic == EXEC_MAGIC && exec->generation == cudart_generation();
}

CUDART_EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec,
                                                        cudaGraph_t graph, unsigned long long flags)
{
    const unsigned long long known =
        cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUseNodePriority;
    if (!pGraphExec || !is_graph(graph) || graph->capturing || (flags & ~known))
        return cudart_result(cudaErrorInvalidValue);
    cudaGraphExec_t exec = exec_new(graph->body, flags);
    if (!exec)
        return cudart_result(cudaErrorMemoryAllocation);
    *pGraphExec = exec;
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                               unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(pGraphExec, graph, flags);
}

CUDART_EXPORT cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec,
                                                unsigned long long *flags)
{
    if (!is_exec(graphExec) || !flags)
        return cudart_result(cudaErrorInvalidValue);
    *flags = graphExec->flags;
    return cudaSuccess;
}

/* Returns at once, as CUDA does: a launch under way goes on. */
CUDART_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
    if (!is_exec(graphExec))
        return cudart_result(cudaErrorInvalidValue);
    graphExec->magic = 0;
    exec_free(graphExec);
    return cudaSuccess;
}

/* ---- launches ---- */

/* A node's work in one launch. */
struct turn {
    struct cudart_body *body;
    struct hostcuda_work work;
    void *argument;
};

static void turn_run(void *argument)
{
    struct turn *t = argument;
    t->work.run(t->argument);
}

static void turn_queued(void *argument)
{
    struct turn *t = argument;
    if (t->work.queued)
        t->work.queued(t->argument);
}

static void turn_release(void *argument)
{
    struct turn *t = argument;
    if (t->work.copy && t->work.release)
        t->work.release(t->argument);
    body_drop(t->body);
    free(t);
}

static cudaError_t put_turn(struct cudart_body *body, const struct CUgraphNode_st *node,
                            cudaStream_t stream)
{
    static const struct hostcuda_work work = {turn_run, turn_release, turn_queued, NULL, 0};
    struct turn *t = malloc(sizeof *t);
    void *argument = t && node->work.copy ? node->work.copy(node->argument) : node->argument;
    if (!t || (node->work.copy && !argument)) {
        free(t);
        return cudaErrorMemoryAllocation;
    }
    *t = (struct turn){body_hold(body), node->work, argument};
    cudaError_t error = cudart_stream_put(stream, &work, t);
    if (error != cudaSuccess)
        turn_release(t);
    return error;
}

static void do_nothing(void *argument)
{
}

/* Behind the stream's work and behind the last launch. */
static cudaError_t put_begin(cudaGraphExec_t exec, cudaStream_t stream)
{
    static const struct hostcuda_work nothing = {.run = do_nothing};
    cudaError_t error = cudart_stream_put(stream, &nothing, NULL);
    if (error == cudaSuccess && exec->last)
        error = cudart_stream_join(stream, exec->last, exec->last_ticket);
    return error;
}

static cudaError_t put_nodes(cudaGraphExec_t exec, cudaStream_t stream)
{
    struct cudart_body *body = exec->body;
    cudaStream_t *lanes = exec->lanes;
    cudaError_t error = cudaSuccess;
    lanes[0] = stream;
    for (size_t i = 0; i < body->count && error == cudaSuccess; i++) {
        const struct CUgraphNode_st *node = body->nodes[i];
        if (node->kind == NODE_WORK) {
            error = put_turn(body, node, lanes[node->lane]);
        } else if (node->kind == NODE_MARK) {
            exec->marks[node->mark] =
                (struct reached){node->lane, cudart_stream_ticket(lanes[node->lane])};
        } else {
            const struct reached *mark = &exec->marks[node->mark];
            error = cudart_stream_join(lanes[node->lane], lanes[mark->lane], mark->ticket);
        }
    }
    return error;
}

static cudaError_t launch(cudaGraphExec_t exec, cudaStream_t stream)
{
    pthread_mutex_lock(&exec->lock);
    cudaError_t error = put_begin(exec, stream);
    if (error == cudaSuccess)
        error = put_nodes(exec, stream);
    cudaStream_t before = exec->last;
    exec->last = cudart_stream_hold(stream);
    exec->last_ticket = cudart_stream_ticket(stream);
    pthread_mutex_unlock(&exec->lock);
    if (before)
        cudart_stream_drop(before);
    return error;
}

CUDART_EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    if (!is_exec(graphExec))
        return cudart_result(cudaErrorInvalidValue);
    cudaStream_t s = cudart_stream_hold(stream);
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudaError_t error = cudart_capture_forbids_stream(s);
    if (error == cudaSuccess)
        error = launch(graphExec, s);
    cudart_stream_drop(s);
    return cudart_result(error);
}

CUDART_EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    return cudart_result(is_exec(graphExec) ? cudaSuccess : cudaErrorInvalidValue);
}
