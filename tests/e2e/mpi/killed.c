/* SPDX-License-Identifier: Apache-2.0 */
/* usage: killed RANK kill|abort: that rank ends itself between two barriers, so the others wait. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BARRIERS 7

int main(int argc, char **argv)
{
    int rank;
    if (argc != 3)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < BARRIERS; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == atoi(argv[1])) {
        usleep(900000); /* the others have come */
        if (strcmp(argv[2], "abort") == 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
        raise(SIGKILL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
