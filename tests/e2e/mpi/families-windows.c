/* SPDX-License-Identifier: Apache-2.0 */
#include "families.h"

#define N    4
#define ROOM 16 /* elements in a window */

#ifdef FAMILIES_LARGE
typedef MPI_Aint unit_t;
#else
typedef int unit_t;
#endif

static int right(void)
{
    return (rank + 1) % N;
}
static int left(void)
{
    return (rank + N - 1) % N;
}

static void clear(int *at)
{
    for (int i = 0; i < ROOM; i++)
        at[i] = 0;
}

static void finish(MPI_Request *request)
{
    CALL(Wait, request, MPI_STATUS_IGNORE);
}

/* Each epoch: `v` goes to the right, and comes from the left. */
static void between_fences(MPI_Win win, int *mem)
{
    int v[2] = {element(rank, 0), element(rank, 1)}, got[2] = {0};
    clear(mem);
    CALL(Win_fence, MPI_MODE_NOPRECEDE, win);
    CALL_N(Put, v, 2, MPI_INT, right(), 3, 2, MPI_INT, win);
    CALL_N(Put, v, 0, MPI_INT, MPI_PROC_NULL, 0, 0, MPI_INT, win);
    CALL(Win_fence, 0, win);
    CHECK("put", mem[4], element(left(), 1));
    CALL_N(Get, got, 2, MPI_INT, left(), 3, 2, MPI_INT, win);
    CALL(Win_fence, 0, win);
    CHECK("get", got[0], element((rank + 2) % N, 0));
    CALL_N(Accumulate, v, 1, MPI_INT, 0, 8, 1, MPI_INT, MPI_SUM, win);
    CALL(Win_fence, MPI_MODE_NOSUCCEED, win);
    if (rank == 0)
        CHECK("accumulate", mem[8], element(0, 0) + element(1, 0) + element(2, 0) + element(3, 0));
}

/* A strided type at the target, so that the two sides differ. */
static void other_type(MPI_Win win, int *mem)
{
    int v[2] = {element(rank, 2), element(rank, 3)};
    MPI_Datatype every_third;
    clear(mem);
    MPI_Type_vector(2, 1, 3, MPI_INT, &every_third);
    MPI_Type_commit(&every_third);
    CALL(Win_fence, 0, win);
    CALL_N(Put, v, 2, MPI_INT, right(), 1, 1, every_third, win);
    CALL(Win_fence, 0, win);
    CHECK("put by vector", mem[4], element(left(), 3));
    CALL(Type_free, &every_third);
}

static void by_groups(MPI_Win win, int *mem)
{
    MPI_Group all, one;
    int v = element(rank, 4), target = right(), origin = left(), flag;
    clear(mem);
    MPI_Win_get_group(win, &all);
    for (int i = 0; i < 2; i++) {
        MPI_Group_incl(all, 1, &origin, &one);
        CALL(Win_post, one, 0, win);
        MPI_Group_free(&one);
        MPI_Group_incl(all, 1, &target, &one);
        CALL(Win_start, one, 0, win);
        MPI_Group_free(&one);
        CALL_N(Put, &v, 1, MPI_INT, target, i, 1, MPI_INT, win);
        CALL(Win_complete, win);
        if (i == 0) {
            CALL(Win_wait, win);
            continue;
        }
        do
            CALL(Win_test, win, &flag);
        while (poll_again(flag));
    }
    MPI_Group_free(&all);
    CHECK("post and start", mem[0] + mem[1], 2 * element(left(), 4));
}

static void by_locks(MPI_Comm comm, MPI_Win win, int *mem)
{
    int v = element(rank, 5), got = 0, one = 1, none = 0;
    MPI_Request q;
    CALL(Win_lock, MPI_LOCK_EXCLUSIVE, rank, 0, win);
    clear(mem);
    CALL(Win_unlock, rank, win);
    CALL(Barrier, comm);
    CALL(Win_lock, MPI_LOCK_SHARED, right(), 0, win);
    CALL_N(Put, &v, 1, MPI_INT, right(), 0, 1, MPI_INT, win);
    CALL(Win_flush_local, right(), win);
    CALL(Win_flush, right(), win);
    CALL_N(Get, &got, 1, MPI_INT, right(), 0, 1, MPI_INT, win);
    CALL(Win_unlock, right(), win);
    CHECK("get what was put", got, v);
    CALL(Barrier, comm);

    CALL(Win_lock_all, 0, win);
    CALL_N(Rput, &v, 1, MPI_INT, right(), 1, 1, MPI_INT, win, &q), finish(&q);
    CALL(Win_flush_all, win);
    CALL_N(Rget, &got, 1, MPI_INT, right(), 1, 1, MPI_INT, win, &q), finish(&q);
    CHECK("rget", got, v);
    CALL_N(Raccumulate, &v, 1, MPI_INT, 0, 2, 1, MPI_INT, MPI_SUM, win, &q), finish(&q);
    CALL(Win_flush_local_all, win);
    CALL_N(Get_accumulate, &one, 1, MPI_INT, &got, 1, MPI_INT, 1, 3, 1, MPI_INT, MPI_SUM, win);
    CALL_N(Rget_accumulate, &one, 1, MPI_INT, &got, 1, MPI_INT, 1, 3, 1, MPI_INT, MPI_SUM, win, &q);
    finish(&q);
    /* of no effect: neither buffer nor type of the origin are looked at */
    CALL_N(Get_accumulate, NULL, 0, MPI_DATATYPE_NULL, &got, 1, MPI_INT, 1, 3, 1, MPI_INT,
           MPI_NO_OP, win);
    CALL(Fetch_and_op, &one, &got, MPI_INT, 1, 4, MPI_SUM, win);
    CALL(Compare_and_swap, &v, &none, &got, MPI_INT, right(), 5, win);
    CALL(Win_sync, win);
    CALL(Win_unlock_all, win);
    CALL(Barrier, comm);
    CALL(Win_lock, MPI_LOCK_SHARED, rank, 0, win);
    if (rank == 0)
        CHECK("raccumulate", mem[2], element(0, 5) + element(1, 5) + element(2, 5) + element(3, 5));
    if (rank == 1)
        CHECK("get_accumulate, fetch_and_op", mem[3] + 100 * mem[4], 2 * N + 100 * N);
    CHECK("compare_and_swap", mem[5], element(left(), 5));
    CALL(Win_unlock, rank, win);
    CALL(Barrier, comm);
}

static void unmoving(MPI_Comm comm)
{
    static int own[ROOM];
    MPI_Win win;
    CALL_N(Win_create, own, sizeof own, (unit_t)sizeof(int), MPI_INFO_NULL, comm, &win);
    MPI_Win_set_name(win, "own");
    between_fences(win, own);
    other_type(win, own);
    by_groups(win, own);
    by_locks(comm, win, own);
    CALL(Win_free, &win);
    CHECK("window is null", win == MPI_WIN_NULL, 1);
}

static void allocated(MPI_Comm comm)
{
    int *mem;
    MPI_Win win;
    MPI_Info info;
    CALL_N(Win_allocate, ROOM * sizeof(int), (unit_t)sizeof(int), MPI_INFO_NULL, comm, &mem, &win);
    MPI_Info_create(&info);
    CALL(Win_set_info, win, info);
    MPI_Info_free(&info);
    between_fences(win, mem);
    CALL(Win_free, &win);
}

static void shared(MPI_Comm comm)
{
    int *mem, *theirs, unit;
    MPI_Aint bytes;
    MPI_Win win;
    CALL_N(Win_allocate_shared, ROOM * sizeof(int), (unit_t)sizeof(int), MPI_INFO_NULL, comm, &mem,
           &win);
    CALL(Win_fence, 0, win);
    mem[0] = element(rank, 6);
    CALL(Win_fence, 0, win);
    MPI_Win_shared_query(win, right(), &bytes, &unit, &theirs);
    CHECK("shared", theirs[0], element(right(), 6));
    CALL(Win_fence, 0, win);
    CALL(Win_free, &win);
}

static void attached(MPI_Comm comm)
{
    static int own[ROOM];
    MPI_Aint at, theirs;
    MPI_Win win;
    int v = element(rank, 7);
    clear(own);
    CALL(Win_create_dynamic, MPI_INFO_NULL, comm, &win);
    CALL(Win_attach, win, own, sizeof own);
    MPI_Get_address(own, &at);
    CALL(Sendrecv, &at, 1, MPI_AINT, left(), 50, &theirs, 1, MPI_AINT, right(), 50, comm,
         MPI_STATUS_IGNORE);
    CALL(Win_fence, 0, win);
    CALL_N(Put, &v, 1, MPI_INT, right(), theirs, 1, MPI_INT, win);
    CALL(Win_fence, 0, win);
    CHECK("put into what was attached", own[0], element(left(), 7));
    CALL(Win_detach, win, own);
    CALL(Win_free, &win);
}

void SIZED(windows)(MPI_Comm comm)
{
    unmoving(comm);
    allocated(comm);
    shared(comm);
    attached(comm);
}
