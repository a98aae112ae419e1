/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes.c - processes that start others, and groups that meet without a common communicator.
 *
 * usage: processes FOLDER: on 4 ranks; spawns itself with one argument more. Each process of the
 * first MPI_COMM_WORLD writes FOLDER/calls.RANK, a spawned one FOLDER/spawned.RANK. Where an MPI
 * can't start processes or open ports (MPICH over UCX), that stands in the files, as an error.
 */
#include <arpa/inet.h>
#include <mpi.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"

#define SPAWNED 2

static int rank;

static void expect(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "processes, rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* For what an MPI need not have: whether it worked, counted as a call all the same. */
static int worked(const char *name, int result)
{
    int failure = result != MPI_SUCCESS;
    count_call(name);
    if (failure)
        count_call("failures");
    return !failure;
}
#define WORKED(name, ...) worked("MPI_" #name, MPI_##name(__VA_ARGS__))

/* Both groups add up together, send across, and part. */
static void meet(MPI_Comm *between, int high, int total)
{
    int one = 1, sum = 0, got = 0, others;
    MPI_Comm merged;
    MPI_Comm_remote_size(*between, &others);
    CALL(Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, *between);
    expect(sum == others, "sum of the other group");
    CALL(Intercomm_merge, *between, high, &merged);
    CALL(Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, merged);
    expect(sum == total, "sum of both groups");
    int own;
    MPI_Comm_rank(merged, &own);
    CALL(Sendrecv, &own, 1, MPI_INT, (own + 1) % total, 3, &got, 1, MPI_INT,
         (own + total - 1) % total, 3, merged, MPI_STATUS_IGNORE);
    expect(got == (own + total - 1) % total, "neighbour's rank");
    CALL(Comm_free, &merged);
    CALL(Comm_disconnect, between);
}

static int spawn(const char *program, const char *folder)
{
    char first[] = "spawned", second[] = "spawned-2";
    char *words[] = {(char *)folder, first, NULL};
    char *programs[2] = {(char *)program, (char *)program};
    char **arguments[2] = {words, words};
    int counts[2] = {1, SPAWNED - 1}, codes[SPAWNED];
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm between;
    if (!WORKED(Comm_spawn, program, words, SPAWNED, MPI_INFO_NULL, 1, MPI_COMM_WORLD, &between,
                MPI_ERRCODES_IGNORE))
        return 0;
    meet(&between, 0, 4 + SPAWNED);
    words[1] = second;
    CALL(Comm_spawn_multiple, 2, programs, arguments, counts, infos, 0, MPI_COMM_WORLD, &between,
         codes);
    meet(&between, 0, 4 + SPAWNED);
    return 1;
}

/* Ranks 2 and 3 connect to 0 and 1. */
static void connect_halves(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, between;
    CALL(Comm_split, MPI_COMM_WORLD, rank / 2, rank, &half);
    if (rank == 0)
        CALL(Open_port, MPI_INFO_NULL, port);
    CALL(Bcast, port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank < 2)
        CALL(Comm_accept, port, MPI_INFO_NULL, 0, half, &between);
    else
        CALL(Comm_connect, port, MPI_INFO_NULL, 0, half, &between);
    meet(&between, rank >= 2, 4);
    if (rank == 0)
        CALL(Close_port, port);
    CALL(Comm_free, &half);
}

/* Not every launcher keeps names. */
static void names(void)
{
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
    if (rank != 0)
        return;
    if (WORKED(Open_port, MPI_INFO_NULL, port))
        CALL(Close_port, port);
    if (!WORKED(Publish_name, "ringscope-test", MPI_INFO_NULL, port))
        return;
    if (WORKED(Lookup_name, "ringscope-test", MPI_INFO_NULL, found))
        expect(strcmp(found, port) == 0, "another port than was published");
    (void)WORKED(Unpublish_name, "ringscope-test", MPI_INFO_NULL, port);
}

/* Ranks 0 and 1 share a TCP connection. */
static int shake_hands(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), s = fd;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    if (rank == 0) {
        expect(bind(fd, (struct sockaddr *)&at, length) == 0 && listen(fd, 1) == 0, "listen");
        getsockname(fd, (struct sockaddr *)&at, &length);
        CALL(Send, &at.sin_port, 2, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        s = accept(fd, NULL, NULL);
        close(fd);
    } else {
        CALL(Recv, &at.sin_port, 2, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(connect(fd, (struct sockaddr *)&at, length) == 0, "connect");
    }
    return s;
}

static void join(void)
{
    MPI_Comm between;
    if (rank > 1)
        return;
    int fd = shake_hands();
    CALL(Comm_join, fd, &between);
    meet(&between, rank, 2);
    close(fd);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    if (argc < 2)
        return 2;
    CALL(Init, &argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        CALL(Barrier, MPI_COMM_WORLD);
        meet(&parent, 1, 4 + SPAWNED);
    } else {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        if (spawn(argv[0], argv[1])) {
            connect_halves();
            join();
        }
        names();
    }
    CALL(Finalize);
    expect(write_calls(argv[1], argc > 2 ? argv[2] : "calls", rank), "its calls in a file");
    return 0;
}
