/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - what a generated wrapper is made of: one struct rs_mpi_call on its stack, entered,
 * left, and written as one event with its extension slots.
 *
 * Everything here is inlined into each wrapper: with a communicator and type seen before, a
 * blocking call costs two time stamps, what the thread is in, and 48 bytes.
 */
#ifndef RS_TRACER_MPI_RECORD_H
#define RS_TRACER_MPI_RECORD_H

#include "handles.h"
#include "requests.h"
#include "sessions.h"

struct rs_mpi_call { /* ids and all, as struct rs_event has them */
    uint64_t count, start;
    uint32_t comm, dtype, redop;
    uint32_t seq;
    int32_t peer;
    uint16_t op, flags;
};

RS_INLINE void rs_mpi_enter(struct rs_thread *t, struct rs_mpi_call *c)
{
    c->start = rs_call_enter(t, c->op, c->comm, c->seq, c->peer, c->count, c->dtype);
}

/* Room for the event and `ext` slots after it; looks for the drain thread's progress where needed.
 */
bool rs_mpi_room_slow(struct rs_thread *t, unsigned slots) RS_HIDDEN;
RS_INLINE bool rs_mpi_room(struct rs_thread *t, unsigned slots)
{
    return RS_LIKELY(t->head + slots <= t->limit) || rs_mpi_room_slow(t, slots);
}

/* Leaves the call and writes its event; false: dropped. The caller then fills `ext` slots from
 * rs_slot(t, 1), and commits 1 + ext. */
RS_INLINE bool rs_mpi_leave(struct rs_thread *t, const struct rs_mpi_call *c, int result,
                            unsigned ext)
{
    uint64_t end = rs_call_leave(t);
    if (!rs_mpi_room(t, 1 + ext))
        return false;
    struct rs_event *e = rs_slot(t, 0);
    __builtin_prefetch(e + 12, 1);
    e->op = c->op;
    e->flags = (uint16_t)(c->flags | (result ? RS_EVENT_FAILED : 0) | (ext ? RS_EVENT_EXT : 0));
    e->peer = c->peer;
    e->start = c->start;
    e->end = end;
    e->count = c->count;
    e->comm = c->comm;
    e->dtype = c->dtype;
    e->seq = c->seq;
    e->redop = c->redop;
    return true;
}

RS_INLINE void rs_mpi_put_request(struct rs_thread *t, unsigned slot, uint64_t request)
{
    struct rs_ext_request *x = rs_slot(t, slot);
    *x = (struct rs_ext_request){.op = RS_EXT_REQUEST, .request = request};
}

RS_INLINE void rs_mpi_put_second(struct rs_thread *t, unsigned slot, int32_t peer, uint64_t count,
                                 const struct rs_type *type, int32_t tag)
{
    struct rs_ext_second *x = rs_slot(t, slot);
    *x = (struct rs_ext_second){
        .op = RS_EXT_SECOND, .peer = peer, .count = count, .dtype = type->id, .tag = tag};
}

/* -3 where a status is empty: its request was inactive. */
RS_INLINE int32_t rs_mpi_status_source(const struct rs_comm *c, const MPI_Status *s)
{
    if (RS_UNLIKELY(c && (c->api & RS_MPI_INTER) && s->MPI_SOURCE >= 0))
        return c->api & RS_MPI_LOCAL_FIRST ? -3 : s->MPI_SOURCE;
    return s->MPI_SOURCE == MPI_PROC_NULL ? -1 : s->MPI_SOURCE < 0 ? -3 : s->MPI_SOURCE;
}

RS_INLINE void rs_mpi_put_status(struct rs_thread *t, unsigned slot, const struct rs_comm *c,
                                 const MPI_Status *s)
{
    struct rs_ext_status *x = rs_slot(t, slot);
    *x = (struct rs_ext_status){.op = RS_EXT_STATUS,
                                .source = rs_mpi_status_source(c, s),
                                .tag = s->MPI_TAG,
                                .bytes = rs_mpi_status_bytes(s)};
}

RS_INLINE void rs_mpi_put_place(struct rs_thread *t, unsigned slot, int64_t offset, uint64_t count,
                                uint32_t dtype)
{
    struct rs_ext_place *x = rs_slot(t, slot);
    *x =
        (struct rs_ext_place){.op = RS_EXT_PLACE, .dtype = dtype, .offset = offset, .count = count};
}

/* What a file access really read or wrote. */
RS_INLINE void rs_mpi_put_moved(struct rs_thread *t, unsigned slot, const MPI_Status *s)
{
    struct rs_ext_status *x = rs_slot(t, slot);
    *x = (struct rs_ext_status){.op = RS_EXT_STATUS, .source = -3, .bytes = rs_mpi_status_bytes(s)};
}

/* Whether a receive's status tells what its arguments don't. */
RS_INLINE bool rs_mpi_is_any(int source, int tag)
{
    return source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG;
}

/* A completion call that finished these of the requests saved before it: `indices` NULL for the
 * first `n` of them, statuses NULL or MPI_STATUSES_IGNORE where none were told. Leaves and commits.
 */
void rs_mpi_leave_done(struct rs_thread *t, struct rs_mpi_call *c, int result, int n,
                       const uint64_t *requests, const int *indices,
                       const MPI_Status *statuses) RS_HIDDEN;
/* One request, the usual case. */
RS_INLINE void rs_mpi_leave_done_one(struct rs_thread *t, struct rs_mpi_call *c, int result,
                                     bool done, uint64_t request, const MPI_Status *s)
{
    done =
        done && result == MPI_SUCCESS && request != rs_mpi_handle(rs_mpi_predefined.request_null);
    c->count = done;
    if (!rs_mpi_leave(t, c, result, done))
        return;
    if (done) {
        struct rs_ext_done *x = rs_slot(t, 1);
        *x = (struct rs_ext_done){.op = RS_EXT_DONE, .n = 1};
        x->done[0].request = request;
        x->done[0].source = rs_mpi_status_source(NULL, s);
        x->done[0].tag = s->MPI_TAG;
    }
    rs_commit(t, 1 + (unsigned)done);
    if (done && RS_UNLIKELY(rs_mpi_promises))
        rs_mpi_promise_kept(t, request);
}

/* Persistent requests: one event for the call, one more for each operation that it started. */
void rs_mpi_leave_started(struct rs_thread *t, struct rs_mpi_call *c, int result, int n,
                          const uint64_t *requests) RS_HIDDEN;

/* The life of MPI: life.c. */
void rs_mpi_after_init(struct rs_thread *t) RS_HIDDEN;
void rs_mpi_after_session(struct rs_thread *t) RS_HIDDEN;      /* one was made */
void rs_mpi_after_last_session(struct rs_thread *t) RS_HIDDEN; /* none is left */
void rs_mpi_before_abort(void) RS_HIDDEN;
bool rs_mpi_is_live(struct rs_thread *t) RS_HIDDEN;
/* MPI_Init was called, MPI_Finalize not: there is an MPI_COMM_WORLD. */
bool rs_mpi_has_world(void) RS_HIDDEN;
/* Of sessions.c: the first one of those open has come, the last one goes. */
void rs_mpi_life_begins_again(void) RS_HIDDEN;
void rs_mpi_life_ends(void) RS_HIDDEN;

#endif
