/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of the shapes that NCCL's user guide shows: several devices in a thread, threads with a
 * device or several each, nonblocking communicators, splits, patterns of messages. All values are
 * checked against a serial reference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>

#include "nccl-players.h"

#define DEVICES 4

/* ---- one process, one thread, several devices ---- */

static void one_thread_drives_devices_in_any_order(void **state)
{
    const int devices[DEVICES] = {2, 0, 3, 1};
    struct rank ranks[DEVICES];
    ncclComm_t comms[DEVICES];
    MUST(ncclCommInitAll(comms, DEVICES, devices));
    for (int i = 0; i < DEVICES; i++) {
        int rank = -1, device = -1;
        MUST(open_rank(&ranks[i], i, DEVICES, devices[i]));
        ranks[i].comm = comms[i];
        MUST(ncclCommUserRank(comms[i], &rank));
        MUST(ncclCommCuDevice(comms[i], &device));
        assert_int_equal(rank, i);
        assert_int_equal(device, devices[i]);
    }
    MUST(ncclGroupStart());
    for (int i = 0; i < DEVICES; i++)
        MUST(allreduce(&ranks[i], COUNT));
    MUST(ncclGroupEnd());
    for (int i = 0; i < DEVICES; i++)
        MUST(is_summed(&ranks[i], COUNT));
    /* a broadcast from a root that comes last, and ranks that stand in the group backwards */
    MUST(ncclGroupStart());
    for (int i = DEVICES - 1; i >= 0; i--)
        MUST(ncclBroadcast(ranks[i].in, ranks[i].out, COUNT, ncclInt64, DEVICES - 1, comms[i],
                           ranks[i].stream));
    MUST(ncclGroupEnd());
    for (int i = 0; i < DEVICES; i++) {
        MUST(cudaStreamSynchronize(ranks[i].stream));
        for (size_t k = 0; k < COUNT; k++)
            assert_int_equal(ranks[i].out[k], value(DEVICES - 1, k));
    }
    for (int i = 0; i < DEVICES; i++)
        MUST(close_rank(&ranks[i]));
}

/* ---- threads with a device or several each ---- */

struct thread {
    pthread_t thread;
    ncclUniqueId id;
    int first, devices, size, line;
};

static int thread_work(const struct thread *t)
{
    struct rank ranks[DEVICES];
    for (int i = 0; i < t->devices; i++)
        OK(open_rank(&ranks[i], t->first + i, t->size, t->first + i));
    OK(ncclGroupStart());
    for (int i = 0; i < t->devices; i++) {
        OK(cudaSetDevice(t->first + i));
        OK(ncclCommInitRank(&ranks[i].comm, t->size, t->id, t->first + i));
    }
    OK(ncclGroupEnd());
    for (int round = 0; round < 3; round++) {
        OK(ncclGroupStart());
        for (int i = 0; i < t->devices; i++)
            OK(allreduce(&ranks[i], COUNT));
        OK(ncclGroupEnd());
        for (int i = 0; i < t->devices; i++)
            OK(is_summed(&ranks[i], COUNT));
    }
    for (int i = 0; i < t->devices; i++)
        OK(close_rank(&ranks[i]));
    return 0;
}

static void *thread_main(void *argument)
{
    struct thread *t = argument;
    t->line = thread_work(t);
    return NULL;
}

static void threads_have_a_device_or_several(void **state)
{
    const int shares[3][DEVICES] = {{1, 1, 1, 1}, {2, 2}, {1, 3}};
    for (int s = 0; s < 3; s++) {
        struct thread threads[DEVICES];
        ncclUniqueId id;
        int n = 0, first = 0;
        MUST(ncclGetUniqueId(&id));
        for (; n < DEVICES && shares[s][n] > 0; first += shares[s][n++]) {
            threads[n] = (struct thread){0, id, first, shares[s][n], DEVICES, 0};
            MUST(pthread_create(&threads[n].thread, NULL, thread_main, &threads[n]));
        }
        while (n-- > 0) {
            pthread_join(threads[n].thread, NULL);
            assert_int_equal(threads[n].line, 0);
        }
    }
}

/* ---- nonblocking ---- */

/* As the guide does: until the communicator says how it ended. */
static ncclResult_t settle(ncclComm_t comm, ncclResult_t result)
{
    ncclResult_t async = ncclInProgress;
    if (result != ncclInProgress && result != ncclSuccess)
        return result;
    while (ncclCommGetAsyncError(comm, &async) == ncclSuccess && async == ncclInProgress)
        sched_yield();
    return async;
}

static int nonblocking(struct rank *r)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t blocking = r->comm, half = NULL;
    ncclUniqueId id = {{0}};
    config.blocking = 0;
    if (r->rank == 0)
        OK(ncclGetUniqueId(&id));
    OK(ncclBroadcast(&id, &id, sizeof id, ncclUint8, 0, blocking, r->stream));
    OK(cudaStreamSynchronize(r->stream));
    ncclResult_t result = ncclCommInitRankConfig(&r->comm, r->size, id, r->rank, &config);
    OK(settle(r->comm, result));
    OK(settle(r->comm, (ncclResult_t)allreduce(r, COUNT)));
    OK(is_summed(r, COUNT));
    ncclComm_t whole = r->comm;
    result = ncclCommSplit(whole, r->rank % 2, r->rank, &half, &config);
    OK(settle(whole, result));
    OK(settle(half, ncclSuccess));
    OK(settle(half, ncclAllReduce(r->in, r->out, 1, ncclInt64, ncclSum, half, r->stream)));
    OK(cudaStreamSynchronize(r->stream));
    int64_t expected = 0;
    for (int i = r->rank % 2; i < r->size; i += 2)
        expected += value(i, 0);
    CHECK(r->out[0] == expected);
    OK(settle(half, ncclCommFinalize(half)));
    OK(ncclCommDestroy(half));
    OK(settle(whole, ncclCommFinalize(whole)));
    OK(ncclCommDestroy(whole));
    r->comm = blocking;
    return 0;
}

static void nonblocking_communicators_are_polled(void **state)
{
    together(nonblocking, 4);
}

/* ---- splits ---- */

/* A grid: sums along rows, of those along columns. */
static int grid(struct rank *r)
{
    ncclComm_t row = NULL, column = NULL, none = (ncclComm_t)1;
    int columns = r->size / 2, size, rank;
    OK(ncclCommSplit(r->comm, r->rank / columns, r->rank % columns, &row, NULL));
    OK(ncclCommSplit(r->comm, r->rank % columns, -r->rank, &column, NULL));
    OK(ncclCommSplit(r->comm, r->rank == 0 ? 5 : NCCL_SPLIT_NOCOLOR, 0, &none, NULL));
    CHECK((none != NULL) == (r->rank == 0));
    OK(ncclCommCount(row, &size));
    CHECK(size == columns);
    OK(ncclCommUserRank(column, &rank));
    CHECK(rank == 1 - r->rank / columns); /* by the key, backwards */
    OK(ncclAllReduce(r->in, r->out, COUNT, ncclInt64, ncclSum, row, r->stream));
    OK(ncclAllReduce(r->out, r->out, COUNT, ncclInt64, ncclSum, column, r->stream));
    OK(is_summed(r, COUNT));
    if (none)
        OK(ncclCommDestroy(none));
    OK(ncclCommDestroy(row));
    OK(ncclCommDestroy(column));
    return 0;
}

static void rows_and_columns_of_a_grid_sum_up(void **state)
{
    together(grid, 4);
    together(grid, 6);
}

/* ---- messages ---- */

/* How many elements a rank gives to another. */
static size_t share(int from, int to)
{
    return (size_t)(from * 37 + to * 11) % 101;
}

static int uneven_all_to_all(struct rank *r)
{
    size_t at_in = 0, at_out = 0;
    OK(ncclGroupStart());
    for (int peer = 0; peer < r->size; peer++) {
        size_t n = share(r->rank, peer), m = share(peer, r->rank);
        OK(ncclSend(r->in + at_in, n, ncclInt64, peer, r->comm, r->stream));
        OK(ncclRecv(r->out + at_out, m, ncclInt64, peer, r->comm, r->stream));
        at_in += n;
        at_out += m;
    }
    OK(ncclGroupEnd());
    OK(cudaStreamSynchronize(r->stream));
    at_out = 0;
    for (int peer = 0; peer < r->size; peer++) {
        size_t from = 0;
        for (int to = 0; to < r->rank; to++)
            from += share(peer, to);
        for (size_t i = 0; i < share(peer, r->rank); i++)
            CHECK(r->out[at_out++] == value(peer, from + i));
    }
    return 0;
}

/* One dimension, ends that have one neighbour; then a ring, both ways, without a group. */
static int neighbours(struct rank *r)
{
    int left = r->rank - 1, right = r->rank + 1;
    OK(ncclGroupStart());
    if (left >= 0) {
        OK(ncclSend(r->in, COUNT, ncclInt64, left, r->comm, r->stream));
        OK(ncclRecv(r->out, COUNT, ncclInt64, left, r->comm, r->stream));
    }
    if (right < r->size) {
        OK(ncclSend(r->in + 1, COUNT, ncclInt64, right, r->comm, r->stream));
        OK(ncclRecv(r->out + COUNT, COUNT, ncclInt64, right, r->comm, r->stream));
    }
    OK(ncclGroupEnd());
    OK(cudaStreamSynchronize(r->stream));
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(left < 0 || r->out[i] == value(left, i + 1));
        CHECK(right == r->size || r->out[COUNT + i] == value(right, i));
    }
    left = (r->rank + r->size - 1) % r->size;
    right %= r->size;
    for (int even = 1; even >= 0; even--)
        if ((r->rank % 2 == 0) == even)
            OK(ncclSend(r->in, COUNT, ncclInt64, right, r->comm, r->stream));
        else
            OK(ncclRecv(r->out, COUNT, ncclInt64, left, r->comm, r->stream));
    OK(cudaStreamSynchronize(r->stream));
    CHECK(r->out[COUNT - 1] == value(left, COUNT - 1));
    return 0;
}

static void messages_of_any_pattern_arrive(void **state)
{
    for (int size = 2; size <= 6; size += 2) {
        together(uneven_all_to_all, size);
        together(neighbours, size);
    }
    together(uneven_all_to_all, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_drives_devices_in_any_order),
        cmocka_unit_test(threads_have_a_device_or_several),
        cmocka_unit_test(nonblocking_communicators_are_polled),
        cmocka_unit_test(rows_and_columns_of_a_grid_sum_up),
        cmocka_unit_test(messages_of_any_pattern_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
