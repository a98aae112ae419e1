/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.c - a program of MPI 4's sessions: sessions FOLDER [world]
 *
 * Each rank leaves its calls in FOLDER/calls.RANK. With "world" there is an MPI_COMM_WORLD for a
 * while beside the sessions; without, MPI_Init is never called.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

#define PARTS 3

static int rank, size;

static void expect(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "rank %d: not as it must be: %s\n", rank, what);
    exit(1);
}

static void add_up(MPI_Comm comm, int expected)
{
    int one = 1, sum = 0;
    CALL(Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == expected, "sum");
}

/* The same tag twice: the n-th of the same members is another one. */
static void from_group(MPI_Group all)
{
    MPI_Comm first, second;
    CALL(Comm_create_from_group, all, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &first);
    CALL(Comm_create_from_group, all, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &second);
    add_up(second, size);
    add_up(first, size);
    add_up(second, size);
    CALL(Comm_free, &second);
    CALL(Comm_free, &first);
}

static void between_groups(MPI_Group all)
{
    MPI_Group half[2];
    MPI_Comm own, between;
    int range[2][1][3] = {{{0, size / 2 - 1, 1}}, {{size / 2, size - 1, 1}}};
    int upper = rank >= size / 2;
    for (int i = 0; i < 2; i++)
        MPI_Group_range_incl(all, 1, range[i], &half[i]);
    CALL(Comm_create_from_group, half[upper], "half", MPI_INFO_NULL, MPI_ERRORS_RETURN, &own);
    add_up(own, size / 2);
    CALL(Intercomm_create_from_groups, half[upper], 0, half[!upper], 0, "between", MPI_INFO_NULL,
         MPI_ERRORS_RETURN, &between);
    add_up(between, size / 2);
    CALL(Comm_free, &between);
    CALL(Comm_free, &own);
    for (int i = 0; i < 2; i++)
        MPI_Group_free(&half[i]);
}

/* Around the ring, twice with the same requests. */
static void in_parts(MPI_Comm comm)
{
    int out[PARTS][2], in[PARTS][2], arrived = 0, list[1] = {0};
    MPI_Request q[2];
    CALL(Psend_init, out, PARTS, 2, MPI_INT, (rank + 1) % size, 5, comm, MPI_INFO_NULL, &q[0]);
    CALL(Precv_init, in, PARTS, 2, MPI_INT, (rank + size - 1) % size, 5, comm, MPI_INFO_NULL,
         &q[1]);
    for (int round = 0; round < 2; round++) {
        CALL(Startall, 2, q);
        for (int i = 0; i < PARTS; i++)
            out[i][0] = out[i][1] = 100 * rank + 10 * i + round;
        CALL(Pready, 2, q[0]);
        CALL(Pready_list, 1, list, q[0]);
        CALL(Pready_range, 1, 1, q[0]);
        CALL(Parrived, q[1], 0, &arrived);
        CALL(Waitall, 2, q, MPI_STATUSES_IGNORE);
        expect(in[2][1] == 100 * ((rank + size - 1) % size) + 20 + round, "last part");
    }
    CALL(Request_free, &q[0]);
    CALL(Request_free, &q[1]);
}

static void persistent(MPI_Comm comm)
{
    int one = 1, sum = 0;
    MPI_Request q;
    CALL(Allreduce_init, &one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &q);
    for (int round = 0; round < 2; round++) {
        sum = 0;
        CALL(Start, &q);
        CALL(Wait, &q, MPI_STATUS_IGNORE);
        expect(sum == size, "persistent sum");
    }
    CALL(Request_free, &q);
}

static void with_world(void)
{
    CALL(Init, NULL, NULL);
    add_up(MPI_COMM_WORLD, size);
    CALL(Finalize);
}

int main(int argc, char **argv)
{
    MPI_Session first, second;
    MPI_Group all;
    MPI_Comm comm;
    CALL(Session_init, MPI_INFO_NULL, MPI_ERRORS_RETURN, &first);
    CALL(Group_from_session_pset, first, "mpi://WORLD", &all);
    MPI_Group_rank(all, &rank);
    MPI_Group_size(all, &size);
    if (argc > 2)
        with_world();
    from_group(all);
    between_groups(all);
    MPI_Group_free(&all);
    CALL(Session_init, MPI_INFO_NULL, MPI_ERRORS_RETURN, &second);
    CALL(Session_finalize, &first); /* not the last one: the other goes on */
    CALL(Group_from_session_pset, second, "mpi://WORLD", &all);
    CALL(Comm_create_from_group, all, "second", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    in_parts(comm);
    persistent(comm);
    CALL(Barrier, comm);
    CALL(Comm_free, &comm);
    MPI_Group_free(&all);
    CALL(Session_finalize, &second);
    expect(write_calls(argv[1], "calls", rank), "its calls in a file");
    return 0;
}
