/* SPDX-License-Identifier: Apache-2.0 */
/* Every mark of ringscope.h around an MPI program, in C and (marks-program.cc) in C++. What must be
 * recorded stands in test-marks.py. "alone" as argument: no MPI call at all. */
#ifndef _GNU_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <ringscope.h>

#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS  500
#define STEPS   4

static pthread_barrier_t together;

static void *mark_often(void *name)
{
    pthread_barrier_wait(&together);
    for (int i = 0; i < ROUNDS; i++) {
        ringscope_range_push((const char *)name);
        ringscope_range_push("inner");
        ringscope_range_pop();
        ringscope_range_pop();
        ringscope_mark("tick");
    }
    return NULL;
}

static void threads(void)
{
    static char names[THREADS][16];
    pthread_t thread[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        snprintf(names[i], sizeof(names[i]), "thread %d", i);
        pthread_create(&thread[i], NULL, mark_often, names[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void train(void)
{
    static const struct timespec work = {0, 2000000};
    for (unsigned n = 0; n < STEPS; n++) {
        ringscope_step(10 + n);
        ringscope_range_push("forward");
        nanosleep(&work, NULL);
        ringscope_range_pop();
        MPI_Barrier(MPI_COMM_WORLD);
        ringscope_counter("loss", "nat", 1.0 / (1 + n));
    }
    ringscope_step(10 + STEPS);
}

/* Names that the parent has, and new ones: the child's capture is one of its own. */
static void child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        MPI_Barrier(MPI_COMM_SELF);
        ringscope_mark("tick");
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void odd_calls(void)
{
    ringscope_range_pop();
    ringscope_mark("");
    ringscope_mark(NULL);
    ringscope_counter("bare", NULL, -2.5);
}

int main(int argc, char **argv)
{
    ringscope_range_push("before the capture");
    if (argc > 1 && strcmp(argv[1], "alone") == 0) {
        ringscope_mark("alone");
        ringscope_range_pop();
        return 0;
    }
    int given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    ringscope_range_pop();
    errno = 42;
    train();
    threads();
    odd_calls();
    int kept = errno == 42;
    child();
    MPI_Finalize();
    printf("errno %s\n", kept ? "kept" : "lost");
    return 0;
}
