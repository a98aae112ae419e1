/* SPDX-License-Identifier: Apache-2.0 */
/* kills FILE: two threads that call MPI until they are killed. How many calls of each kind have
 * returned stands in FILE (struct counts of test-kills.py), which outlives the process. */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum kind { INIT, BARRIER, ALLREDUCE, SENDRECV, IRECV, SEND, WAIT, KINDS };
#define THREADS 2

static volatile uint64_t (*counts)[KINDS];

static int map_counts(const char *path)
{
    size_t bytes = THREADS * sizeof(*counts);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return -1;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    counts = p;
    return p == MAP_FAILED ? -1 : 0;
}

/* Slow enough that no ring is ever full, however slow the disk. */
static void pause_a_little(void)
{
    static const struct timespec pace = {.tv_nsec = 100000};
    nanosleep(&pace, NULL);
}

static void *make_calls(void *comm_of_thread)
{
    MPI_Comm comm = *(MPI_Comm *)comm_of_thread;
    volatile uint64_t *done = counts[comm != MPI_COMM_SELF];
    int in = 1, out = 0;
    for (;;) {
        MPI_Request request;
        MPI_Barrier(comm);
        done[BARRIER]++;
        MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm);
        done[ALLREDUCE]++;
        MPI_Sendrecv(&in, 1, MPI_INT, 0, 1, &out, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);
        done[SENDRECV]++;
        MPI_Irecv(&out, 1, MPI_INT, 0, 2, comm, &request);
        done[IRECV]++;
        MPI_Send(&in, 1, MPI_INT, 0, 2, comm);
        done[SEND]++;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        done[WAIT]++;
        pause_a_little();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t thread;
    MPI_Comm self = MPI_COMM_SELF, other;
    if (argc != 2 || map_counts(argv[1]) != 0)
        return 2;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    counts[0][INIT]++;
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    if (provided == MPI_THREAD_MULTIPLE && pthread_create(&thread, NULL, make_calls, &other) != 0)
        return 2;
    make_calls(&self);
    return 0;
}
