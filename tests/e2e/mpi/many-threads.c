/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that call MPI at once, each on a communicator of its own, a new one in each round. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 3
#define ROUNDS  40

static MPI_Comm comms[THREADS];
static int rank, size;

static void *work(void *data)
{
    int me = *(int *)data;
    long faults = 0;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm own;
        int mine = rank * 100 + me * 7 + i, got = 0, sum = 0;
        int right = (rank + 1) % size, left = (rank + size - 1) % size;
        MPI_Comm_dup(comms[me], &own);
        MPI_Sendrecv(&mine, 1, MPI_INT, right, i, &got, 1, MPI_INT, left, i, own,
                     MPI_STATUS_IGNORE);
        faults += got != left * 100 + me * 7 + i;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, own);
        faults += sum != size * (size - 1) / 2 * 100 + size * (me * 7 + i);
        MPI_Comm_free(&own);
    }
    return (void *)faults;
}

int main(int argc, char **argv)
{
    int provided, numbers[THREADS];
    long faults = 0;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return 77;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, work, &numbers[i]))
            return 1;
    }
    for (int i = 0; i < THREADS; i++) {
        void *r;
        pthread_join(threads[i], &r);
        faults += (long)r;
    }
    MPI_Finalize();
    if (faults)
        fprintf(stderr, "rank %d: %ld wrong results\n", rank, faults);
    return faults != 0;
}
