/* SPDX-License-Identifier: Apache-2.0 */
/* counts.c - totals of the -v and -w forms, and over how many ranks they go. */
#include "handles.h"

uint64_t rs_mpi_sum_counts(const int *counts, int n)
{
    uint64_t sum = 0;
    for (int i = 0; counts && i < n; i++)
        sum += (uint64_t)counts[i];
    return sum;
}

uint64_t rs_mpi_sum_bytes(struct rs_thread *t, const int *counts, const MPI_Datatype *types, int n)
{
    uint64_t sum = 0;
    for (int i = 0; counts && types && i < n; i++)
        if (counts[i] > 0) /* the type of nothing may be none */
            sum += (uint64_t)counts[i] * rs_mpi_dtype(t, types[i])->size_bytes;
    return sum;
}

#if !RS_MPI_IS_OPENMPI
uint64_t rs_mpi_sum_counts_c(const MPI_Count *counts, int n)
{
    uint64_t sum = 0;
    for (int i = 0; counts && i < n; i++)
        sum += (uint64_t)counts[i];
    return sum;
}

uint64_t rs_mpi_sum_bytes_c(struct rs_thread *t, const MPI_Count *counts, const MPI_Datatype *types,
                            int n)
{
    uint64_t sum = 0;
    for (int i = 0; counts && types && i < n; i++)
        if (counts[i] > 0)
            sum += (uint64_t)counts[i] * rs_mpi_dtype(t, types[i])->size_bytes;
    return sum;
}
#endif

/* The library's own answers, unseen: none of these calls is the program's. */
static int ask(struct rs_thread *t, int (*what)(MPI_Comm, int *), MPI_Comm comm)
{
    int n = 0;
    t->depth++;
    if (what(comm, &n) != MPI_SUCCESS)
        n = 0;
    t->depth--;
    return n;
}

int rs_mpi_addressed(struct rs_thread *t, const struct rs_comm *c, MPI_Comm comm)
{
    return c->api & RS_MPI_INTER ? ask(t, rs_mpi_real.Comm_remote_size, comm) : c->size;
}

int rs_mpi_contributing(struct rs_thread *t, const struct rs_comm *c, MPI_Comm comm)
{
    return c->api & RS_MPI_INTER ? ask(t, rs_mpi_real.Comm_size, comm) : c->size;
}

static int graph_degree(MPI_Comm comm)
{
    int rank, n = 0;
    if (rs_mpi_real.Comm_rank(comm, &rank) == MPI_SUCCESS)
        rs_mpi_real.Graph_neighbors_count(comm, rank, &n);
    return n;
}

static int dist_graph_degree(MPI_Comm comm, bool out)
{
    int in_count = 0, out_count = 0, weighted;
    if (rs_mpi_real.Dist_graph_neighbors_count(comm, &in_count, &out_count, &weighted))
        return 0;
    return out ? out_count : in_count;
}

int rs_mpi_neighbors(struct rs_thread *t, MPI_Comm comm, bool out)
{
    switch (ask(t, rs_mpi_real.Topo_test, comm)) {
    case MPI_CART:
        return 2 * ask(t, rs_mpi_real.Cartdim_get, comm);
    case MPI_GRAPH: {
        t->depth++;
        int n = graph_degree(comm);
        t->depth--;
        return n;
    }
    case MPI_DIST_GRAPH: {
        t->depth++;
        int n = dist_graph_degree(comm, out);
        t->depth--;
        return n;
    }
    default:
        return 0;
    }
}
