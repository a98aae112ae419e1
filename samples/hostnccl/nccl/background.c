/* SPDX-License-Identifier: Apache-2.0 */
/* What nonblocking communicators have done while the program goes on. */
#include <stdlib.h>

#include "internal.h"

bool hostnccl_in_background(const struct hostnccl_job *job)
{
    for (int i = 0; i < 2; i++)
        if (job->comms[i] && !job->comms[i]->settings.blocking)
            return true;
    return false;
}

void hostnccl_background_begin(const struct hostnccl_job *job)
{
    for (int i = 0; i < 2; i++) {
        ncclComm_t comm = job->comms[i];
        if (!comm)
            continue;
        pthread_mutex_lock(&comm->lock);
        comm->busy++;
        if (comm->async_error == ncclSuccess)
            __atomic_store_n(&comm->async_error, ncclInProgress, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&comm->lock);
    }
}

/* From here on the communicator may be freed. */
static void end(ncclComm_t comm, ncclResult_t result)
{
    if (result != ncclSuccess)
        hostnccl_comm_set_error(comm, result, pncclGetLastError(NULL));
    pthread_mutex_lock(&comm->lock);
    if (--comm->busy == 0 && comm->async_error == ncclInProgress)
        __atomic_store_n(&comm->async_error, ncclSuccess, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&comm->moved);
    pthread_mutex_unlock(&comm->lock);
}

static void run(const struct hostnccl_job *job)
{
    ncclResult_t result = job->run(job->argument);
    for (int i = 0; i < 2; i++)
        if (job->comms[i])
            end(job->comms[i], result);
}

static void *job_thread(void *argument)
{
    struct hostnccl_job *job = argument;
    cudaSetDevice(job->comms[0]->device);
    run(job);
    free(job);
    return NULL;
}

ncclResult_t hostnccl_background_start(const struct hostnccl_job *job)
{
    struct hostnccl_job *copy = malloc(sizeof *copy);
    pthread_t thread;
    if (copy)
        *copy = *job;
    if (copy && pthread_create(&thread, NULL, job_thread, copy) == 0) {
        pthread_detach(thread);
    } else {
        free(copy);
        run(job); /* late, but done */
    }
    return ncclInProgress;
}
