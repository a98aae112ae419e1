/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-transport-mpi.h - a transport of rt_coll over MPI point-to-point: Isend, Irecv, Waitall.
 *
 * Ranks are those of `comm`, which stays the caller's; give a duplicate where the program sends
 * messages of its own with `tag`. Threads: MPI's own rules, for what was asked of MPI_Init_thread.
 * Errors: with MPI_ERRORS_RETURN on `comm`, a failed call gives -EIO; else MPI does what it does.
 */
#ifndef RT_TRANSPORT_MPI_H
#define RT_TRANSPORT_MPI_H

#include <mpi.h>

#include "rt-coll.h"

struct rt_transport_mpi {
    struct rt_transport base;
    MPI_Comm comm;
    int tag;
};

/* Fills `t`; release with rt_transport_release(&t->base). */
int rt_transport_mpi_init(struct rt_transport_mpi *t, MPI_Comm comm, int tag);

#endif
