/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.h - the members of a communicator, and the number that all of them know it by.
 *
 * Everything is computed on each rank from what it knows; nothing is sent. Members are world ranks,
 * -1 for a process of another MPI_COMM_WORLD. What goes into a number:
 * schemas/capture-format.md, "Definitions".
 */
#ifndef RS_TRACER_MPI_IDENTITY_H
#define RS_TRACER_MPI_IDENTITY_H

#include "handles.h"

struct rs_mpi_members {
    int32_t *ranks; /* by rank in the communicator, both groups of an intercommunicator; owned */
    int32_t size;
    int32_t own; /* own place in ranks */
    bool inter;
    bool local_first; /* intercommunicator: the local group's ranks come first */
};

/* -EIO: MPI would not tell. */
int rs_mpi_members_of(MPI_Comm comm, struct rs_mpi_members *ret) RS_HIDDEN;
void rs_mpi_members_clear(struct rs_mpi_members *m) RS_HIDDEN;

/* Of MPI_COMM_WORLD: all processes of the run that this process was started with. */
uint64_t rs_mpi_identity_of_world(void) RS_HIDDEN;
/* `child`: how many communicators its parent had made before on this rank. */
uint64_t rs_mpi_identity_of_child(uint64_t parent, uint32_t child, int colour,
                                  const struct rs_mpi_members *m) RS_HIDDEN;
/* Known by its members alone (and `seed`): the n-th of the same, counted here. */
uint64_t rs_mpi_identity_of_group(uint64_t seed, int colour,
                                  const struct rs_mpi_members *m) RS_HIDDEN;

#endif
