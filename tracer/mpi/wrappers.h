/* SPDX-License-Identifier: Apache-2.0 */
/* wrappers.h - the generated wrappers of a back end, as a table in the order of mpi.api. */
#ifndef RS_TRACER_MPI_WRAPPERS_H
#define RS_TRACER_MPI_WRAPPERS_H

#include "back.h"

extern const struct rs_mpi_back rs_mpi_wrappers RS_HIDDEN;
extern const unsigned rs_mpi_wrapper_count RS_HIDDEN;

#endif
