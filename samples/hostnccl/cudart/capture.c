/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures of streams into graphs. Each stream of a capture has a lane of the graph. An event that
 * is recorded in a capture is a mark in its lane; a wait for it joins another lane, or a new
 * stream, to that. How far a lane has seen the others' works tells in the end whether all is
 * joined.
 */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

#define LANES_MAX 64

struct seen {
    uint32_t works[LANES_MAX]; /* of each lane, how many */
};

struct capture {
    struct capture *next; /* of those under way */
    unsigned long long id;
    unsigned references; /* of the list, of events */
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    bool over, invalid;
    cudaGraph_t graph;
    unsigned lanes;
    cudaStream_t streams[LANES_MAX]; /* held, by lane; the first began it */
    struct seen seen[LANES_MAX];     /* by lane; of itself all */
    struct seen *marks;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all of this file's, and of streams
                                                            and events what belongs to captures */
static struct capture *captures;
static unsigned under_way; /* atomic */
static unsigned long long last_id;
static __thread enum cudaStreamCaptureMode thread_mode;

/* Those of the parent's streams never end. */
void cudart_captures_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    captures = NULL;
    under_way = 0;
    thread_mode = cudaStreamCaptureModeGlobal;
}

static bool none(void)
{
    return __atomic_load_n(&under_way, __ATOMIC_ACQUIRE) == 0;
}

static void drop(struct capture *c)
{
    if (--c->references > 0)
        return;
    free(c->marks);
    free(c);
}

static cudaError_t invalidate(struct capture *c, cudaError_t error)
{
    c->invalid = true;
    return error;
}

/* ---- what a capture forbids ---- */

static bool forbids_unsafe(const struct capture *c)
{
    if (c->mode == cudaStreamCaptureModeRelaxed || thread_mode == cudaStreamCaptureModeRelaxed)
        return false;
    if (pthread_equal(c->thread, pthread_self()))
        return true;
    return c->mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
}

cudaError_t cudart_unsafe(void)
{
    cudaError_t error = cudaSuccess;
    if (none())
        return cudaSuccess;
    pthread_mutex_lock(&lock);
    for (struct capture *c = captures; c; c = c->next)
        if (forbids_unsafe(c))
            error = invalidate(c, cudaErrorStreamCaptureUnsupported);
    pthread_mutex_unlock(&lock);
    return error;
}

/* Has it a stream of the device that matters? */
static bool touches(const struct capture *c, int device, bool blocking_only)
{
    for (unsigned i = 0; i < c->lanes; i++)
        if (c->streams[i]->device == device &&
            !(blocking_only && (c->streams[i]->flags & cudaStreamNonBlocking)))
            return true;
    return false;
}

static cudaError_t refuse_touching(int device, bool blocking_only, cudaError_t error)
{
    cudaError_t result = cudaSuccess;
    for (struct capture *c = captures; c; c = c->next)
        if (touches(c, device, blocking_only))
            result = invalidate(c, error);
    return result;
}

cudaError_t cudart_capture_forbids_legacy(int device)
{
    if (none())
        return cudaSuccess;
    pthread_mutex_lock(&lock);
    cudaError_t error = refuse_touching(device, true, cudaErrorStreamCaptureImplicit);
    pthread_mutex_unlock(&lock);
    return error;
}

cudaError_t cudart_capture_forbids_device(int device)
{
    if (none())
        return cudaSuccess;
    pthread_mutex_lock(&lock);
    cudaError_t error = refuse_touching(device, false, cudaErrorStreamCaptureUnsupported);
    pthread_mutex_unlock(&lock);
    return error;
}

cudaError_t cudart_capture_forbids_stream(cudaStream_t s)
{
    if (none())
        return cudaSuccess;
    pthread_mutex_lock(&lock);
    cudaError_t error =
        s->capture ? invalidate(s->capture, cudaErrorStreamCaptureUnsupported) : cudaSuccess;
    pthread_mutex_unlock(&lock);
    return error;
}

/* ---- what goes into one ---- */

static cudaError_t add_work(struct capture *c, unsigned lane, const struct hostcuda_work *work,
                            void *argument)
{
    if (c->invalid)
        return cudaErrorStreamCaptureInvalidated;
    cudaError_t error = cudart_graph_add_work(c->graph, lane, work, argument);
    if (error == cudaSuccess)
        c->seen[lane].works[lane]++;
    return error;
}

bool cudart_capture_put(cudaStream_t s, const struct hostcuda_work *work, void *argument,
                        cudaError_t *ret)
{
    if (none())
        return false;
    pthread_mutex_lock(&lock);
    bool captured = s->capture != NULL;
    if (captured)
        *ret = add_work(s->capture, s->lane, work, argument);
    else if (cudart_stream_is_legacy(s))
        *ret = refuse_touching(s->device, true, cudaErrorStreamCaptureImplicit);
    else
        *ret = cudaSuccess;
    pthread_mutex_unlock(&lock);
    return captured || *ret != cudaSuccess;
}

/* The number of a new mark in the lane; < 0 no memory. */
static int add_mark(struct capture *c, unsigned lane)
{
    unsigned n = c->graph->body->marks;
    struct seen *more = realloc(c->marks, (n + 1) * sizeof *more);
    if (!more)
        return -1;
    c->marks = more;
    if (cudart_graph_add_mark(c->graph, lane) != cudaSuccess)
        return -1;
    c->marks[n] = c->seen[lane];
    return (int)n;
}

void cudart_capture_forget(struct cudart_place *place)
{
    if (!__atomic_load_n(&place->capture, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&lock);
    if (place->capture)
        drop(place->capture);
    __atomic_store_n(&place->capture, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

static cudaError_t record(struct capture *c, unsigned lane, struct cudart_place *place)
{
    int mark = c->invalid ? -1 : add_mark(c, lane);
    if (mark < 0)
        return c->invalid ? cudaErrorStreamCaptureInvalidated
                          : invalidate(c, cudaErrorMemoryAllocation);
    c->references++;
    if (place->capture)
        drop(place->capture);
    place->mark = (unsigned)mark;
    __atomic_store_n(&place->capture, c, __ATOMIC_RELEASE);
    return cudaSuccess;
}

bool cudart_capture_record(cudaStream_t s, struct cudart_place *place, cudaError_t *ret)
{
    if (none())
        return false;
    pthread_mutex_lock(&lock);
    bool captured = s->capture != NULL;
    if (captured)
        *ret = record(s->capture, s->lane, place);
    pthread_mutex_unlock(&lock);
    return captured;
}

static cudaError_t add_lane(struct capture *c, cudaStream_t s)
{
    if (c->lanes == LANES_MAX || cudart_stream_is_legacy(s))
        return invalidate(c, c->lanes == LANES_MAX ? cudaErrorStreamCaptureUnsupported
                                                   : cudaErrorStreamCaptureImplicit);
    s->capture = c;
    s->lane = c->lanes++;
    c->graph->body->lanes = c->lanes;
    c->streams[s->lane] = cudart_stream_hold(s);
    return cudaSuccess;
}

static cudaError_t join(struct capture *c, cudaStream_t s, unsigned mark)
{
    cudaError_t error = c->invalid    ? cudaErrorStreamCaptureInvalidated
                        : !s->capture ? add_lane(c, s)
                                      : cudaSuccess;
    if (error == cudaSuccess)
        error = cudart_graph_add_join(c->graph, s->lane, mark);
    for (unsigned i = 0; i < c->lanes && error == cudaSuccess; i++)
        if (i != s->lane && c->seen[s->lane].works[i] < c->marks[mark].works[i])
            c->seen[s->lane].works[i] = c->marks[mark].works[i];
    return error;
}

bool cudart_capture_wait(cudaStream_t s, struct cudart_place *place, cudaError_t *ret)
{
    if (none() && !__atomic_load_n(&place->capture, __ATOMIC_ACQUIRE))
        return false;
    pthread_mutex_lock(&lock);
    struct capture *mine = s->capture, *other = place->capture;
    bool concerned = mine || other;
    if (mine && (!other || other->over)) {
        *ret = invalidate(mine, cudaErrorStreamCaptureIsolation);
    } else if (other && other->over) {
        *ret = cudaErrorCapturedEvent;
    } else if (mine && mine != other) {
        invalidate(mine, cudaErrorStreamCaptureMerge);
        *ret = invalidate(other, cudaErrorStreamCaptureMerge);
    } else if (concerned) {
        *ret = join(other, s, place->mark);
    }
    pthread_mutex_unlock(&lock);
    return concerned;
}

cudaError_t cudart_capture_forbids_event(const struct cudart_place *place)
{
    if (!__atomic_load_n(&place->capture, __ATOMIC_ACQUIRE))
        return cudart_unsafe();
    pthread_mutex_lock(&lock);
    if (place->capture && !place->capture->over)
        invalidate(place->capture, cudaErrorCapturedEvent);
    pthread_mutex_unlock(&lock);
    return cudaErrorCapturedEvent;
}

bool cudart_stream_is_capturing(cudaStream_t s)
{
    if (none())
        return false;
    pthread_mutex_lock(&lock);
    bool capturing = s->capture != NULL;
    pthread_mutex_unlock(&lock);
    return capturing;
}

/* ---- begin and end ---- */

static struct capture *capture_new(enum cudaStreamCaptureMode mode, int device)
{
    struct capture *c = calloc(1, sizeof *c);
    cudaGraph_t graph = c ? cudart_graph_new(device) : NULL;
    if (!graph) {
        free(c);
        return NULL;
    }
    c->graph = graph;
    c->mode = mode;
    c->thread = pthread_self();
    c->references = 1;
    graph->capturing = true;
    return c;
}

static cudaError_t begin(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    if (s->capture)
        return cudaErrorIllegalState;
    struct capture *c = capture_new(mode, s->device);
    if (!c)
        return cudaErrorMemoryAllocation;
    c->id = ++last_id;
    add_lane(c, s);
    c->next = captures;
    captures = c;
    __atomic_fetch_add(&under_way, 1, __ATOMIC_ACQ_REL);
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                                 enum cudaStreamCaptureMode mode)
{
    if ((unsigned)mode > cudaStreamCaptureModeRelaxed)
        return cudart_result(cudaErrorInvalidValue);
    cudaStream_t s = cudart_stream_hold(stream);
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudaError_t error = cudaErrorStreamCaptureUnsupported;
    if (!cudart_stream_is_legacy(s)) {
        pthread_mutex_lock(&lock);
        error = begin(s, mode);
        pthread_mutex_unlock(&lock);
    }
    cudart_stream_drop(s);
    return cudart_result(error);
}

static bool all_joined(const struct capture *c)
{
    for (unsigned i = 1; i < c->lanes; i++)
        if (c->seen[0].works[i] < c->seen[i].works[i])
            return false;
    return true;
}

static void take_off_list(struct capture *c)
{
    struct capture **at = &captures;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    __atomic_fetch_sub(&under_way, 1, __ATOMIC_ACQ_REL);
}

/* The capture is over with whatever result; but an attempt by the wrong thread or on the wrong
 * stream only spoils it. `*ret` is to be destroyed where the result is an error. */
static cudaError_t end(cudaStream_t s, cudaGraph_t *ret)
{
    struct capture *c = s->capture;
    if (!c)
        return cudaErrorIllegalState;
    if (c->streams[0] != s)
        return invalidate(c, cudaErrorStreamCaptureUnmatched);
    if (c->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self()))
        return invalidate(c, cudaErrorStreamCaptureWrongThread);
    take_off_list(c);
    for (unsigned i = 0; i < c->lanes; i++) {
        c->streams[i]->capture = NULL;
        cudart_stream_drop(c->streams[i]);
    }
    cudaError_t error = c->invalid       ? cudaErrorStreamCaptureInvalidated
                        : !all_joined(c) ? cudaErrorStreamCaptureUnjoined
                                         : cudaSuccess;
    c->graph->capturing = false;
    c->over = true;
    *ret = c->graph;
    drop(c);
    return error;
}

CUDART_EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
    cudaStream_t s = cudart_stream_hold(stream);
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudaGraph_t graph = NULL;
    pthread_mutex_lock(&lock);
    cudaError_t error = end(s, &graph);
    pthread_mutex_unlock(&lock);
    if (graph && (error != cudaSuccess || !pGraph)) {
        cudaGraphDestroy(graph);
        graph = NULL;
    }
    if (pGraph)
        *pGraph = graph;
    cudart_stream_drop(s);
    return cudart_result(error);
}

/* ---- asking ---- */

CUDART_EXPORT cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
    unsigned long long *id_out, cudaGraph_t *graph_out, const cudaGraphNode_t **dependencies_out,
    const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
    cudaStream_t s = captureStatus_out ? cudart_stream_hold(stream) : NULL;
    if (!s)
        return cudart_result(captureStatus_out ? cudaErrorInvalidResourceHandle
                                               : cudaErrorInvalidValue);
    cudaError_t error = cudaSuccess;
    *captureStatus_out = cudaStreamCaptureStatusNone;
    if (none()) {
        cudart_stream_drop(s);
        return cudaSuccess;
    }
    pthread_mutex_lock(&lock);
    const struct capture *c = s->capture;
    if (!c && cudart_stream_is_legacy(s))
        for (const struct capture *any = captures; any; any = any->next)
            error = touches(any, s->device, true) ? cudaErrorStreamCaptureImplicit : error;
    *captureStatus_out = !c           ? cudaStreamCaptureStatusNone
                         : c->invalid ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
    if (c && id_out)
        *id_out = c->id;
    if (c && graph_out)
        *graph_out = c->graph;
    if (c && (dependencies_out || edgeData_out || numDependencies_out))
        error = cudaErrorNotSupported;
    pthread_mutex_unlock(&lock);
    cudart_stream_drop(s);
    return cudart_result(error);
}

CUDART_EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                                enum cudaStreamCaptureStatus *pCaptureStatus)
{
    return cudaStreamGetCaptureInfo(stream, pCaptureStatus, NULL, NULL, NULL, NULL, NULL);
}

CUDART_EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed)
        return cudart_result(cudaErrorInvalidValue);
    enum cudaStreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return cudaSuccess;
}
