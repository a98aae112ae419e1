/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-inside.h"

#include <dlfcn.h>
#include <errno.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-alloc.h"

_Static_assert(sizeof(ncclUniqueId) == RT_INSIDE_ID_BYTES, "the id's size");

struct rt_inside {
    ncclComm_t comm;
    cudaStream_t stream;
};

static char message[512]; /* the background thread's alone */

const char *rt_inside_error(void)
{
    return message;
}

static int check(const char *call, ncclResult_t result)
{
    if (result == ncclSuccess)
        return 0;
    snprintf(message, sizeof message, "%s: %s: %s", call, ncclGetErrorString(result),
             ncclGetLastError(NULL));
    return -EIO;
}

static int check_cuda(const char *call, cudaError_t result)
{
    if (result == cudaSuccess)
        return 0;
    snprintf(message, sizeof message, "%s: %s", call, cudaGetErrorString(result));
    return -EIO;
}

int rt_inside_make_id(struct rt_inside_id *ret)
{
    ncclUniqueId id;
    int error = check("ncclGetUniqueId", ncclGetUniqueId(&id));
    if (!error)
        memcpy(ret->bytes, id.internal, sizeof ret->bytes);
    return error;
}

static int start(struct rt_inside *inside, const struct rt_inside_id *bytes, int rank, int size,
                 int device)
{
    ncclUniqueId id;
    memcpy(id.internal, bytes->bytes, sizeof id.internal);
    int devices = 0;
    int error = check_cuda("cudaGetDeviceCount", cudaGetDeviceCount(&devices));
    if (!error && devices > 0)
        error = check_cuda("cudaSetDevice", cudaSetDevice(device % devices));
    if (!error)
        error = check_cuda("cudaStreamCreateWithFlags",
                           cudaStreamCreateWithFlags(&inside->stream, cudaStreamNonBlocking));
    if (!error)
        error = check("ncclCommInitRank", ncclCommInitRank(&inside->comm, size, id, rank));
    return error;
}

struct rt_inside *rt_inside_new(const struct rt_inside_id *id, int rank, int size, int device)
{
    struct rt_inside *inside = calloc(1, sizeof *inside);
    if (inside && start(inside, id, rank, size, device)) {
        rt_inside_free(inside);
        inside = NULL;
    }
    return inside;
}

void rt_inside_free(struct rt_inside *inside)
{
    if (!inside)
        return;
    if (inside->comm)
        ncclCommDestroy(inside->comm);
    if (inside->stream)
        cudaStreamDestroy(inside->stream);
    free(inside);
}

/* ---- memory ---- */

/* NCCL itself would give a card's, which the runtime can't read. */
static bool is_stand_in(void)
{
    return dlsym(RTLD_DEFAULT, "hostnccl_standin") != NULL;
}

void *rt_inside_alloc(uint64_t bytes)
{
    void *p = NULL;
    if (is_stand_in())
        return ncclMemAlloc(&p, bytes > 0 ? bytes : 1) == ncclSuccess ? p : NULL;
    return rt_alloc(bytes);
}

void rt_inside_free_memory(void *p)
{
    if (is_stand_in())
        ncclMemFree(p);
    else
        rt_free(p);
}

/* ---- collectives ---- */

/* One more than NCCL's number; 0: NCCL has it not. */
#define HAS(type) ((type) + 1)
static const int types[RT_TYPE_COUNT] = {
    [RT_FLOAT32] = HAS(ncclFloat32),
    [RT_FLOAT64] = HAS(ncclFloat64),
    [RT_FLOAT16] = HAS(ncclFloat16),
    [RT_BFLOAT16] = HAS(ncclBfloat16),
    [RT_FLOAT8_E4M3] = HAS(ncclFloat8e4m3),
    [RT_FLOAT8_E5M2] = HAS(ncclFloat8e5m2),
    [RT_INT8] = HAS(ncclInt8),
    [RT_INT32] = HAS(ncclInt32),
    [RT_INT64] = HAS(ncclInt64),
    [RT_UINT8] = HAS(ncclUint8),
    [RT_UINT32] = HAS(ncclUint32),
    [RT_UINT64] = HAS(ncclUint64),
};
#undef HAS

bool rt_inside_has(enum rt_type type)
{
    return types[type] != 0;
}

static ncclDataType_t type_of(enum rt_type type)
{
    return (ncclDataType_t)(types[type] - 1);
}

static ncclRedOp_t op_of(enum rt_op op)
{
    static const ncclRedOp_t ops[RT_OP_COUNT] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};
    return ops[op];
}

static int finish(struct rt_inside *inside, const char *call, ncclResult_t result)
{
    int error = check(call, result);
    return error ? error : check_cuda(call, cudaStreamSynchronize(inside->stream));
}

int rt_inside_reduce_scatter(struct rt_inside *inside, const void *in, void *out,
                             uint64_t part_count, enum rt_type type, enum rt_op op)
{
    return finish(inside, "ncclReduceScatter",
                  ncclReduceScatter(in, out, part_count, type_of(type), op_of(op), inside->comm,
                                    inside->stream));
}

int rt_inside_allgather(struct rt_inside *inside, const void *in, void *out, uint64_t part_count,
                        enum rt_type type)
{
    return finish(inside, "ncclAllGather",
                  ncclAllGather(in, out, part_count, type_of(type), inside->comm, inside->stream));
}

static ncclResult_t post_all(struct rt_inside *inside, const char *in, const uint64_t *send_counts,
                             char *out, const uint64_t *recv_counts, int size, enum rt_type type)
{
    ncclResult_t result = ncclSuccess;
    for (int r = 0; r < size && result == ncclSuccess; r++) {
        if (send_counts[r] > 0)
            result = ncclSend(in, send_counts[r], type_of(type), r, inside->comm, inside->stream);
        if (recv_counts[r] > 0 && result == ncclSuccess)
            result = ncclRecv(out, recv_counts[r], type_of(type), r, inside->comm, inside->stream);
        in += send_counts[r] * rt_type_bytes(type);
        out += recv_counts[r] * rt_type_bytes(type);
    }
    return result;
}

int rt_inside_alltoall(struct rt_inside *inside, const void *in, const uint64_t *send_counts,
                       void *out, const uint64_t *recv_counts, int size, enum rt_type type)
{
    int error = check("ncclGroupStart", ncclGroupStart());
    if (error)
        return error;
    ncclResult_t posted = post_all(inside, in, send_counts, out, recv_counts, size, type);
    ncclResult_t ended = ncclGroupEnd();
    return finish(inside, "ncclSend and ncclRecv", posted != ncclSuccess ? posted : ended);
}

int rt_inside_allreduce(struct rt_inside *inside, const void *in, void *out, uint64_t count,
                        enum rt_type type, enum rt_op op)
{
    return finish(
        inside, "ncclAllReduce",
        ncclAllReduce(in, out, count, type_of(type), op_of(op), inside->comm, inside->stream));
}

int rt_inside_broadcast(struct rt_inside *inside, void *data, uint64_t count, enum rt_type type,
                        int root)
{
    return finish(
        inside, "ncclBroadcast",
        ncclBroadcast(data, data, count, type_of(type), root, inside->comm, inside->stream));
}
