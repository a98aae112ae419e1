/* SPDX-License-Identifier: Apache-2.0 */
#include "coll-other.h"

#include <mpi.h>

#ifdef OPEN_MPI
const char *const other_name = "Open MPI";
#else
const char *const other_name = "MPICH";
#endif

void other_begin(int rank, int size)
{
}

void other_allreduce(float *data, uint64_t count)
{
    MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

void other_end(void)
{
}
