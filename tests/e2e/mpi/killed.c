/* SPDX-License-Identifier: Apache-2.0 */
/* usage: killed RANK kill|abort: that rank ends itself between two barriers, so the others wait.
 *        killed RANK hang: that rank sleeps there.
 *        killed RANK deadlock: it and the next receive from each other, until an alarm ends all. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BARRIERS 7

static void deadlock(int rank, int victim)
{
    int size, got;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (victim + 1) % size;
    alarm(3);
    if (rank == victim || rank == next)
        MPI_Recv(&got, 1, MPI_INT, rank == victim ? next : victim, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank;
    if (argc != 3)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < BARRIERS; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    int victim = atoi(argv[1]);
    if (strcmp(argv[2], "deadlock") == 0)
        deadlock(rank, victim);
    if (rank == victim) {
        if (strcmp(argv[2], "hang") == 0)
            sleep(120);
        usleep(900000); /* the others have come */
        if (strcmp(argv[2], "abort") == 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
        raise(SIGKILL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
