/* SPDX-License-Identifier: Apache-2.0 */
/*
 * back.h - what the front library and a back end say to each other.
 *
 * Model: the front (in libringscope.so, libc alone) exports every MPI_X and PMPI_X as a jump
 * through a slot and knows no MPI type. A back end (libringscope-openmpi.so, libringscope-mpich.so:
 * one source, compiled against each mpi.h) holds the wrappers; the front loads it from its own
 * folder once it knows the process's MPI. Functions are numbered 0 .. RS_MPI_FUNCTIONS-1 in the
 * order of schemas/ops/mpi.api on both sides, so a back end of another build is refused: see `abi`.
 */
#ifndef RS_TRACER_MPI_BACK_H
#define RS_TRACER_MPI_BACK_H

#include "core.h"

/* Where a wrapper's call goes on to. `next`: the next preloaded definition of MPI_X, if it is not
 * the MPI library's own, else `real`. `real`: the library's PMPI_X. Filled by the front before the
 * wrapper's slot is set. */
struct rs_mpi_target {
    void *next, *real;
};

/* A wrapper's two entries: called as MPI_X (goes on to `next`), as PMPI_X (to `real`). NULL: no
 * wrapper for this MPI, the call goes straight through. */
struct rs_mpi_wrapper {
    void *mpi, *pmpi;
};

struct rs_mpi_back {
    const struct rs_mpi_wrapper *wrappers;
    struct rs_mpi_target *targets;
};

#define RS_MPI_ABI 1u

/* Returns 0, or -EPROTO where `abi`, `functions` or `version` are not the back end's own, or
 * -ENOENT where the library lacks what every MPI has. `library`: dlopen's handle, pinned. */
typedef int rs_mpi_back_init_fn(uint32_t abi, unsigned functions, const char *version,
                                const struct rs_core *core, void *library, struct rs_mpi_back *ret);
#define RS_MPI_BACK_INIT "rs_mpi_back_init"

#endif
