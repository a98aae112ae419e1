/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that put operations into a group. Each is a group of its own where there is none. */
#include <limits.h>

#include "internal.h"

static const char *const names[FUNC_COUNT] = {
    [FUNC_BROADCAST] = "ncclBroadcast", [FUNC_REDUCE] = "ncclReduce",
    [FUNC_ALLGATHER] = "ncclAllGather", [FUNC_REDUCESCATTER] = "ncclReduceScatter",
    [FUNC_ALLREDUCE] = "ncclAllReduce", [FUNC_SEND] = "ncclSend",
    [FUNC_RECV] = "ncclRecv",           [FUNC_ALLTOALL] = "ncclAlltoAll",
    [FUNC_SCATTER] = "ncclScatter",     [FUNC_GATHER] = "ncclGather",
};

const char *hostnccl_func_name(enum hostnccl_func func)
{
    return (unsigned)func < FUNC_COUNT && names[func] ? names[func] : "?";
}

bool hostnccl_has_redop(enum hostnccl_func func)
{
    return func == FUNC_ALLREDUCE || func == FUNC_REDUCE || func == FUNC_REDUCESCATTER;
}

static unsigned long long graph_of(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL);
    return status == cudaStreamCaptureStatusNone ? 0 : id;
}

static ncclResult_t check(struct hostnccl_op *op)
{
    ncclResult_t result = hostnccl_comm_check(op->comm);
    if (result == ncclSuccess)
        result = hostnccl_datatype(names[op->func], op->datatype, &op->type);
    if (result == ncclSuccess && hostnccl_has_redop(op->func))
        result = hostnccl_redop_set(op, names[op->func]);
    if (result != ncclSuccess)
        return result;
    if (op->root < 0 || op->root >= op->comm->size)
        return hostnccl_fail(ncclInvalidArgument, "%s: root or peer %d of %d ranks",
                             names[op->func], op->root, op->comm->size);
    if (op->count > (uint64_t)PTRDIFF_MAX / rt_type_bytes(op->type) / (uint64_t)op->comm->size)
        return hostnccl_fail(ncclInvalidArgument, "%s: count %llu", names[op->func],
                             (unsigned long long)op->count);
    result = hostnccl_buffers_check(op);
    if (result != ncclSuccess)
        return result;
    op->graph = graph_of(op->stream);
    return ncclSuccess;
}

static ncclResult_t add(struct hostnccl_op *op)
{
    hostnccl_profiler_call_begin(op);
    ncclResult_t result = hostnccl_group_add(op);
    hostnccl_profiler_call_end(op);
    return result;
}

static ncclResult_t add_message(const struct hostnccl_op *whole, enum hostnccl_func func, int peer,
                                int part)
{
    struct hostnccl_op op = *whole;
    uint64_t offset = (uint64_t)part * op.count * rt_type_bytes(op.type);
    op.func = func;
    op.root = peer;
    op.in = func == FUNC_SEND ? (const char *)whole->in + offset : NULL;
    op.out = func == FUNC_RECV ? (char *)whole->out + offset : NULL;
    return add(&op);
}

/* All-to-all, scatter and gather are messages, as they are in NCCL. */
static ncclResult_t add_messages(const struct hostnccl_op *op)
{
    bool is_root = op->comm->rank == op->root;
    ncclResult_t result = ncclSuccess;
    if (op->func == FUNC_GATHER)
        result = add_message(op, FUNC_SEND, op->root, 0);
    for (int r = 0; r < op->comm->size && result == ncclSuccess; r++) {
        if (op->func == FUNC_ALLTOALL || (op->func == FUNC_SCATTER && is_root))
            result = add_message(op, FUNC_SEND, r, r);
        if (result == ncclSuccess &&
            (op->func == FUNC_ALLTOALL || (op->func == FUNC_GATHER && is_root)))
            result = add_message(op, FUNC_RECV, r, r);
    }
    if (op->func == FUNC_SCATTER && result == ncclSuccess)
        result = add_message(op, FUNC_RECV, op->root, 0);
    return result;
}

/* A collective of nothing is nothing; a message of nothing still is one. */
static ncclResult_t add_checked(struct hostnccl_op *op)
{
    if (op->count == 0 && !hostnccl_is_p2p(op))
        return ncclSuccess;
    return op->func >= FUNC_ALLTOALL ? add_messages(op) : add(op);
}

static ncclResult_t enqueue(struct hostnccl_op op)
{
    pncclGroupStart();
    ncclResult_t result = check(&op);
    if (result == ncclSuccess)
        result = add_checked(&op);
    hostnccl_group_note(result);
    ncclResult_t end = pncclGroupEnd();
    return result == ncclSuccess ? end : result;
}

ncclResult_t pncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                            ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                            cudaStream_t stream)
{
    return enqueue((struct hostnccl_op){.func = FUNC_ALLREDUCE,
                                        .in = sendbuff,
                                        .out = recvbuff,
                                        .count = count,
                                        .datatype = datatype,
                                        .redop = op,
                                        .comm = comm,
                                        .stream = stream});
}
HOSTNCCL_WEAK(AllReduce);

ncclResult_t pncclReduce(const void *sendbuff, void *recvbuff, size_t count,
                         ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                         cudaStream_t stream)
{
    return enqueue((struct hostnccl_op){.func = FUNC_REDUCE,
                                        .in = sendbuff,
                                        .out = recvbuff,
                                        .count = count,
                                        .datatype = datatype,
                                        .redop = op,
                                        .root = root,
                                        .comm = comm,
                                        .stream = stream});
}
HOSTNCCL_WEAK(Reduce);

ncclResult_t pncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                            ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    return enqueue((struct hostnccl_op){.func = FUNC_BROADCAST,
                                        .in = sendbuff,
                                        .out = recvbuff,
                                        .count = count,
                                        .datatype = datatype,
                                        .root = root,
                                        .comm = comm,
                                        .stream = stream});
}
HOSTNCCL_WEAK(Broadcast);

ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    return pncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}
HOSTNCCL_WEAK(Bcast);

ncclResult_t pncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                cudaStream_t stream)
{
    return enqueue((struct hostnccl_op){.func = FUNC_REDUCESCATTER,
                                        .in = sendbuff,
                                        .out = recvbuff,
                                        .count = recvcount,
                                        .datatype = datatype,
                                        .redop = op,
                                        .comm = comm,
                                        .stream = stream});
}
HOSTNCCL_WEAK(ReduceScatter);

ncclResult_t pncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                            ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    return enqueue((struct hostnccl_op){.func = FUNC_ALLGATHER,
                                        .in = sendbuff,
                                        .out = recvbuff,
                                        .count = sendcount,
                                        .datatype = datatype,
                                        .comm = comm,
                                        .stream = stream});
}
HOSTNCCL_WEAK(AllGather);

ncclResult_t pncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
                       ncclComm_t comm, cudaStream_t stream)
{
    return enqueue((struct hostnccl_op){.func = FUNC_SEND,
                                        .in = sendbuff,
                                        .count = count,
                                        .datatype = datatype,
                                        .root = peer,
                                        .comm = comm,
                                        .stream = stream});
}
HOSTNCCL_WEAK(Send);

ncclResult_t pncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
                       ncclComm_t comm, cudaStream_t stream)
{
    return enqueue((struct hostnccl_op){.func = FUNC_RECV,
                                        .out = recvbuff,
                                        .count = count,
                                        .datatype = datatype,
                                        .root = peer,
                                        .comm = comm,
                                        .stream = stream});
}
HOSTNCCL_WEAK(Recv);

ncclResult_t pncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    return enqueue((struct hostnccl_op){.func = FUNC_ALLTOALL,
                                        .in = sendbuff,
                                        .out = recvbuff,
                                        .count = count,
                                        .datatype = datatype,
                                        .comm = comm,
                                        .stream = stream});
}
HOSTNCCL_WEAK(AlltoAll);

ncclResult_t pncclScatter(const void *sendbuff, void *recvbuff, size_t count,
                          ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    return enqueue((struct hostnccl_op){.func = FUNC_SCATTER,
                                        .in = sendbuff,
                                        .out = recvbuff,
                                        .count = count,
                                        .datatype = datatype,
                                        .root = root,
                                        .comm = comm,
                                        .stream = stream});
}
HOSTNCCL_WEAK(Scatter);

ncclResult_t pncclGather(const void *sendbuff, void *recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    return enqueue((struct hostnccl_op){.func = FUNC_GATHER,
                                        .in = sendbuff,
                                        .out = recvbuff,
                                        .count = count,
                                        .datatype = datatype,
                                        .root = root,
                                        .comm = comm,
                                        .stream = stream});
}
HOSTNCCL_WEAK(Gather);
