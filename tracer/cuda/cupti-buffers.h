/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti-buffers.h - the memory that CUPTI fills with records: a fixed number of buffers.
 *
 * Model: CUPTI asks for a buffer, keeps it as long as it likes, and hands it back with what it has
 * written; the drain thread then reads it and it is free again. When all are out CUPTI gets none,
 * drops, and counts what it dropped.
 * Threads: ask and give_back from any, on CUDA's calls or CUPTI's own threads; no lock. One reader.
 * Memory: at most RS_CUPTI_BUFFERS * RS_CUPTI_BUFFER_BYTES, mapped when first needed, never freed.
 */
#ifndef RS_TRACER_CUPTI_BUFFERS_H
#define RS_TRACER_CUPTI_BUFFERS_H

#include "core.h"

#define RS_CUPTI_BUFFERS      16
#define RS_CUPTI_BUFFER_BYTES ((size_t)256 << 10) /* as many records fit in half a thread's ring   \
                                                   */

struct rs_cupti_buffer {
    uint8_t *memory;
    size_t valid_bytes;
};

/* A free buffer, aligned to a page; NULL: there is none. */
uint8_t *rs_cupti_buffer_ask(void) RS_HIDDEN;
/* Back from CUPTI. False: not one of ours. */
bool rs_cupti_buffer_give_back(uint8_t *memory, size_t valid_bytes) RS_HIDDEN;
/* The reader: one that was given back, in their order; false: none. Then done with it. */
bool rs_cupti_buffer_take(struct rs_cupti_buffer *ret) RS_HIDDEN;
void rs_cupti_buffer_done(const struct rs_cupti_buffer *buffer) RS_HIDDEN;

#endif
