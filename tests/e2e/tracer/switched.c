/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switched WAY FOLDER: an MPI program whose capture is switched off and on while it runs. The n-th
 * collective on a communicator (all ranks know n) has n % 97 + 1 elements: the numbers that are
 * recorded must agree.
 *
 *   toggle: SIGNALS times SIGUSR1, from another thread, at moments drawn at random
 *   steps:  20 steps
 *   until:  goes on until FOLDER/end is there; FOLDER/begun.RANK says that it is at work
 *   late:   rank 1 comes to its last barrier once FOLDER/end is there
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ringscope.h"

#define SIGNALS  1000
#define STEPS    20
#define ELEMENTS 97

static int rank, size, wrong;
static volatile int done;
static uint64_t sum;

static void pause_us(long us)
{
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

static int exists(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void check(int64_t got, int64_t expected)
{
    wrong += got != expected;
    sum = sum * 31 + (uint64_t)got;
}

static void reduce(MPI_Comm comm, int n, int members, int blocking)
{
    int64_t in[ELEMENTS], out[ELEMENTS];
    int count = n % ELEMENTS + 1;
    MPI_Request request;
    for (int i = 0; i < count; i++)
        in[i] = n + i;
    if (blocking) {
        MPI_Allreduce(in, out, count, MPI_INT64_T, MPI_SUM, comm);
    } else {
        MPI_Iallreduce(in, out, count, MPI_INT64_T, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check(out[0], (int64_t)members * n);
    check(out[count - 1], (int64_t)members * (n + count - 1));
}

static void exchange(int n)
{
    int64_t in = n, out = -1;
    MPI_Request requests[2];
    MPI_Irecv(&out, 1, MPI_INT64_T, (rank + 1) % size, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&in, 1, MPI_INT64_T, (rank + size - 1) % size, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Status statuses[2];
    MPI_Waitall(2, requests, statuses);
    check(out, n);
}

/* Collectives on the world so far: those of a round are two, then a duplicate's own. */
static int world_number;

static void make_calls(int n)
{
    MPI_Comm other;
    reduce(MPI_COMM_WORLD, world_number++, size, 1);
    reduce(MPI_COMM_WORLD, world_number++, size, 0);
    exchange(n);
    if (n % 50 != 7)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &other);
    for (int i = 0; i < 3; i++)
        reduce(other, i, rank % 2 ? size / 2 : (size + 1) / 2, 1);
    MPI_Comm_free(&other);
}

static void *toggle(void *unused)
{
    unsigned seed = (unsigned)getpid();
    for (int i = 0; i < SIGNALS; i++) {
        kill(getpid(), SIGUSR1);
        pause_us(100 + rand_r(&seed) % 800);
    }
    done = 1;
    return unused;
}

/* All go on until all are done. The agreement is itself a collective of the world. */
static void run_toggled(void)
{
    pthread_t thread;
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    /* as with the tracer: without it, nobody would take the signal */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, now;
    sigaction(SIGUSR1, NULL, &now);
    if (now.sa_handler == SIG_DFL)
        sigaction(SIGUSR1, &ignore, NULL);
    pthread_create(&thread, NULL, toggle, NULL);
    int64_t n = 0, finished = 0;
    for (; finished < size; n++) {
        int64_t in[ELEMENTS] = {0}, out[ELEMENTS] = {0};
        make_calls((int)n);
        in[0] = done;
        MPI_Allreduce(in, out, world_number % ELEMENTS + 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        world_number++;
        finished = out[0];
    }
    pthread_join(thread, NULL);
    sum = 0; /* how often is not always the same */
}

/* Requests of one step, completed in the next one. */
#define PENDING 5
static MPI_Request pending[PENDING];
static int64_t pending_in[ELEMENTS], pending_out[ELEMENTS], sent[4], taken[4];
static int pending_number;

static void init_pending(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int i = 0; i < PENDING; i++)
        pending[i] = MPI_REQUEST_NULL;
    MPI_Recv_init(&taken[3], 1, MPI_INT64_T, before, 9, MPI_COMM_WORLD, &pending[3]);
    MPI_Send_init(&sent[3], 1, MPI_INT64_T, next, 9, MPI_COMM_WORLD, &pending[4]);
}

static void begin_pending(int step)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    pending_number = world_number++;
    for (int i = 0; i < ELEMENTS; i++)
        pending_in[i] = pending_number + i;
    for (int i = 0; i < 4; i++)
        sent[i] = step * 4 + i;
    MPI_Iallreduce(pending_in, pending_out, pending_number % ELEMENTS + 1, MPI_INT64_T, MPI_SUM,
                   MPI_COMM_WORLD, &pending[0]);
    MPI_Irecv(taken, 3, MPI_INT64_T, before, 8, MPI_COMM_WORLD, &pending[1]);
    MPI_Isend(sent, 3, MPI_INT64_T, next, 8, MPI_COMM_WORLD, &pending[2]);
    MPI_Startall(2, pending + 3);
}

static void end_pending(int step)
{
    MPI_Status statuses[PENDING];
    MPI_Waitall(PENDING, pending, statuses);
    if (step == 0)
        return;
    int last = pending_number % ELEMENTS;
    check(pending_out[last], (int64_t)size * (pending_number + last));
    for (int i = 0; i < 4; i++)
        check(taken[i], (step - 1) * 4 + i);
}

static void run_steps(void)
{
    init_pending();
    for (int i = 0; i < STEPS; i++) {
        ringscope_step((uint32_t)i);
        end_pending(i);
        begin_pending(i);
        make_calls(i);
        pause_us(2000);
    }
    end_pending(STEPS);
    MPI_Request_free(&pending[3]);
    MPI_Request_free(&pending[4]);
}

static void run_until(const char *folder)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/begun.%d", folder, rank);
    FILE *f = fopen(name, "w");
    if (f)
        fclose(f);
    for (int64_t n = 0, end = 0; !end; n++) {
        int64_t in = rank == 0 && exists(folder, "end"), out;
        MPI_Allreduce(&in, &out, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        end = out;
        pause_us(2000);
    }
}

static void run_late(const char *folder)
{
    for (int i = 0; i < STEPS; i++) {
        ringscope_step((uint32_t)i);
        make_calls(i);
    }
    while (rank == 1 && !exists(folder, "end"))
        pause_us(10000);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int provided;
    if (argc < 3)
        return 2;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(argv[1], "toggle") == 0)
        run_toggled();
    else if (strcmp(argv[1], "steps") == 0)
        run_steps();
    else if (strcmp(argv[1], "until") == 0)
        run_until(argv[2]);
    else
        run_late(argv[2]);
    MPI_Finalize();
    printf("rank %d of %d: %d wrong, sum %llu\n", rank, size, wrong, (unsigned long long)sum);
    return wrong != 0;
}
