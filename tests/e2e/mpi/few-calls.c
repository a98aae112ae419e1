/* SPDX-License-Identifier: Apache-2.0 */
/* A few collectives with a known result; "abort": rank 1 then ends the run with status 3. */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int few_calls(int *argc, char ***argv);

int few_calls(int *argc, char ***argv)
{
    int rank, size, faults = 0;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 5; i++) {
        int mine = (rank + 1) * (i + 3), sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        faults += sum != (i + 3) * size * (size + 1) / 2;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (*argc > 1 && strcmp((*argv)[1], "abort") == 0) {
        if (rank == 1)
            MPI_Abort(MPI_COMM_WORLD, 3);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    if (faults)
        fprintf(stderr, "rank %d: %d wrong sums\n", rank, faults);
    return faults != 0;
}

#ifndef FEW_CALLS_PLUGIN
int main(int argc, char **argv)
{
    return few_calls(&argc, &argv);
}
#endif
