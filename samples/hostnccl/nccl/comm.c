/* SPDX-License-Identifier: Apache-2.0 */
/* What a communicator is: whether it may be used, its parts, and what a program can ask of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

#define COMM_MAGIC 0x4d4d4f43u

/* ---- checks ---- */

bool hostnccl_comm_is(ncclComm_t comm)
{
    return comm && comm->magic == COMM_MAGIC;
}

ncclResult_t hostnccl_comm_valid(ncclComm_t comm)
{
    if (!hostnccl_comm_is(comm))
        return hostnccl_fail(ncclInvalidArgument, "not a communicator: %p", (void *)comm);
    if (comm->pid != getpid())
        return hostnccl_fail(
            ncclInvalidUsage,
            "the communicator was made by process %d: a child of fork can't use it",
            (int)comm->pid);
    return ncclSuccess;
}

ncclResult_t hostnccl_comm_manageable(ncclComm_t comm)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result != ncclSuccess)
        return result;
    result = __atomic_load_n(&comm->async_error, __ATOMIC_ACQUIRE);
    if (result == ncclInProgress)
        return hostnccl_fail(ncclInvalidArgument,
                             "the communicator's last call is still in progress");
    if (result != ncclSuccess)
        return hostnccl_fail(result, "%s", comm->async_text);
    pthread_mutex_lock(&comm->lock);
    bool finalized = comm->finalized;
    pthread_mutex_unlock(&comm->lock);
    return finalized ? hostnccl_fail(ncclInvalidUsage, "the communicator is finalized")
                     : ncclSuccess;
}

ncclResult_t hostnccl_comm_check(ncclComm_t comm)
{
    ncclResult_t result = hostnccl_comm_manageable(comm);
    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock(&comm->lock);
    bool revoked = comm->revoked;
    pthread_mutex_unlock(&comm->lock);
    return revoked ? hostnccl_fail(ncclInvalidUsage, "the communicator is revoked") : ncclSuccess;
}

void hostnccl_comm_set_error(ncclComm_t comm, ncclResult_t result, const char *text)
{
    pthread_mutex_lock(&comm->lock);
    bool given_up = comm->revoked || comm->aborted; /* whoever did that knows */
    if (!given_up && (comm->async_error == ncclSuccess || comm->async_error == ncclInProgress)) {
        snprintf(comm->async_text, sizeof comm->async_text, "%s", text);
        __atomic_store_n(&comm->async_error, result, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&comm->lock);
}

ncclResult_t hostnccl_comm_describe(ncclComm_t comm, int error, char *ret, size_t size)
{
    const char *verdict = hostnccl_verdict(comm);
    snprintf(ret, size, "%s", verdict ? verdict : "");
    if (!verdict && error == -ECONNRESET)
        hostnccl_region_name_gone(&comm->region, comm->rank, ret, size);
    if (!ret[0])
        snprintf(ret, size, "%s",
                 error == -ECONNRESET  ? "another rank failed or left"
                 : error == -EMSGSIZE  ? "ranks disagree about counts or calls"
                 : error == -ECANCELED ? "aborted"
                                       : strerror(-error));
    return verdict ? ncclInvalidUsage : hostnccl_from_errno(error);
}

/* ---- life ---- */

ncclComm_t hostnccl_comm_new(const struct hostnccl_settings *settings, int device)
{
    ncclComm_t c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->magic = COMM_MAGIC;
    c->pid = getpid();
    c->device = device;
    c->settings = *settings;
    c->checks_pointers = hostnccl_checks_pointers();
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->launch_lock, NULL);
    pthread_cond_init(&c->moved, NULL);
    return c;
}

static void bury(ncclComm_t c)
{
    pthread_cond_destroy(&c->moved);
    pthread_mutex_destroy(&c->launch_lock);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void hostnccl_comm_enter_graph(ncclComm_t c)
{
    pthread_mutex_lock(&c->lock);
    c->graphs++;
    pthread_mutex_unlock(&c->lock);
}

void hostnccl_comm_leave_graph(ncclComm_t c)
{
    pthread_mutex_lock(&c->lock);
    bool last = --c->graphs == 0 && c->gone;
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
    if (last)
        bury(c);
}

void hostnccl_comm_await_graphs(ncclComm_t c)
{
    pthread_mutex_lock(&c->lock);
    while (c->graphs > 0)
        pthread_cond_wait(&c->moved, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void hostnccl_comm_free(ncclComm_t c)
{
    hostnccl_profiler_close(c);
    if (c->region.head)
        hostnccl_region_leave(&c->region, c->rank);
    rt_transport_shm_release(&c->data);
    rt_transport_shm_release(&c->control);
    rt_transport_shm_release(&c->rescue);
    hostnccl_region_close(&c->region);
    hostnccl_windows_free(c);
    free(c->redops);
    c->magic = 0;
    pthread_mutex_lock(&c->lock);
    c->ended = c->gone = true;
    bool last = c->graphs == 0;
    pthread_mutex_unlock(&c->lock);
    if (last)
        bury(c);
}

static int take_places(ncclComm_t c)
{
    int error = rt_transport_shm_init(&c->data, c->region.data, c->rank, c->size);
    if (error == 0)
        error = rt_transport_shm_init(&c->control, c->region.control, c->rank, c->size);
    if (error == 0)
        error = rt_transport_shm_init(&c->rescue, c->region.rescue, c->rank, c->size);
    if (error != 0) { /* while there still is a region to leave */
        rt_transport_shm_release(&c->data);
        rt_transport_shm_release(&c->control);
    }
    return error;
}

ncclResult_t hostnccl_comm_connect(ncclComm_t c, const ncclUniqueId *id)
{
    struct hostnccl_region region;
    ncclResult_t result = hostnccl_region_open(id, c->size, &region);
    if (result != ncclSuccess)
        return result;
    c->region = region;
    c->hash = hostnccl_region_hash(id);
    int error = take_places(c);
    if (error != 0) {
        hostnccl_region_close(&c->region); /* the rank that has the place keeps it */
        return error == -EBUSY ? hostnccl_fail(ncclInvalidUsage, "rank %d is taken", c->rank)
                               : hostnccl_fail(ncclSystemError, "%s", strerror(-error));
    }
    pthread_mutex_lock(&c->lock);
    c->connected = true; /* an abort reaches the transports from here on */
    pthread_mutex_unlock(&c->lock);
    hostnccl_region_arrive(&c->region, c->rank);
    result = hostnccl_region_await(&c->region, &c->aborted);
    hostnccl_region_forget(id);
    return result;
}

void hostnccl_comm_await_plans(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    while (comm->done < comm->issued)
        pthread_cond_wait(&comm->moved, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

void hostnccl_comm_end_plans(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->ended = true;
    pthread_mutex_unlock(&comm->lock);
    hostnccl_comm_await_plans(comm);
}

void hostnccl_comm_await_jobs(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    while (comm->busy > 0)
        pthread_cond_wait(&comm->moved, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

/* ---- asking one ---- */

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result == ncclSuccess && asyncError)
        *asyncError = __atomic_load_n(&comm->async_error, __ATOMIC_ACQUIRE);
    return asyncError ? result : hostnccl_fail(ncclInvalidArgument, "asyncError is NULL");
}
HOSTNCCL_WEAK(CommGetAsyncError);

/* What a communicator that is being made will be isn't known yet. */
static ncclResult_t give_int(ncclComm_t comm, int *ret, const int *value)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result != ncclSuccess)
        return result;
    if (!ret)
        return hostnccl_fail(ncclInvalidArgument, "the result's address is NULL");
    if (__atomic_load_n(&comm->async_error, __ATOMIC_ACQUIRE) == ncclInProgress)
        return hostnccl_fail(ncclInvalidArgument,
                             "the communicator's last call is still in progress");
    *ret = *value;
    return ncclSuccess;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int *count)
{
    return give_int(comm, count, comm ? &comm->size : NULL);
}
HOSTNCCL_WEAK(CommCount);

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device)
{
    return give_int(comm, device, comm ? &comm->device : NULL);
}
HOSTNCCL_WEAK(CommCuDevice);

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank)
{
    return give_int(comm, rank, comm ? &comm->rank : NULL);
}
HOSTNCCL_WEAK(CommUserRank);
