/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define COMM_MAGIC   0x4d4d4f43u
#define CONFIG_MAGIC 0xcafebeefu

/* ---- checks ---- */

bool hostnccl_comm_is(ncclComm_t comm)
{
    return comm && comm->magic == COMM_MAGIC;
}

ncclResult_t hostnccl_comm_valid(ncclComm_t comm)
{
    if (!hostnccl_comm_is(comm))
        return hostnccl_fail(ncclInvalidArgument, "not a communicator: %p", (void *)comm);
    return ncclSuccess;
}

ncclResult_t hostnccl_comm_check(ncclComm_t comm)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result != ncclSuccess)
        return result;
    if (comm->finalized)
        return hostnccl_fail(ncclInvalidUsage, "the communicator is finalized");
    result = __atomic_load_n(&comm->async_error, __ATOMIC_ACQUIRE);
    return result == ncclSuccess ? result : hostnccl_fail(result, "%s", comm->async_text);
}

void hostnccl_comm_set_error(ncclComm_t comm, ncclResult_t result, const char *text)
{
    pthread_mutex_lock(&comm->lock);
    if (comm->async_error == ncclSuccess) {
        snprintf(comm->async_text, sizeof comm->async_text, "%s", text);
        __atomic_store_n(&comm->async_error, result, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&comm->lock);
}

/* ---- making one ---- */

/* The caller's struct may be shorter than ours: only what it has is read. */
static ncclResult_t read_config(const ncclConfig_t *config, char *ret_name, size_t name_size)
{
    ret_name[0] = 0;
    if (!config)
        return ncclSuccess;
    if (config->magic != CONFIG_MAGIC)
        return hostnccl_fail(ncclInvalidArgument,
                             "ncclConfig_t was not set by NCCL_CONFIG_INITIALIZER");
    if (config->size >= offsetof(ncclConfig_t, commName) + sizeof config->commName &&
        config->commName)
        snprintf(ret_name, name_size, "%s", config->commName);
    return ncclSuccess;
}

static ncclComm_t comm_new(int size, int rank, const char *name)
{
    ncclComm_t c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->magic = COMM_MAGIC;
    c->size = size;
    c->rank = rank;
    snprintf(c->name, sizeof c->name, "%s", name);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->launch_lock, NULL);
    pthread_cond_init(&c->moved, NULL);
    return c;
}

static void comm_free(ncclComm_t c)
{
    hostnccl_profiler_close(c);
    rt_transport_shm_release(&c->data);
    rt_transport_shm_release(&c->control);
    hostnccl_region_close(&c->region);
    free(c->redops);
    c->magic = 0;
    pthread_cond_destroy(&c->moved);
    pthread_mutex_destroy(&c->launch_lock);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Takes the rank's places and waits for the other ranks. */
static ncclResult_t connect_ranks(ncclComm_t c, const ncclUniqueId *id)
{
    ncclResult_t result = hostnccl_region_open(id, c->size, &c->region);
    if (result != ncclSuccess)
        return result;
    c->hash = hostnccl_region_hash(id);
    int error = rt_transport_shm_init(&c->data, c->region.data, c->rank, c->size);
    if (error == 0)
        error = rt_transport_shm_init(&c->control, c->region.control, c->rank, c->size);
    if (error != 0)
        return error == -EBUSY ? hostnccl_fail(ncclInvalidUsage, "rank %d is taken", c->rank)
                               : hostnccl_fail(ncclSystemError, "%s", strerror(-error));
    hostnccl_region_arrive(&c->region);
    result = hostnccl_region_await(&c->region, &c->data);
    hostnccl_region_forget(id);
    return result;
}

struct init_job {
    ncclComm_t comm;
    ncclComm_t *handle; /* the caller's; NULL again if this fails */
    ncclUniqueId id;
};

static ncclResult_t run_init(void *argument)
{
    struct init_job *job = argument;
    ncclResult_t result = connect_ranks(job->comm, &job->id);
    if (result == ncclSuccess) {
        hostnccl_profiler_open(job->comm);
    } else {
        *job->handle = NULL;
        comm_free(job->comm);
    }
    free(job);
    return result;
}

static ncclResult_t start_init(ncclComm_t *handle, const ncclUniqueId *id, int size, int rank,
                               const ncclConfig_t *config, int device)
{
    char name[sizeof((struct ncclComm *)0)->name];
    if (!handle || size < 1 || rank < 0 || rank >= size)
        return hostnccl_fail(ncclInvalidArgument, "communicator %p, rank %d of %d", (void *)handle,
                             rank, size);
    ncclResult_t result = read_config(config, name, sizeof name);
    if (result != ncclSuccess)
        return result;
    struct init_job *job = malloc(sizeof *job);
    ncclComm_t comm = comm_new(size, rank, name);
    if (!job || !comm) {
        free(job);
        free(comm);
        return hostnccl_fail(ncclSystemError, "out of memory");
    }
    comm->device = device;
    *job = (struct init_job){comm, handle, *id};
    *handle = comm;
    return hostnccl_group_job(run_init, job);
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

/* ---- split ---- */

/* What a rank of the parent tells the others: an array of int32, as rt_coll sends. */
struct split_word {
    int32_t color, key;
};

struct split_job {
    ncclComm_t parent;
    struct split_word mine;
    ncclComm_t *handle;
    ncclComm_t comm; /* NULL: no colour */
};

/* Place of this rank among those of its colour, by key, then by rank in the parent; `ret_leader` is
 * the first one's rank in the parent. */
static int place_in_color(const struct split_word *words, int size, int rank, int *ret_size,
                          int *ret_leader)
{
    int place = 0, leader = rank;
    *ret_size = 0;
    for (int r = 0; r < size; r++) {
        if (words[r].color != words[rank].color)
            continue;
        ++*ret_size;
        place += words[r].key < words[rank].key || (words[r].key == words[rank].key && r < rank);
        if (words[r].key < words[leader].key || (words[r].key == words[leader].key && r < leader))
            leader = r;
    }
    *ret_leader = leader;
    return place;
}

static int exchange(ncclComm_t parent, const void *mine, void *all, size_t bytes)
{
    return rt_allgather_ring(&parent->control.base, mine, all,
                             (uint64_t)parent->size * (bytes / sizeof(int32_t)), RT_INT32);
}

/* Everybody takes part in both exchanges, with a colour or without. */
static ncclResult_t split_ids(struct split_job *job, struct split_word *words, ncclUniqueId *ids,
                              int *ret_leader)
{
    ncclComm_t parent = job->parent;
    ncclUniqueId mine = {{0}};
    ncclResult_t result = ncclSuccess;
    int error = exchange(parent, &job->mine, words, sizeof job->mine);
    if (error == 0 && job->comm) {
        job->comm->rank =
            place_in_color(words, parent->size, parent->rank, &job->comm->size, ret_leader);
        if (*ret_leader == parent->rank)
            result = hostnccl_region_make(&mine);
    }
    if (error == 0)
        error = exchange(parent, &mine, ids, sizeof mine);
    if (error != 0)
        return hostnccl_fail(hostnccl_from_errno(error), "ncclCommSplit: %s", strerror(-error));
    return result;
}

static ncclResult_t split(struct split_job *job)
{
    ncclComm_t parent = job->parent;
    struct split_word *words = calloc((size_t)parent->size, sizeof *words);
    ncclUniqueId *ids = calloc((size_t)parent->size, sizeof *ids);
    int leader = 0;
    ncclResult_t result = words && ids ? split_ids(job, words, ids, &leader)
                                       : hostnccl_fail(ncclSystemError, "out of memory");
    if (result == ncclSuccess && job->comm)
        result = connect_ranks(job->comm, &ids[leader]);
    if (result == ncclSuccess && job->comm)
        hostnccl_profiler_open(job->comm);
    free(words);
    free(ids);
    return result;
}

static ncclResult_t run_split(void *argument)
{
    struct split_job *job = argument;
    ncclResult_t result = split(job);
    if (result != ncclSuccess && job->comm) {
        *job->handle = NULL;
        comm_free(job->comm);
    }
    free(job);
    return result;
}

static ncclResult_t start_split(ncclComm_t parent, int color, int key, ncclComm_t *newcomm,
                                const ncclConfig_t *config)
{
    char name[sizeof parent->name];
    ncclResult_t result = hostnccl_comm_check(parent);
    if (result == ncclSuccess && (!newcomm || color < NCCL_SPLIT_NOCOLOR))
        result = hostnccl_fail(ncclInvalidArgument, "ncclCommSplit: colour %d", color);
    if (result == ncclSuccess)
        result = read_config(config, name, sizeof name);
    if (result != ncclSuccess)
        return result;
    struct split_job *job = malloc(sizeof *job);
    ncclComm_t comm =
        color == NCCL_SPLIT_NOCOLOR ? NULL : comm_new(0, 0, config ? name : parent->name);
    if (!job || (!comm && color != NCCL_SPLIT_NOCOLOR)) {
        free(job);
        free(comm);
        return hostnccl_fail(ncclSystemError, "out of memory");
    }
    if (comm)
        comm->device = parent->device;
    *job = (struct split_job){parent, {color, key}, newcomm, comm};
    *newcomm = comm;
    return hostnccl_group_job(run_split, job);
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                            ncclConfig_t *config)
{
    return hostnccl_group_note(start_split(comm, color, key, newcomm, config));
}
HOSTNCCL_WEAK(CommSplit);

/* ---- ending one ---- */

static void await_plans(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    while (comm->done < comm->issued)
        pthread_cond_wait(&comm->moved, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
    ncclResult_t result = hostnccl_comm_check(comm);
    if (result != ncclSuccess)
        return result;
    await_plans(comm);
    comm->finalized = true;
    return ncclSuccess;
}
HOSTNCCL_WEAK(CommFinalize);

ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
    if (!comm)
        return ncclSuccess;
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result != ncclSuccess)
        return result;
    await_plans(comm);
    comm_free(comm);
    return ncclSuccess;
}
HOSTNCCL_WEAK(CommDestroy);

ncclResult_t pncclCommAbort(ncclComm_t comm)
{
    if (!comm)
        return ncclSuccess;
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock(&comm->lock);
    comm->aborted = true;
    pthread_cond_broadcast(&comm->moved);
    pthread_mutex_unlock(&comm->lock);
    rt_transport_shm_abort(&comm->data);
    rt_transport_shm_abort(&comm->control);
    await_plans(comm);
    comm_free(comm);
    return ncclSuccess;
}
HOSTNCCL_WEAK(CommAbort);

/* ---- asking one ---- */

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result == ncclSuccess && asyncError)
        *asyncError = __atomic_load_n(&comm->async_error, __ATOMIC_ACQUIRE);
    return asyncError ? result : hostnccl_fail(ncclInvalidArgument, "asyncError is NULL");
}
HOSTNCCL_WEAK(CommGetAsyncError);

static ncclResult_t give_int(int *ret, int value)
{
    if (!ret)
        return hostnccl_fail(ncclInvalidArgument, "the result's address is NULL");
    *ret = value;
    return ncclSuccess;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int *count)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    return result == ncclSuccess ? give_int(count, comm->size) : result;
}
HOSTNCCL_WEAK(CommCount);

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    return result == ncclSuccess ? give_int(device, comm->device) : result;
}
HOSTNCCL_WEAK(CommCuDevice);

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    return result == ncclSuccess ? give_int(rank, comm->rank) : result;
}
HOSTNCCL_WEAK(CommUserRank);

/* ---- memory ---- */

/* The ranks of a host reach it, and reduce there: rt-alloc.h. */
ncclResult_t pncclMemAlloc(void **ptr, size_t size)
{
    void *p = ptr && size > 0 ? rt_alloc(size) : NULL;
    if (!ptr || (size > 0 && !p))
        return hostnccl_fail(ncclUnhandledCudaError, "ncclMemAlloc: %zu bytes", size);
    *ptr = p;
    return ncclSuccess;
}
HOSTNCCL_WEAK(MemAlloc);

/* Queued work may still use it. */
ncclResult_t pncclMemFree(void *ptr)
{
    cudaError_t error = ptr ? cudaDeviceSynchronize() : cudaSuccess;
    rt_free(ptr);
    return error == cudaSuccess ? ncclSuccess
                                : hostnccl_fail(ncclUnhandledCudaError, "ncclMemFree");
}
HOSTNCCL_WEAK(MemFree);

ncclResult_t pncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result == ncclSuccess && handle)
        *handle = buff;
    return handle ? result : hostnccl_fail(ncclInvalidArgument, "handle is NULL");
}
HOSTNCCL_WEAK(CommRegister);

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return hostnccl_comm_valid(comm);
}
HOSTNCCL_WEAK(CommDeregister);
