/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - what the library's constructor starts: each traced API's own init.
 *
 * They run once, in the constructor, before main, after rs_core is whole; they may not record, load
 * libraries or make files: only set environment variables for libraries to come, and tables.
 */
#ifndef RS_TRACER_PARTS_H
#define RS_TRACER_PARTS_H

#include "core.h"

/* `library`: absolute path of the preloaded library itself. */
void rs_mpi_init(const char *library) RS_HIDDEN;
void rs_nccl_init(const char *library) RS_HIDDEN;
void rs_nvtx_init(const char *library) RS_HIDDEN;
void rs_io_init(const char *library) RS_HIDDEN;
void rs_cuda_init(const char *library) RS_HIDDEN;

/* What CUPTI tells of devices. Not locked. */
void rs_cuda_capture_started(void) RS_HIDDEN; /* on the thread of the process's first event */
/* The drain thread, each time round: asks CUPTI for what it has a few times a second, and records
 * it; `write_rings` makes room for more. */
void rs_cuda_look(uint64_t now_ns, void (*write_rings)(void *data), void *data) RS_HIDDEN;
void rs_cuda_flush(void) RS_HIDDEN; /* all that CUPTI has is in the rings, or seconds have passed */

#endif
