/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-transport-mpi.h - a transport of rt_coll over MPI point-to-point: Isend, Irecv, Waitall.
 *
 * The communicator stays the caller's; give a duplicate where the program sends messages of its own
 * with `tag`. Built once for each MPI, as this header names none.
 * Threads: MPI's own rules, for what was asked of MPI_Init_thread.
 * Errors: with MPI_ERRORS_RETURN on the communicator a failed call gives -EIO; else MPI's handler
 * runs.
 */
#ifndef RT_TRANSPORT_MPI_H
#define RT_TRANSPORT_MPI_H

#include "rt-coll.h"

/* `comm` points to an MPI_Comm. Over ranks[0], ranks[1], ... of it, this one among them, or over
 * all where `ranks` is NULL; transports on one communicator differ in their tags. NULL with errno
 * set on failure. Local: nothing is sent. */
struct rt_transport *rt_transport_mpi_new(const void *comm, int tag, const int *ranks, int n);
/* NULL-safe; before MPI_Finalize. */
void rt_transport_mpi_free(struct rt_transport *t);

#endif
