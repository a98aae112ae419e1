/* SPDX-License-Identifier: Apache-2.0 */
#include "families.h"

#include <string.h>

#define N    4       /* ranks */
#define MOST (N * N) /* elements in any buffer */

static int in[MOST], result[MOST];
static count_t counts[N], pair[N];
static displ_t displs[N], pair_displs[N], byte_displs[N];
static MPI_Datatype types[N];

/* Rank r contributes r + 1 elements to the -v forms. */
static void prepare(void)
{
    for (int i = 0; i < MOST; i++)
        in[i] = element(rank, i);
    memset(result, 0, sizeof result);
    for (int r = 0, at = 0; r < N; at += ++r) {
        counts[r] = r + 1;
        displs[r] = at;
        pair[r] = 1;
        pair_displs[r] = r;
        byte_displs[r] = (displ_t)((size_t)r * sizeof(int));
        types[r] = MPI_INT;
    }
}

static int sum_of(int i)
{
    int sum = 0;
    for (int r = 0; r < N; r++)
        sum += element(r, i);
    return sum;
}

static void check_v(const char *what)
{
    for (int r = 0; r < N; r++)
        CHECK(what, result[displs[r] + r], element(r, r));
}

static void check_ranks(const char *what, int i_of_own)
{
    for (int r = 0; r < N; r++)
        CHECK(what, result[r], element(r, i_of_own));
}

static void later_sum(void *a, void *b, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)b)[i] += ((int *)a)[i];
}

static void reduce_family(MPI_Comm comm)
{
    prepare();
    CALL_N(Reduce, in, result, 3, MPI_INT, MPI_SUM, 1, comm);
    CHECK("reduce", result[2], rank == 1 ? sum_of(2) : 0);
    CALL_N(Allreduce, in, result, 5, MPI_INT, MPI_MAX, comm);
    CHECK("allreduce", result[4], element(N - 1, 4));
    memcpy(result, in, sizeof in);
    CALL_N(Allreduce, MPI_IN_PLACE, result, 2, MPI_INT, MPI_SUM, comm);
    CHECK("allreduce in place", result[1], sum_of(1));
    MPI_Op op;
    MPI_Op_create(later_sum, 1, &op);
    CALL_N(Allreduce, in, result, 2, MPI_INT, op, comm);
    CHECK("allreduce by user function", result[1], sum_of(1));
    CALL(Op_free, &op);
    CALL_N(Reduce_scatter, in, result, counts, MPI_INT, MPI_SUM, comm);
    CHECK("reduce_scatter", result[rank], sum_of(displs[rank] + rank));
    CALL_N(Reduce_scatter_block, in, result, 2, MPI_INT, MPI_SUM, comm);
    CHECK("reduce_scatter_block", result[1], sum_of(2 * rank + 1));
    CALL_N(Scan, in, result, 1, MPI_INT, MPI_MIN, comm);
    CHECK("scan", result[0], element(0, 0));
    CALL_N(Exscan, in, result, 1, MPI_INT, MPI_MAX, comm);
    CHECK("exscan", rank ? result[0] : 0, rank ? element(rank - 1, 0) : 0);
}

/* No type at all: for arguments that MPI does not look at, on this rank. */
static MPI_Datatype nonsense(void)
{
    MPI_Datatype type;
    memset(&type, 0x5a, sizeof type);
    return type;
}
static MPI_Datatype int_at(int root)
{
    return rank == root ? MPI_INT : nonsense();
}

static void gather_family(MPI_Comm comm)
{
    prepare();
    /* Only the root has receive counts and a receive type. */
    CALL_N(Gather, in + 3, 1, MPI_INT, rank == 2 ? result : NULL, rank == 2, int_at(2), 2, comm);
    if (rank == 2)
        check_ranks("gather", 3);
    result[rank] = element(rank, 4);
    CALL_N(Gather, rank == 1 ? MPI_IN_PLACE : &result[rank], 1, rank == 1 ? nonsense() : MPI_INT,
           result, 1, int_at(1), 1, comm);
    if (rank == 1)
        check_ranks("gather in place", 4);
    CALL_N(Gatherv, in, rank + 1, MPI_INT, result, rank == 1 ? counts : NULL,
           rank == 1 ? displs : NULL, int_at(1), 1, comm);
    if (rank == 1)
        check_v("gatherv");
    CALL_N(Allgather, in + 1, 1, MPI_INT, result, 1, MPI_INT, comm);
    check_ranks("allgather", 1);
    result[rank] = element(rank, 5);
    CALL_N(Allgather, MPI_IN_PLACE, 0, nonsense(), result, 1, MPI_INT, comm);
    check_ranks("allgather in place", 5);
    CALL_N(Allgatherv, in, rank + 1, MPI_INT, result, counts, displs, MPI_INT, comm);
    check_v("allgatherv");
}

static void scatter_family(MPI_Comm comm)
{
    prepare();
    CALL_N(Bcast, rank == 3 ? in : result, 4, MPI_INT, 3, comm);
    CHECK("bcast", rank == 3 ? in[3] : result[3], element(3, 3));
    CALL_N(Scatter, rank == 1 ? in : NULL, rank == 1 ? 2 : 0, int_at(1), result, 2, MPI_INT, 1,
           comm);
    CHECK("scatter", result[1], element(1, 2 * rank + 1));
    CALL_N(Scatter, in, 1, int_at(3), rank == 3 ? MPI_IN_PLACE : result, 1,
           rank == 3 ? nonsense() : MPI_INT, 3, comm);
    CHECK("scatter in place", rank == 3 ? in[3] : result[0], element(3, rank));
    CALL_N(Scatterv, in, rank == 2 ? counts : NULL, rank == 2 ? displs : NULL, int_at(2), result,
           rank + 1, MPI_INT, 2, comm);
    CHECK("scatterv", result[rank], element(2, displs[rank] + rank));
    CALL_N(Alltoall, in, 1, MPI_INT, result, 1, MPI_INT, comm);
    check_ranks("alltoall", rank);
    CALL_N(Alltoallv, in, pair, pair_displs, MPI_INT, result, pair, pair_displs, MPI_INT, comm);
    check_ranks("alltoallv", rank);
    CALL_N(Alltoallw, in, pair, byte_displs, types, result, pair, byte_displs, types, comm);
    check_ranks("alltoallw", rank);
}

void SIZED(collectives_blocking)(MPI_Comm comm)
{
    CALL(Barrier, comm);
    reduce_family(comm);
    gather_family(comm);
    scatter_family(comm);
}

static void finish(MPI_Request *request)
{
    MPI_Status status;
    CALL(Wait, request, &status);
    CHECK("request is null", *request == MPI_REQUEST_NULL, 1);
}

void SIZED(collectives_started)(MPI_Comm comm)
{
    MPI_Request q;
    prepare();
    CALL(Ibarrier, comm, &q), finish(&q);
    CALL_N(Ireduce, in, result, 3, MPI_INT, MPI_SUM, 0, comm, &q), finish(&q);
    CHECK("ireduce", rank ? 0 : result[2], rank ? 0 : sum_of(2));
    CALL_N(Iallreduce, in, result, 3, MPI_INT, MPI_SUM, comm, &q), finish(&q);
    CHECK("iallreduce", result[2], sum_of(2));
    CALL_N(Ireduce_scatter, in, result, counts, MPI_INT, MPI_SUM, comm, &q), finish(&q);
    CHECK("ireduce_scatter", result[rank], sum_of(displs[rank] + rank));
    CALL_N(Ireduce_scatter_block, in, result, 2, MPI_INT, MPI_SUM, comm, &q), finish(&q);
    CHECK("ireduce_scatter_block", result[1], sum_of(2 * rank + 1));
    CALL_N(Iscan, in, result, 1, MPI_INT, MPI_MIN, comm, &q), finish(&q);
    CHECK("iscan", result[0], element(0, 0));
    CALL_N(Iexscan, in, result, 1, MPI_INT, MPI_MAX, comm, &q), finish(&q);
    CHECK("iexscan", rank ? result[0] : 0, rank ? element(rank - 1, 0) : 0);
    CALL_N(Igather, in + 3, 1, MPI_INT, result, 1, MPI_INT, 2, comm, &q), finish(&q);
    if (rank == 2)
        check_ranks("igather", 3);
    CALL_N(Igatherv, in, rank + 1, MPI_INT, result, counts, displs, MPI_INT, 1, comm, &q),
        finish(&q);
    if (rank == 1)
        check_v("igatherv");
    CALL_N(Iallgather, in + 1, 1, MPI_INT, result, 1, MPI_INT, comm, &q), finish(&q);
    check_ranks("iallgather", 1);
    CALL_N(Iallgatherv, in, rank + 1, MPI_INT, result, counts, displs, MPI_INT, comm, &q);
    finish(&q);
    check_v("iallgatherv");
    CALL_N(Ibcast, rank == 3 ? in : result, 4, MPI_INT, 3, comm, &q), finish(&q);
    CHECK("ibcast", rank == 3 ? in[3] : result[3], element(3, 3));
    CALL_N(Iscatter, in, 2, MPI_INT, result, 2, MPI_INT, 1, comm, &q), finish(&q);
    CHECK("iscatter", result[1], element(1, 2 * rank + 1));
    CALL_N(Iscatterv, in, counts, displs, MPI_INT, result, rank + 1, MPI_INT, 2, comm, &q);
    finish(&q);
    CHECK("iscatterv", result[rank], element(2, displs[rank] + rank));
    CALL_N(Ialltoall, in, 1, MPI_INT, result, 1, MPI_INT, comm, &q), finish(&q);
    check_ranks("ialltoall", rank);
    CALL_N(Ialltoallv, in, pair, pair_displs, MPI_INT, result, pair, pair_displs, MPI_INT, comm,
           &q);
    finish(&q);
    check_ranks("ialltoallv", rank);
    CALL_N(Ialltoallw, in, pair, byte_displs, types, result, pair, byte_displs, types, comm, &q);
    finish(&q);
    check_ranks("ialltoallw", rank);
}

#if FAMILIES_PERSISTENT
/* What it makes may hold data already: MPICH copies a root's own part at once. Open MPI before 5
 * has them under other names. */
#ifdef OPEN_MPI
#define INIT(name, ...)                                                                            \
    (clear(), count_call("MPIX_" #name "_init"),                                                   \
     expect_success("MPIX_" #name "_init", MPIX_##name##_init(__VA_ARGS__)))
#elif defined(FAMILIES_LARGE)
#define INIT(name, ...) (clear(), CALL(name##_init_c, __VA_ARGS__))
#else
#define INIT(name, ...) (clear(), CALL(name##_init, __VA_ARGS__))
#endif

static void clear(void)
{
    memset(result, 0, sizeof result);
}

/* Once: MPICH 4.0 and Open MPI 4.1 lose data of a second start now and then. */
static void start_once(const char *started, MPI_Request *request)
{
    static int n;
    if (n++ % 2)
        CALL(Start, request);
    else
        CALL(Startall, 1, request);
    count_call(started);
    CALL(Wait, request, MPI_STATUS_IGNORE);
    CALL(Request_free, request);
}

static void persistent_reduce_family(MPI_Comm comm)
{
    MPI_Request q;
    prepare();
    CALL(Barrier, comm);
#ifdef OPEN_MPI
    INIT(Barrier, comm, MPI_INFO_NULL, &q);
#else
    CALL(Barrier_init, comm, MPI_INFO_NULL, &q);
#endif
    start_once("MPI_Start_barrier", &q);
    INIT(Reduce, in, result, 3, MPI_INT, MPI_SUM, 1, comm, MPI_INFO_NULL, &q);
    start_once("MPI_Start_reduce", &q);
    CHECK("persistent reduce", rank == 1 ? result[2] : 0, rank == 1 ? sum_of(2) : 0);
    INIT(Allreduce, in, result, 3, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &q);
    start_once("MPI_Start_allreduce", &q);
    CHECK("persistent allreduce", result[2], sum_of(2));
    INIT(Reduce_scatter, in, result, counts, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &q);
    start_once("MPI_Start_reduce_scatter", &q);
    CHECK("persistent reduce_scatter", result[rank], sum_of(displs[rank] + rank));
    INIT(Reduce_scatter_block, in, result, 2, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &q);
    start_once("MPI_Start_reduce_scatter_block", &q);
    CHECK("persistent reduce_scatter_block", result[1], sum_of(2 * rank + 1));
    INIT(Scan, in, result, 1, MPI_INT, MPI_MIN, comm, MPI_INFO_NULL, &q);
    start_once("MPI_Start_scan", &q);
    CHECK("persistent scan", result[0], element(0, 0));
    INIT(Exscan, in, result, 1, MPI_INT, MPI_MAX, comm, MPI_INFO_NULL, &q);
    start_once("MPI_Start_exscan", &q);
    CHECK("persistent exscan", rank ? result[0] : 0, rank ? element(rank - 1, 0) : 0);
}

static void persistent_gather_family(MPI_Comm comm)
{
    MPI_Request q;
    prepare();
    INIT(Gather, in + 3, 1, MPI_INT, result, 1, MPI_INT, 2, comm, MPI_INFO_NULL, &q);
    start_once("MPI_Start_gather", &q);
    if (rank == 2)
        check_ranks("persistent gather", 3);
    INIT(Gatherv, in, rank + 1, MPI_INT, result, counts, displs, MPI_INT, 1, comm, MPI_INFO_NULL,
         &q);
    start_once("MPI_Start_gatherv", &q);
    if (rank == 1)
        check_v("persistent gatherv");
    INIT(Allgather, in + 1, 1, MPI_INT, result, 1, MPI_INT, comm, MPI_INFO_NULL, &q);
    start_once("MPI_Start_allgather", &q);
    check_ranks("persistent allgather", 1);
    INIT(Allgatherv, in, rank + 1, MPI_INT, result, counts, displs, MPI_INT, comm, MPI_INFO_NULL,
         &q);
    start_once("MPI_Start_allgatherv", &q);
    check_v("persistent allgatherv");
}

static void persistent_scatter_family(MPI_Comm comm)
{
    MPI_Request q;
    prepare();
    INIT(Bcast, rank == 3 ? in : result, 4, MPI_INT, 3, comm, MPI_INFO_NULL, &q);
    start_once("MPI_Start_bcast", &q);
    CHECK("persistent bcast", rank == 3 ? in[3] : result[3], element(3, 3));
    INIT(Scatter, in, 2, MPI_INT, result, 2, MPI_INT, 1, comm, MPI_INFO_NULL, &q);
    start_once("MPI_Start_scatter", &q);
    CHECK("persistent scatter", result[1], element(1, 2 * rank + 1));
    INIT(Scatterv, in, counts, displs, MPI_INT, result, rank + 1, MPI_INT, 2, comm, MPI_INFO_NULL,
         &q);
    start_once("MPI_Start_scatterv", &q);
    CHECK("persistent scatterv", result[rank], element(2, displs[rank] + rank));
    INIT(Alltoall, in, 1, MPI_INT, result, 1, MPI_INT, comm, MPI_INFO_NULL, &q);
    start_once("MPI_Start_alltoall", &q);
    check_ranks("persistent alltoall", rank);
    INIT(Alltoallv, in, pair, pair_displs, MPI_INT, result, pair, pair_displs, MPI_INT, comm,
         MPI_INFO_NULL, &q);
    start_once("MPI_Start_alltoallv", &q);
    check_ranks("persistent alltoallv", rank);
    INIT(Alltoallw, in, pair, byte_displs, types, result, pair, byte_displs, types, comm,
         MPI_INFO_NULL, &q);
    start_once("MPI_Start_alltoallw", &q);
    check_ranks("persistent alltoallw", rank);
}
#endif

static MPI_Comm make_ring(MPI_Comm comm)
{
    MPI_Comm ring;
    int dims[1] = {N}, periods[1] = {1};
    CALL(Cart_create, comm, 1, dims, periods, 0, &ring);
    return ring;
}

static void check_sides(const char *what, int from_left, int from_right)
{
    CHECK(what, result[0], element((rank + N - 1) % N, from_left));
    CHECK(what, result[1], element((rank + 1) % N, from_right));
}

#if FAMILIES_PERSISTENT
static void persistent_neighbors(MPI_Comm comm)
{
    MPI_Comm ring = make_ring(comm);
    MPI_Request q;
    MPI_Aint wide[2] = {0, sizeof(int)};
    count_t *p = pair;
    displ_t *d = pair_displs;
    prepare();
    INIT(Neighbor_allgather, in + 2, 1, MPI_INT, result, 1, MPI_INT, ring, MPI_INFO_NULL, &q);
    start_once("MPI_Start_neighbor_allgather", &q);
    check_sides("persistent neighbor_allgather", 2, 2);
    INIT(Neighbor_allgatherv, in + 1, 1, MPI_INT, result, p, d, MPI_INT, ring, MPI_INFO_NULL, &q);
    start_once("MPI_Start_neighbor_allgatherv", &q);
    check_sides("persistent neighbor_allgatherv", 1, 1);
    INIT(Neighbor_alltoall, in + 2, 1, MPI_INT, result, 1, MPI_INT, ring, MPI_INFO_NULL, &q);
    start_once("MPI_Start_neighbor_alltoall", &q);
    check_sides("persistent neighbor_alltoall", 3, 2);
    INIT(Neighbor_alltoallv, in, p, d, MPI_INT, result, p, d, MPI_INT, ring, MPI_INFO_NULL, &q);
    start_once("MPI_Start_neighbor_alltoallv", &q);
    check_sides("persistent neighbor_alltoallv", 1, 0);
    INIT(Neighbor_alltoallw, in, p, wide, types, result, p, wide, types, ring, MPI_INFO_NULL, &q);
    start_once("MPI_Start_neighbor_alltoallw", &q);
    check_sides("persistent neighbor_alltoallw", 1, 0);
    CALL(Comm_free, &ring);
}

void SIZED(collectives_persistent)(MPI_Comm comm)
{
    persistent_reduce_family(comm);
    persistent_gather_family(comm);
    persistent_scatter_family(comm);
    persistent_neighbors(comm);
}
#endif

void SIZED(neighbors)(MPI_Comm comm)
{
    MPI_Comm ring = make_ring(comm);
    MPI_Request q;
    MPI_Aint wide[2] = {0, sizeof(int)};
    count_t *p = pair;
    displ_t *d = pair_displs;
    prepare();
    CALL_N(Neighbor_allgather, in, 1, MPI_INT, result, 1, MPI_INT, ring);
    check_sides("neighbor_allgather", 0, 0);
    CALL_N(Neighbor_allgatherv, in + 1, 1, MPI_INT, result, p, d, MPI_INT, ring);
    check_sides("neighbor_allgatherv", 1, 1);
    CALL_N(Neighbor_alltoall, in, 1, MPI_INT, result, 1, MPI_INT, ring);
    check_sides("neighbor_alltoall", 1, 0);
    CALL_N(Neighbor_alltoallv, in, p, d, MPI_INT, result, p, d, MPI_INT, ring);
    check_sides("neighbor_alltoallv", 1, 0);
    CALL_N(Neighbor_alltoallw, in, p, wide, types, result, p, wide, types, ring);
    check_sides("neighbor_alltoallw", 1, 0);
    CALL_N(Ineighbor_allgather, in + 2, 1, MPI_INT, result, 1, MPI_INT, ring, &q), finish(&q);
    check_sides("ineighbor_allgather", 2, 2);
    CALL_N(Ineighbor_allgatherv, in + 1, 1, MPI_INT, result, p, d, MPI_INT, ring, &q), finish(&q);
    check_sides("ineighbor_allgatherv", 1, 1);
    CALL_N(Ineighbor_alltoall, in + 2, 1, MPI_INT, result, 1, MPI_INT, ring, &q), finish(&q);
    check_sides("ineighbor_alltoall", 3, 2);
    CALL_N(Ineighbor_alltoallv, in, p, d, MPI_INT, result, p, d, MPI_INT, ring, &q), finish(&q);
    check_sides("ineighbor_alltoallv", 1, 0);
    CALL_N(Ineighbor_alltoallw, in, p, wide, types, result, p, wide, types, ring, &q), finish(&q);
    check_sides("ineighbor_alltoallw", 1, 0);
    CALL(Comm_free, &ring);
}
