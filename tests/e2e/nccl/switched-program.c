/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switched-program RANK SIZE ID_FILE SEED WAY: NCCL whose capture is switched off and on while it
 * runs. The n-th collective on a communicator has n % 97 + 1 elements: the numbers that are
 * recorded must agree. What is called is drawn, and the same on all ranks.
 *
 *   steps:  with a step of the program between calls, in groups, in captures, between launches
 *   toggle: SIGNALS times SIGUSR1, from another thread, at moments drawn at random
 *
 * Prints, of steps, "call SIZE NUMBER ELEMENTS CAPTURED STEP STEP..." for each collective: the size
 * of its communicator, in which step it was called, and in which it ran.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "program.h"
#include "ringscope.h"

#define SIGNALS  300
#define ROUNDS   40
#define ELEMENTS 97
#define CALLS    1024 /* at once */
#define RUNS     2

struct comm {
    ncclComm_t comm;
    int size, ranks; /* of them, and the sum of their ranks in the world */
    int number;
};

struct call {
    int size, number, captured, called, runs, ran[RUNS], ranks;
};

static int rank, size, step, wrong;
static unsigned seed;
static bool toggled;
static volatile int done;
static struct comm world;
static cudaStream_t stream;
static struct call calls[CALLS];
static int n_calls;
static int32_t in[CALLS][ELEMENTS], out[CALLS][ELEMENTS];

static int drawn(int below)
{
    return (int)((unsigned)rand_r(&seed) / 7 % (unsigned)below);
}

static void next_step(void)
{
    if (!toggled)
        ringscope_step((uint32_t)++step);
}

static void next_step_alone(void)
{
    MUST(cudaStreamSynchronize(stream));
    next_step();
}

static void ran(int from)
{
    for (int i = from; i < n_calls; i++)
        if (calls[i].runs < RUNS)
            calls[i].ran[calls[i].runs++] = step;
}

static void reduce(struct comm *c)
{
    int i = n_calls++, n = c->number++;
    calls[i] = (struct call){.size = c->size, .number = n, .called = step, .ranks = c->ranks};
    for (int k = 0; k < ELEMENTS; k++) {
        in[i][k] = rank + n + k;
        out[i][k] = -1;
    }
    MUST(ncclAllReduce(in[i], out[i], (size_t)(n % ELEMENTS + 1), ncclInt32, ncclSum, c->comm,
                       stream));
}

/* All results so far; of steps, what was called. */
static void settle(void)
{
    MUST(cudaStreamSynchronize(stream));
    for (int i = 0; i < n_calls; i++) {
        const struct call *c = &calls[i];
        int last = c->number % ELEMENTS;
        wrong += out[i][0] != c->ranks + c->size * c->number;
        wrong += out[i][last] != c->ranks + c->size * (c->number + last);
        if (toggled)
            continue;
        printf("call %d %d %d %d %d", c->size, c->number, last + 1, c->captured, c->called);
        for (int r = 0; r < c->runs; r++)
            printf(" %d", c->ran[r]);
        putchar('\n');
    }
    n_calls = 0;
}

/* ---- what is called ---- */

static void call_plainly(void)
{
    int from = n_calls;
    reduce(&world);
    ran(from);
    if (ncclAllReduce(in, out, 5, (ncclDataType_t)99, ncclSum, world.comm, stream) == ncclSuccess)
        exit(1); /* its number is given back */
}

/* Steps begin inside the group, too. */
static void call_grouped(void)
{
    int from = n_calls;
    MUST(ncclGroupStart());
    for (int i = 0, n = 1 + drawn(3); i < n; i++) {
        reduce(&world);
        if (drawn(2))
            next_step();
    }
    MUST(ncclGroupEnd());
    ran(from);
}

static void send_around(void)
{
    static int32_t sent[3], taken[3];
    sent[0] = world.number;
    MUST(ncclGroupStart());
    MUST(ncclSend(sent, 3, ncclInt32, (rank + 1) % size, world.comm, stream));
    if (drawn(2))
        next_step();
    MUST(ncclRecv(taken, 3, ncclInt32, (rank + size - 1) % size, world.comm, stream));
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    wrong += taken[0] != world.number;
}

static void call_on_half(void)
{
    struct comm half = {.size = 0};
    MUST(ncclCommSplit(world.comm, rank % 2, rank, &half.comm, NULL));
    for (int r = rank % 2; r < size; r += 2) {
        half.size++;
        half.ranks += r;
    }
    for (int i = 0; i < 3; i++) {
        int from = n_calls;
        if (drawn(2))
            next_step_alone();
        reduce(&half);
        ran(from);
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(ncclCommDestroy(half.comm));
}

static void call_captured(void)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int from = n_calls, n = 1 + drawn(2);
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < n; i++) {
        reduce(&world);
        calls[n_calls - 1].captured = 1;
        if (drawn(2))
            next_step();
    }
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
    for (int i = 0; i < RUNS; i++) {
        MUST(cudaGraphLaunch(exec, stream));
        ran(from);
        next_step_alone();
    }
    MUST(cudaGraphExecDestroy(exec));
}

static void call_something(void)
{
    switch (drawn(5)) {
    case 0:
        call_plainly();
        break;
    case 1:
        call_grouped();
        break;
    case 2:
        send_around();
        break;
    case 3:
        call_on_half();
        break;
    default:
        call_captured();
    }
    if (drawn(2))
        next_step_alone();
    else if (!toggled)
        MUST(cudaStreamSynchronize(stream)); /* so that it is known in which step it ran */
}

/* ---- ways ---- */

static void run_steps(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        call_something();
        if (n_calls > CALLS / 2)
            settle();
    }
    settle();
}

static void *toggle(void *unused)
{
    unsigned mine = (unsigned)getpid();
    for (int i = 0; i < SIGNALS; i++) {
        struct timespec pause = {0, (100 + rand_r(&mine) % 800) * 1000L};
        kill(getpid(), SIGUSR1);
        nanosleep(&pause, NULL);
    }
    done = 1;
    return unused;
}

/* The tracer takes the signal when it records first. Without it nobody does. */
static void wait_for_tracer(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, now = {.sa_handler = SIG_DFL};
    call_plainly();
    settle();
    for (int i = 0; i < 20000 && getenv("RINGSCOPE_SIGNAL") && now.sa_handler == SIG_DFL; i++) {
        sigaction(SIGUSR1, NULL, &now);
        nanosleep(&pause, NULL);
    }
    if (now.sa_handler == SIG_DFL)
        sigaction(SIGUSR1, &ignore, NULL);
}

/* All go on until all are done. The agreement is itself a collective of the world. */
static void run_toggled(void)
{
    pthread_t thread;
    toggled = true;
    wait_for_tracer();
    MUST(pthread_create(&thread, NULL, toggle, NULL));
    for (int finished = 0; finished < size;) {
        static int32_t flags[ELEMENTS];
        call_something();
        settle();
        flags[0] = done;
        MUST(ncclAllReduce(flags, flags, (size_t)(world.number++ % ELEMENTS + 1), ncclInt32,
                           ncclSum, world.comm, stream));
        MUST(cudaStreamSynchronize(stream));
        finished = flags[0];
    }
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    ncclComm_t first;
    if (argc != 6)
        return 2;
    rank = atoi(argv[1]);
    size = atoi(argv[2]);
    seed = (unsigned)atoi(argv[4]);
    MUST(cudaStreamCreate(&stream));
    ncclUniqueId id = exchange_id(rank, argv[3]);
    MUST(ncclCommInitRank(&first, size, id, rank)); /* the tracer begins here: before a step */
    MUST(ncclCommDestroy(first));
    next_step();
    char second[4096];
    snprintf(second, sizeof second, "%s.second", argv[3]);
    id = exchange_id(rank, second);
    MUST(ncclCommInitRank(&world.comm, size, id, rank)); /* perhaps while off */
    world.size = size;
    world.ranks = size * (size - 1) / 2;
    if (strcmp(argv[5], "steps") == 0)
        run_steps();
    else
        run_toggled();
    MUST(ncclCommDestroy(world.comm));
    MUST(cudaStreamDestroy(stream));
    printf("rank %d: %d wrong\n", rank, wrong);
    return wrong != 0;
}
