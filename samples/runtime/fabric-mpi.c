/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fabric of a job that an MPI's launcher started: the one file of the runtime, beside MPI's
 * transport, that knows MPI. Built once for each.
 */
#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rt-fabric.h"
#include "rt-transport-mpi.h"

#define TAG_CONTROL 1
#define TAG_GATHER  0 /* groups' are higher */

struct sending {
    struct sending *next;
    MPI_Request request;
    char data[];
};

struct mpi_fabric {
    struct rt_fabric base;
    MPI_Comm data, control;
    bool owns_mpi;
    struct rt_transport *all; /* for allgather */
    struct sending *sending;
};

static struct mpi_fabric *of(struct rt_fabric *f)
{
    return (struct mpi_fabric *)f;
}

/* ---- together ---- */

/* MPI_Allgather's own waiting keeps the processor from whom it waits for. */
static int allgather(struct rt_fabric *f, const void *mine, void *ret, size_t bytes)
{
    return rt_allgather_ring(of(f)->all, mine, ret, bytes * (size_t)f->size, RT_UINT8);
}

static struct rt_transport *group_new(struct rt_fabric *f, const int *ranks, int n, int tag)
{
    return rt_transport_mpi_new(&of(f)->data, tag, ranks, n);
}

/* ---- messages ---- */

/* Looks after messages that were sent before: they need MPI's attention to go out. */
static int forget_sent(struct mpi_fabric *m)
{
    for (struct sending **place = &m->sending; *place;) {
        struct sending *s = *place;
        int done = 0;
        if (MPI_Test(&s->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return -EIO;
        if (done) {
            *place = s->next;
            free(s);
        } else {
            place = &s->next;
        }
    }
    return 0;
}

static int send(struct rt_fabric *f, int to, const struct rt_bytes *message)
{
    struct mpi_fabric *m = of(f);
    int error = forget_sent(m);
    struct sending *s = error ? NULL : malloc(sizeof *s + message->n);
    if (!s)
        return error ? error : -ENOMEM;
    memcpy(s->data, message->data, message->n);
    if (MPI_Isend(s->data, (int)message->n, MPI_BYTE, to, TAG_CONTROL, m->control, &s->request) !=
        MPI_SUCCESS) {
        free(s);
        return -EIO;
    }
    s->next = m->sending;
    m->sending = s;
    return forget_sent(m);
}

static int flush(struct rt_fabric *f)
{
    const struct timespec pause = {.tv_nsec = 50000};
    int error = forget_sent(of(f));
    while (!error && of(f)->sending) {
        nanosleep(&pause, NULL);
        error = forget_sent(of(f));
    }
    return error;
}

static bool is_sending(const struct rt_fabric *f)
{
    return ((const struct mpi_fabric *)f)->sending != NULL;
}

static int receive(struct rt_fabric *f, int *ret_from, struct rt_bytes *ret)
{
    struct mpi_fabric *m = of(f);
    int here = 0, n = 0;
    MPI_Status status;
    int error = forget_sent(m);
    if (error)
        return error;
    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_CONTROL, m->control, &here, &status) != MPI_SUCCESS)
        return -EIO;
    if (!here)
        return 0;
    MPI_Get_count(&status, MPI_BYTE, &n);
    struct rt_bytes message = {.data = malloc((size_t)n + 1), .n = (size_t)n};
    if (!message.data)
        return -ENOMEM;
    if (MPI_Recv(message.data, n, MPI_BYTE, status.MPI_SOURCE, TAG_CONTROL, m->control, &status) !=
        MPI_SUCCESS) {
        free(message.data);
        return -EIO;
    }
    *ret_from = status.MPI_SOURCE;
    *ret = message;
    return 1;
}

/* ---- from begin to end ---- */

static void free_comm(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_NULL)
        MPI_Comm_free(comm);
}

static void free_fabric(struct rt_fabric *f)
{
    struct mpi_fabric *m = of(f);
    while (m->sending) {
        struct sending *s = m->sending;
        m->sending = s->next;
        MPI_Wait(&s->request, MPI_STATUS_IGNORE);
        free(s);
    }
    rt_transport_mpi_free(m->all);
    free_comm(&m->control);
    free_comm(&m->data);
    if (m->owns_mpi)
        MPI_Finalize();
    free(m);
}

static const struct rt_fabric_ops ops = {
    .allgather = allgather,
    .group_new = group_new,
    .group_free = rt_transport_mpi_free,
    .send = send,
    .flush = flush,
    .is_sending = is_sending,
    .receive = receive,
    .free = free_fabric,
};

static int begin_mpi(struct mpi_fabric *m, char *message, size_t message_bytes)
{
    int initialized = 0, finalized = 0, provided = MPI_THREAD_SINGLE;
    MPI_Finalized(&finalized);
    if (finalized) {
        snprintf(message, message_bytes,
                 "MPI_Finalize has been called, and MPI can't begin again in a process; where the "
                 "program itself initialises MPI, with MPI_THREAD_MULTIPLE, rt_init may be called "
                 "again after rt_shutdown");
        return -ENOTSUP;
    }
    MPI_Initialized(&initialized);
    m->owns_mpi = !initialized;
    if (initialized)
        MPI_Query_thread(&provided);
    else if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        provided = MPI_THREAD_SINGLE;
    if (provided >= (initialized ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED))
        return 0;
    snprintf(message, message_bytes, "%s",
             initialized ? "the program has initialised MPI without MPI_THREAD_MULTIPLE"
                         : "MPI_Init_thread failed or gives no MPI_THREAD_FUNNELED");
    return -ENOTSUP;
}

static int make_comms(struct mpi_fabric *m, char *message, size_t message_bytes)
{
    if (MPI_Comm_dup(MPI_COMM_WORLD, &m->data) != MPI_SUCCESS ||
        MPI_Comm_dup(MPI_COMM_WORLD, &m->control) != MPI_SUCCESS) {
        snprintf(message, message_bytes, "MPI_Comm_dup of MPI_COMM_WORLD failed");
        return -EIO;
    }
    MPI_Comm_set_errhandler(m->data, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(m->control, MPI_ERRORS_RETURN);
    m->all = rt_transport_mpi_new(&m->data, TAG_GATHER, NULL, 0);
    if (!m->all) {
        snprintf(message, message_bytes, "no memory");
        return -ENOMEM;
    }
    return 0;
}

/* Of another MPI's launcher each rank knows nothing, and would run alone, unnoticed. */
static void warn_of_other_launcher(int size)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    bool warned = size > 1;
    for (size_t i = 0; i < sizeof names / sizeof *names && !warned; i++) {
        const char *text = getenv(names[i]);
        warned = text && atoi(text) > 1;
        if (warned)
            fprintf(stderr,
                    "rt: this rank runs alone, although %s is %s: was the program built with "
                    "another MPI than its launcher's?\n",
                    names[i], text);
    }
}

struct rt_fabric *rt_fabric_mpi_open(int *ret_error, char *message, size_t message_bytes)
{
    struct mpi_fabric *m = calloc(1, sizeof *m);
    *ret_error = -ENOMEM;
    if (!m)
        return NULL;
    m->base = (struct rt_fabric){.ops = &ops, .word = "MPI"};
    m->data = m->control = MPI_COMM_NULL;
    *ret_error = begin_mpi(m, message, message_bytes);
    if (!*ret_error)
        *ret_error = make_comms(m, message, message_bytes);
    if (*ret_error) {
        free(m);
        return NULL;
    }
    MPI_Comm_rank(m->data, &m->base.rank);
    MPI_Comm_size(m->data, &m->base.size);
    warn_of_other_launcher(m->base.size);
    return &m->base;
}
