/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pacing-check - plain MPI: every pair of ranks exchanges a message, then each rank prints
 *   rank R paced N at BYTES_PER_S plain M
 * over its TCP sockets, and rank 0 prints at what rate the last rank got 3 MiB from it:
 *   link BYTES_PER_S
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "rt-fault.h"

#define LONG (3 << 20)

static void meet_everyone(int rank, int size)
{
    for (int peer = 0; peer < size; peer++) {
        int mine = rank, other;
        if (peer == rank)
            continue;
        MPI_Sendrecv(&mine, 1, MPI_INT, peer, 0, &other, 1, MPI_INT, peer, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
}

static void print_sockets(int rank)
{
    unsigned long long rate = 0;
    int paced = 0, plain = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof peer;
        unsigned long long max = 0;
        if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0 || peer.ss_family != AF_INET)
            continue;
        length = sizeof max;
        if (getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &max, &length) != 0)
            continue;
        if (max == ~0ull || max == 0xffffffffu) {
            plain++;
        } else {
            paced++;
            rate = max;
        }
    }
    printf("rank %d paced %d at %llu plain %d\n", rank, paced, rate, plain);
    fflush(stdout);
}

static void measure(int rank, int size)
{
    char *data = calloc(1, LONG);
    double seconds = 0;
    if (rank == 0)
        MPI_Send(data, LONG, MPI_BYTE, size - 1, 1, MPI_COMM_WORLD);
    if (rank == size - 1) {
        double start = MPI_Wtime();
        MPI_Recv(data, LONG, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        seconds = MPI_Wtime() - start;
    }
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, size - 1, MPI_COMM_WORLD);
    if (rank == 0)
        printf("link %.0f\n", LONG / seconds);
    free(data);
}

int main(int argc, char **argv)
{
    struct rt_faults faults; /* the program is one that faults can be planted in */
    char message[256];
    int rank, size;
    if (rt_faults_read(&faults, message, sizeof message)) {
        fprintf(stderr, "%s\n", message);
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    meet_everyone(rank, size);
    print_sockets(rank);
    MPI_Barrier(MPI_COMM_WORLD);
    measure(rank, size);
    MPI_Finalize();
    return 0;
}
