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

#endif
