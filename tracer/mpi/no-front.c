/* SPDX-License-Identifier: Apache-2.0 */
/* no-front.c - machines whose jumps nobody has written (stubs.inc): MPI goes unseen, and is said
 * to. */
#include "parts.h"
#include "unobserved.h"

void rs_mpi_init(const char *library)
{
    (void)library;
    rs_core->meta("off.mpi", "not supported on this kind of processor");
}

void rs_mpi_unseen(struct rs_unseen *ret)
{
    (void)ret;
}
