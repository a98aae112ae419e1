/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.h - the NCCL calls that hostnccl, the stand-in for hosts without a GPU, has; the vendor's
 * binary interface (version 2.28): a program compiled against either header runs with either
 * library.
 *
 * Model: the ranks of a communicator are processes or threads of one host; data moves through
 * shared memory by the algorithms of samples/runtime/coll. Operations run on the stream's thread,
 * in order, after the call has returned. What a group holds for one communicator runs as: its
 * collectives one after the other, in the order that NCCL makes of them (by kind and size, not by
 * call), then its sends and receives at once.
 *
 * Devices: ranks of one communicator may have the same one, which NCCL refuses ("Duplicate GPU");
 * ncclCommInitAll refuses it here, too.
 *
 * Types and operations: all; the arithmetic is that of rt-coll.h: every step rounds to the type, a
 * NaN stays one in min and max too, float8 saturates, an average of float16 stays finite where its
 * inputs are. A type or operation that is none is refused with ncclInvalidArgument, and
 * ncclGetLastError names it.
 *
 * Buffers: any memory of the process, as device memory is host memory; what a reduction reads and
 * writes must be aligned to its type, as a GPU would fault. With NCCL_CHECK_POINTERS=1, as NCCL, a
 * buffer that isn't memory of the communicator's device, or pinned, is refused.
 *
 * Errors: a rank that dies ends its peers' operations: ncclCommGetAsyncError then says
 * ncclRemoteError, ncclGetLastError which rank died, and synchronising the stream
 * cudaErrorLaunchFailure, once. A rank that doesn't come ends the making of a communicator after
 * HOSTNCCL_INIT_TIMEOUT_MS (600000), with the numbers of those that are missing.
 * Ranks whose collectives differ in function, count, type, operation or root get ncclInvalidUsage
 * in the same way, and ncclGetLastError says in what; what one rank leaves out alone is waited for.
 * So does who receives another size than is sent, with both ranks and sizes; the sender learns it
 * then or, if its message was gone already, at its next operation that needs the other.
 *
 * Graphs: operations on a stream that is captured go into the graph, and run at each of its
 * launches; the streams of a group must all be captured into the same one, or none. As in NCCL from
 * 2.26 on, ncclCommDestroy waits until all graphs with the communicator's operations are destroyed;
 * after ncclCommAbort a launch of such a graph fails its stream with cudaErrorLaunchFailure.
 *
 * Nonblocking communicators: what makes or ends one returns ncclInProgress and goes on in the
 * background; operations are enqueued at once. Blocking and nonblocking ones may share a group.
 *
 * Forks: a child can't use its parent's communicators: ncclInvalidUsage, and they stay whole.
 *
 * Not here: the interface for kernels (nccl_device.h), as there are none; ncclDevCommCreate is
 * refused with ncclInvalidUsage, whatever else of it a program calls it doesn't find.
 *
 * Every nccl* is weak and has a strong pnccl*, so that a tool may stand in front.
 *
 * A process can tell the stand-in by its data symbol `int hostnccl_standin`.
 */
#ifndef HOSTNCCL_NCCL_H
#define HOSTNCCL_NCCL_H

#include <limits.h>

#include "cuda_runtime.h"

#define NCCL_MAJOR  2
#define NCCL_MINOR  28
#define NCCL_PATCH  9
#define NCCL_SUFFIX ""

#define NCCL_VERSION_CODE 22809
#define NCCL_VERSION(x, y, z)                                                                      \
    ((x) <= 2 && (y) <= 8 ? (x)*1000 + (y)*100 + (z) : (x)*10000 + (y)*100 + (z))

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_COMM_NULL       NULL
#define NCCL_UNIQUE_ID_BYTES 128
#define NCCL_SPLIT_NOCOLOR   -1

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT      -1.0f

#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT   0x01
#define NCCL_REVOKE_DEFAULT 0x00

#define NCCL_WIN_DEFAULT            0x00
#define NCCL_WIN_COLL_SYMMETRIC     0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

#define NCCL_CTA_POLICY_DEFAULT    0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO       0x02

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;

typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclNumResults = 8
} ncclResult_t;

typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5,
    ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

/* A caller's `size` may be that of an older or newer version: fields beyond it are not read. */
typedef struct ncclConfig_v22800 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
    int trafficClass;
    const char *commName;
    int collnetEnable;
    int CTAPolicy;
    int shrinkShare;
    int nvlsCTAs;
    int nChannelsPerNetPeer;
    int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                                    \
    {                                                                                              \
        sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH),        \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                   \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT,                   \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT,                   \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                   \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT                                           \
    }

typedef struct ncclSimInfo_v22200 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER                                                                  \
    {                                                                                              \
        sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH),       \
            NCCL_UNDEF_FLOAT                                                                       \
    }

/* One line a function: the nccl* form and, with the same parameters, the pnccl* form. */
#define HOSTNCCL_API(result, name, parameters)                                                     \
    result nccl##name parameters;                                                                  \
    result pnccl##name parameters

HOSTNCCL_API(ncclResult_t, GetVersion, (int *version));
HOSTNCCL_API(const char *, GetErrorString, (ncclResult_t result));
HOSTNCCL_API(const char *, GetLastError, (ncclComm_t comm));

/* The process that makes an id must live until every rank has initialised with it. */
HOSTNCCL_API(ncclResult_t, GetUniqueId, (ncclUniqueId * uniqueId));
HOSTNCCL_API(ncclResult_t, CommInitRank,
             (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank));
HOSTNCCL_API(ncclResult_t, CommInitRankConfig,
             (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config));
HOSTNCCL_API(ncclResult_t, CommInitRankScalable,
             (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds,
              ncclConfig_t *config));
HOSTNCCL_API(ncclResult_t, CommInitAll, (ncclComm_t * comm, int ndev, const int *devlist));
HOSTNCCL_API(ncclResult_t, CommSplit,
             (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config));
/* By the ranks that stay, with the same list; they get places by their old order. The flag
 * NCCL_SHRINK_ABORT ends the parent's operations first, and takes a parent with an error. */
HOSTNCCL_API(ncclResult_t, CommShrink,
             (ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm,
              ncclConfig_t *config, int shrinkFlags));
HOSTNCCL_API(ncclResult_t, CommFinalize, (ncclComm_t comm));
HOSTNCCL_API(ncclResult_t, CommDestroy, (ncclComm_t comm));
HOSTNCCL_API(ncclResult_t, CommAbort, (ncclComm_t comm));
/* Ends what is on streams; `comm` can be split, shrunk and destroyed then, whatever its error. */
HOSTNCCL_API(ncclResult_t, CommRevoke, (ncclComm_t comm, int revokeFlags));
HOSTNCCL_API(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t *asyncError));
HOSTNCCL_API(ncclResult_t, CommCount, (const ncclComm_t comm, int *count));
HOSTNCCL_API(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int *device));
HOSTNCCL_API(ncclResult_t, CommUserRank, (const ncclComm_t comm, int *rank));

/* Memory needs no registration here: these do nothing more. A window is made of memory of
 * ncclMemAlloc's alone, from a multiple of NCCL_WIN_REQUIRED_ALIGNMENT on, as NCCL's are. */
HOSTNCCL_API(ncclResult_t, MemAlloc, (void **ptr, size_t size));
HOSTNCCL_API(ncclResult_t, MemFree, (void *ptr));
HOSTNCCL_API(ncclResult_t, CommRegister,
             (const ncclComm_t comm, void *buff, size_t size, void **handle));
HOSTNCCL_API(ncclResult_t, CommDeregister, (const ncclComm_t comm, void *handle));
HOSTNCCL_API(ncclResult_t, CommWindowRegister,
             (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags));
HOSTNCCL_API(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t win));

HOSTNCCL_API(ncclResult_t, AllReduce,
             (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
              ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream));
HOSTNCCL_API(ncclResult_t, Reduce,
             (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
              ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream));
HOSTNCCL_API(ncclResult_t, Broadcast,
             (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
              ncclComm_t comm, cudaStream_t stream));
HOSTNCCL_API(ncclResult_t, Bcast,
             (void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
              cudaStream_t stream));
HOSTNCCL_API(ncclResult_t, ReduceScatter,
             (const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
              ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream));
HOSTNCCL_API(ncclResult_t, AllGather,
             (const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
              ncclComm_t comm, cudaStream_t stream));
/* `count` elements for each rank; these run as sends and receives. */
HOSTNCCL_API(ncclResult_t, AlltoAll,
             (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
              ncclComm_t comm, cudaStream_t stream));
HOSTNCCL_API(ncclResult_t, Scatter,
             (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
              ncclComm_t comm, cudaStream_t stream));
HOSTNCCL_API(ncclResult_t, Gather,
             (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
              ncclComm_t comm, cudaStream_t stream));
HOSTNCCL_API(ncclResult_t, Send,
             (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
              ncclComm_t comm, cudaStream_t stream));
HOSTNCCL_API(ncclResult_t, Recv,
             (void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
              cudaStream_t stream));

/* An operation for `datatype` on `comm` alone: the sum of what each rank has multiplied by its own
 * scalar first. A scalar in device memory is read when the operation runs. */
HOSTNCCL_API(ncclResult_t, RedOpCreatePreMulSum,
             (ncclRedOp_t * op, void *scalar, ncclDataType_t datatype,
              ncclScalarResidence_t residence, ncclComm_t comm));
HOSTNCCL_API(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm));

HOSTNCCL_API(ncclResult_t, GroupStart, (void));
HOSTNCCL_API(ncclResult_t, GroupEnd, (void));

/* Forgets what the group holds; the estimate is left NCCL_UNDEF_FLOAT. */
HOSTNCCL_API(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * simInfo));

HOSTNCCL_API(void, ResetDebugInit, (void));

#undef HOSTNCCL_API

#ifdef __cplusplus
}
#endif

#endif
