/* SPDX-License-Identifier: Apache-2.0 */
#include "families.h"

#include <string.h>

#define N 4

/* Uses a communicator, so that its collectives must be matched by identity, then frees it. */
static void use(const char *what, MPI_Comm *comm)
{
    int one = 1, sum = 0, n, inter;
    if (*comm == MPI_COMM_NULL)
        return;
    MPI_Comm_test_inter(*comm, &inter);
    if (inter)
        MPI_Comm_remote_size(*comm, &n);
    else
        MPI_Comm_size(*comm, &n);
    CALL(Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, *comm);
    CHECK(what, sum, n);
    CALL(Comm_free, comm);
}

static void from_all(void)
{
    MPI_Comm c, pair;
    MPI_Request q;
    MPI_Info info;
    CALL(Comm_dup, MPI_COMM_WORLD, &c);
    CALL(Comm_set_name, c, "named");
    MPI_Info_create(&info);
    CALL(Comm_set_info, c, info);
    MPI_Info_free(&info);
    use("dup", &c);
    CALL(Comm_dup_with_info, MPI_COMM_WORLD, MPI_INFO_NULL, &c);
    CALL(Comm_split, c, rank % 2, -rank, &pair);
    use("split", &pair);
    CALL(Comm_split, c, rank == 1 ? MPI_UNDEFINED : 5, 0, &pair);
    use("split without one", &pair);
    use("dup_with_info", &c);
    CALL(Comm_idup, MPI_COMM_WORLD, &c, &q);
    CALL(Wait, &q, MPI_STATUS_IGNORE);
    use("idup", &c);
    CALL(Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c);
    CALL(Barrier, c);
    CALL(Comm_disconnect, &c);
    CALL(Barrier, MPI_COMM_SELF);
}

/* Ranks 1 and 3 make one more than the others do: what all make next must still be one thing. */
static void from_groups(void)
{
    MPI_Group world, odd;
    MPI_Comm c;
    int ranks[2] = {1, 3};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, ranks, &odd);
    CALL(Comm_create, MPI_COMM_WORLD, odd, &c);
    use("create", &c);
    for (int i = 0; i < 2 && rank % 2; i++) {
        CALL(Comm_create_group, MPI_COMM_WORLD, odd, 17, &c);
        use("create_group", &c);
    }
    CALL(Comm_dup, MPI_COMM_WORLD, &c);
    use("dup after create_group", &c);
    MPI_Group_free(&odd);
    MPI_Group_free(&world);
}

static void topologies(void)
{
    int dims[2] = {2, 2}, periods[2] = {0, 1}, remain[2] = {0, 1};
    int index[N] = {1, 2, 3, 4}, edges[N] = {1, 0, 3, 2};
    int own = rank, degree = 1, next = (rank + 1) % N, last = (rank + N - 1) % N, weight = 1;
    int place;
    MPI_Comm c, row;
    CALL(Cart_map, MPI_COMM_WORLD, 2, dims, periods, &place);
    CHECK("cart_map", place >= 0 && place < N, 1);
    CALL(Graph_map, MPI_COMM_WORLD, N, index, edges, &place);
    CHECK("graph_map", place >= 0 && place < N, 1);
    CALL(Cart_create, MPI_COMM_WORLD, 2, dims, periods, 0, &c);
    CALL(Cart_sub, c, remain, &row);
    use("cart_sub", &row);
    use("cart_create", &c);
    CALL(Graph_create, MPI_COMM_WORLD, N, index, edges, 0, &c);
    use("graph_create", &c);
    CALL(Dist_graph_create, MPI_COMM_WORLD, 1, &own, &degree, &next, &weight, MPI_INFO_NULL, 0, &c);
    use("dist_graph_create", &c);
    CALL(Dist_graph_create_adjacent, MPI_COMM_WORLD, 1, &last, &weight, 1, &next, &weight,
         MPI_INFO_NULL, 0, &c);
    int v = element(rank, 1), got = 0;
    CALL(Neighbor_allgather, &v, 1, MPI_INT, &got, 1, MPI_INT, c);
    CHECK("dist_graph neighbor", got, element(last, 1));
    use("dist_graph_create_adjacent", &c);
}

static void between_groups(void)
{
    MPI_Comm half, between, merged;
    int v = element(rank, 2), got = 0;
    CALL(Comm_split, MPI_COMM_WORLD, rank / 2, rank, &half);
    CALL(Intercomm_create, half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 23, &between);
    CALL(Sendrecv, &v, 1, MPI_INT, rank % 2, 40, &got, 1, MPI_INT, rank % 2, 40, between,
         MPI_STATUS_IGNORE);
    CHECK("across an intercommunicator", got, element((rank + 2) % N, 2));
    CALL(Intercomm_merge, between, rank >= 2, &merged);
    use("intercomm_merge", &merged);
    use("intercomm_create", &between);
    use("half", &half);
}

void communicators(void)
{
    from_all();
    from_groups();
    topologies();
    between_groups();
}
