/* SPDX-License-Identifier: Apache-2.0 */
/* Another PMPI tool, as people write them: wraps MPI_X, calls PMPI_X, tells at the end. */
#include <mpi.h>
#include <stdio.h>

static int allreduces, barriers;

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    allreduces++;
    return PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Barrier(MPI_Comm comm)
{
    barriers++;
    return PMPI_Barrier(comm);
}

int MPI_Finalize(void)
{
    printf("tool saw %d allreduce, %d barrier\n", allreduces, barriers);
    fflush(stdout);
    return PMPI_Finalize();
}
