/* SPDX-License-Identifier: Apache-2.0 */
/* Where buffers of NCCL's operations may lie: in place, shifted, registered, nowhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nccl-players.h"

/* The user guide's rules: each collective in place, by what it says is so. */
static int in_place(struct rank *r)
{
    int64_t *data = r->in;
    size_t mine = (size_t)r->rank * COUNT, all = (size_t)r->size * COUNT;
    OK(ncclReduceScatter(data, data + mine, COUNT, ncclInt64, ncclSum, r->comm, r->stream));
    OK(ncclAllGather(data + mine, data, COUNT, ncclInt64, r->comm, r->stream));
    OK(cudaStreamSynchronize(r->stream));
    for (size_t i = 0; i < all; i++)
        CHECK(data[i] == sum_of(r->size, i));
    for (size_t i = 0; i < all; i++)
        data[i] = value(r->rank, i);
    int root = r->size - 1;
    bool is_root = r->rank == root;
    OK(ncclReduce(data, data, COUNT, ncclInt64, ncclMax, root, r->comm, r->stream));
    OK(ncclBroadcast(data, data, COUNT, ncclInt64, root, r->comm, r->stream));
    OK(cudaStreamSynchronize(r->stream));
    for (size_t i = 0; i < COUNT; i++)
        CHECK(data[i] == value(root, i)); /* the largest */
    for (size_t i = 0; i < all; i++)
        data[i] = value(r->rank, i);
    OK(ncclGather(is_root ? data + mine : data, data, COUNT, ncclInt64, root, r->comm, r->stream));
    OK(cudaStreamSynchronize(r->stream));
    for (size_t i = 0; i < all && is_root; i++)
        CHECK(data[i] == value((int)(i / COUNT), i / COUNT == (size_t)root ? i : i % COUNT));
    OK(ncclScatter(data, is_root ? data + mine : data, COUNT, ncclInt64, root, r->comm, r->stream));
    OK(cudaStreamSynchronize(r->stream));
    for (size_t i = 0; i < COUNT && !is_root; i++)
        CHECK(data[i] == value(r->rank, i));
    return 0;
}

/* Elements may begin at any multiple of their size, as CUDA wants it. */
static int shifted(struct rank *r)
{
    enum { N = 1013 };
    for (int shift = 1; shift < 8; shift++) {
        float *from = (float *)r->in + shift, *to = (float *)r->out + 8 - shift;
        for (size_t i = 0; i < N; i++)
            from[i] = (float)((r->rank + 1) * (int)(i % 97));
        OK(ncclAllReduce(from, to, N, ncclFloat32, ncclSum, r->comm, r->stream));
        OK(cudaStreamSynchronize(r->stream));
        for (size_t i = 0; i < N; i++)
            CHECK(to[i] == (float)(r->size * (r->size + 1) / 2 * (int)(i % 97)));
        size_t part = N / (size_t)r->size;
        OK(ncclReduceScatter(from, to, part, ncclFloat32, ncclMax, r->comm, r->stream));
        OK(ncclBroadcast((char *)from + 1, (char *)to + 9, 77, ncclInt8, 0, r->comm, r->stream));
        OK(cudaStreamSynchronize(r->stream));
        CHECK(to[0] == (float)(r->size * (int)(part * (size_t)r->rank % 97)));
    }
    return 0;
}

/* A kernel would fault: "misaligned address". */
static int misaligned(struct rank *r)
{
    const char *in = (char *)r->in;
    char *out = (char *)r->out;
    CHECK(ncclAllReduce(in + 2, out, 9, ncclFloat32, ncclSum, r->comm, NULL) ==
          ncclInvalidArgument);
    CHECK(strstr(ncclGetLastError(NULL), "sendbuff"));
    CHECK(ncclReduceScatter(in, out + 4, 9, ncclInt64, ncclSum, r->comm, NULL) ==
          ncclInvalidArgument);
    CHECK(strstr(ncclGetLastError(NULL), "recvbuff"));
    /* what moves bytes takes any */
    OK(ncclBroadcast(in + 1, out + 3, 9, ncclInt64, 0, r->comm, r->stream));
    OK(ncclAllReduce(in + 1, out + 1, 9, ncclUint8, ncclMax, r->comm, r->stream));
    OK(allreduce(r, COUNT));
    OK(is_summed(r, COUNT));
    return 0;
}

static void buffers_lie_in_place_or_anywhere(void **state)
{
    for (int size = 1; size <= 5; size += 2) {
        together(in_place, size);
        together(shifted, size);
        together(misaligned, size);
    }
}

/* Nothing is touched, and what follows is not disturbed. */
static int of_nothing(struct rank *r)
{
    OK(ncclAllReduce(NULL, NULL, 0, ncclFloat32, ncclSum, r->comm, r->stream));
    OK(ncclBroadcast(NULL, NULL, 0, ncclInt8, 0, r->comm, r->stream));
    OK(ncclReduce(NULL, NULL, 0, ncclInt8, ncclMax, 0, r->comm, r->stream));
    OK(ncclAllGather(NULL, NULL, 0, ncclInt8, r->comm, r->stream));
    OK(ncclReduceScatter(NULL, NULL, 0, ncclInt8, ncclSum, r->comm, r->stream));
    OK(ncclAlltoAll(NULL, NULL, 0, ncclInt8, r->comm, r->stream));
    OK(ncclScatter(NULL, NULL, 0, ncclInt8, 0, r->comm, r->stream));
    OK(ncclGather(NULL, NULL, 0, ncclInt8, 0, r->comm, r->stream));
    OK(ncclGroupStart());
    OK(ncclSend(NULL, 0, ncclInt8, (r->rank + 1) % r->size, r->comm, r->stream));
    OK(ncclRecv(NULL, 0, ncclInt8, (r->rank + r->size - 1) % r->size, r->comm, r->stream));
    OK(ncclGroupEnd());
    OK(allreduce(r, COUNT));
    OK(is_summed(r, COUNT));
    return 0;
}

static void operations_of_nothing_do_nothing(void **state)
{
    together(of_nothing, 1);
    together(of_nothing, 3);
}

/* ---- registered memory ---- */

static int registered(struct rank *r)
{
    enum { BYTES = 1 << 20 };
    void *handle = NULL, *buffer = NULL;
    ncclWindow_t window = NULL, other = NULL;
    OK(ncclMemAlloc(&buffer, BYTES));
    OK(ncclCommRegister(r->comm, r->in, COUNT * sizeof *r->in, &handle));
    OK(ncclCommWindowRegister(r->comm, buffer, BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
    int64_t *data = buffer;
    for (size_t i = 0; i < COUNT; i++)
        data[i] = value(r->rank, i);
    OK(ncclAllReduce(data, data, COUNT, ncclInt64, ncclSum, r->comm, r->stream));
    OK(allreduce(r, COUNT));
    OK(is_summed(r, COUNT));
    for (size_t i = 0; i < COUNT; i++)
        CHECK(data[i] == sum_of(r->size, i));
    /* what no window can be made of: NCCL's is memory that ranks can share, from a page on */
    char *bytes = buffer;
    CHECK(ncclCommWindowRegister(r->comm, bytes + 8, 64, &other, 0) == ncclInvalidArgument);
    CHECK(ncclCommWindowRegister(r->comm, bytes + 4096, BYTES, &other, 0) != ncclSuccess);
    CHECK(ncclCommWindowRegister(r->comm, r->in, 64, &other, 0) == ncclUnhandledCudaError);
    CHECK(ncclCommWindowRegister(r->comm, &other, 64, &other, 0) == ncclUnhandledCudaError);
    OK(ncclCommWindowDeregister(r->comm, window));
    OK(ncclCommDeregister(r->comm, handle));
    OK(ncclMemFree(buffer));
    return 0;
}

static void registered_memory_is_used_and_other_memory_refused(void **state)
{
    together(registered, 3);
}

/* NCCL_CHECK_POINTERS: a buffer of another device, or of no
 * device at all, is refused before anything runs. */
static int checked(struct rank *r)
{
    int64_t own[4] = {0}, *other = NULL, *pinned = NULL;
    OK(cudaSetDevice((r->device + 1) % 8));
    OK(cudaMalloc((void **)&other, sizeof own));
    OK(cudaSetDevice(r->device));
    OK(cudaMallocHost((void **)&pinned, sizeof own));
    ncclComm_t comm = r->comm;
    CHECK(ncclAllReduce(own, r->out, 4, ncclInt64, ncclSum, comm, NULL) == ncclInvalidArgument);
    CHECK(ncclAllReduce(r->in, own, 4, ncclInt64, ncclSum, comm, NULL) == ncclInvalidArgument);
    CHECK(strstr(ncclGetLastError(NULL), "recvbuff"));
    CHECK(ncclAllReduce(other, r->out, 4, ncclInt64, ncclSum, comm, NULL) == ncclInvalidArgument);
    CHECK(strstr(ncclGetLastError(NULL), "sendbuff"));
    CHECK(ncclRecv(own, 4, ncclInt64, 0, comm, NULL) == ncclInvalidArgument);
    OK(ncclAllReduce(pinned, r->out, 4, ncclInt64, ncclSum, comm, r->stream));
    OK(cudaStreamSynchronize(r->stream));
    OK(cudaFree(other));
    OK(cudaFreeHost(pinned));
    return 0;
}

static void pointers_are_checked_where_asked_for(void **state)
{
    setenv("NCCL_CHECK_POINTERS", "1", 1);
    together(checked, 2);
    unsetenv("NCCL_CHECK_POINTERS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_lie_in_place_or_anywhere),
        cmocka_unit_test(operations_of_nothing_do_nothing),
        cmocka_unit_test(registered_memory_is_used_and_other_memory_refused),
        cmocka_unit_test(pointers_are_checked_where_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
