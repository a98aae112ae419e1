/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-control.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TAG 1

struct sending {
    struct sending *next;
    MPI_Request request;
    char data[];
};

struct rt_control {
    MPI_Comm comm;
    struct sending *sending;
};

struct rt_control *rt_control_new(const void *comm)
{
    struct rt_control *c = calloc(1, sizeof *c);
    if (c)
        memcpy(&c->comm, comm, sizeof c->comm);
    return c;
}

void rt_control_free(struct rt_control *c)
{
    if (!c)
        return;
    while (c->sending) {
        struct sending *s = c->sending;
        c->sending = s->next;
        MPI_Wait(&s->request, MPI_STATUS_IGNORE);
        free(s);
    }
    free(c);
}

/* Looks after messages that were sent before: they need MPI's attention to go out. */
static int forget_sent(struct rt_control *c)
{
    for (struct sending **place = &c->sending; *place;) {
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

int rt_control_send(struct rt_control *c, int to, const struct rt_bytes *message)
{
    int error = forget_sent(c);
    struct sending *s = error ? NULL : malloc(sizeof *s + message->n);
    if (!s)
        return error ? error : -ENOMEM;
    memcpy(s->data, message->data, message->n);
    if (MPI_Isend(s->data, (int)message->n, MPI_BYTE, to, TAG, c->comm, &s->request) !=
        MPI_SUCCESS) {
        free(s);
        return -EIO;
    }
    s->next = c->sending;
    c->sending = s;
    return forget_sent(c);
}

int rt_control_flush(struct rt_control *c)
{
    const struct timespec pause = {.tv_nsec = 50000};
    int error = forget_sent(c);
    while (!error && c->sending) {
        nanosleep(&pause, NULL);
        error = forget_sent(c);
    }
    return error;
}

int rt_control_receive(struct rt_control *c, int *ret_from, struct rt_bytes *ret)
{
    int here = 0, n = 0;
    MPI_Status status;
    int error = forget_sent(c);
    if (error)
        return error;
    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG, c->comm, &here, &status) != MPI_SUCCESS)
        return -EIO;
    if (!here)
        return 0;
    MPI_Get_count(&status, MPI_BYTE, &n);
    struct rt_bytes message = {.data = malloc((size_t)n + 1), .n = (size_t)n};
    if (!message.data)
        return -ENOMEM;
    if (MPI_Recv(message.data, n, MPI_BYTE, status.MPI_SOURCE, TAG, c->comm, &status) !=
        MPI_SUCCESS) {
        free(message.data);
        return -EIO;
    }
    *ret_from = status.MPI_SOURCE;
    *ret = message;
    return 1;
}
