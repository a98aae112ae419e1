/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph-program SEED: two ranks in this process call NCCL, plainly and captured into graphs, on the
 * streams that captures begin on and on forked ones; what is drawn decides. Prints for each of a
 * rank's collectives, in order, "call 1 LAUNCHES" if it was captured and launched so often, else
 * "call 0 1"; at last a checksum.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "program.h"

#define RANKS  2
#define COUNT  300
#define ROUNDS 12
#define CALLS  4

static unsigned seed;
static ncclComm_t comms[RANKS];
static cudaStream_t streams[RANKS], sides[RANKS];
static uint32_t *data[RANKS];

/* The same on all ranks. */
struct drawn {
    int calls, aside[CALLS], grouped, mode;
};

static void call_all(int rank, const struct drawn *d)
{
    cudaEvent_t event;
    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (int i = 0; i < d->calls; i++) {
        cudaStream_t stream = d->aside[i] ? sides[rank] : streams[rank];
        if (d->aside[i]) {
            MUST(cudaEventRecord(event, streams[rank]));
            MUST(cudaStreamWaitEvent(stream, event, 0));
        }
        if (d->grouped)
            MUST(ncclGroupStart());
        MUST(
            ncclAllReduce(data[rank], data[rank], COUNT, ncclUint32, ncclSum, comms[rank], stream));
        if (d->grouped)
            MUST(ncclGroupEnd());
        if (d->aside[i]) {
            MUST(cudaEventRecord(event, stream));
            MUST(cudaStreamWaitEvent(streams[rank], event, 0));
        }
    }
    MUST(cudaEventDestroy(event));
}

static void run_captured(const struct drawn *d, int launches)
{
    cudaGraph_t graph;
    cudaGraphExec_t execs[RANKS];
    for (int r = 0; r < RANKS; r++) {
        MUST(cudaSetDevice(r));
        MUST(cudaStreamBeginCapture(streams[r], (enum cudaStreamCaptureMode)d->mode));
        call_all(r, d);
        MUST(cudaStreamEndCapture(streams[r], &graph));
        MUST(cudaGraphInstantiate(&execs[r], graph, 0));
        MUST(cudaGraphDestroy(graph));
    }
    for (int i = 0; i < launches; i++)
        for (int r = 0; r < RANKS; r++)
            MUST(cudaGraphLaunch(execs[r], streams[r]));
    for (int r = 0; r < RANKS; r++) {
        MUST(cudaStreamSynchronize(streams[r]));
        MUST(cudaGraphExecDestroy(execs[r]));
    }
}

static void run_round(void)
{
    struct drawn d = {.calls = 1 + rand_r(&seed) % CALLS,
                      .grouped = rand_r(&seed) % 2,
                      .mode = rand_r(&seed) % 3};
    int captured = rand_r(&seed) % 2, launches = captured ? rand_r(&seed) % 4 : 1;
    for (int i = 0; i < d.calls; i++)
        d.aside[i] = rand_r(&seed) % 2;
    for (int i = 0; i < d.calls; i++)
        printf("call %d %d\n", captured, launches);
    if (captured) {
        run_captured(&d, launches);
        return;
    }
    for (int r = 0; r < RANKS; r++) {
        MUST(cudaSetDevice(r));
        call_all(r, &d);
    }
    for (int r = 0; r < RANKS; r++)
        MUST(cudaStreamSynchronize(streams[r]));
}

int main(int argc, char **argv)
{
    uint64_t sum = 14695981039346656037u;
    seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    MUST(ncclCommInitAll(comms, RANKS, NULL));
    for (int r = 0; r < RANKS; r++) {
        MUST(cudaSetDevice(r));
        MUST(cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking));
        MUST(cudaStreamCreateWithFlags(&sides[r], cudaStreamNonBlocking));
        MUST(cudaMalloc((void **)&data[r], COUNT * sizeof **data));
        for (int i = 0; i < COUNT; i++)
            data[r][i] = (uint32_t)rand_r(&seed);
    }
    for (int i = 0; i < ROUNDS; i++)
        run_round();
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < COUNT; i++)
            sum = (sum ^ data[r][i]) * 1099511628211u;
        MUST(ncclCommDestroy(comms[r]));
        MUST(cudaStreamDestroy(streams[r]));
        MUST(cudaStreamDestroy(sides[r]));
        MUST(cudaFree(data[r]));
    }
    printf("sum %016llx\n", (unsigned long long)sum);
    return 0;
}
