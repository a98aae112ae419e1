/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door to the interface for kernels (the vendor's nccl_device.h): closed, as no kernel runs
 * here. A program that asks first gets an answer rather than an unresolved symbol.
 */
#include "internal.h"

struct ncclDevComm;
struct ncclDevCommRequirements;

#pragma GCC visibility push(default)
ncclResult_t pncclDevCommCreate(ncclComm_t comm, const struct ncclDevCommRequirements *requirements,
                                struct ncclDevComm *ret);
ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const struct ncclDevComm *device_comm);
#pragma GCC visibility pop

static ncclResult_t refuse(const char *call, ncclComm_t comm)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result == ncclSuccess)
        result = hostnccl_fail(ncclInvalidUsage,
                               "%s: the stand-in NCCL runs no kernels, so it has no communicators "
                               "for them",
                               call);
    return hostnccl_group_note(result);
}

ncclResult_t pncclDevCommCreate(ncclComm_t comm, const struct ncclDevCommRequirements *requirements,
                                struct ncclDevComm *ret)
{
    return refuse("ncclDevCommCreate", comm);
}
HOSTNCCL_WEAK(DevCommCreate);

ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const struct ncclDevComm *device_comm)
{
    return refuse("ncclDevCommDestroy", comm);
}
HOSTNCCL_WEAK(DevCommDestroy);
