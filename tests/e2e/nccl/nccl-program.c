/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl-program RANK SIZE ID_FILE: every kind of NCCL call, in groups of many shapes, on two streams
 * and a split communicator, and prints a checksum of all results.
 * nccl-program all|grouped SIZE: as many devices in one process, their communicators made at once,
 * or one by one in a group.
 * What it calls, and in which order, is what test-nccl.py expects.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define SLOTS      24
#define SLOT_WORDS 40000

static int rank, size;
static int *memory; /* device memory of the stand-in is the host's */

/* Small integers that differ by rank, slot and place: their sums are exact as floats too. */
static void *ints(int slot)
{
    int *p = memory + (size_t)slot * SLOT_WORDS;
    for (int i = 0; i < SLOT_WORDS; i++)
        p[i] = (rank * 31 + slot * 7 + i) % 251;
    return p;
}

static void *floats(int slot)
{
    int *p = ints(slot);
    for (int i = 0; i < SLOT_WORDS; i++) {
        float f = (float)p[i];
        memcpy(&p[i], &f, sizeof f);
    }
    return p;
}

static void mixed_group(ncclComm_t world, cudaStream_t stream)
{
    int *gathered = ints(5), *shares = ints(6);
    MUST(ncclGroupStart());
    MUST(ncclBroadcast(ints(1), ints(2), 500, ncclInt32, 1, world, stream));
    MUST(ncclAllReduce(ints(3), memory + 3 * SLOT_WORDS, 7, ncclInt32, ncclMax, world, stream));
    MUST(ncclAllReduce(floats(4), memory + 4 * SLOT_WORDS, 30000, ncclFloat32, ncclSum, world,
                       stream));
    MUST(ncclAllGather(gathered + rank * 64, gathered, 64, ncclFloat32, world, stream));
    MUST(ncclReduceScatter(shares, shares + rank * 128, 128, ncclInt32, ncclSum, world, stream));
    MUST(ncclGroupEnd());
    MUST(ncclGroupStart()); /* the same twice, and one of another size between: run in another order
                             */
    MUST(ncclAllReduce(ints(7), memory + 7 * SLOT_WORDS, 96, ncclInt32, ncclSum, world, stream));
    MUST(ncclAllReduce(ints(8), memory + 8 * SLOT_WORDS, 9000, ncclInt32, ncclSum, world, stream));
    MUST(ncclAllReduce(ints(9), memory + 9 * SLOT_WORDS, 96, ncclInt32, ncclSum, world, stream));
    MUST(ncclGroupEnd());
}

static void rooted_calls(ncclComm_t world, cudaStream_t stream)
{
    MUST(ncclBcast(ints(10), 77, ncclInt32, 2, world, stream));
    MUST(ncclAlltoAll(ints(11), ints(12), 33, ncclInt32, world, stream));
    MUST(ncclGather(ints(13), ints(14), 40, ncclInt32, 1, world, stream));
    MUST(ncclScatter(ints(15), ints(16), 50, ncclInt32, 0, world, stream));
    MUST(ncclAllReduce(ints(17), ints(18), 0, ncclInt32, ncclSum, world, stream));
    if (ncclAllReduce(ints(17), ints(18), 5, (ncclDataType_t)99, ncclSum, world, stream) ==
        ncclSuccess)
        exit(1); /* there is no such type */
    MUST(ncclReduce(ints(17), ints(18), 60, ncclInt32, ncclProd, 2, world, stream));
}

static void messages(ncclComm_t world, cudaStream_t stream)
{
    MUST(ncclGroupStart());
    MUST(ncclSend(ints(19), 200, ncclInt32, (rank + 1) % size, world, stream));
    MUST(ncclRecv(ints(20), 200, ncclInt32, (rank + size - 1) % size, world, stream));
    MUST(ncclGroupEnd());
}

/* Ranks other than 1, in the opposite order; its stream and the world's at once. */
static void two_communicators(ncclComm_t world, cudaStream_t stream)
{
    cudaStream_t other;
    ncclComm_t half = NULL;
    if (cudaStreamCreate(&other) != cudaSuccess)
        exit(1);
    MUST(ncclCommSplit(world, rank == 1 ? NCCL_SPLIT_NOCOLOR : 4, size - rank, &half, NULL));
    MUST(ncclGroupStart());
    if (half)
        MUST(ncclAllReduce(ints(21), memory + 21 * SLOT_WORDS, 300, ncclInt32, ncclSum, half,
                           other));
    MUST(ncclGroupStart());
    MUST(ncclAllReduce(ints(22), memory + 22 * SLOT_WORDS, 400, ncclInt32, ncclMin, world, stream));
    MUST(ncclGroupEnd());
    if (half)
        MUST(ncclBroadcast(ints(23), memory + 23 * SLOT_WORDS, 25, ncclInt32, 1, half, other));
    MUST(ncclGroupEnd());
    if (cudaStreamSynchronize(other) != cudaSuccess)
        exit(1);
    if (half)
        MUST(ncclCommDestroy(half));
    cudaStreamDestroy(other);
}

#define DEVICES 4

static void make_all(ncclComm_t *comms, const char *how)
{
    ncclUniqueId id;
    if (strcmp(how, "all") == 0) {
        MUST(ncclCommInitAll(comms, size, NULL));
        return;
    }
    MUST(ncclGetUniqueId(&id));
    MUST(ncclGroupStart());
    for (int i = 0; i < size; i++) {
        if (cudaSetDevice(i) != cudaSuccess)
            exit(1);
        MUST(ncclCommInitRank(&comms[i], size, id, i));
    }
    MUST(ncclGroupEnd());
}

static int many_devices(const char *how)
{
    ncclComm_t comms[DEVICES];
    cudaStream_t streams[DEVICES];
    size = size < DEVICES ? size : DEVICES;
    make_all(comms, how);
    for (int i = 0; i < size; i++)
        if (cudaSetDevice(i) != cudaSuccess || cudaStreamCreate(&streams[i]) != cudaSuccess)
            return 1;
    for (int round = 0; round < 3; round++) {
        MUST(ncclGroupStart());
        for (int i = 0; i < size; i++) {
            int *data = memory + i * SLOT_WORDS;
            for (int k = 0; k < 100; k++)
                data[k] = (i + 1) * (k + round);
            MUST(ncclAllReduce(data, data, 100, ncclInt32, ncclSum, comms[i], streams[i]));
        }
        MUST(ncclGroupEnd());
        for (int i = 0; i < size; i++)
            if (cudaStreamSynchronize(streams[i]) != cudaSuccess)
                return 1;
        for (int i = 0; i < size; i++)
            for (int k = 0; k < 100; k++)
                if (memory[i * SLOT_WORDS + k] != size * (size + 1) / 2 * (k + round))
                    return 1;
    }
    for (int i = 0; i < size; i++)
        MUST(ncclCommDestroy(comms[i]));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    rank = atoi(argv[1]);
    size = atoi(argv[2]);
    memory = calloc((size_t)SLOTS * SLOT_WORDS, sizeof *memory);
    ncclComm_t world;
    cudaStream_t stream;
    if (!memory)
        return 1;
    if (argc == 3)
        return many_devices(argv[1]);
    if (cudaStreamCreate(&stream) != cudaSuccess)
        return 1;
    MUST(ncclCommInitRank(&world, size, exchange_id(rank, argv[3]), rank));
    MUST(ncclAllReduce(floats(0), memory, 1000, ncclFloat32, ncclSum, world, stream));
    mixed_group(world, stream);
    rooted_calls(world, stream);
    messages(world, stream);
    two_communicators(world, stream);
    if (cudaStreamSynchronize(stream) != cudaSuccess)
        return 1;
    MUST(ncclCommDestroy(world));
    cudaStreamDestroy(stream);
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < (size_t)SLOTS * SLOT_WORDS; i++)
        sum = (sum ^ (uint32_t)memory[i]) * 1099511628211u;
    printf("rank %d: %016llx\n", rank, (unsigned long long)sum);
    free(memory);
    return 0;
}
