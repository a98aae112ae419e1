/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.h - MPI 4's sessions: MPI works as long as one is open, whether or not MPI_Init came.
 *
 * Model: those open are counted even where nothing is recorded, so that recording may begin at any
 * time. Where there is no MPI_COMM_WORLD the process set mpi://WORLD of an open session stands for
 * it: world ranks are ranks in it. Nothing is exchanged between ranks, as nobody says that all of
 * them have sessions: no clocks are compared, and each keeps the run id that it was given.
 * Threads: any. An MPI without sessions has none open.
 */
#ifndef RS_TRACER_MPI_SESSIONS_H
#define RS_TRACER_MPI_SESSIONS_H

#include "flavour.h"

unsigned rs_mpi_sessions_open(void) RS_HIDDEN;
/* All processes of the run as a group, which the caller frees; -ENOENT: no session knows it. */
int rs_mpi_session_world(MPI_Group *ret) RS_HIDDEN;
/* A string tag as identities take it (identity.h). */
int rs_mpi_colour_of(const char *stringtag) RS_HIDDEN;

#if RS_MPI_HAS_SESSIONS
/* Around the calls. Those from inside of another recorded call are the library's or a tool's own.
 * made returns `result`; ends returns whether it is the last one. */
int rs_mpi_session_made(int result, const MPI_Session *session) RS_HIDDEN;
bool rs_mpi_session_ends(const MPI_Session *session) RS_HIDDEN;
#endif

#endif
