/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests.h - what must be remembered around calls on requests: handles that a completion call
 * overwrites, statuses that the program ignores, messages probed but not received, persistent
 * requests, and communicators that come to be when a request completes.
 *
 * Memory: a thread's scratch grows at its first larger array and stays. Where it can't grow, the
 * call goes through and its completions are not told.
 */
#ifndef RS_TRACER_MPI_REQUESTS_H
#define RS_TRACER_MPI_REQUESTS_H

#include "flavour.h"

/* Handles as they are now; NULL where there is no room. */
const uint64_t *rs_mpi_save_requests(struct rs_thread *t, int n,
                                     const MPI_Request *requests) RS_HIDDEN;
/* `statuses`, or scratch where the program ignores them; may still be MPI_STATUSES_IGNORE. */
MPI_Status *rs_mpi_some_statuses(struct rs_thread *t, int n, MPI_Status *statuses) RS_HIDDEN;

/* The communicator of a message that a matched probe found, until it is received. */
void rs_mpi_message_found(MPI_Message message, struct rs_comm *comm) RS_HIDDEN;
struct rs_comm *rs_mpi_message_taken(MPI_Message message) RS_HIDDEN; /* rs_mpi_no_comm: unknown */

/* MPI_Comm_idup: *newcomm is a communicator once `request` is complete. */
void rs_mpi_comm_promised(const struct rs_comm *parent, MPI_Comm *newcomm, uint32_t child,
                          uint64_t request) RS_HIDDEN;
extern unsigned rs_mpi_promises RS_HIDDEN; /* number of those still open */
void rs_mpi_promise_kept(struct rs_thread *t, uint64_t request) RS_HIDDEN;

/* What a persistent request does each time it is started. */
struct rs_mpi_persistent {
    uint64_t request;   /* raw handle, never 0 */
    struct rs_comm *on; /* a collective's; NULL: a message */
    uint32_t comm, dtype, redop;
    int32_t peer, tag;
    uint16_t op, flags; /* op: of the event that a start leaves */
    bool second;        /* the receive side differs */
    const struct rs_type *rtype;
    uint64_t count, rcount;
};
void rs_mpi_persistent_made(const struct rs_mpi_persistent *p) RS_HIDDEN;
bool rs_mpi_persistent_find(uint64_t request, struct rs_mpi_persistent *ret) RS_HIDDEN;

#endif
