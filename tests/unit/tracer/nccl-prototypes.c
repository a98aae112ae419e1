/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.api against the vendor's header: that this compiles is the test. */
#include <nccl.h>

#if NCCL_VERSION_CODE >= 22800 /* before, it lacks types */
#include "nccl-prototypes.h"
#endif

#include "nccl/abi.h"

#include <assert.h>

static_assert(sizeof(ncclUniqueId) == RS_NCCL_ID_BYTES, "id");
static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int), "int");
static_assert(sizeof(ncclRedOp_t) == sizeof(int), "int");
static_assert((int)ncclSuccess == (int)RS_NCCL_SUCCESS, "success");
static_assert((int)ncclInternalError == (int)RS_NCCL_INTERNAL_ERROR, "error");
static_assert((int)ncclInProgress == (int)RS_NCCL_IN_PROGRESS, "in progress");
static_assert(ncclBfloat16 == 9, "types");
static_assert(ncclNumOps == RS_NCCL_REDOPS && ncclAvg == RS_NCCL_REDOPS - 1, "operations");
static_assert(NCCL_SPLIT_NOCOLOR == RS_NCCL_NO_COLOR, "colour");
