/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators out of an id. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

#define CONFIG_MAGIC 0xcafebeef

/* ---- what a configuration asks for ---- */

/* The caller's struct may be shorter than ours: only what it has is read. */
#define HAS(config, field) ((config)->size >= offsetof(ncclConfig_t, field) + sizeof(config)->field)

static bool is_set_outside(int value, int least, int most)
{
    return value != NCCL_CONFIG_UNDEF_INT && (value < least || value > most);
}

static ncclResult_t check_config(const ncclConfig_t *config)
{
    if (config->magic != CONFIG_MAGIC)
        return hostnccl_fail(ncclInvalidArgument,
                             "ncclConfig_t was not set by NCCL_CONFIG_INITIALIZER");
    if (!HAS(config, splitShare))
        return ncclSuccess;
    if (is_set_outside(config->blocking, 0, 1))
        return hostnccl_fail(ncclInvalidArgument, "ncclConfig_t: blocking %d is neither 0 nor 1",
                             config->blocking);
    if (is_set_outside(config->minCTAs, 1, INT_MAX) ||
        is_set_outside(config->maxCTAs, 1, INT_MAX) ||
        (config->minCTAs != NCCL_CONFIG_UNDEF_INT && config->maxCTAs != NCCL_CONFIG_UNDEF_INT &&
         config->minCTAs > config->maxCTAs))
        return hostnccl_fail(ncclInvalidArgument, "ncclConfig_t: minCTAs %d, maxCTAs %d",
                             config->minCTAs, config->maxCTAs);
    if (is_set_outside(config->splitShare, 0, 1))
        return hostnccl_fail(ncclInvalidArgument, "ncclConfig_t: splitShare %d is neither 0 nor 1",
                             config->splitShare);
    return ncclSuccess;
}

ncclResult_t hostnccl_settings_read(const ncclConfig_t *config,
                                    const struct hostnccl_settings *inherited,
                                    struct hostnccl_settings *ret)
{
    static const struct hostnccl_settings defaults = {.blocking = true};
    *ret = inherited && !config ? *inherited : defaults;
    if (!config)
        return ncclSuccess;
    ncclResult_t result = check_config(config);
    if (result != ncclSuccess)
        return result;
    if (HAS(config, blocking) && config->blocking != NCCL_CONFIG_UNDEF_INT)
        ret->blocking = config->blocking != 0;
    if (HAS(config, commName) && config->commName)
        snprintf(ret->name, sizeof ret->name, "%s", config->commName);
    return ncclSuccess;
}

/* ---- making one ---- */

struct init_job {
    ncclComm_t comm;
    ncclComm_t *handle; /* the caller's; NULL again if this fails, unless it looks meanwhile */
    ncclUniqueId id;
};

static ncclResult_t run_init(void *argument)
{
    struct init_job *job = argument;
    ncclResult_t result = hostnccl_comm_connect(job->comm, &job->id);
    if (result == ncclSuccess) {
        hostnccl_profiler_open(job->comm);
    } else if (job->comm->settings.blocking) {
        *job->handle = NULL;
        hostnccl_comm_free(job->comm);
    }
    free(job);
    return result;
}

static ncclResult_t start_init(ncclComm_t *handle, const ncclUniqueId *id, int size, int rank,
                               const ncclConfig_t *config, int device)
{
    struct hostnccl_settings settings;
    if (!handle || size < 1 || rank < 0 || rank >= size)
        return hostnccl_fail(ncclInvalidArgument, "communicator %p, rank %d of %d", (void *)handle,
                             rank, size);
    ncclResult_t result = hostnccl_settings_read(config, NULL, &settings);
    if (result != ncclSuccess)
        return result;
    struct init_job *job = malloc(sizeof *job);
    ncclComm_t comm = hostnccl_comm_new(&settings, device);
    if (!job || !comm) {
        free(job);
        free(comm);
        return hostnccl_fail(ncclSystemError, "out of memory");
    }
    comm->size = size;
    comm->rank = rank;
    *job = (struct init_job){comm, handle, *id};
    *handle = comm;
    return hostnccl_group_job(&(struct hostnccl_job){run_init, job, {comm}});
}

ncclResult_t pncclGetUniqueId(ncclUniqueId *uniqueId)
{
    if (!uniqueId)
        return hostnccl_fail(ncclInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
    return hostnccl_region_make(uniqueId);
}
HOSTNCCL_WEAK(GetUniqueId);

ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t *config)
{
    int device;
    if (cudaGetDevice(&device) != cudaSuccess)
        return hostnccl_group_note(hostnccl_fail(ncclUnhandledCudaError, "cudaGetDevice failed"));
    return hostnccl_group_note(start_init(comm, &commId, nranks, rank, config, device));
}
HOSTNCCL_WEAK(CommInitRankConfig);

ncclResult_t pncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
    return pncclCommInitRankConfig(comm, nranks, commId, rank, NULL);
}
HOSTNCCL_WEAK(CommInitRank);

/* One id is enough on one host. */
ncclResult_t pncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId,
                                       ncclUniqueId *commIds, ncclConfig_t *config)
{
    if (nId < 1 || nId > nranks || !commIds)
        return hostnccl_group_note(hostnccl_fail(ncclInvalidArgument, "%d ids", nId));
    return pncclCommInitRankConfig(newcomm, nranks, commIds[0], myrank, config);
}
HOSTNCCL_WEAK(CommInitRankScalable);

static ncclResult_t check_devices(int n, const int *devices)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        return hostnccl_fail(ncclUnhandledCudaError, "no device");
    for (int i = 0; i < n; i++) {
        int device = devices ? devices[i] : i;
        if (device < 0 || device >= count)
            return hostnccl_fail(ncclInvalidArgument, "device %d of %d", device, count);
        for (int k = 0; devices && k < i; k++)
            if (devices[k] == device)
                return hostnccl_fail(ncclInvalidUsage, "device %d is listed twice", device);
    }
    return ncclSuccess;
}

ncclResult_t pncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
    if (!comm || ndev < 1)
        return hostnccl_fail(ncclInvalidArgument, "ncclCommInitAll: %d devices", ndev);
    ncclUniqueId id;
    ncclResult_t result = check_devices(ndev, devlist);
    if (result == ncclSuccess)
        result = hostnccl_region_make(&id);
    if (result != ncclSuccess)
        return hostnccl_group_note(result);
    pncclGroupStart();
    for (int i = 0; i < ndev; i++)
        hostnccl_group_note(start_init(&comm[i], &id, ndev, i, NULL, devlist ? devlist[i] : i));
    return pncclGroupEnd();
}
HOSTNCCL_WEAK(CommInitAll);
