/* SPDX-License-Identifier: Apache-2.0 */
/* What runs on a stream's thread: the operations of a plan, by rt_coll. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hostcuda.h"
#include "internal.h"
#include "rt-fault-hooks.h"

/* The stand-in runtime's own; a real CUDA runtime has it not. */
#pragma weak hostcuda_fail_stream

static uint64_t whole_count(const struct hostnccl_op *op)
{
    bool gathered = op->func == FUNC_ALLGATHER || op->func == FUNC_REDUCESCATTER;
    return gathered ? op->count * (uint64_t)op->comm->size : op->count;
}

static int broadcast(const struct hostnccl_op *op, struct rt_transport *t)
{
    if (t->rank == op->root && op->in != op->out)
        memcpy(op->out, op->in, op->count * rt_type_bytes(op->type));
    return rt_broadcast(t, op->out, op->count, op->type, op->root);
}

static int run_ready(const struct hostnccl_op *op)
{
    struct rt_transport *t = &op->comm->data.base;
    uint64_t count = whole_count(op);
    switch (op->func) {
    case FUNC_ALLREDUCE:
        return rt_allreduce(t, op->in, op->out, count, op->type, op->op);
    case FUNC_REDUCE:
        return rt_reduce_binomial(t, op->in, op->out, count, op->type, op->op, op->root);
    case FUNC_BROADCAST:
        return broadcast(op, t);
    case FUNC_REDUCESCATTER:
        return rt_reduce_scatter_ring(t, op->in, op->out, count, op->type, op->op);
    case FUNC_ALLGATHER:
        return rt_allgather_ring(t, op->in, op->out, count, op->type);
    default:
        return -EINVAL;
    }
}

/* The input is the caller's: where `out` can't take what it becomes, a copy of it does. */
static int run_multiplied(const struct hostnccl_op *op)
{
    bool fits =
        op->func == FUNC_ALLREDUCE || (op->func == FUNC_REDUCE && op->comm->rank == op->root);
    uint64_t count = whole_count(op);
    void *copy = fits ? NULL : malloc(count * rt_type_bytes(op->type));
    struct hostnccl_op ready = *op;
    ready.in = fits ? op->out : copy;
    if (!ready.in)
        return -ENOMEM;
    rt_multiply(fits ? op->out : copy, op->in, count, op->type,
                op->scalar_at ? op->scalar_at : op->scalar);
    int error = run_ready(&ready);
    free(copy);
    return error;
}

static int run_collective(const struct hostnccl_op *op)
{
    int error = op->multiplies ? run_multiplied(op) : run_ready(op);
    /* of the ones that end with the same on all ranks */
    if (!error && (op->func == FUNC_ALLREDUCE || op->func == FUNC_ALLGATHER))
        RT_FAULT_HOOK(result, op->out, whole_count(op) * rt_type_bytes(op->type));
    return error;
}

const char *hostnccl_algorithm(const struct hostnccl_op *op)
{
    uint64_t bytes = op->count * rt_type_bytes(op->type);
    switch (op->func) {
    case FUNC_ALLREDUCE:
        return rt_allreduce_choice(op->comm->size, bytes) == rt_allreduce_ring ? "RING"
                                                                               : "DOUBLING";
    case FUNC_REDUCE:
        return "TREE";
    case FUNC_BROADCAST:
        return rt_broadcast_choice(op->comm->size, bytes) == rt_broadcast_chain ? "RING" : "TREE";
    default:
        return "RING";
    }
}

/* ---- sends and receives: all of a plan at once ---- */

static int post_one(const struct hostnccl_op *op, struct rt_request *request)
{
    struct rt_transport *t = &op->comm->data.base;
    uint64_t bytes = op->count * rt_type_bytes(op->type);
    if (op->func == FUNC_SEND)
        return t->ops->send(t, op->in, bytes, op->root, request);
    return t->ops->recv(t, op->out, bytes, op->root, request);
}

/* The n-th send to oneself goes to the n-th receive; the launch saw that they fit. */
static void copy_own_messages(const struct hostnccl_plan *plan)
{
    const struct hostnccl_op *recv = plan->ops;
    for (const struct hostnccl_op *send = plan->ops; send; send = send->next) {
        if (send->func != FUNC_SEND || send->root != plan->comm->rank)
            continue;
        while (!(recv->func == FUNC_RECV && recv->root == plan->comm->rank))
            recv = recv->next;
        if (send->count > 0)
            memmove(recv->out, send->in, send->count * rt_type_bytes(send->type));
        recv = recv->next;
    }
}

static int run_messages(const struct hostnccl_plan *plan)
{
    struct rt_transport *t = &plan->comm->data.base;
    unsigned n = 0, posted = 0;
    for (const struct hostnccl_op *op = plan->ops; op; op = op->next)
        n += hostnccl_is_p2p(op);
    if (n == 0)
        return 0;
    for (const struct hostnccl_op *op = plan->ops; op; op = op->next)
        if (hostnccl_is_p2p(op) && op->root != plan->comm->rank && !hostnccl_agree_message(op)) {
            rt_transport_shm_leave(&plan->comm->data);
            return -EMSGSIZE;
        }
    struct rt_request *requests = calloc(n, sizeof *requests);
    int error = requests ? 0 : -ENOMEM;
    for (const struct hostnccl_op *op = plan->ops; op && !error; op = op->next)
        if (hostnccl_is_p2p(op) && op->root != plan->comm->rank && op->count > 0)
            error = post_one(op, &requests[posted++]);
    if (!error) {
        copy_own_messages(plan);
        error = t->ops->wait(t, requests, posted);
    }
    free(requests);
    return error;
}

/* ---- a plan ---- */

static int run_ops(const struct hostnccl_plan *plan)
{
    int error = 0;
    for (struct hostnccl_op *op = plan->ops; op && !error; op = op->next) {
        if (hostnccl_is_p2p(op))
            continue;
        if (!hostnccl_agree(op)) {
            /* the others don't wait for this one any longer */
            rt_transport_shm_leave(&plan->comm->data);
            return -EMSGSIZE;
        }
        hostnccl_profiler_kernel_begin(op);
        error = run_collective(op);
        hostnccl_profiler_kernel_end(op);
    }
    for (struct hostnccl_op *op = plan->ops; op && !error; op = op->next)
        if (hostnccl_is_p2p(op))
            hostnccl_profiler_kernel_begin(op);
    if (!error)
        error = run_messages(plan);
    for (struct hostnccl_op *op = plan->ops; op; op = op->next)
        if (hostnccl_is_p2p(op))
            hostnccl_profiler_kernel_end(op);
    return error;
}

/* Until the plans before this one are through. -ECANCELED aborted; -EIO broken, and that is said.
 */
static int await_turn(ncclComm_t comm, uint64_t ticket)
{
    pthread_mutex_lock(&comm->lock);
    while (comm->done < ticket)
        pthread_cond_wait(&comm->moved, &comm->lock);
    bool broken = comm->async_error != ncclSuccess && comm->async_error != ncclInProgress;
    int error = comm->aborted || comm->revoked ? -ECANCELED : broken ? -EIO : 0;
    pthread_mutex_unlock(&comm->lock);
    return error;
}

/* From here on the communicator may be freed. */
static void end_turn(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->done++;
    pthread_cond_broadcast(&comm->moved);
    pthread_mutex_unlock(&comm->lock);
}

static void report(ncclComm_t comm, int error)
{
    char text[sizeof comm->async_text];
    if (error == -ECANCELED)
        return; /* whoever aborted knows */
    ncclResult_t result = hostnccl_comm_describe(comm, error, text, sizeof text);
    hostnccl_comm_set_error(comm, result, text);
    if (hostcuda_fail_stream)
        hostcuda_fail_stream(cudaErrorLaunchFailure);
}

/* A graph outlived the communicator. */
static void refuse(void)
{
    if (hostcuda_fail_stream)
        hostcuda_fail_stream(cudaErrorLaunchFailure);
}

void hostnccl_execute(void *argument)
{
    struct hostnccl_plan *plan = argument;
    ncclComm_t comm = plan->comm;
    if (plan->is_late) {
        refuse();
        return;
    }
    RT_FAULT_HOOK(kernel);
    if (plan->is_replay)
        hostnccl_profiler_replay(plan);
    int error = await_turn(comm, plan->ticket);
    if (!error)
        error = run_ops(plan);
    if (error)
        report(comm, error);
    end_turn(comm);
}
