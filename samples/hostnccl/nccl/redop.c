/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types and operators: what the vendor's numbers mean to rt_coll, and the operators that a program
 * makes: ncclSum of what every rank has multiplied by a scalar of its own first.
 *
 * Their numbers follow the built-in ones; all ranks that create and destroy alike get the same.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct hostnccl_redop {
    bool used;
    ncclDataType_t datatype;
    const void *at; /* device memory, read when the operation runs; NULL: `value` */
    char value[RT_TYPE_BYTES_MAX];
};

#define MANY 0x10000u

/* ---- types ---- */

static const struct {
    const char *name;
    enum rt_type type;
} datatypes[ncclNumTypes] = {
    [ncclInt8] = {"ncclInt8", RT_INT8},
    [ncclUint8] = {"ncclUint8", RT_UINT8},
    [ncclInt32] = {"ncclInt32", RT_INT32},
    [ncclUint32] = {"ncclUint32", RT_UINT32},
    [ncclInt64] = {"ncclInt64", RT_INT64},
    [ncclUint64] = {"ncclUint64", RT_UINT64},
    [ncclFloat16] = {"ncclFloat16", RT_FLOAT16},
    [ncclFloat32] = {"ncclFloat32", RT_FLOAT32},
    [ncclFloat64] = {"ncclFloat64", RT_FLOAT64},
    [ncclBfloat16] = {"ncclBfloat16", RT_BFLOAT16},
    [ncclFloat8e4m3] = {"ncclFloat8e4m3", RT_FLOAT8_E4M3},
    [ncclFloat8e5m2] = {"ncclFloat8e5m2", RT_FLOAT8_E5M2},
};

const char *hostnccl_datatype_name(ncclDataType_t datatype)
{
    return (unsigned)datatype < ncclNumTypes ? datatypes[datatype].name : "Unknown";
}

const char *hostnccl_type_name(enum rt_type type)
{
    for (int i = 0; i < ncclNumTypes; i++)
        if (datatypes[i].type == type)
            return datatypes[i].name;
    return "?";
}

ncclResult_t hostnccl_datatype(const char *call, ncclDataType_t datatype, enum rt_type *ret)
{
    if ((unsigned)datatype >= ncclNumTypes)
        return hostnccl_fail(ncclInvalidArgument, "%s: no type has the number %d", call,
                             (int)datatype);
    *ret = datatypes[datatype].type;
    return ncclSuccess;
}

/* ---- operators ---- */

/* NULL where `op` is none that a program made. */
static struct hostnccl_redop *find(ncclComm_t comm, ncclRedOp_t op)
{
    unsigned i = (unsigned)op - ncclNumOps;
    return i < comm->redop_count && comm->redops[i].used ? &comm->redops[i] : NULL;
}

static ncclResult_t set_made(struct hostnccl_op *op, const char *call)
{
    pthread_mutex_lock(&op->comm->lock);
    const struct hostnccl_redop *made = find(op->comm, op->redop);
    const struct hostnccl_redop copy = made ? *made : (struct hostnccl_redop){0};
    pthread_mutex_unlock(&op->comm->lock);
    if (!copy.used)
        return hostnccl_fail(ncclInvalidArgument, "%s: no operation has the number %d", call,
                             (int)op->redop);
    if (copy.datatype != op->datatype)
        return hostnccl_fail(ncclInvalidArgument, "%s: the operation was made for %s, not %s", call,
                             hostnccl_datatype_name(copy.datatype),
                             hostnccl_datatype_name(op->datatype));
    op->op = RT_SUM;
    op->multiplies = true;
    op->scalar_at = copy.at;
    memcpy(op->scalar, copy.value, sizeof op->scalar);
    return ncclSuccess;
}

ncclResult_t hostnccl_redop_set(struct hostnccl_op *op, const char *call)
{
    static const enum rt_op ops[ncclNumOps] = {[ncclSum] = RT_SUM,
                                               [ncclProd] = RT_PROD,
                                               [ncclMax] = RT_MAX,
                                               [ncclMin] = RT_MIN,
                                               [ncclAvg] = RT_AVG};
    if ((unsigned)op->redop >= ncclNumOps)
        return set_made(op, call);
    op->op = ops[op->redop];
    return ncclSuccess;
}

/* The communicator is locked. */
static ncclResult_t keep(ncclComm_t comm, const struct hostnccl_redop *made, ncclRedOp_t *ret)
{
    unsigned i = 0;
    while (i < comm->redop_count && comm->redops[i].used)
        i++;
    if (i == comm->redop_count) {
        struct hostnccl_redop *grown =
            i < MANY ? realloc(comm->redops, (i + 1) * sizeof *grown) : NULL;
        if (!grown)
            return hostnccl_fail(ncclSystemError, "ncclRedOpCreatePreMulSum: no room for %u",
                                 i + 1);
        comm->redops = grown;
        comm->redop_count++;
    }
    comm->redops[i] = *made;
    *ret = (ncclRedOp_t)(ncclNumOps + i);
    return ncclSuccess;
}

static ncclResult_t create(ncclRedOp_t *op, const void *scalar, ncclDataType_t datatype,
                           ncclScalarResidence_t residence, ncclComm_t comm)
{
    enum rt_type type = RT_TYPE_COUNT;
    ncclResult_t result = hostnccl_comm_check(comm);
    if (result == ncclSuccess)
        result = hostnccl_datatype("ncclRedOpCreatePreMulSum", datatype, &type);
    if (result != ncclSuccess)
        return result;
    if (!op || !scalar)
        return hostnccl_fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: %s is NULL",
                             op ? "scalar" : "op");
    if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
        return hostnccl_fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: residence %d",
                             (int)residence);
    struct hostnccl_redop made = {.used = true, .datatype = datatype};
    if (residence == ncclScalarDevice)
        made.at = scalar;
    else
        memcpy(made.value, scalar, rt_type_bytes(type));
    pthread_mutex_lock(&comm->lock);
    result = keep(comm, &made, op);
    pthread_mutex_unlock(&comm->lock);
    return result;
}

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm)
{
    return hostnccl_group_note(create(op, scalar, datatype, residence, comm));
}
HOSTNCCL_WEAK(RedOpCreatePreMulSum);

/* Operations that were put on a stream with it keep their scalar. */
static ncclResult_t destroy(ncclRedOp_t op, ncclComm_t comm)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock(&comm->lock);
    struct hostnccl_redop *made = find(comm, op);
    if (made)
        made->used = false;
    pthread_mutex_unlock(&comm->lock);
    return made ? ncclSuccess
                : hostnccl_fail(ncclInvalidArgument,
                                "ncclRedOpDestroy: %d is no operation that was made", (int)op);
}

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    return hostnccl_group_note(destroy(op, comm));
}
HOSTNCCL_WEAK(RedOpDestroy);
