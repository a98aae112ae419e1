/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranges.h - NVTX ranges that are open: a stack for each thread, a pool for start/end spans.
 *
 * A range is recorded when it ends, on the thread that ends it. One that began before the capture
 * did (no MPI or NCCL call yet), or inside a recorded call (NCCL's own ranges repeat what the
 * call's record says), is not recorded, but keeps pops balanced.
 */
#ifndef RS_TRACER_NVTX_RANGES_H
#define RS_TRACER_NVTX_RANGES_H

#include "core.h"

/* What a range is, resolved to ids of the capture at its beginning. */
struct rs_nvtx_what {
    uint32_t name, domain, category, color;
    uint64_t payload;
    uint16_t payload_type;         /* struct rs_range_event */
    struct rs_nvtx_fields *fields; /* payload.h; NULL none. Whoever is given a `what` has them */
};

/* `what` NULL: keep the pop balanced, record nothing. `key` tells domains apart. Returns the
 * nesting of `key` on this thread before the push, as NVTX does. */
int rs_nvtx_push(const void *key, const struct rs_nvtx_what *what) RS_HIDDEN;
/* Returns the nesting after the pop; -1 where there was nothing to pop. */
int rs_nvtx_pop(const void *key) RS_HIDDEN;
/* The same; what `at_end` (may be NULL) names takes the place of what the push named, and its
 * fields are added. */
int rs_nvtx_pop_with(const void *key, const struct rs_nvtx_what *at_end) RS_HIDDEN;
/* Returns an id for rs_nvtx_end; 0, which ends nothing, where `what` is NULL or too many are open.
 */
uint64_t rs_nvtx_start(const struct rs_nvtx_what *what) RS_HIDDEN;
void rs_nvtx_end(uint64_t id) RS_HIDDEN;
void rs_nvtx_end_with(uint64_t id, const struct rs_nvtx_what *at_end) RS_HIDDEN;
void rs_nvtx_mark(const struct rs_nvtx_what *what) RS_HIDDEN;
/* The child of a fork: what is open belongs to its parent's capture. */
void rs_nvtx_ranges_forget(void) RS_HIDDEN;

#endif
