/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.h - the types of NCCL's public interface (version 2.28), so that wrappers build without its
 * header. Enumerations are int, as in the vendor's C ABI; what is only passed on is opaque.
 */
#ifndef RS_TRACER_NCCL_ABI_H
#define RS_TRACER_NCCL_ABI_H

#include <stddef.h>

#define RS_NCCL_ID_BYTES 128
#define RS_NCCL_TYPES    12 /* ncclInt8 ... ncclFloat8e5m2 */
#define RS_NCCL_REDOPS   5  /* ncclSum ... ncclAvg; greater: made by the program */
#define RS_NCCL_NO_COLOR (-1)

enum rs_nccl_result {
    RS_NCCL_SUCCESS = 0,
    RS_NCCL_INTERNAL_ERROR = 3,
    RS_NCCL_IN_PROGRESS = 7,
};

#ifndef NCCL_MAJOR /* a test has the vendor's */
typedef int ncclResult_t;
typedef int ncclDataType_t;
typedef int ncclRedOp_t;
typedef int ncclScalarResidence_t;
typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct ncclConfig_v22800 ncclConfig_t;
typedef struct ncclSimInfo_v22200 ncclSimInfo_t;
typedef struct {
    char internal[RS_NCCL_ID_BYTES];
} ncclUniqueId;
#endif

#endif
