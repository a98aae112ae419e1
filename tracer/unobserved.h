/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unobserved.h - whether the program communicates past the tracer: by handles from dlsym, from a
 * library that was bound deeply or under another front, or by a library linked into the program.
 *
 * Model: at its orderly end a process asks each API of which nothing came by whether it was used
 * all the same, and says so in its capture, which is made for that where there is none. Each looks
 * for what is certain: MPI was initialized, NCCL asked for its profiler or opened its NVTX domain.
 * A library that is merely mapped is no more than a hint, and makes no capture: launchers and
 * helpers have it mapped, too. Threads: one, at the end. It may call the loader and malloc: not in
 * handlers.
 */
#ifndef RS_TRACER_UNOBSERVED_H
#define RS_TRACER_UNOBSERVED_H

#include <limits.h>

#include "core.h"

enum rs_use { RS_USE_NONE, RS_USE_MAPPED, RS_USE_CERTAIN };

/* What was used and not seen. `path`: of the file that has the library. */
struct rs_unseen {
    enum rs_use use;
    bool in_program; /* linked into the executable */
    char path[PATH_MAX];
};

/* Each API's own look (mpi/, nccl/). */
void rs_mpi_unseen(struct rs_unseen *ret) RS_HIDDEN;
void rs_nccl_unseen(struct rs_unseen *ret) RS_HIDDEN;

/* An NCCL called us, from this code: for its profiler or its NVTX domain. Any thread. */
void rs_nccl_came(const void *code) RS_HIDDEN;

/* Of the file that holds the code at `address`; false: unknown. */
bool rs_unseen_place(struct rs_unseen *u, const void *address) RS_HIDDEN;
/* A function that a library of the process other than this one exports; NULL without. */
void *rs_unseen_in_libraries(const char *name) RS_HIDDEN;
/* Where in this process a function is that the program's own file defines, by the symbol table that
 * linkers leave for debuggers; NULL without (stripped), and where that is large and the process no
 * launcher's rank. */
void *rs_unseen_in_program(const char *name) RS_HIDDEN;

/* At the orderly end, before the capture's. */
void rs_unobserved_tell(void) RS_HIDDEN;

#endif
