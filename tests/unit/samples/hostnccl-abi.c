/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of the binary interfaces that hostnccl stands in for. Compiled against hostnccl's headers,
 * and, where they are present, against the vendor's: what holds of both, they agree on.
 */
#include <assert.h>
#include <stddef.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#define SAME(name, value) static_assert((long long)(name) == (value), #name)
/* The function's type, up to what a call needs. */
#define TAKES(function, result, parameters)                                                        \
    static_assert(__builtin_types_compatible_p(__typeof__(function), result parameters), #function)
#define NCCL_TAKES(name, parameters)                                                               \
    TAKES(nccl##name, ncclResult_t, parameters);                                                   \
    TAKES(pnccl##name, ncclResult_t, parameters)

SAME(NCCL_UNIQUE_ID_BYTES, 128);
SAME(sizeof(ncclUniqueId), 128);
SAME(sizeof(ncclResult_t), 4);
SAME(sizeof(ncclRedOp_t), 4);
SAME(sizeof(ncclDataType_t), 4);
SAME(NCCL_SPLIT_NOCOLOR, -1);
SAME(ncclSuccess, 0);
SAME(ncclUnhandledCudaError, 1);
SAME(ncclSystemError, 2);
SAME(ncclInternalError, 3);
SAME(ncclInvalidArgument, 4);
SAME(ncclInvalidUsage, 5);
SAME(ncclRemoteError, 6);
SAME(ncclInProgress, 7);
SAME(ncclNumResults, 8);
SAME(ncclSum, 0);
SAME(ncclProd, 1);
SAME(ncclMax, 2);
SAME(ncclMin, 3);
SAME(ncclAvg, 4);
SAME(ncclNumOps, 5);
SAME(ncclMaxRedOp, 0x7fffffff);
SAME(ncclInt8, 0);
SAME(ncclUint8, 1);
SAME(ncclInt32, 2);
SAME(ncclUint32, 3);
SAME(ncclInt64, 4);
SAME(ncclUint64, 5);
SAME(ncclFloat16, 6);
SAME(ncclFloat32, 7);
SAME(ncclFloat64, 8);
SAME(ncclBfloat16, 9);
SAME(ncclScalarDevice, 0);
SAME(ncclScalarHostImmediate, 1);

/* The configuration grows at its end: up to here it stays. */
SAME(offsetof(ncclConfig_t, size), 0);
SAME(offsetof(ncclConfig_t, magic), 8);
SAME(offsetof(ncclConfig_t, version), 12);
SAME(offsetof(ncclConfig_t, blocking), 16);
SAME(offsetof(ncclConfig_t, netName), 32);
SAME(offsetof(ncclConfig_t, splitShare), 40);
SAME(offsetof(ncclConfig_t, trafficClass), 44);
SAME(offsetof(ncclConfig_t, commName), 48);
SAME(offsetof(ncclConfig_t, nvlinkCentricSched), 76);
SAME(sizeof(ncclConfig_t), 80);

SAME(NCCL_SHRINK_DEFAULT, 0);
SAME(NCCL_SHRINK_ABORT, 1);
SAME(NCCL_REVOKE_DEFAULT, 0);
SAME(NCCL_WIN_DEFAULT, 0);
SAME(NCCL_WIN_COLL_SYMMETRIC, 1);
SAME(NCCL_WIN_REQUIRED_ALIGNMENT, 4096);
SAME(offsetof(ncclSimInfo_t, estimatedTime), 16);
SAME(sizeof(ncclSimInfo_t), 24);

NCCL_TAKES(GetVersion, (int *));
NCCL_TAKES(GetUniqueId, (ncclUniqueId *));
NCCL_TAKES(CommInitRank, (ncclComm_t *, int, ncclUniqueId, int));
NCCL_TAKES(CommInitRankConfig, (ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *));
NCCL_TAKES(CommInitRankScalable, (ncclComm_t *, int, int, int, ncclUniqueId *, ncclConfig_t *));
NCCL_TAKES(CommInitAll, (ncclComm_t *, int, const int *));
NCCL_TAKES(CommSplit, (ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *));
NCCL_TAKES(CommRevoke, (ncclComm_t, int));
NCCL_TAKES(GroupSimulateEnd, (ncclSimInfo_t *));
NCCL_TAKES(CommFinalize, (ncclComm_t));
NCCL_TAKES(CommDestroy, (ncclComm_t));
NCCL_TAKES(CommAbort, (ncclComm_t));
NCCL_TAKES(CommGetAsyncError, (ncclComm_t, ncclResult_t *));
NCCL_TAKES(CommCount, (const ncclComm_t, int *));
NCCL_TAKES(CommCuDevice, (const ncclComm_t, int *));
NCCL_TAKES(CommUserRank, (const ncclComm_t, int *));
NCCL_TAKES(MemAlloc, (void **, size_t));
NCCL_TAKES(MemFree, (void *));
NCCL_TAKES(CommRegister, (const ncclComm_t, void *, size_t, void **));
NCCL_TAKES(CommDeregister, (const ncclComm_t, void *));
NCCL_TAKES(AllReduce,
           (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t));
NCCL_TAKES(Reduce, (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
                    cudaStream_t));
NCCL_TAKES(Broadcast,
           (const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
NCCL_TAKES(Bcast, (void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
NCCL_TAKES(ReduceScatter,
           (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t));
NCCL_TAKES(AllGather, (const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t));
NCCL_TAKES(CommShrink, (ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int));
NCCL_TAKES(RedOpCreatePreMulSum,
           (ncclRedOp_t *, void *, ncclDataType_t, ncclScalarResidence_t, ncclComm_t));
NCCL_TAKES(RedOpDestroy, (ncclRedOp_t, ncclComm_t));
NCCL_TAKES(CommWindowRegister, (ncclComm_t, void *, size_t, ncclWindow_t *, int));
NCCL_TAKES(CommWindowDeregister, (ncclComm_t, ncclWindow_t));
NCCL_TAKES(AlltoAll, (const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t));
NCCL_TAKES(Scatter, (const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
NCCL_TAKES(Gather, (const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
NCCL_TAKES(Send, (const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
NCCL_TAKES(Recv, (void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));

SAME(cudaSuccess, 0);
SAME(cudaErrorInvalidValue, 1);
SAME(cudaErrorMemoryAllocation, 2);
SAME(cudaErrorInitializationError, 3);
SAME(cudaErrorInvalidPitchValue, 12);
SAME(cudaErrorInvalidMemcpyDirection, 21);
SAME(cudaErrorInsufficientDriver, 35);
SAME(cudaErrorMissingConfiguration, 52);
SAME(cudaErrorNoDevice, 100);
SAME(cudaErrorInvalidDevice, 101);
SAME(cudaErrorNoKernelImageForDevice, 209);
SAME(cudaErrorInvalidResourceHandle, 400);
SAME(cudaErrorNotReady, 600);
SAME(cudaErrorPeerAccessAlreadyEnabled, 704);
SAME(cudaErrorPeerAccessNotEnabled, 705);
SAME(cudaErrorHostMemoryAlreadyRegistered, 712);
SAME(cudaErrorHostMemoryNotRegistered, 713);
SAME(cudaErrorLaunchFailure, 719);
SAME(cudaErrorNotPermitted, 800);
SAME(cudaErrorNotSupported, 801);
SAME(cudaErrorIllegalState, 401);
SAME(cudaErrorStreamCaptureUnsupported, 900);
SAME(cudaErrorStreamCaptureInvalidated, 901);
SAME(cudaErrorStreamCaptureMerge, 902);
SAME(cudaErrorStreamCaptureUnmatched, 903);
SAME(cudaErrorStreamCaptureUnjoined, 904);
SAME(cudaErrorStreamCaptureIsolation, 905);
SAME(cudaErrorStreamCaptureImplicit, 906);
SAME(cudaErrorCapturedEvent, 907);
SAME(cudaErrorStreamCaptureWrongThread, 908);
SAME(cudaErrorUnknown, 999);
SAME(cudaMemcpyHostToHost, 0);
SAME(cudaMemcpyHostToDevice, 1);
SAME(cudaMemcpyDeviceToHost, 2);
SAME(cudaMemcpyDeviceToDevice, 3);
SAME(cudaMemcpyDefault, 4);
SAME(cudaStreamDefault, 0);
SAME(cudaStreamNonBlocking, 1);
SAME(cudaEventDisableTiming, 2);
SAME(cudaEventBlockingSync, 1);
SAME(cudaEventInterprocess, 4);
SAME(cudaEventRecordDefault, 0);
SAME(cudaEventRecordExternal, 1);
SAME(cudaEventWaitDefault, 0);
SAME(cudaEventWaitExternal, 1);
SAME(cudaStreamCaptureStatusNone, 0);
SAME(cudaStreamCaptureStatusActive, 1);
SAME(cudaStreamCaptureStatusInvalidated, 2);
SAME(cudaStreamCaptureModeGlobal, 0);
SAME(cudaStreamCaptureModeThreadLocal, 1);
SAME(cudaStreamCaptureModeRelaxed, 2);
SAME(cudaGraphNodeTypeKernel, 0);
SAME(cudaGraphNodeTypeMemcpy, 1);
SAME(cudaGraphNodeTypeMemset, 2);
SAME(cudaGraphNodeTypeHost, 3);
SAME(cudaGraphNodeTypeGraph, 4);
SAME(cudaGraphNodeTypeEmpty, 5);
SAME(cudaGraphNodeTypeWaitEvent, 6);
SAME(cudaGraphNodeTypeEventRecord, 7);
SAME(cudaGraphNodeTypeExtSemaphoreSignal, 8);
SAME(cudaGraphNodeTypeExtSemaphoreWait, 9);
SAME(cudaGraphNodeTypeMemAlloc, 10);
SAME(cudaGraphNodeTypeMemFree, 11);
SAME(cudaGraphInstantiateFlagAutoFreeOnLaunch, 1);
SAME(cudaGraphInstantiateFlagUpload, 2);
SAME(cudaGraphInstantiateFlagDeviceLaunch, 4);
SAME(cudaGraphInstantiateFlagUseNodePriority, 8);
SAME(sizeof(cudaGraphEdgeData), 8);
SAME(cudaMemAttachHost, 2);
SAME(cudaHostAllocWriteCombined, 4);
SAME(cudaHostRegisterMapped, 2);
SAME(cudaHostRegisterReadOnly, 8);
SAME(cudaDeviceScheduleYield, 2);
SAME(cudaDeviceMask, 255);
SAME(cudaInitDeviceFlagsAreValid, 1);
SAME(cudaInvalidDeviceId, -2);
SAME(cudaHostAllocPortable, 1);
SAME(cudaHostAllocMapped, 2);
SAME(cudaDevAttrMaxThreadsPerBlock, 1);
SAME(cudaDevAttrMaxBlockDimX, 2);
SAME(cudaDevAttrMaxBlockDimY, 3);
SAME(cudaDevAttrMaxBlockDimZ, 4);
SAME(cudaDevAttrMaxGridDimX, 5);
SAME(cudaDevAttrMaxGridDimY, 6);
SAME(cudaDevAttrMaxGridDimZ, 7);
SAME(cudaDevAttrMaxSharedMemoryPerBlock, 8);
SAME(cudaDevAttrWarpSize, 10);
SAME(cudaDevAttrClockRate, 13);
SAME(cudaDevAttrMultiProcessorCount, 16);
SAME(cudaDevAttrCanMapHostMemory, 19);
SAME(cudaDevAttrConcurrentKernels, 31);
SAME(cudaDevAttrPciBusId, 33);
SAME(cudaDevAttrMemoryClockRate, 36);
SAME(cudaDevAttrGlobalMemoryBusWidth, 37);
SAME(cudaDevAttrL2CacheSize, 38);
SAME(cudaDevAttrMaxThreadsPerMultiProcessor, 39);
SAME(cudaDevAttrAsyncEngineCount, 40);
SAME(cudaDevAttrUnifiedAddressing, 41);
SAME(cudaDevAttrComputeCapabilityMajor, 75);
SAME(cudaDevAttrComputeCapabilityMinor, 76);
SAME(cudaDevAttrMaxSharedMemoryPerMultiprocessor, 81);
SAME(cudaDevAttrManagedMemory, 83);
SAME(cudaDevAttrPageableMemoryAccess, 88);
SAME(cudaDevAttrConcurrentManagedAccess, 89);
SAME(cudaDevAttrCanUseHostPointerForRegisteredMem, 91);
SAME(cudaDevAttrMaxSharedMemoryPerBlockOptin, 97);
SAME(cudaDevAttrHostRegisterSupported, 99);

SAME(offsetof(struct cudaDeviceProp, uuid), 256);
SAME(offsetof(struct cudaDeviceProp, totalGlobalMem), 288);
SAME(offsetof(struct cudaDeviceProp, warpSize), 308);
SAME(offsetof(struct cudaDeviceProp, maxGridSize), 336);
SAME(offsetof(struct cudaDeviceProp, major), 360);
SAME(offsetof(struct cudaDeviceProp, multiProcessorCount), 384);
SAME(offsetof(struct cudaDeviceProp, concurrentKernels), 560);
SAME(offsetof(struct cudaDeviceProp, pciBusID), 568);
SAME(offsetof(struct cudaDeviceProp, unifiedAddressing), 588);
SAME(offsetof(struct cudaDeviceProp, l2CacheSize), 596);
SAME(offsetof(struct cudaDeviceProp, managedMemory), 636);
SAME(offsetof(struct cudaDeviceProp, sharedMemPerBlockOptin), 672);
SAME(offsetof(struct cudaDeviceProp, hostRegisterSupported), 704);
SAME(offsetof(struct cudaDeviceProp, gpuDirectRDMASupported), 724);
SAME(offsetof(struct cudaDeviceProp, hostNumaId), 768);
SAME(offsetof(struct cudaDeviceProp, reserved), 784);
SAME(sizeof(struct cudaDeviceProp), 1008);
SAME(sizeof(struct cudaPointerAttributes), 88);
SAME(offsetof(struct cudaPointerAttributes, hostPointer), 16);

TAKES(cudaMalloc, cudaError_t, (void **, size_t));
TAKES(cudaFree, cudaError_t, (void *));
TAKES(cudaHostAlloc, cudaError_t, (void **, size_t, unsigned));
TAKES(cudaMemcpy, cudaError_t, (void *, const void *, size_t, enum cudaMemcpyKind));
TAKES(cudaMemcpyAsync, cudaError_t,
      (void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t));
TAKES(cudaMemcpy2D, cudaError_t,
      (void *, size_t, const void *, size_t, size_t, size_t, enum cudaMemcpyKind));
TAKES(cudaMemcpy2DAsync, cudaError_t,
      (void *, size_t, const void *, size_t, size_t, size_t, enum cudaMemcpyKind, cudaStream_t));
TAKES(cudaMemset2D, cudaError_t, (void *, size_t, int, size_t, size_t));
TAKES(cudaMemset2DAsync, cudaError_t, (void *, size_t, int, size_t, size_t, cudaStream_t));
TAKES(cudaMemset, cudaError_t, (void *, int, size_t));
TAKES(cudaMemsetAsync, cudaError_t, (void *, int, size_t, cudaStream_t));
TAKES(cudaMallocAsync, cudaError_t, (void **, size_t, cudaStream_t));
TAKES(cudaFreeAsync, cudaError_t, (void *, cudaStream_t));
TAKES(cudaMallocManaged, cudaError_t, (void **, size_t, unsigned));
TAKES(cudaHostGetDevicePointer, cudaError_t, (void **, void *, unsigned));
TAKES(cudaMemGetInfo, cudaError_t, (size_t *, size_t *));
TAKES(cudaStreamCreateWithPriority, cudaError_t, (cudaStream_t *, unsigned, int));
TAKES(cudaStreamDestroy, cudaError_t, (cudaStream_t));
TAKES(cudaStreamQuery, cudaError_t, (cudaStream_t));
TAKES(cudaStreamWaitEvent, cudaError_t, (cudaStream_t, cudaEvent_t, unsigned));
TAKES(cudaStreamGetDevice, cudaError_t, (cudaStream_t, int *));
TAKES(cudaStreamAddCallback, cudaError_t, (cudaStream_t, cudaStreamCallback_t, void *, unsigned));
SAME(sizeof(dim3), 12);
TAKES(cudaLaunchKernel, cudaError_t, (const void *, dim3, dim3, void **, size_t, cudaStream_t));
TAKES(cudaLaunchHostFunc, cudaError_t, (cudaStream_t, cudaHostFn_t, void *));
TAKES(cudaStreamBeginCapture, cudaError_t, (cudaStream_t, enum cudaStreamCaptureMode));
TAKES(cudaStreamEndCapture, cudaError_t, (cudaStream_t, cudaGraph_t *));
TAKES(cudaStreamIsCapturing, cudaError_t, (cudaStream_t, enum cudaStreamCaptureStatus *));
TAKES(cudaStreamGetCaptureInfo, cudaError_t,
      (cudaStream_t, enum cudaStreamCaptureStatus *, unsigned long long *, cudaGraph_t *,
       const cudaGraphNode_t **, const cudaGraphEdgeData **, size_t *));
TAKES(cudaThreadExchangeStreamCaptureMode, cudaError_t, (enum cudaStreamCaptureMode *));
TAKES(cudaGraphCreate, cudaError_t, (cudaGraph_t *, unsigned));
TAKES(cudaGraphDestroy, cudaError_t, (cudaGraph_t));
TAKES(cudaGraphGetNodes, cudaError_t, (cudaGraph_t, cudaGraphNode_t *, size_t *));
TAKES(cudaGraphNodeGetType, cudaError_t, (cudaGraphNode_t, enum cudaGraphNodeType *));
TAKES(cudaGraphInstantiate, cudaError_t, (cudaGraphExec_t *, cudaGraph_t, unsigned long long));
TAKES(cudaGraphInstantiateWithFlags, cudaError_t,
      (cudaGraphExec_t *, cudaGraph_t, unsigned long long));
TAKES(cudaGraphExecGetFlags, cudaError_t, (cudaGraphExec_t, unsigned long long *));
TAKES(cudaGraphUpload, cudaError_t, (cudaGraphExec_t, cudaStream_t));
TAKES(cudaGraphLaunch, cudaError_t, (cudaGraphExec_t, cudaStream_t));
TAKES(cudaGraphExecDestroy, cudaError_t, (cudaGraphExec_t));
TAKES(cudaEventRecordWithFlags, cudaError_t, (cudaEvent_t, cudaStream_t, unsigned));
TAKES(cudaEventCreateWithFlags, cudaError_t, (cudaEvent_t *, unsigned));
TAKES(cudaEventRecord, cudaError_t, (cudaEvent_t, cudaStream_t));
TAKES(cudaEventElapsedTime, cudaError_t, (float *, cudaEvent_t, cudaEvent_t));
TAKES(cudaDeviceGetAttribute, cudaError_t, (int *, enum cudaDeviceAttr, int));
TAKES(cudaDeviceGetPCIBusId, cudaError_t, (char *, int, int));
TAKES(cudaDeviceCanAccessPeer, cudaError_t, (int *, int, int));
TAKES(cudaGetDeviceProperties, cudaError_t, (struct cudaDeviceProp *, int));
TAKES(cudaPointerGetAttributes, cudaError_t, (struct cudaPointerAttributes *, const void *));
TAKES(cudaMallocPitch, cudaError_t, (void **, size_t *, size_t, size_t));
TAKES(cudaHostGetFlags, cudaError_t, (unsigned *, void *));
TAKES(cudaMemcpyPeer, cudaError_t, (void *, int, const void *, int, size_t));
TAKES(cudaMemcpyPeerAsync, cudaError_t, (void *, int, const void *, int, size_t, cudaStream_t));
TAKES(cudaDeviceEnablePeerAccess, cudaError_t, (int, unsigned));
TAKES(cudaDeviceDisablePeerAccess, cudaError_t, (int));
TAKES(cudaDeviceGetByPCIBusId, cudaError_t, (int *, const char *));
TAKES(cudaGetDeviceFlags, cudaError_t, (unsigned *));
TAKES(cudaInitDevice, cudaError_t, (int, unsigned, unsigned));
TAKES(cudaGetDeviceCount, cudaError_t, (int *));
TAKES(cudaGetErrorString, const char *, (cudaError_t));

int main(void)
{
    return 0;
}
