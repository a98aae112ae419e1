/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl-players.h - ranks of tests of hostnccl that are threads of one process, each with a device,
 * a stream, and buffers whose values tell the rank; after cmocka.h.
 */
#ifndef NCCL_PLAYERS_H
#define NCCL_PLAYERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>
#include <nccl.h>

#include "nccl-check.h"

#define COUNT   3001
#define PLAYERS 8
#define MUST(call)                                                                                 \
    do {                                                                                           \
        int line_or_result = (int)(call);                                                          \
        if (line_or_result != 0)                                                                   \
            fail_msg("%s: %d: %s", #call, line_or_result, ncclGetLastError(NULL));                 \
    } while (0)

static inline int64_t value(int rank, size_t i)
{
    return (int64_t)rank * 100003 + (int64_t)(i % 1009) * 7 - 500;
}

static inline int64_t sum_of(int size, size_t i)
{
    int64_t sum = 0;
    for (int r = 0; r < size; r++)
        sum += value(r, i);
    return sum;
}

/* ---- a rank: its device, stream and buffers ---- */

struct rank {
    ncclComm_t comm;
    cudaStream_t stream;
    int rank, size, device;
    int64_t *in, *out; /* `size` times COUNT each, and one element more */
};

static inline int open_rank(struct rank *r, int rank, int size, int device)
{
    size_t n = (size_t)size * COUNT + 1;
    *r = (struct rank){.rank = rank, .size = size, .device = device};
    OK(cudaSetDevice(device));
    OK(cudaStreamCreate(&r->stream));
    OK(cudaMalloc((void **)&r->in, n * sizeof *r->in));
    OK(cudaMalloc((void **)&r->out, n * sizeof *r->out));
    for (size_t i = 0; i < n; i++)
        r->in[i] = value(rank, i);
    OK(cudaMemset(r->out, 0xee, n * sizeof *r->out));
    return 0;
}

static inline int close_rank(struct rank *r)
{
    OK(cudaSetDevice(r->device));
    OK(cudaStreamDestroy(r->stream));
    OK(cudaFree(r->in));
    OK(cudaFree(r->out));
    return r->comm ? (int)ncclCommDestroy(r->comm) : 0;
}

static inline int allreduce(const struct rank *r, size_t count)
{
    return (int)ncclAllReduce(r->in, r->out, count, ncclInt64, ncclSum, r->comm, r->stream);
}

static inline int is_summed(const struct rank *r, size_t count)
{
    OK(cudaStreamSynchronize(r->stream));
    for (size_t i = 0; i < count; i++)
        CHECK(r->out[i] == sum_of(r->size, i));
    return 0;
}

/* ---- every rank a thread ---- */

typedef int rank_fn(struct rank *r);

struct player {
    pthread_t thread;
    ncclUniqueId id;
    rank_fn *play;
    int rank, size, line;
};

static inline int play(struct player *p)
{
    struct rank r;
    OK(open_rank(&r, p->rank, p->size, p->rank));
    OK(ncclCommInitRank(&r.comm, p->size, p->id, p->rank));
    int line = p->play(&r);
    return line ? line : close_rank(&r);
}

static inline void *player_main(void *argument)
{
    struct player *p = argument;
    p->line = play(p);
    return NULL;
}

/* `fn` returns 0, or the line that failed. */
static inline void together(rank_fn *fn, int size)
{
    struct player players[PLAYERS];
    ncclUniqueId id;
    MUST(ncclGetUniqueId(&id));
    for (int i = 0; i < size; i++) {
        players[i] = (struct player){0, id, fn, i, size, 0};
        MUST(pthread_create(&players[i].thread, NULL, player_main, &players[i]));
    }
    for (int i = 0; i < size; i++)
        pthread_join(players[i].thread, NULL);
    for (int i = 0; i < size; i++)
        if (players[i].line != 0)
            fail_msg("rank %d of %d: line %d", i, size, players[i].line);
}

#endif
