/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault-witness - preloaded beside a program: counts what it sends by MPI, and at MPI_Finalize
 * writes sends N bytes N allreduces N cores N retransmits N to $WITNESS_DIR/witness-RANK: the cores
 * it may run on, and the segments that its TCP connections sent again.
 */
#include <mpi.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static uint64_t sends, bytes, allreduces;

static void count(int n, MPI_Datatype type)
{
    int size = 0;
    PMPI_Type_size(type, &size);
    __atomic_fetch_add(&sends, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&bytes, (uint64_t)n * (uint64_t)size, __ATOMIC_RELAXED);
}

int MPI_Send(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    count(n, type);
    return PMPI_Send(data, n, type, to, tag, comm);
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    count(n, type);
    return PMPI_Isend(data, n, type, to, tag, comm, request);
}

int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int size = 0;
    PMPI_Type_size(type, &size);
    allreduces++;
    bytes += (uint64_t)n * (uint64_t)size;
    return PMPI_Allreduce(in, out, n, type, op, comm);
}

static unsigned retransmits(void)
{
    unsigned sum = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct tcp_info info = {0};
        socklen_t length = sizeof info;
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0)
            sum += info.tcpi_total_retrans;
    }
    return sum;
}

int MPI_Finalize(void)
{
    const char *folder = getenv("WITNESS_DIR");
    char path[512];
    cpu_set_t cores;
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/witness-%d", folder ? folder : ".", rank);
    FILE *f = fopen(path, "w");
    if (f && sched_getaffinity(0, sizeof cores, &cores) == 0)
        fprintf(f, "sends %llu bytes %llu allreduces %llu cores %d retransmits %u\n",
                (unsigned long long)sends, (unsigned long long)bytes,
                (unsigned long long)allreduces, CPU_COUNT(&cores), retransmits());
    if (f)
        fclose(f);
    return PMPI_Finalize();
}
