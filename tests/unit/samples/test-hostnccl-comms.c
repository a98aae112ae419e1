/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators that are shrunk, revoked, nonblocking or never whole; windows; groups that are only
 * simulated. Ranks are threads. Compiled against hostnccl's header and, where it is present, the
 * vendor's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl-check.h"

#define RANKS_MAX 5

typedef int case_fn(ncclUniqueId id, int rank, int size);

struct rank {
    case_fn *run;
    int rank, size, line;
    ncclUniqueId id;
    pthread_t thread;
};

static void *rank_main(void *argument)
{
    struct rank *r = argument;
    cudaSetDevice(r->rank);
    r->line = r->run(r->id, r->rank, r->size);
    return NULL;
}

static void run_ranks(case_fn *run, int size)
{
    struct rank ranks[RANKS_MAX];
    ncclUniqueId id;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    for (int i = 0; i < size; i++) {
        ranks[i] = (struct rank){run, i, size, 0, id, 0};
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
    }
    for (int i = 0; i < size; i++)
        pthread_join(ranks[i].thread, NULL);
    for (int i = 0; i < size; i++)
        if (ranks[i].line != 0)
            fail_msg("rank %d of %d: line %d", i, size, ranks[i].line);
}

/* Each rank gives its number + 1. */
static int sums_up(ncclComm_t comm, int rank, int size)
{
    int32_t *data = NULL;
    int count = -1, user_rank = -1;
    OK(ncclCommCount(comm, &count));
    OK(ncclCommUserRank(comm, &user_rank));
    CHECK(count == size && user_rank == rank);
    OK(cudaMalloc((void **)&data, sizeof *data));
    *data = rank + 1;
    OK(ncclAllReduce(data, data, 1, ncclInt32, ncclSum, comm, NULL));
    OK(cudaStreamSynchronize(NULL));
    CHECK(*data == size * (size + 1) / 2);
    OK(cudaFree(data));
    return 0;
}

/* Polls, as programs with nonblocking communicators do. */
static ncclResult_t settle(ncclComm_t comm)
{
    ncclResult_t result = ncclInProgress;
    while (result == ncclInProgress) {
        sched_yield();
        if (ncclCommGetAsyncError(comm, &result) != ncclSuccess)
            return ncclInternalError;
    }
    return result;
}

static ncclConfig_t nonblocking(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return config;
}

/* ---- shrinking ---- */

/* Rank 1 goes, then the last one of the rest; those that go take no part. */
static int shrink_case(ncclUniqueId id, int rank, int size)
{
    ncclComm_t comm, smaller = NULL, smallest = NULL;
    int gone = 1, last = size - 2;
    OK(ncclCommInitRank(&comm, size, id, rank));
    if (rank == gone)
        return ncclCommDestroy(comm);
    OK(ncclCommShrink(comm, &gone, 1, &smaller, NULL, NCCL_SHRINK_DEFAULT));
    int new_rank = rank - (rank > gone);
    OK(sums_up(smaller, new_rank, size - 1));
    if (new_rank != last) {
        OK(ncclCommShrink(smaller, &last, 1, &smallest, NULL, NCCL_SHRINK_DEFAULT));
        OK(sums_up(smallest, new_rank, size - 2));
        OK(ncclCommDestroy(smallest));
    }
    OK(ncclCommDestroy(smaller));
    return ncclCommDestroy(comm);
}

/* An operation waits for rank 1, which never takes part. */
static int shrink_with_abort_case(ncclUniqueId id, int rank, int size)
{
    ncclComm_t comm, smaller = NULL;
    int32_t data = rank;
    int gone = 1;
    OK(ncclCommInitRank(&comm, size, id, rank));
    if (rank == gone)
        return ncclCommAbort(comm);
    OK(ncclAllReduce(&data, &data, 1, ncclInt32, ncclSum, comm, NULL));
    OK(ncclCommShrink(comm, &gone, 1, &smaller, NULL, NCCL_SHRINK_ABORT));
    cudaStreamSynchronize(NULL);
    CHECK(ncclAllReduce(&data, &data, 1, ncclInt32, ncclSum, comm, NULL) != ncclSuccess);
    OK(sums_up(smaller, rank - (rank > gone), size - 1));
    OK(ncclCommDestroy(smaller));
    return ncclCommDestroy(comm);
}

static int shrink_misuse_case(ncclUniqueId id, int rank, int size)
{
    ncclComm_t comm, smaller = NULL;
    int other = (rank + 1) % size;
    int self = rank, outside = size, twice[] = {other, other};
    OK(ncclCommInitRank(&comm, size, id, rank));
    CHECK(ncclCommShrink(comm, &self, 1, &smaller, NULL, 0) == ncclInvalidArgument);
    CHECK(ncclCommShrink(comm, &outside, 1, &smaller, NULL, 0) == ncclInvalidArgument);
    CHECK(ncclCommShrink(comm, twice, 2, &smaller, NULL, 0) == ncclInvalidArgument);
    CHECK(ncclCommShrink(comm, NULL, 0, &smaller, NULL, 0) == ncclInvalidArgument);
    CHECK(ncclCommShrink(comm, &other, 1, NULL, NULL, 0) == ncclInvalidArgument);
    CHECK(ncclCommShrink(comm, &other, 1, &smaller, NULL, 8) == ncclInvalidArgument);
    OK(sums_up(comm, rank, size));
    return ncclCommDestroy(comm);
}

/* ---- revoking ---- */

static int revoke_case(ncclUniqueId id, int rank, int size)
{
    ncclComm_t comm, again = NULL;
    int32_t data = rank;
    ncclResult_t async = ncclInternalError;
    OK(ncclCommInitRank(&comm, size, id, rank));
    CHECK(ncclCommRevoke(comm, 1) == ncclInvalidArgument);
    if (rank != 0) /* can never end */
        OK(ncclAllReduce(&data, &data, 1, ncclInt32, ncclSum, comm, NULL));
    OK(ncclCommRevoke(comm, 0));
    cudaStreamSynchronize(NULL);
    OK(ncclCommGetAsyncError(comm, &async));
    CHECK(async == ncclSuccess);
    CHECK(ncclAllReduce(&data, &data, 1, ncclInt32, ncclSum, comm, NULL) == ncclInvalidUsage);
    CHECK(ncclCommFinalize(comm) == ncclInvalidUsage);
    CHECK(ncclCommRevoke(comm, 0) == ncclInvalidUsage);
    OK(ncclCommSplit(comm, 0, -rank, &again, NULL));
    OK(sums_up(again, size - 1 - rank, size));
    OK(ncclCommDestroy(again));
    return ncclCommDestroy(comm);
}

/* ---- nonblocking ---- */

static int nonblocking_case(ncclUniqueId id, int rank, int size)
{
    ncclComm_t comm, half = NULL;
    ncclConfig_t config = nonblocking();
    CHECK(ncclCommInitRankConfig(&comm, size, id, rank, &config) == ncclInProgress);
    OK(settle(comm));
    OK(sums_up(comm, rank, size));
    ncclResult_t result = ncclCommSplit(comm, rank % 2, 0, &half, NULL);
    CHECK(result == ncclInProgress && half);
    OK(settle(half));
    OK(settle(comm));
    OK(sums_up(half, rank / 2, (size + 1 - rank % 2) / 2));
    CHECK(ncclCommFinalize(half) == ncclInProgress);
    OK(settle(half));
    OK(ncclCommDestroy(half));
    CHECK(ncclCommSplit(comm, rank ? NCCL_SPLIT_NOCOLOR : 3, 0, &half, NULL) == ncclInProgress);
    OK(settle(comm));
    CHECK(!half == (rank != 0));
    OK(ncclCommDestroy(half));
    CHECK(ncclCommRevoke(comm, 0) == ncclInProgress);
    OK(settle(comm));
    return ncclCommDestroy(comm);
}

/* In a group, and one of a blocking communicator with it. */
static int nonblocking_group_case(ncclUniqueId id, int rank, int size)
{
    ncclComm_t comm, first = NULL, second = NULL;
    ncclConfig_t config = nonblocking(), blocking = NCCL_CONFIG_INITIALIZER;
    OK(ncclGroupStart());
    CHECK(ncclCommInitRankConfig(&comm, size, id, rank, &config) == ncclInProgress);
    CHECK(ncclGroupEnd() == ncclInProgress);
    OK(settle(comm));
    OK(ncclGroupStart());
    CHECK(ncclCommSplit(comm, 0, rank, &first, NULL) == ncclInProgress);
    CHECK(ncclGroupEnd() == ncclInProgress);
    OK(settle(first));
    OK(settle(comm));
    CHECK(ncclCommSplit(first, 0, rank, &second, &blocking) == ncclInProgress);
    OK(settle(second));
    OK(settle(first));
    OK(ncclGroupStart());
    int32_t *data = NULL;
    OK(cudaMalloc((void **)&data, 2 * sizeof *data));
    data[0] = data[1] = 1;
    OK(ncclAllReduce(data, data, 1, ncclInt32, ncclSum, first, NULL));
    OK(ncclAllReduce(data + 1, data + 1, 1, ncclInt32, ncclSum, second, NULL));
    OK(ncclGroupEnd());
    OK(cudaStreamSynchronize(NULL));
    CHECK(data[0] == size && data[1] == size);
    OK(cudaFree(data));
    OK(ncclCommDestroy(second));
    OK(ncclCommDestroy(first));
    return ncclCommDestroy(comm);
}

/* The last rank doesn't come: the others look, then give up. */
static int abort_while_connecting_case(ncclUniqueId id, int rank, int size)
{
    ncclComm_t comm;
    ncclConfig_t config = nonblocking();
    ncclResult_t async = ncclSuccess;
    int count = 0;
    if (rank == size - 1)
        return 0;
    CHECK(ncclCommInitRankConfig(&comm, size, id, rank, &config) == ncclInProgress);
    OK(ncclCommGetAsyncError(comm, &async));
    CHECK(async != ncclSuccess); /* another one's abort may have been seen already */
    CHECK(ncclAllReduce(&count, &count, 1, ncclInt32, ncclSum, comm, NULL) != ncclSuccess);
    return ncclCommAbort(comm);
}

/* As above, for a split; whichever of the two communicators is aborted first. */
static int abort_while_splitting_case(ncclUniqueId id, int rank, int size)
{
    ncclComm_t comm, half = NULL;
    ncclConfig_t config = nonblocking();
    CHECK(ncclCommInitRankConfig(&comm, size, id, rank, &config) == ncclInProgress);
    OK(settle(comm));
    if (rank != size - 1) {
        CHECK(ncclCommSplit(comm, 0, 0, &half, NULL) == ncclInProgress);
        if (rank == 0)
            OK(ncclCommAbort(half));
    }
    OK(ncclCommAbort(comm));
    return rank == 0 ? 0 : ncclCommAbort(half);
}

/* ---- ranks that don't come ---- */

static int missing_case(ncclUniqueId id, int rank, int size)
{
    ncclComm_t comm = (ncclComm_t)&comm;
    if (rank == 1 || rank == 3)
        return 0;
    CHECK(ncclCommInitRank(&comm, size, id, rank) == ncclRemoteError);
    CHECK(!comm);
    CHECK(strstr(ncclGetLastError(NULL), "missing: 1, 3"));
    return 0;
}

/* ---- ranks that differ ---- */

static ncclResult_t call(int what, int32_t *data, ncclComm_t comm)
{
    switch (what) {
    case 0:
        return ncclAllReduce(data, data, 100, ncclInt32, ncclSum, comm, NULL);
    case 1:
        return ncclAllReduce(data, data, 50, ncclInt32, ncclSum, comm, NULL);
    case 2:
        return ncclAllReduce(data, data, 100, ncclFloat32, ncclSum, comm, NULL);
    case 3:
        return ncclAllReduce(data, data, 100, ncclInt32, ncclMax, comm, NULL);
    case 4:
        return ncclBroadcast(data, data, 100, ncclInt32, 0, comm, NULL);
    default:
        return ncclBroadcast(data, data, 100, ncclInt32, 1, comm, NULL);
    }
}

static const char *const texts[] = {
    "ncclAllReduce of 100 ncclInt32, sum",    "ncclAllReduce of 50 ncclInt32, sum",
    "ncclAllReduce of 100 ncclFloat32, sum",  "ncclAllReduce of 100 ncclInt32, max",
    "ncclBroadcast of 100 ncclInt32, root 0", "ncclBroadcast of 100 ncclInt32, root 1"};

/* The last rank calls another one than the others: all of them are told what. */
static int differ(ncclUniqueId id, int rank, int size, int mine, int theirs)
{
    ncclComm_t comm;
    ncclResult_t async = ncclSuccess;
    static __thread int32_t data[100];
    OK(ncclCommInitRank(&comm, size, id, rank));
    OK(call(0, data, comm));
    OK(cudaStreamSynchronize(NULL));
    int what = rank == size - 1 ? mine : theirs;
    /* who needs nobody else may get through the first, not through all */
    cudaError_t error = cudaSuccess;
    ncclResult_t told = ncclSuccess;
    for (int i = 0; i < 100 && error == cudaSuccess && told == ncclSuccess; i++) {
        told = call(what, data, comm); /* what is known by then is told at once */
        if (told == ncclSuccess)
            error = cudaStreamSynchronize(NULL);
    }
    CHECK(told == ncclInvalidUsage || (told == ncclSuccess && error == cudaErrorLaunchFailure));
    OK(ncclCommGetAsyncError(comm, &async));
    CHECK(async == ncclInvalidUsage);
    const char *text = ncclGetLastError(comm);
    CHECK(strstr(text, "collective number"));
    CHECK(strstr(text, texts[mine]) && strstr(text, texts[theirs]));
    return ncclCommAbort(comm);
}

static int differ_in_count(ncclUniqueId id, int rank, int size)
{
    return differ(id, rank, size, 1, 0);
}
static int differ_in_type(ncclUniqueId id, int rank, int size)
{
    return differ(id, rank, size, 2, 0);
}
static int differ_in_operation(ncclUniqueId id, int rank, int size)
{
    return differ(id, rank, size, 3, 0);
}
static int differ_in_function(ncclUniqueId id, int rank, int size)
{
    return differ(id, rank, size, 4, 0);
}
static int differ_in_root(ncclUniqueId id, int rank, int size)
{
    return differ(id, rank, size, 5, 4);
}

/* ---- windows and groups ---- */

static int windows_case(ncclUniqueId id, int rank, int size)
{
    ncclComm_t comm;
    ncclWindow_t window = NULL, left = NULL;
    void *buffer = NULL, *handle = NULL;
    OK(ncclCommInitRank(&comm, size, id, rank));
    OK(ncclMemAlloc(&buffer, 8192));
    OK(ncclCommWindowRegister(comm, buffer, 8192, &window, NCCL_WIN_COLL_SYMMETRIC));
    OK(ncclCommWindowRegister(comm, buffer, 4096, &left, NCCL_WIN_DEFAULT));
    OK(ncclCommRegister(comm, buffer, 8192, &handle));
    CHECK(window && left && handle);
    OK(sums_up(comm, rank, size));
    OK(ncclCommDeregister(comm, handle));
    OK(ncclCommWindowDeregister(comm, window));
    CHECK(ncclCommWindowDeregister(comm, window) == ncclInvalidArgument);
    CHECK(ncclCommWindowRegister(comm, NULL, 1, &window, 0) == ncclInvalidArgument);
    CHECK(ncclCommWindowRegister(comm, buffer, 1, &window, 64) == ncclInvalidArgument);
    OK(ncclCommDestroy(comm)); /* and what is left registered */
    return ncclMemFree(buffer);
}

static int simulate_case(ncclUniqueId id, int rank, int size)
{
    ncclComm_t comm;
    int32_t data = 1;
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    OK(ncclCommInitRank(&comm, size, id, rank));
    CHECK(ncclGroupSimulateEnd(&info) == ncclInvalidUsage);
    OK(ncclGroupStart());
    OK(ncclAllReduce(&data, &data, 1, ncclInt32, ncclSum, comm, NULL));
    OK(ncclGroupSimulateEnd(&info));
    OK(cudaStreamSynchronize(NULL));
    CHECK(data == 1);
    OK(sums_up(comm, rank, size));
    return ncclCommDestroy(comm);
}

static void shrunk_communicators_keep_the_order_of_ranks(void **state)
{
    run_ranks(shrink_case, 3);
    run_ranks(shrink_case, 5);
}
static void shrink_with_abort_ends_what_waits(void **state)
{
    run_ranks(shrink_with_abort_case, 2);
    run_ranks(shrink_with_abort_case, 4);
}
static void shrink_that_makes_no_sense_is_refused(void **state)
{
    run_ranks(shrink_misuse_case, 3);
}
static void revoked_communicator_can_still_be_split(void **state)
{
    run_ranks(revoke_case, 1);
    run_ranks(revoke_case, 4);
}
static void nonblocking_calls_are_in_progress_until_done(void **state)
{
    run_ranks(nonblocking_case, 1);
    run_ranks(nonblocking_case, 4);
    run_ranks(nonblocking_group_case, 3);
}
static void abort_ends_what_is_in_progress(void **state)
{
    run_ranks(abort_while_connecting_case, 3);
    run_ranks(abort_while_splitting_case, 3);
}
static void ranks_that_do_not_come_are_named(void **state)
{
    setenv("HOSTNCCL_INIT_TIMEOUT_MS", "150", 1);
    run_ranks(missing_case, 5);
    unsetenv("HOSTNCCL_INIT_TIMEOUT_MS");
}
static void ranks_that_differ_are_told_in_what(void **state)
{
    static case_fn *const cases[] = {differ_in_count, differ_in_type, differ_in_operation,
                                     differ_in_function, differ_in_root};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_ranks(cases[i], 2);
        run_ranks(cases[i], 4);
    }
}
static void windows_are_registered_and_forgotten(void **state)
{
    run_ranks(windows_case, 2);
}
static void simulated_group_runs_nothing(void **state)
{
    run_ranks(simulate_case, 2);
}
static void settings_out_of_range_are_refused(void **state)
{
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 2;
    assert_int_equal(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
    config.blocking = 1;
    config.minCTAs = 4;
    config.maxCTAs = 2;
    assert_int_equal(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
    config.maxCTAs = 8;
    assert_int_equal(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclSuccess);
    assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
}
static void wrong_timeout_is_refused(void **state)
{
    static const char *const wrong[] = {"", "0", "1s", "-1", " 5", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ncclUniqueId id;
        ncclComm_t comm = NULL;
        char expected[128];
        assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
        setenv("HOSTNCCL_INIT_TIMEOUT_MS", wrong[i], 1);
        assert_int_equal(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidArgument);
        unsetenv("HOSTNCCL_INIT_TIMEOUT_MS");
        assert_null(comm);
        snprintf(expected, sizeof expected, "HOSTNCCL_INIT_TIMEOUT_MS is '%s', expected", wrong[i]);
        assert_non_null(strstr(ncclGetLastError(NULL), expected));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_out_of_range_are_refused),
        cmocka_unit_test(wrong_timeout_is_refused),
        cmocka_unit_test(shrunk_communicators_keep_the_order_of_ranks),
        cmocka_unit_test(shrink_with_abort_ends_what_waits),
        cmocka_unit_test(shrink_that_makes_no_sense_is_refused),
        cmocka_unit_test(revoked_communicator_can_still_be_split),
        cmocka_unit_test(nonblocking_calls_are_in_progress_until_done),
        cmocka_unit_test(abort_ends_what_is_in_progress),
        cmocka_unit_test(ranks_that_do_not_come_are_named),
        cmocka_unit_test(ranks_that_differ_are_told_in_what),
        cmocka_unit_test(windows_are_registered_and_forgotten),
        cmocka_unit_test(simulated_group_runs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
