/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostnccl under load and in trouble: many communicators, threads and devices at once; ranks that
 * never come, differ, or forked. Nothing hangs, and what is wrong has a name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl-players.h"

#define CROWD   8
#define MANY    64
#define DEVICES 8

/* ---- many at once ---- */

/* A thread has all devices, in communicators of its own. */
static int drive_all_devices(int seed)
{
    ncclComm_t comms[DEVICES];
    cudaStream_t streams[DEVICES];
    int64_t *data[DEVICES];
    enum { N = 1000 };
    OK(ncclCommInitAll(comms, DEVICES, NULL));
    for (int d = 0; d < DEVICES; d++) {
        OK(cudaSetDevice(d));
        OK(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
        OK(cudaMalloc((void **)&data[d], N * sizeof *data[d]));
    }
    for (int round = 0; round < 3; round++) {
        for (int d = 0; d < DEVICES; d++)
            for (size_t i = 0; i < N; i++)
                data[d][i] = value(d + seed, i);
        OK(ncclGroupStart());
        for (int d = 0; d < DEVICES; d++)
            OK(ncclAllReduce(data[d], data[d], N, ncclInt64, ncclSum, comms[d], streams[d]));
        OK(ncclGroupEnd());
        for (int d = 0; d < DEVICES; d++)
            OK(cudaStreamSynchronize(streams[d]));
        for (int d = 0; d < DEVICES; d++)
            for (size_t i = 0; i < N; i++)
                CHECK(data[d][i] == sum_of(DEVICES, i) + (int64_t)DEVICES * seed * 100003);
    }
    for (int d = 0; d < DEVICES; d++) {
        OK(ncclCommDestroy(comms[d]));
        OK(cudaSetDevice(d));
        OK(cudaFree(data[d]));
        OK(cudaStreamDestroy(streams[d]));
    }
    return 0;
}

static void *crowd_main(void *argument)
{
    int *slot = argument;
    *slot = drive_all_devices(*slot);
    return NULL;
}

static void eight_threads_drive_eight_devices_each(void **state)
{
    pthread_t threads[CROWD];
    int lines[CROWD];
    for (int i = 0; i < CROWD; i++) {
        lines[i] = i;
        MUST(pthread_create(&threads[i], NULL, crowd_main, &lines[i]));
    }
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(lines[i], 0);
}

/* All are made in one group, used in another, on one stream a rank. */
static int many_communicators(struct rank *r)
{
    ncclUniqueId ids[MANY];
    ncclComm_t comms[MANY];
    for (int i = 0; i < MANY && r->rank == 0; i++)
        OK(ncclGetUniqueId(&ids[i]));
    OK(ncclBroadcast(ids, ids, sizeof ids, ncclUint8, 0, r->comm, r->stream));
    OK(cudaStreamSynchronize(r->stream));
    OK(ncclGroupStart());
    for (int i = 0; i < MANY; i++)
        OK(ncclCommInitRank(&comms[i], r->size, ids[i], r->rank));
    OK(ncclGroupEnd());
    OK(ncclGroupStart());
    for (int i = 0; i < MANY; i++)
        OK(ncclAllReduce(r->in + i, r->out + i, 1, ncclInt64, ncclSum, comms[i], r->stream));
    OK(ncclGroupEnd());
    OK(is_summed(r, MANY));
    for (int i = MANY - 1; i >= 0; i--)
        OK(ncclCommDestroy(comms[i]));
    return 0;
}

static void sixty_four_communicators_live_at_once(void **state)
{
    together(many_communicators, 2);
}

/* ---- who never comes ---- */

/* In the middle: some messages have come, the next never will. */
static int abandoned(struct rank *r)
{
    const size_t large = (size_t)r->size * COUNT;
    ncclResult_t async = ncclInternalError;
    ncclComm_t comm = r->comm;
    OK(allreduce(r, COUNT));
    OK(is_summed(r, COUNT));
    if (r->rank > 0)
        OK(allreduce(r, large));
    OK(ncclCommGetAsyncError(comm, &async));
    CHECK(async == ncclSuccess);
    if (r->rank > 0)
        CHECK(cudaStreamQuery(r->stream) == cudaErrorNotReady);
    r->comm = NULL;
    OK(ncclCommAbort(comm));
    cudaError_t error = cudaStreamSynchronize(r->stream);
    CHECK(error == cudaSuccess || error == cudaErrorLaunchFailure);
    OK(cudaStreamSynchronize(r->stream)); /* and works on */
    return 0;
}

static void abort_ends_a_collective_whose_peer_never_comes(void **state)
{
    for (int size = 2; size <= 4; size++)
        together(abandoned, size);
}

/* A count of nothing isn't a call: the others wait for it, until who left it out leaves. */
static int left_out(struct rank *r)
{
    ncclResult_t async = ncclSuccess;
    ncclComm_t comm = r->comm;
    OK(allreduce(r, r->rank == 0 ? 0 : COUNT));
    r->comm = NULL;
    if (r->rank == 0)
        return (int)ncclCommDestroy(comm);
    CHECK(cudaStreamSynchronize(r->stream) == cudaErrorLaunchFailure);
    OK(ncclCommGetAsyncError(comm, &async));
    CHECK(async == ncclRemoteError);
    CHECK(strstr(ncclGetLastError(comm), "rank 0"));
    return (int)ncclCommAbort(comm);
}

static void who_counts_nothing_and_leaves_is_named(void **state)
{
    together(left_out, 3);
}

/* ---- who differs ---- */

static int call_of(struct rank *r, int what)
{
    bool odd = r->rank == 1;
    void *in = r->in, *out = r->out;
    ncclComm_t comm = r->comm;
    switch (what) {
    case 0:
        return (int)ncclAllReduce(in, out, odd ? 7 : 8, ncclInt64, ncclSum, comm, r->stream);
    case 1: /* as many bytes */
        return (int)ncclAllReduce(in, out, 8, odd ? ncclInt64 : ncclFloat64, ncclSum, comm,
                                  r->stream);
    case 2:
        return (int)ncclAllReduce(in, out, 8, ncclInt64, odd ? ncclMax : ncclSum, comm, r->stream);
    case 3:
        return (int)ncclBroadcast(in, out, 8, ncclInt64, odd, comm, r->stream);
    case 4:
        return odd ? (int)ncclAllGather(in, out, 8, ncclInt64, comm, r->stream)
                   : (int)ncclReduceScatter(in, out, 8, ncclInt64, ncclSum, comm, r->stream);
    case 5:
        return odd ? (int)ncclReduce(in, out, 8, ncclInt64, ncclSum, 0, comm, r->stream)
                   : (int)ncclAllReduce(in, out, 8, ncclInt64, ncclSum, comm, r->stream);
    case 6:
        return (int)ncclAlltoAll(in, out, odd ? 5 : 6, ncclInt64, comm, r->stream);
    default:
        return (int)ncclGather(in, out, odd ? 5 : 6, ncclInt64, 0, comm, r->stream);
    }
}

static int what_differs;

/* Who needed nothing of the others and was through already learns it from its next call. */
static int differing(struct rank *r)
{
    ncclResult_t async = ncclSuccess;
    ncclComm_t comm = r->comm;
    OK(call_of(r, what_differs));
    cudaError_t error = cudaStreamSynchronize(r->stream);
    OK(ncclCommGetAsyncError(comm, &async));
    if (error == cudaSuccess && async == ncclSuccess && call_of(r, 2) == 0) {
        error = cudaStreamSynchronize(r->stream);
        OK(ncclCommGetAsyncError(comm, &async));
    }
    CHECK(error == cudaErrorLaunchFailure && async == ncclInvalidUsage);
    const char *text = ncclGetLastError(comm);
    CHECK(strstr(text, "rank 1") && (strstr(text, "differ") || strstr(text, "bytes")));
    r->comm = NULL;
    return (int)ncclCommAbort(comm);
}

static void what_ranks_differ_in_is_said(void **state)
{
    for (what_differs = 0; what_differs < 8; what_differs++)
        together(differing, 2);
}

/* ---- forks ---- */

/* The child has memory, but no threads: what its parent made is refused, and stays whole. */
static int in_child(const struct rank *r, cudaEvent_t event)
{
    int count = 0;
    int64_t one = 1;
    ncclResult_t async;
    alarm(20); /* to hang is to fail */
    CHECK(cudaStreamSynchronize(r->stream) != cudaSuccess);
    CHECK(cudaStreamQuery(r->stream) != cudaSuccess);
    CHECK(cudaEventQuery(event) != cudaSuccess);
    CHECK(cudaEventSynchronize(event) != cudaSuccess);
    CHECK(cudaStreamWaitEvent(r->stream, event, 0) != cudaSuccess);
    CHECK(cudaMemcpyAsync(&one, &one, 8, cudaMemcpyDefault, r->stream) != cudaSuccess);
    CHECK(allreduce(r, COUNT) == ncclInvalidUsage);
    CHECK(strstr(ncclGetLastError(NULL), "fork"));
    CHECK(ncclCommCount(r->comm, &count) == ncclInvalidUsage);
    CHECK(ncclCommGetAsyncError(r->comm, &async) == ncclInvalidUsage);
    CHECK(ncclCommFinalize(r->comm) == ncclInvalidUsage);
    CHECK(ncclCommDestroy(r->comm) == ncclInvalidUsage);
    CHECK(ncclCommAbort(r->comm) == ncclInvalidUsage);
    return 0;
}

static int forked(struct rank *r)
{
    static pthread_mutex_t one_forks = PTHREAD_MUTEX_INITIALIZER;
    cudaEvent_t event;
    int status = -1;
    OK(cudaEventCreate(&event));
    OK(allreduce(r, COUNT));
    OK(cudaEventRecord(event, r->stream));
    OK(is_summed(r, COUNT));
    pthread_mutex_lock(&one_forks);
    pid_t child = fork();
    if (child == 0) {
        int line = in_child(r, event);
        if (line)
            fprintf(stderr, "in the child: line %d\n", line);
        _exit(line != 0);
    }
    pthread_mutex_unlock(&one_forks);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    OK(allreduce(r, COUNT));
    OK(is_summed(r, COUNT));
    OK(cudaEventDestroy(event));
    return 0;
}

static void child_of_a_fork_is_refused_and_harms_nobody(void **state)
{
    together(forked, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_threads_drive_eight_devices_each),
        cmocka_unit_test(sixty_four_communicators_live_at_once),
        cmocka_unit_test(abort_ends_a_collective_whose_peer_never_comes),
        cmocka_unit_test(who_counts_nothing_and_leaves_is_named),
        cmocka_unit_test(what_ranks_differ_in_is_said),
        cmocka_unit_test(child_of_a_fork_is_refused_and_harms_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
