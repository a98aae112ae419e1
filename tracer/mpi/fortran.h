/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fortran.h - what Fortran's bindings call beside what the program calls.
 *
 * Model: both MPIs' Fortran libraries convert their arguments (handles, MPI_BOTTOM, MPI_IN_PLACE,
 * MPI_STATUS_IGNORE, ...) and call the C function, Open MPI's as PMPI_X, MPICH's as MPI_X or
 * PMPI_X: so one record comes of each call by itself. For an array section MPICH's mpi_f08 makes a
 * datatype too, and frees it after the call; of these only MPI_Type_free is a wrapped function.
 */
#ifndef RS_TRACER_MPI_FORTRAN_H
#define RS_TRACER_MPI_FORTRAN_H

#include "core.h"

/* Whether `caller`, in an MPI_Type_free's caller, frees a type of the bindings' own. Slow at the
 * first call from each object; errno is kept. */
bool rs_mpi_is_own_type_of_fortran(void *caller) RS_HIDDEN;

#endif
