/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include <errno.h>

bool rs_mpi_room_slow(struct rs_thread *t, unsigned slots)
{
    int saved = errno;
    bool room = rs_core->make_room(t, slots);
    errno = saved;
    return room;
}

struct done {
    const uint64_t *requests;
    const int *indices;
    const MPI_Status *statuses; /* NULL: not told */
    int n;
};

static uint64_t done_request(const struct done *d, int i)
{
    uint64_t request = d->requests[d->indices ? d->indices[i] : i];
    return request == rs_mpi_handle(rs_mpi_predefined.request_null) ? 0 : request;
}

static unsigned count_done(const struct done *d)
{
    unsigned n = 0;
    for (int i = 0; i < d->n; i++)
        n += done_request(d, i) != 0;
    return n;
}

static void put_done(struct rs_thread *t, const struct done *d, unsigned total)
{
    unsigned k = 0;
    for (int i = 0; i < d->n && k < total; i++) {
        uint64_t request = done_request(d, i);
        if (!request)
            continue;
        struct rs_ext_done *x = rs_slot(t, 1 + k / RS_EXT_DONE_MAX);
        if (k % RS_EXT_DONE_MAX == 0)
            *x = (struct rs_ext_done){.op = RS_EXT_DONE};
        x->done[x->n].request = request;
        x->done[x->n].source = d->statuses ? rs_mpi_status_source(NULL, &d->statuses[i]) : -3;
        x->done[x->n].tag = d->statuses ? d->statuses[i].MPI_TAG : 0;
        x->n++;
        k++;
    }
}

static void keep_promises(struct rs_thread *t, const struct done *d)
{
    for (int i = 0; rs_mpi_promises && i < d->n; i++)
        rs_mpi_promise_kept(t, done_request(d, i));
}

void rs_mpi_leave_done(struct rs_thread *t, struct rs_mpi_call *c, int result, int n,
                       const uint64_t *requests, const int *indices, const MPI_Status *statuses)
{
    struct done d = {.requests = requests, .indices = indices, .n = n};
    d.statuses = statuses == MPI_STATUSES_IGNORE ? NULL : statuses;
    unsigned total = count_done(&d);
    c->count = total;
    /* An array that no ring could hold is told in part. */
    unsigned most = (unsigned)(t->mask / 4) * RS_EXT_DONE_MAX;
    unsigned told = total < most ? total : most;
    unsigned ext = (told + RS_EXT_DONE_MAX - 1) / RS_EXT_DONE_MAX;
    if (rs_mpi_leave(t, c, result, ext)) {
        put_done(t, &d, told);
        rs_commit(t, 1 + ext);
    }
    keep_promises(t, &d);
}

static void put_started(struct rs_thread *t, const struct rs_mpi_call *call, uint64_t end,
                        const struct rs_mpi_persistent *p)
{
    unsigned slots = 2 + (unsigned)p->second;
    uint32_t seq = p->on ? p->on->next_seq++ : (uint32_t)p->tag;
    if (!rs_mpi_room(t, slots))
        return;
    struct rs_event *e = rs_slot(t, 0);
    *e = (struct rs_event){
        .op = p->op,
        .flags = (uint16_t)(p->flags | RS_EVENT_EXT),
        .peer = p->peer,
        .start = call->start,
        .end = end,
        .count = p->count,
        .comm = p->comm,
        .dtype = p->dtype,
        .seq = seq,
        .redop = p->redop,
    };
    rs_mpi_put_request(t, 1, p->request);
    if (p->second)
        rs_mpi_put_second(t, 2, -1, p->rcount, p->rtype, 0);
    rs_commit(t, slots);
}

void rs_mpi_leave_started(struct rs_thread *t, struct rs_mpi_call *c, int result, int n,
                          const uint64_t *requests)
{
    c->count = n < 0 ? 0 : (uint64_t)n;
    if (rs_mpi_leave(t, c, result, 0))
        rs_commit(t, 1);
    if (result != MPI_SUCCESS)
        return;
    uint64_t end = rs_tick();
    for (int i = 0; i < n; i++) {
        struct rs_mpi_persistent p;
        if (rs_mpi_persistent_find(requests[i], &p))
            put_started(t, c, end, &p);
    }
}
