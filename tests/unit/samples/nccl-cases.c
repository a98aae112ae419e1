/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl-cases.h"
#include "nccl-check.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "covering.h"
#include "rt-reference.h"

static const size_t counts[] = {0, 1, 5, 1000, 4099, 140001};
#define COUNTS (sizeof counts / sizeof *counts)

static const struct {
    ncclDataType_t nccl;
    enum rt_type rt;
} types[] = {{ncclFloat32, RT_FLOAT32}, {ncclInt32, RT_INT32}};

static const struct {
    ncclRedOp_t nccl;
    enum rt_op rt;
} redops[] = {{ncclSum, RT_SUM},
              {ncclProd, RT_PROD},
              {ncclMax, RT_MAX},
              {ncclMin, RT_MIN},
              {ncclAvg, RT_AVG}};

static void *device_array(size_t count)
{
    void *p = NULL;
    return cudaMalloc(&p, count * 4 + 256) == cudaSuccess ? p : NULL;
}

static bool holds_values_of(const void *data, size_t count, int rank, int tensor, enum rt_type type)
{
    return holds_values(data, 0, count, rank, tensor, type, RT_SUM);
}

/* ---- one collective each, all counts, types and operations ---- */

static int allreduce_once(ncclComm_t comm, int rank, int size, cudaStream_t stream, size_t count,
                          int type, int op, bool in_place)
{
    int tensor = (int)(count % 97) + op;
    void *in = device_array(count), *out = in_place ? in : device_array(count);
    fill(in, count, types[type].rt, rank, tensor, redops[op].rt);
    OK(ncclAllReduce(in, out, count, types[type].nccl, redops[op].nccl, comm, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(holds_reduced(out, 0, count, size, tensor, types[type].rt, redops[op].rt));
    cudaFree(in);
    if (!in_place)
        cudaFree(out);
    return 0;
}

static int allreduce_case(ncclComm_t comm, int rank, int size)
{
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    for (unsigned c = 0; c < COUNTS; c++)
        for (int type = 0; type < 2; type++)
            for (int op = 0; op < 5; op++)
                OK(allreduce_once(comm, rank, size, stream, counts[c], type, op, (c + op) % 2));
    OK(cudaStreamDestroy(stream));
    return 0;
}

/* NCCL's own memory, which ranks reach without a copy; the last rank takes CUDA's in every other
 * round. What is freed while work is queued on it is freed after that. */
static int memory_case(ncclComm_t comm, int rank, int size)
{
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    for (unsigned round = 0; round < 8; round++) {
        const bool nccl = rank < size - 1 || round % 2 == 0;
        const size_t count = 5000 + round * 7001;
        void *data = nccl ? NULL : device_array(count), *copy = malloc(count * 4);
        if (nccl)
            OK(ncclMemAlloc(&data, count * 4));
        CHECK(data && copy);
        fill(data, count, RT_FLOAT32, rank, (int)round, RT_SUM);
        OK(ncclAllReduce(data, data, count, ncclFloat32, ncclSum, comm, stream));
        OK(cudaMemcpyAsync(copy, data, count * 4, cudaMemcpyDeviceToHost, stream));
        OK(nccl ? (int)ncclMemFree(data) : (int)cudaFree(data));
        CHECK(holds_reduced(copy, 0, count, size, (int)round, RT_FLOAT32, RT_SUM));
        free(copy);
    }
    OK(ncclMemFree(NULL));
    OK(cudaStreamDestroy(stream));
    return 0;
}

/* ---- all types, operations and collectives, in pairs ---- */

enum { SHAPE_COUNT = 9, MADE_HOST = 5, MADE_DEVICE = 6 };

/* One call on buffers of `size` times `count` elements. */
struct typed {
    ncclComm_t comm;
    int rank, size, root, tensor;
    ncclDataType_t nccl;
    enum rt_type type;
    enum rt_op rt;
    ncclRedOp_t redop;
    bool made, in_place;
    size_t count;
    char *in, *out;
};

static const struct {
    ncclDataType_t nccl;
    enum rt_type rt;
} all_types[] = {
    {ncclInt8, RT_INT8},
    {ncclUint8, RT_UINT8},
    {ncclInt32, RT_INT32},
    {ncclUint32, RT_UINT32},
    {ncclInt64, RT_INT64},
    {ncclUint64, RT_UINT64},
    {ncclFloat16, RT_FLOAT16},
    {ncclFloat32, RT_FLOAT32},
    {ncclFloat64, RT_FLOAT64},
    {ncclBfloat16, RT_BFLOAT16},
    {ncclFloat8e4m3, RT_FLOAT8_E4M3},
    {ncclFloat8e5m2, RT_FLOAT8_E5M2},
};
#define ALL_TYPES (sizeof all_types / sizeof *all_types)

static char *at(const struct typed *t, char *buffer, size_t element)
{
    return buffer + element * rt_type_bytes(t->type);
}

/* What ranks multiply by in a made operation: little enough that all stays exact. */
static double scalar_of(int rank, enum rt_type type)
{
    bool is_unsigned = type == RT_UINT8 || type == RT_UINT32 || type == RT_UINT64;
    return rank % 3 == 2 ? 0 : rank % 2 && !is_unsigned ? -1 : 1;
}

static bool holds_sum_of_multiplied(const struct typed *t, const void *data, size_t first,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (int r = 0; r < t->size; r++)
            sum += scalar_of(r, t->type) * rank_value(r, t->tensor, first + i, t->type, RT_SUM);
        if (element(data, i, t->type) != sum)
            return false;
    }
    return true;
}

static bool is_right(const struct typed *t, const void *data, size_t first, size_t count)
{
    return t->made ? holds_sum_of_multiplied(t, data, first, count)
                   : holds_reduced(data, first, count, t->size, t->tensor, t->type, t->rt);
}

static bool has_values(const struct typed *t, const void *data, size_t first, size_t count,
                       int rank)
{
    return holds_values(data, first, count, rank, t->tensor, t->type, t->rt);
}

static int typed_allreduce(struct typed *t)
{
    char *out = t->in_place ? t->in : t->out;
    OK(ncclAllReduce(t->in, out, t->count, t->nccl, t->redop, t->comm, NULL));
    OK(cudaStreamSynchronize(NULL));
    CHECK(is_right(t, out, 0, t->count));
    CHECK(t->in_place || has_values(t, t->in, 0, t->count, t->rank));
    return 0;
}

static int typed_reduce(struct typed *t)
{
    char *out = t->in_place ? t->in : t->out;
    bool is_root = t->rank == t->root;
    OK(ncclReduce(t->in, is_root ? out : NULL, t->count, t->nccl, t->redop, t->root, t->comm,
                  NULL));
    OK(cudaStreamSynchronize(NULL));
    CHECK(!is_root || is_right(t, out, 0, t->count));
    CHECK((is_root && t->in_place) || has_values(t, t->in, 0, t->count, t->rank));
    return 0;
}

static int typed_reduce_scatter(struct typed *t)
{
    size_t first = (size_t)t->rank * t->count;
    char *out = t->in_place ? at(t, t->in, first) : t->out;
    OK(ncclReduceScatter(t->in, out, t->count, t->nccl, t->redop, t->comm, NULL));
    OK(cudaStreamSynchronize(NULL));
    CHECK(is_right(t, out, first, t->count));
    CHECK(has_values(t, t->in, 0, first, t->rank));
    CHECK(t->in_place || has_values(t, t->in, 0, t->count * (size_t)t->size, t->rank));
    return 0;
}

static int typed_allgather(struct typed *t)
{
    char *in = t->in_place ? at(t, t->out, (size_t)t->rank * t->count) : t->in;
    if (t->in_place)
        memcpy(in, t->in, t->count * rt_type_bytes(t->type));
    OK(ncclAllGather(in, t->out, t->count, t->nccl, t->comm, NULL));
    OK(cudaStreamSynchronize(NULL));
    for (int r = 0; r < t->size; r++)
        CHECK(has_values(t, at(t, t->out, (size_t)r * t->count), 0, t->count, r));
    return 0;
}

static int typed_broadcast(struct typed *t)
{
    char *out = t->in_place ? t->in : t->out;
    OK(ncclBroadcast(t->in, out, t->count, t->nccl, t->root, t->comm, NULL));
    OK(cudaStreamSynchronize(NULL));
    CHECK(has_values(t, out, 0, t->count, t->root));
    return 0;
}

static int typed_all_to_all(struct typed *t)
{
    OK(ncclAlltoAll(t->in, t->out, t->count, t->nccl, t->comm, NULL));
    OK(cudaStreamSynchronize(NULL));
    for (int r = 0; r < t->size; r++)
        CHECK(has_values(t, at(t, t->out, (size_t)r * t->count), (size_t)t->rank * t->count,
                         t->count, r));
    return 0;
}

static int typed_scatter(struct typed *t)
{
    OK(ncclScatter(t->in, t->out, t->count, t->nccl, t->root, t->comm, NULL));
    OK(cudaStreamSynchronize(NULL));
    CHECK(has_values(t, t->out, (size_t)t->rank * t->count, t->count, t->root));
    return 0;
}

static int typed_gather(struct typed *t)
{
    OK(ncclGather(t->in, t->out, t->count, t->nccl, t->root, t->comm, NULL));
    OK(cudaStreamSynchronize(NULL));
    for (int r = 0; r < t->size && t->rank == t->root; r++)
        CHECK(has_values(t, at(t, t->out, (size_t)r * t->count), 0, t->count, r));
    return 0;
}

static int typed_messages(struct typed *t)
{
    int to = (t->rank + 1) % t->size, from = (t->rank + t->size - 1) % t->size;
    OK(ncclGroupStart());
    OK(ncclSend(t->in, t->count, t->nccl, to, t->comm, NULL));
    OK(ncclRecv(t->out, t->count, t->nccl, from, t->comm, NULL));
    OK(ncclGroupEnd());
    OK(cudaStreamSynchronize(NULL));
    CHECK(has_values(t, t->out, 0, t->count, from));
    return 0;
}

/* With a made operation where the row has one: gone before the collective has run. */
static int typed_once(struct typed *t, int op, int shape)
{
    static int (*const shapes[SHAPE_COUNT])(struct typed *) = {
        typed_allreduce,  typed_reduce,  typed_reduce_scatter, typed_allgather, typed_broadcast,
        typed_all_to_all, typed_scatter, typed_gather,         typed_messages};
    void *scalar = device_array(8);
    set_element(scalar, 0, t->type, scalar_of(t->rank, t->type));
    t->made = op >= MADE_HOST;
    t->rt = t->made ? RT_SUM : redops[op].rt;
    t->redop = t->made ? ncclNumOps : redops[op].nccl;
    if (t->made)
        OK(ncclRedOpCreatePreMulSum(&t->redop, scalar, t->nccl,
                                    op == MADE_HOST ? ncclScalarHostImmediate : ncclScalarDevice,
                                    t->comm));
    size_t whole = t->count * (size_t)t->size, bytes = whole * rt_type_bytes(t->type);
    OK(cudaMalloc((void **)&t->in, bytes + 64));
    OK(cudaMalloc((void **)&t->out, bytes + 64));
    fill(t->in, whole, t->type, t->rank, t->tensor, t->rt);
    memset(t->out + bytes, 0x5a, 64);
    OK(shapes[shape](t));
    for (size_t i = 0; i < 64; i++)
        CHECK(t->out[bytes + i] == 0x5a);
    if (t->made)
        OK(ncclRedOpDestroy(t->redop, t->comm));
    cudaFree(t->in);
    cudaFree(t->out);
    cudaFree(scalar);
    return 0;
}

static int types_case(ncclComm_t comm, int rank, int size)
{
    enum { TYPE, OP, SHAPE, COUNT, PLACE, PARAMETERS };
    static const size_t lengths[] = {0, 1, 2, 3, 13, 251, 4099};
    const unsigned levels[PARAMETERS] = {ALL_TYPES, 7, SHAPE_COUNT,
                                         sizeof lengths / sizeof *lengths, 2};
    struct covering c;
    const char *seed = getenv("HOSTNCCL_SEED");
    OK(covering_make(&c, levels, PARAMETERS,
                     (seed ? strtoull(seed, NULL, 10) : 1) + (uint64_t)size));
    for (unsigned i = 0; i < c.count; i++) {
        const uint8_t *row = c.rows[i];
        struct typed t = {.comm = comm,
                          .rank = rank,
                          .size = size,
                          .root = (int)i % size,
                          .tensor = (int)i,
                          .nccl = all_types[row[TYPE]].nccl,
                          .type = all_types[row[TYPE]].rt,
                          .in_place = row[PLACE],
                          .count = lengths[row[COUNT]]};
        OK(typed_once(&t, row[OP], row[SHAPE]));
    }
    covering_free(&c);
    return 0;
}

/* Scalars that differ by rank, of values that are not exact; then what is refused. */
static int premultiplied_case(ncclComm_t comm, int rank, int size)
{
    enum { COUNT = 3001 };
    float *data = device_array(COUNT), *scalar = device_array(1);
    float host = 0.25f * (float)(rank + 1);
    double expected = 0;
    ncclRedOp_t first, second, third;
    for (int r = 0; r < size; r++)
        expected += 0.25 * (r + 1) * (8 + r);
    OK(ncclRedOpCreatePreMulSum(&first, &host, ncclFloat32, ncclScalarHostImmediate, comm));
    OK(ncclRedOpCreatePreMulSum(&second, scalar, ncclFloat32, ncclScalarDevice, comm));
    CHECK(first != second && (int)first >= ncclNumOps && (int)second >= ncclNumOps);
    *scalar = 77;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < COUNT; i++)
            data[i] = (float)(8 + rank);
        /* the device's scalar is the one that lies there when its turn has come */
        OK(cudaMemcpyAsync(scalar, &host, sizeof host, cudaMemcpyHostToDevice, NULL));
        OK(ncclAllReduce(data, data, COUNT, ncclFloat32, turn ? second : first, comm, NULL));
        OK(cudaStreamSynchronize(NULL));
        for (int i = 0; i < COUNT; i++)
            CHECK((double)data[i] == expected);
    }
    CHECK(ncclAllReduce(data, data, 1, ncclInt32, first, comm, NULL) == ncclInvalidArgument);
    CHECK(strstr(ncclGetLastError(NULL), "was made for ncclFloat32, not ncclInt32"));
    OK(ncclRedOpDestroy(first, comm));
    CHECK(ncclAllReduce(data, data, 1, ncclFloat32, first, comm, NULL) == ncclInvalidArgument);
    CHECK(ncclRedOpDestroy(first, comm) == ncclInvalidArgument);
    CHECK(ncclRedOpDestroy(ncclSum, comm) == ncclInvalidArgument);
    CHECK(ncclRedOpCreatePreMulSum(&third, NULL, ncclFloat32, ncclScalarDevice, comm) ==
          ncclInvalidArgument);
    CHECK(ncclRedOpCreatePreMulSum(&third, &host, ncclNumTypes, ncclScalarDevice, comm) ==
          ncclInvalidArgument);
    CHECK(ncclRedOpCreatePreMulSum(&third, &host, ncclFloat32, (ncclScalarResidence_t)2, comm) ==
          ncclInvalidArgument);
    OK(ncclRedOpCreatePreMulSum(&third, &host, ncclFloat32, ncclScalarHostImmediate, comm));
    CHECK(third == first); /* the number is free again */
    cudaFree(data);
    cudaFree(scalar);
    return 0; /* what is not destroyed goes with the communicator */
}

static int reduce_scatter_and_gather_once(ncclComm_t comm, int rank, int size, cudaStream_t stream,
                                          size_t count, int type, int op, bool in_place)
{
    size_t first = (size_t)rank * count, whole = (size_t)size * count;
    void *in = device_array(whole), *apart = device_array(count), *all = device_array(whole);
    char *out = in_place ? (char *)in + first * 4 : apart;
    fill(in, whole, types[type].rt, rank, op, redops[op].rt);
    OK(ncclReduceScatter(in, out, count, types[type].nccl, redops[op].nccl, comm, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(holds_reduced(out, first, count, size, op, types[type].rt, redops[op].rt));
    if (in_place)
        cudaMemcpy((char *)all + first * 4, out, count * 4, cudaMemcpyDeviceToDevice);
    OK(ncclAllGather(in_place ? (char *)all + first * 4 : out, all, count, types[type].nccl, comm,
                     stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(holds_reduced(all, 0, whole, size, op, types[type].rt, redops[op].rt));
    cudaFree(in);
    cudaFree(apart);
    cudaFree(all);
    return 0;
}

static int reduce_scatter_allgather_case(ncclComm_t comm, int rank, int size)
{
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    for (unsigned c = 0; c < COUNTS; c++)
        for (int op = 0; op < 5; op++)
            OK(reduce_scatter_and_gather_once(comm, rank, size, stream, counts[c] / 4, op % 2, op,
                                              (c + op) % 2));
    OK(cudaStreamDestroy(stream));
    return 0;
}

static int broadcast_reduce_case(ncclComm_t comm, int rank, int size)
{
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    for (unsigned c = 0; c < COUNTS; c++) {
        int root = (int)c % size;
        size_t n = counts[c];
        void *a = device_array(n), *b = device_array(n), *in_place = device_array(n);
        fill(a, n, RT_FLOAT32, rank, 1, RT_SUM);
        fill(in_place, n, RT_FLOAT32, rank, 2, RT_SUM);
        OK(ncclBroadcast(rank == root ? a : NULL, b, n, ncclFloat32, root, comm, stream));
        OK(ncclBcast(in_place, n, ncclFloat32, root, comm, stream));
        OK(cudaStreamSynchronize(stream));
        CHECK(holds_values_of(b, n, root, 1, RT_FLOAT32));
        CHECK(holds_values_of(in_place, n, root, 2, RT_FLOAT32));
        OK(ncclReduce(a, rank == root ? b : NULL, n, ncclFloat32, ncclSum, root, comm, stream));
        OK(cudaStreamSynchronize(stream));
        CHECK(rank != root || holds_reduced(b, 0, n, size, 1, RT_FLOAT32, RT_SUM));
        cudaFree(a);
        cudaFree(b);
        cudaFree(in_place);
    }
    OK(cudaStreamDestroy(stream));
    return 0;
}

/* ---- messages and groups ---- */

/* Everybody to everybody, oneself too, in one group: an all-to-all. */
static int all_to_all_case(ncclComm_t comm, int rank, int size)
{
    enum { COUNT = 50021 };
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    int32_t *out = device_array((size_t)size * COUNT), *in = device_array((size_t)size * COUNT);
    for (int to = 0; to < size; to++)
        fill(out + (size_t)to * COUNT, COUNT, RT_INT32, rank, to, RT_SUM);
    OK(ncclGroupStart());
    for (int peer = 0; peer < size; peer++) {
        OK(ncclSend(out + (size_t)peer * COUNT, COUNT, ncclInt32, peer, comm, stream));
        OK(ncclRecv(in + (size_t)peer * COUNT, COUNT, ncclInt32, peer, comm, stream));
    }
    OK(ncclGroupEnd());
    OK(cudaStreamSynchronize(stream));
    for (int from = 0; from < size; from++)
        CHECK(holds_values_of(in + (size_t)from * COUNT, COUNT, from, rank, RT_INT32));
    memset(in, 0, (size_t)size * COUNT * 4);
    OK(ncclAlltoAll(out, in, COUNT, ncclInt32, comm, stream));
    OK(cudaStreamSynchronize(stream));
    for (int from = 0; from < size; from++)
        CHECK(holds_values_of(in + (size_t)from * COUNT, COUNT, from, rank, RT_INT32));
    cudaFree(out);
    cudaFree(in);
    OK(cudaStreamDestroy(stream));
    return 0;
}

/* The root's parts go out, and come back from all. */
static int scatter_gather_case(ncclComm_t comm, int rank, int size)
{
    enum { COUNT = 7001 };
    int root = size - 1;
    size_t whole = (size_t)size * COUNT;
    int32_t *all = rank == root ? device_array(whole) : NULL, *part = device_array(COUNT);
    if (rank == root)
        fill(all, whole, RT_INT32, 1, 2, RT_SUM);
    OK(ncclScatter(all, part, COUNT, ncclInt32, root, comm, NULL));
    OK(cudaStreamSynchronize(NULL));
    for (int i = 0; i < COUNT; i++)
        CHECK(part[i] == rank_value(1, 2, (uint64_t)(rank * COUNT + i), RT_INT32, RT_SUM));
    fill(part, COUNT, RT_INT32, rank, 9, RT_SUM);
    OK(ncclGather(part, all, COUNT, ncclInt32, root, comm, NULL));
    OK(cudaStreamSynchronize(NULL));
    for (int from = 0; from < size && rank == root; from++)
        CHECK(holds_values_of(all + (size_t)from * COUNT, COUNT, from, 9, RT_INT32));
    cudaFree(all);
    cudaFree(part);
    return 0;
}

/* Messages outside a group, then two of different size to the same peer, and one of nothing. */
static int messages_case(ncclComm_t comm, int rank, int size)
{
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    int32_t *a = device_array(3000), *b = device_array(3000);
    fill(a, 3000, RT_INT32, rank, 4, RT_SUM);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    if (size > 1) {
        if (rank % 2 == 0 && rank + 1 < size)
            OK(ncclSend(a, 10, ncclInt32, rank + 1, comm, stream));
        else if (rank % 2 == 1)
            OK(ncclRecv(b, 10, ncclInt32, rank - 1, comm, stream));
        OK(cudaStreamSynchronize(stream));
        CHECK(rank % 2 == 0 || holds_values_of(b, 10, rank - 1, 4, RT_INT32));
    }
    OK(ncclGroupStart());
    OK(ncclSend(a, 3000, ncclInt32, to, comm, stream));
    OK(ncclSend(a, 7, ncclInt32, to, comm, stream));
    OK(ncclSend(a, 0, ncclInt32, to, comm, stream));
    OK(ncclRecv(b, 3000, ncclInt32, from, comm, stream));
    OK(ncclRecv(a + 8, 7, ncclInt32, from, comm, stream));
    OK(ncclRecv(a, 0, ncclInt32, from, comm, stream));
    OK(ncclGroupEnd());
    OK(cudaStreamSynchronize(stream));
    CHECK(holds_values_of(b, 8, from, 4, RT_INT32));
    CHECK(holds_values_of(a + 8, 7, from, 4, RT_INT32));
    cudaFree(a);
    cudaFree(b);
    OK(cudaStreamDestroy(stream));
    return 0;
}

/* Makes it likely that whoever doesn't wait for this stream is through before it. */
static void dawdle(void *argument)
{
    for (int i = 0; i < 3000; i++)
        sched_yield();
}

/* Collectives and messages in one group, nested, on two streams: it waits for both, both for it. */
static int mixed_group_case(ncclComm_t comm, int rank, int size)
{
    enum { COUNT = 20011, BYTES = COUNT * 4 };
    cudaStream_t s1, s2;
    OK(cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking));
    float *a = device_array(COUNT), *b = device_array(COUNT), *c = device_array(COUNT);
    float *all = device_array((size_t)size * COUNT), *source = device_array(COUNT);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int round = 0; round < 3; round++) {
        fill(a, COUNT, RT_FLOAT32, rank, round, RT_SUM);
        fill(source, COUNT, RT_FLOAT32, rank, round + 1, RT_SUM);
        memset(b, 0, BYTES);
        OK(cudaLaunchHostFunc(s2, dawdle, NULL));
        OK(cudaMemcpyAsync(b, source, BYTES, cudaMemcpyDeviceToDevice, s2));
        OK(ncclGroupStart());
        OK(ncclSend(b, COUNT, ncclFloat32, to, comm, s2));
        OK(ncclAllReduce(a, a, COUNT, ncclFloat32, ncclSum, comm, s1));
        OK(ncclGroupStart());
        OK(ncclRecv(c, COUNT, ncclFloat32, from, comm, s2));
        OK(ncclGroupEnd());
        OK(ncclAllGather(b, all, COUNT, ncclFloat32, comm, s1));
        OK(ncclGroupEnd());
        OK(cudaStreamSynchronize(s2));
        CHECK(holds_reduced(a, 0, COUNT, size, round, RT_FLOAT32, RT_SUM));
        CHECK(holds_values_of(c, COUNT, from, round + 1, RT_FLOAT32));
        for (int r = 0; r < size; r++)
            CHECK(holds_values_of(all + (size_t)r * COUNT, COUNT, r, round + 1, RT_FLOAT32));
        OK(cudaStreamSynchronize(s1));
    }
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
    cudaFree(all);
    cudaFree(source);
    OK(cudaStreamDestroy(s1));
    OK(cudaStreamDestroy(s2));
    return 0;
}

/* Many operations in flight on three streams of one communicator, two rounds chained by an event.
 */
static int streams_case(ncclComm_t comm, int rank, int size)
{
    enum { STREAMS = 3, TENSORS = 12, COUNT = 9001 };
    cudaStream_t streams[STREAMS];
    int32_t *tensors[TENSORS];
    cudaEvent_t event;
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (int i = 0; i < STREAMS; i++)
        OK(cudaStreamCreateWithFlags(&streams[i], i ? cudaStreamNonBlocking : cudaStreamDefault));
    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = device_array(COUNT);
        fill(tensors[i], COUNT, RT_INT32, rank, i, RT_SUM);
        OK(ncclAllReduce(tensors[i], tensors[i], COUNT, ncclInt32, ncclSum, comm,
                         streams[i % STREAMS]));
    }
    /* the maximum of equal sums, on a stream that must wait for the one that makes them */
    OK(cudaEventRecord(event, streams[0]));
    OK(cudaStreamWaitEvent(streams[1], event, 0));
    OK(ncclAllReduce(tensors[0], tensors[0], COUNT, ncclInt32, ncclMax, comm, streams[1]));
    for (int i = 0; i < STREAMS; i++)
        OK(cudaStreamSynchronize(streams[i]));
    for (int i = 0; i < TENSORS; i++) {
        CHECK(holds_reduced(tensors[i], 0, COUNT, size, i, RT_INT32, RT_SUM));
        cudaFree(tensors[i]);
    }
    for (int i = 0; i < STREAMS; i++)
        OK(cudaStreamDestroy(streams[i]));
    OK(cudaEventDestroy(event));
    return 0;
}

/* ---- communicators ---- */

static int check_comm(ncclComm_t comm, int rank, int size)
{
    int n = -1, r = -1;
    OK(ncclCommCount(comm, &n));
    OK(ncclCommUserRank(comm, &r));
    CHECK(n == size && r == rank);
    int32_t *data = device_array(77);
    fill(data, 77, RT_INT32, r, n, RT_SUM);
    OK(ncclAllReduce(data, data, 77, ncclInt32, ncclSum, comm, NULL));
    OK(cudaStreamSynchronize(NULL));
    CHECK(holds_reduced(data, 0, 77, n, n, RT_INT32, RT_SUM));
    cudaFree(data);
    return 0;
}

/* Odd and even ranks, in reverse order; the last of three or more without a colour; twice. */
static int split_case(ncclComm_t comm, int rank, int size)
{
    int last = size >= 3 ? size - 1 : size; /* ranks below it have a colour */
    for (int round = 0; round < 2; round++) {
        ncclComm_t half = (ncclComm_t)&half, again = NULL;
        int color = rank < last ? rank % 2 : NCCL_SPLIT_NOCOLOR;
        OK(ncclCommSplit(comm, color, -rank, &half, NULL));
        if (rank >= last) {
            CHECK(half == NULL);
            continue;
        }
        int members = (last + 1 - rank % 2) / 2;
        OK(check_comm(half, members - 1 - rank / 2, members));
        OK(ncclCommSplit(half, 7, 0, &again, NULL));
        OK(check_comm(again, members - 1 - rank / 2, members));
        OK(ncclCommDestroy(again));
        OK(ncclCommFinalize(half));
        CHECK(ncclAllReduce(NULL, NULL, 0, ncclInt32, ncclSum, half, NULL) == ncclInvalidUsage);
        OK(ncclCommDestroy(half));
    }
    return 0;
}

/* Wrong calls are refused before anything is put on a stream, and the communicator stays usable. */
static int misuse_case(ncclComm_t comm, int rank, int size)
{
    int32_t x = 0;
    ncclResult_t async;
    CHECK(ncclAllReduce(&x, &x, 1, ncclNumTypes, ncclSum, comm, NULL) == ncclInvalidArgument);
    CHECK(strstr(ncclGetLastError(NULL), "ncclAllReduce: no type has the number 12"));
    CHECK(ncclAllReduce(&x, &x, 1, ncclInt32, (ncclRedOp_t)9, comm, NULL) == ncclInvalidArgument);
    CHECK(ncclAllReduce(NULL, &x, 1, ncclInt32, ncclSum, comm, NULL) == ncclInvalidArgument);
    CHECK(ncclBroadcast(&x, &x, 1, ncclInt32, size, comm, NULL) == ncclInvalidArgument);
    CHECK(ncclSend(&x, 1, ncclInt32, -1, comm, NULL) == ncclInvalidArgument);
    CHECK(ncclSend(&x, 1, ncclInt32, rank, comm, NULL) == ncclInvalidUsage);
    CHECK(ncclAllReduce(&x, &x, (size_t)1 << 62, ncclInt32, ncclSum, comm, NULL) ==
          ncclInvalidArgument);
    CHECK(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, NULL, NULL) == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    OK(ncclGroupStart());
    CHECK(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, NULL) == ncclSuccess);
    CHECK(ncclAllReduce(&x, &x, 1, ncclNumTypes, ncclSum, comm, NULL) == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidArgument); /* and nothing of it runs */
    OK(ncclCommGetAsyncError(comm, &async));
    CHECK(async == ncclSuccess);
    return check_comm(comm, rank, size);
}

/* ---- ends ---- */

/* Rank 0 never takes part; the others abort, and nobody hangs. */
static int abort_case(ncclComm_t comm, int rank, int size)
{
    int32_t *data = device_array(100);
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    if (rank != 0) {
        OK(ncclAllReduce(data, data, 100, ncclInt32, ncclSum, comm, stream));
        ncclResult_t second = ncclAllReduce(data, data, 100, ncclInt32, ncclMax, comm, stream);
        /* others abort while this one still calls: the first has failed by then, or not */
        CHECK(second == ncclSuccess || second == ncclRemoteError);
    }
    OK(ncclCommAbort(comm));
    cudaStreamSynchronize(stream);
    OK(cudaStreamDestroy(stream));
    cudaFree(data);
    return 0;
}

const struct nccl_case nccl_cases[] = {
    {"allreduce", allreduce_case, 0},
    {"memory", memory_case, 0},
    {"types", types_case, 0},
    {"premultiplied", premultiplied_case, 0},
    {"reduce-scatter-allgather", reduce_scatter_allgather_case, 0},
    {"broadcast-reduce", broadcast_reduce_case, 0},
    {"all-to-all", all_to_all_case, 0},
    {"scatter-gather", scatter_gather_case, 0},
    {"messages", messages_case, 0},
    {"mixed-group", mixed_group_case, 0},
    {"streams", streams_case, 0},
    {"split", split_case, 0},
    {"misuse", misuse_case, 0},
    {"abort", abort_case, 1},
};
const int nccl_case_count = sizeof nccl_cases / sizeof *nccl_cases;

const struct nccl_case *nccl_case_find(const char *name)
{
    for (int i = 0; i < nccl_case_count; i++)
        if (strcmp(nccl_cases[i].name, name) == 0)
            return &nccl_cases[i];
    for (int i = 0; i < nccl_death_case_count; i++)
        if (strcmp(nccl_death_cases[i].name, name) == 0)
            return &nccl_death_cases[i];
    for (int i = 0; i < nccl_graph_case_count; i++)
        if (strcmp(nccl_graph_cases[i].name, name) == 0)
            return &nccl_graph_cases[i];
    return NULL;
}
