/* SPDX-License-Identifier: Apache-2.0 */
/* How communicators end. */
#include "internal.h"

/* Until all that was put on streams is through, or has given up. */
static ncclResult_t run_quiesce(void *argument)
{
    ncclComm_t comm = argument;
    hostnccl_comm_await_plans(comm);
    return ncclSuccess;
}

static ncclResult_t finalize(ncclComm_t comm)
{
    ncclResult_t result = hostnccl_comm_check(comm);
    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock(&comm->lock);
    comm->finalized = true;
    pthread_mutex_unlock(&comm->lock);
    return hostnccl_group_job(&(struct hostnccl_job){run_quiesce, comm, {comm}});
}

ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
    return hostnccl_group_note(finalize(comm));
}
HOSTNCCL_WEAK(CommFinalize);

ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
    if (!comm)
        return ncclSuccess;
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result != ncclSuccess)
        return result;
    hostnccl_comm_await_jobs(comm);
    hostnccl_comm_await_graphs(comm);
    hostnccl_comm_end_plans(comm);
    hostnccl_comm_free(comm);
    return ncclSuccess;
}
HOSTNCCL_WEAK(CommDestroy);

/* A communicator in the making waits on the transport of the one it is made from. */
ncclResult_t pncclCommAbort(ncclComm_t comm)
{
    if (!comm)
        return ncclSuccess;
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock(&comm->lock);
    __atomic_store_n(&comm->aborted, true, __ATOMIC_SEQ_CST);
    bool connected = comm->connected;
    if (comm->made_from) {
        rt_transport_shm_abort(&comm->made_from->control);
        rt_transport_shm_abort(&comm->made_from->rescue);
    }
    pthread_cond_broadcast(&comm->moved);
    pthread_mutex_unlock(&comm->lock);
    if (connected) {
        rt_transport_shm_abort(&comm->data);
        rt_transport_shm_abort(&comm->control);
        rt_transport_shm_abort(&comm->rescue);
    }
    hostnccl_comm_await_jobs(comm);
    hostnccl_comm_end_plans(comm);
    hostnccl_comm_free(comm);
    return ncclSuccess;
}
HOSTNCCL_WEAK(CommAbort);

/* From here on no plan's error is one of the communicator. */
void hostnccl_comm_stop(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->revoked = true;
    pthread_cond_broadcast(&comm->moved);
    pthread_mutex_unlock(&comm->lock);
    rt_transport_shm_abort(&comm->data);
}

static ncclResult_t revoke(ncclComm_t comm, int flags)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result != ncclSuccess)
        return result;
    if (flags != NCCL_REVOKE_DEFAULT)
        return hostnccl_fail(ncclInvalidArgument, "ncclCommRevoke: flags %d", flags);
    pthread_mutex_lock(&comm->lock);
    bool wrong = comm->finalized || comm->revoked || !comm->connected || comm->busy > 0;
    pthread_mutex_unlock(&comm->lock);
    if (wrong)
        return hostnccl_fail(ncclInvalidUsage,
                             "ncclCommRevoke: the communicator is finalized, revoked or not made");
    hostnccl_comm_stop(comm);
    pthread_mutex_lock(&comm->lock);
    __atomic_store_n(&comm->async_error, ncclSuccess, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&comm->lock);
    return hostnccl_group_job(&(struct hostnccl_job){run_quiesce, comm, {comm}});
}

ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
    return hostnccl_group_note(revoke(comm, revokeFlags));
}
HOSTNCCL_WEAK(CommRevoke);
