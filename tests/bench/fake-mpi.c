/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake-mpi.c - an MPI of one rank that does nothing, with Open MPI's symbols: what is left of a
 * traced call is the tracer.
 */
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define NOTHING(name, ...)                                                                         \
    EXPORT int P##name(__VA_ARGS__);                                                               \
    EXPORT int P##name(__VA_ARGS__)                                                                \
    {                                                                                              \
        return 0;                                                                                  \
    }

EXPORT char ompi_mpi_comm_world[512], ompi_mpi_comm_self[512], ompi_mpi_comm_null[512];
EXPORT char ompi_mpi_datatype_null[512], ompi_mpi_byte[512], ompi_mpi_int[512];
EXPORT char ompi_request_null[512], ompi_message_null[512], ompi_message_no_proc[512];
EXPORT char ompi_mpi_errors_return[512], ompi_mpi_op_sum[512];

static int one(void *handle, int *ret)
{
    (void)handle;
    *ret = 1;
    return 0;
}
static int zero(void *handle, int *ret)
{
    (void)handle;
    *ret = 0;
    return 0;
}
#define ANSWERS(name, answer)                                                                      \
    EXPORT int P##name(void *handle, int *ret);                                                    \
    EXPORT int P##name(void *handle, int *ret)                                                     \
    {                                                                                              \
        return answer(handle, ret);                                                                \
    }
ANSWERS(MPI_Comm_rank, zero)
ANSWERS(MPI_Comm_size, one)
ANSWERS(MPI_Comm_remote_size, zero)
ANSWERS(MPI_Comm_test_inter, zero)
ANSWERS(MPI_Group_rank, zero)
ANSWERS(MPI_Group_size, one)
ANSWERS(MPI_Topo_test, zero)
ANSWERS(MPI_Cartdim_get, zero)

#define NAMED(name, text)                                                                          \
    EXPORT int P##name(void *handle, char *ret, int *length);                                      \
    EXPORT int P##name(void *handle, char *ret, int *length)                                       \
    {                                                                                              \
        (void)handle;                                                                              \
        strcpy(ret, text);                                                                         \
        *length = (int)strlen(text);                                                               \
        return 0;                                                                                  \
    }
NAMED(MPI_Comm_get_name, "MPI_COMM_WORLD")
NAMED(MPI_Type_get_name, "MPI_INT")

EXPORT int PMPI_Get_library_version(char *ret, int *length);
EXPORT int PMPI_Get_library_version(char *ret, int *length)
{
    strcpy(ret, "Open MPI that does nothing");
    *length = (int)strlen(ret);
    return 0;
}

EXPORT int PMPI_Type_size(void *type, int *ret);
EXPORT int PMPI_Type_size(void *type, int *ret)
{
    (void)type;
    *ret = 4;
    return 0;
}

static int begun, over;
EXPORT int PMPI_Init(int *argc, char ***argv);
EXPORT int PMPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    begun = 1;
    return 0;
}
EXPORT int PMPI_Finalize(void);
EXPORT int PMPI_Finalize(void)
{
    over = 1;
    return 0;
}
EXPORT int PMPI_Initialized(int *flag);
EXPORT int PMPI_Initialized(int *flag)
{
    *flag = begun;
    return 0;
}
EXPORT int PMPI_Finalized(int *flag);
EXPORT int PMPI_Finalized(int *flag)
{
    *flag = over;
    return 0;
}
EXPORT int PMPI_Group_translate_ranks(void *a, int n, const int *ranks, void *b, int *ret);
EXPORT int PMPI_Group_translate_ranks(void *a, int n, const int *ranks, void *b, int *ret)
{
    (void)a, (void)b;
    memcpy(ret, ranks, (size_t)n * sizeof *ret);
    return 0;
}
EXPORT int PMPI_Comm_get_parent(void **ret);
EXPORT int PMPI_Comm_get_parent(void **ret)
{
    *ret = ompi_mpi_comm_null;
    return 0;
}
EXPORT double PMPI_Wtime(void);
EXPORT double PMPI_Wtime(void)
{
    return 0;
}

NOTHING(MPI_Cancel, void)
NOTHING(MPI_Cart_get, void)
NOTHING(MPI_Comm_create_keyval, void)
NOTHING(MPI_Comm_dup, void)
NOTHING(MPI_Comm_group, void)
NOTHING(MPI_Comm_idup, void)
NOTHING(MPI_Comm_remote_group, void)
NOTHING(MPI_Comm_set_attr, void)
NOTHING(MPI_Comm_set_errhandler, void)
NOTHING(MPI_Dist_graph_neighbors_count, void)
NOTHING(MPI_Graph_neighbors_count, void)
NOTHING(MPI_Group_free, void)
NOTHING(MPI_Iallgather, void)
NOTHING(MPI_Ibcast, void)
NOTHING(MPI_Irecv, void)
NOTHING(MPI_Isend, void)
NOTHING(MPI_Request_free, void)
NOTHING(MPI_Test, void)
NOTHING(MPI_Allreduce, void)

/* As in every MPI: MPI_X is PMPI_X under a weak name. */
#define WEAK(name)                                                                                 \
    EXPORT int name(void);                                                                         \
    __attribute__((weak, alias("P" #name))) int name(void);

WEAK(MPI_Allreduce)
WEAK(MPI_Init)
WEAK(MPI_Finalize)
