/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How what a group holds for one communicator gets onto streams, or into the graph that these are
 * captured into. A captured plan is a template: each launch of the graph runs a copy of it, with a
 * ticket of its own.
 */
#include <stdlib.h>

#include "hostcuda.h"
#include "internal.h"

/* The stand-in runtime's own; a real CUDA runtime has it not. */
#pragma weak hostcuda_launch

/* ---- plans ---- */

void hostnccl_ops_free(struct hostnccl_op *ops)
{
    while (ops) {
        struct hostnccl_op *next = ops->next;
        free(ops);
        ops = next;
    }
}

/* NULL: no memory. */
static struct hostnccl_op *copy_ops(const struct hostnccl_op *ops)
{
    struct hostnccl_op *copy = NULL, **end = &copy;
    for (; ops; ops = ops->next) {
        *end = malloc(sizeof **end);
        if (!*end) {
            hostnccl_ops_free(copy);
            return NULL;
        }
        **end = *ops;
        (*end)->next = NULL;
        end = &(*end)->next;
    }
    return copy;
}

static void *copy_plan(const void *template)
{
    const struct hostnccl_plan *from = template;
    struct hostnccl_plan *plan = malloc(sizeof *plan);
    struct hostnccl_op *ops = copy_ops(from->ops);
    if (!plan || !ops) {
        free(plan);
        hostnccl_ops_free(ops);
        return NULL;
    }
    *plan = *from;
    plan->ops = ops;
    plan->is_template = false;
    plan->is_replay = true;
    return plan;
}

static void release_plan(void *argument)
{
    struct hostnccl_plan *plan = argument;
    if (plan->is_template)
        hostnccl_comm_leave_graph(plan->comm);
    hostnccl_ops_free(plan->ops);
    free(plan);
}

/* A send to oneself needs the receive of the same size in the same group: nobody else could give
 * it. */
static ncclResult_t check_own_messages(const struct hostnccl_plan *plan)
{
    const struct hostnccl_op *send = plan->ops, *recv = plan->ops;
    for (;;) {
        while (send && !(send->func == FUNC_SEND && send->root == plan->comm->rank))
            send = send->next;
        while (recv && !(recv->func == FUNC_RECV && recv->root == plan->comm->rank))
            recv = recv->next;
        if (!send && !recv)
            return ncclSuccess;
        if (!send || !recv || send->count != recv->count || send->type != recv->type)
            return hostnccl_fail(ncclInvalidUsage,
                                 "a send to oneself without a receive of its size in the group");
        send = send->next;
        recv = recv->next;
    }
}

/* `waiting` goes on when what `other` holds now is done. */
static cudaError_t join_streams(cudaStream_t waiting, cudaStream_t other)
{
    cudaEvent_t event;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error != cudaSuccess)
        return error;
    error = cudaEventRecord(event, other);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(waiting, event, 0);
    cudaEventDestroy(event);
    return error;
}

/* The other streams of a plan: the first waits for them before it, and they for it after. */
static cudaError_t join_others(const cudaStream_t *streams, unsigned n, bool before)
{
    cudaError_t error = cudaSuccess;
    for (unsigned i = 1; i < n && error == cudaSuccess; i++)
        error =
            before ? join_streams(streams[0], streams[i]) : join_streams(streams[i], streams[0]);
    return error;
}

static unsigned count_ops(const struct hostnccl_op *ops)
{
    unsigned n = 0;
    for (; ops; ops = ops->next)
        n++;
    return n;
}

/* Each stream once, the first operation's first. */
static unsigned distinct_streams(const struct hostnccl_op *ops, cudaStream_t *ret)
{
    unsigned n = 0;
    for (; ops; ops = ops->next) {
        unsigned i = 0;
        while (i < n && ret[i] != ops->stream)
            i++;
        if (i == n)
            ret[n++] = ops->stream;
    }
    return n;
}

/* On the stream now: its turn is decided. */
static void take_ticket(void *argument)
{
    struct hostnccl_plan *plan = argument;
    ncclComm_t comm = plan->comm;
    pthread_mutex_lock(&comm->lock);
    plan->is_late = comm->ended;
    plan->ticket = plan->is_late ? 0 : comm->issued++;
    pthread_mutex_unlock(&comm->lock);
}

static void run_and_release(void *argument)
{
    hostnccl_execute(argument);
    release_plan(argument);
}

static cudaError_t put_on_stream(struct hostnccl_plan *plan, cudaStream_t stream)
{
    static const struct hostcuda_work work = {
        .run = hostnccl_execute,
        .release = release_plan,
        .queued = take_ticket,
        .copy = copy_plan,
        .type = cudaGraphNodeTypeKernel,
    };
    ncclComm_t comm = plan->comm;
    if (hostcuda_launch)
        return hostcuda_launch(stream, &work, plan);
    pthread_mutex_lock(&comm->launch_lock);
    take_ticket(plan);
    cudaError_t error = cudaLaunchHostFunc(stream, run_and_release, plan);
    if (error != cudaSuccess) {
        pthread_mutex_lock(&comm->lock);
        comm->issued--; /* nobody has taken another meanwhile */
        pthread_mutex_unlock(&comm->lock);
    }
    pthread_mutex_unlock(&comm->launch_lock);
    return error;
}

/* All are captured into one graph, or none is. */
static ncclResult_t check_graph(const struct hostnccl_op *ops)
{
    for (const struct hostnccl_op *op = ops; op; op = op->next)
        if (op->graph != ops->graph)
            return hostnccl_fail(ncclInvalidUsage,
                                 "the streams of a group must all be captured into the same graph, "
                                 "or none of them");
    if (ops->graph != 0 && !hostcuda_launch)
        return hostnccl_fail(ncclInvalidUsage,
                             "the stand-in NCCL goes into graphs of the stand-in CUDA only");
    return ncclSuccess;
}

/* Takes the plan. `streams` and `events` have room for all its operations. */
static ncclResult_t launch_with(struct hostnccl_plan *plan, cudaStream_t *streams, void **events)
{
    struct hostnccl_profiler_launch profile;
    unsigned n_events = 0, n = distinct_streams(plan->ops, streams);
    bool captured = plan->ops->graph != 0;
    ncclResult_t result = check_graph(plan->ops);
    if (result != ncclSuccess) {
        release_plan(plan);
        return result;
    }
    cudaError_t error = join_others(streams, n, true);
    hostnccl_profiler_launch_begin(plan, !captured, &profile);
    hostnccl_profiler_kernel_launch(plan, streams[0], &profile);
    for (struct hostnccl_op *op = plan->ops; op && !captured; op = op->next)
        events[n_events++] = op->event;
    if (captured) {
        plan->is_template = true;
        hostnccl_comm_enter_graph(plan->comm);
    }
    if (error == cudaSuccess)
        error = put_on_stream(plan, streams[0]);
    if (error != cudaSuccess)
        release_plan(plan);
    hostnccl_profiler_launch_end(&profile, events, n_events);
    if (error == cudaSuccess)
        error = join_others(streams, n, false);
    return error == cudaSuccess
               ? ncclSuccess
               : hostnccl_fail(ncclUnhandledCudaError, "launch: %s", cudaGetErrorString(error));
}

/* Stream 0 is the one of the communicator's device. */
ncclResult_t hostnccl_launch(struct hostnccl_op *ops, void *api_group_event)
{
    unsigned n = count_ops(ops);
    struct hostnccl_plan *plan = malloc(sizeof *plan);
    cudaStream_t *streams = calloc(n, sizeof *streams);
    void **events = calloc(n, sizeof *events);
    ncclResult_t result = ncclSuccess;
    if (!plan || !streams || !events) {
        result = hostnccl_fail(ncclSystemError, "out of memory");
    } else {
        *plan = (struct hostnccl_plan){
            .comm = ops->comm, .ops = ops, .api_group_event = api_group_event};
        result = check_own_messages(plan);
    }
    if (result == ncclSuccess) {
        int device = 0;
        cudaGetDevice(&device);
        cudaSetDevice(ops->comm->device);
        result = launch_with(plan, streams, events);
        cudaSetDevice(device);
    } else {
        hostnccl_ops_free(ops);
        free(plan);
    }
    free(streams);
    free(events);
    return result;
}
