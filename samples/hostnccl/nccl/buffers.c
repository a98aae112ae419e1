/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an operation's buffers are such that a GPU could use them. */
#include <stdlib.h>

#include "internal.h"

bool hostnccl_checks_pointers(void)
{
    const char *text = secure_getenv("NCCL_CHECK_POINTERS");
    return text && strtol(text, NULL, 0) != 0;
}

/* A kernel that reduces would fault: what only moves bytes takes any address. */
static ncclResult_t check_alignment(const struct hostnccl_op *op, const char *name, const void *p)
{
    if (!hostnccl_has_redop(op->func) || (uintptr_t)p % rt_type_bytes(op->type) == 0)
        return ncclSuccess;
    return hostnccl_fail(ncclInvalidArgument, "%s: %s %p isn't aligned to %s, which a GPU asks for",
                         hostnccl_func_name(op->func), name, p, hostnccl_type_name(op->type));
}

/* As NCCL does where it is asked to. */
static ncclResult_t check_device(const struct hostnccl_op *op, const char *name, const void *p)
{
    struct cudaPointerAttributes a;
    if (!op->comm->checks_pointers)
        return ncclSuccess;
    if (cudaPointerGetAttributes(&a, p) != cudaSuccess || !a.devicePointer)
        return hostnccl_fail(ncclInvalidArgument, "%s: %s %p is not a valid pointer of a device",
                             hostnccl_func_name(op->func), name, p);
    if (a.type == cudaMemoryTypeDevice && a.device != op->comm->device)
        return hostnccl_fail(ncclInvalidArgument,
                             "%s: %s %p was allocated on device %d, the communicator's is %d",
                             hostnccl_func_name(op->func), name, p, a.device, op->comm->device);
    return ncclSuccess;
}

static ncclResult_t check(const struct hostnccl_op *op, const char *name, const void *p)
{
    if (!p)
        return hostnccl_fail(ncclInvalidArgument, "%s: %s is NULL", hostnccl_func_name(op->func),
                             name);
    ncclResult_t result = check_alignment(op, name, p);
    return result == ncclSuccess ? check_device(op, name, p) : result;
}

ncclResult_t hostnccl_buffers_check(const struct hostnccl_op *op)
{
    bool is_root = op->root == op->comm->rank;
    bool from_root = op->func == FUNC_BROADCAST || op->func == FUNC_SCATTER;
    bool to_root = op->func == FUNC_REDUCE || op->func == FUNC_GATHER;
    bool reads = op->func != FUNC_RECV && (!from_root || is_root);
    bool writes = op->func != FUNC_SEND && (!to_root || is_root);
    ncclResult_t result = ncclSuccess;
    if (op->count == 0)
        return ncclSuccess;
    if (reads)
        result = check(op, "sendbuff", op->in);
    if (writes && result == ncclSuccess)
        result = check(op, "recvbuff", op->out);
    return result;
}
