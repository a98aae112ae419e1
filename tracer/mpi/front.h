/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h - finding the process's MPI, and the exported jumps' slots.
 *
 * Threads: all from any thread. Memory: what is found stays for the life of the process; the MPI
 * library and the back end are pinned.
 */
#ifndef RS_TRACER_MPI_FRONT_H
#define RS_TRACER_MPI_FRONT_H

#include "core.h"

enum rs_mpi_flavour { RS_MPI_UNKNOWN, RS_MPI_OPENMPI, RS_MPI_MPICH /* and what has its ABI */ };

struct rs_mpi_library {
    void *handle;
    void *base; /* where it is loaded */
    enum rs_mpi_flavour flavour;
    char version[256]; /* its own words, first line */
};

/* Finds an MPI in the process, however it was named and loaded. -ENOENT: there is none (yet). */
int rs_mpi_library_find(struct rs_mpi_library *ret) RS_HIDDEN;
/* The definition of `name` that follows ours in the global scope, where it is neither `library`'s
 * nor that of another MPI; NULL without. */
void *rs_mpi_library_next_tool(const struct rs_mpi_library *library, const char *name) RS_HIDDEN;

/* Generated: names in the order of mpi.api, and two slots each, MPI_X and PMPI_X. */
extern const struct rs_mpi_front_name {
    const char *name;
    uint16_t op;
    uint16_t answers_zero; /* without an MPI: success, *flag = 0 */
} rs_mpi_front_names[] RS_HIDDEN;
extern const unsigned rs_mpi_front_count RS_HIDDEN;
extern void *rs_mpi_slots[][2] RS_HIDDEN;

/* Called by the jumps through a slot not yet set: 2 * function + (0 MPI_X, 1 PMPI_X). Returns where
 * to jump. */
void *rs_mpi_resolve(unsigned entry) RS_HIDDEN;

#endif
