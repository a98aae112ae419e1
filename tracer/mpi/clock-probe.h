/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock-probe.h - round trips between clock domains, from which the analyzer gets their offsets.
 *
 * Model: the lowest world rank of each clock domain speaks for it; each of them exchanges stamped
 * messages with world rank 0 on a communicator of our own, and tells the shortest round trips to
 * the capture. Ranks of one domain share a clock and exchange nothing.
 * On the way every rank takes world rank 0's run id, as a launcher may give each host another.
 * Limits: a peer that does not answer within the deadline is given up: nobody is delayed for long.
 * Where the launcher says that all ranks are on one host, nothing is exchanged. Else MPI_Init
 * starts a communicator of all ranks, waits some seconds for it, and does without clocks if a rank
 * is not traced: then this rank has made one nonblocking collective of MPI_COMM_WORLD more than
 * that one.
 */
#ifndef RS_TRACER_MPI_CLOCK_PROBE_H
#define RS_TRACER_MPI_CLOCK_PROBE_H

#include "core.h"

/* Collective over MPI_COMM_WORLD, inside MPI_Init, before any communicator has an identity. */
void rs_mpi_probe_begin(void) RS_HIDDEN;
/* At the start and at the end. Nothing where there is one domain, or where begin wasn't called. */
void rs_mpi_probe_clocks(void) RS_HIDDEN;

#endif
