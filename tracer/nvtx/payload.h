/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.h - the payloads of an NVTX event, as fields: name, number, and text where there is one.
 *
 * Model: what the layouts name is read out of the program's memory at the call, nested ones as
 * "outer.inner", arrays as "name[0]". Of an event at most RS_NVTX_FIELDS_MAX are kept, in a block
 * of a fixed pool that the open range holds; what has no place is counted and said once.
 * Nothing outside of the payload is read but what its pointers name, and that by a way that can't
 * crash. Not read: unions, offsets, integers of 128 bits that don't fit 64, floats of 128 bits.
 * Threads: any, without locks. Memory: RS_NVTX_BLOCKS blocks.
 */
#ifndef RS_TRACER_NVTX_PAYLOAD_H
#define RS_TRACER_NVTX_PAYLOAD_H

#include "core.h"
#include "payload-abi.h"
#include "ranges.h"

#define RS_NVTX_FIELDS_MAX   32
#define RS_NVTX_PAYLOADS_MAX 16
#define RS_NVTX_BLOCKS       256

struct rs_nvtx_field {
    uint64_t value;
    uint32_t name, text, schema; /* ids of strings, 0 none */
    uint16_t type;               /* as in struct rs_ext_fields */
};
struct rs_nvtx_fields {
    uint32_t n;
    struct rs_nvtx_field field[RS_NVTX_FIELDS_MAX];
};

/* Adds to what->fields, which it takes from the pool; a message, color or category among them goes
 * to `what` itself. errno is kept. */
void rs_nvtx_payloads_read(const void *domain, const struct rs_nvtx_payload *payloads, size_t count,
                           struct rs_nvtx_what *what) RS_HIDDEN;
void rs_nvtx_fields_release(struct rs_nvtx_fields *fields) RS_HIDDEN; /* NULL-safe */

/* Extension slots that the fields take, and writing them from slot `at` on. NULL: none. */
unsigned rs_nvtx_fields_slots(const struct rs_nvtx_fields *fields) RS_HIDDEN;
void rs_nvtx_fields_put(struct rs_thread *t, unsigned at,
                        const struct rs_nvtx_fields *fields) RS_HIDDEN;

#endif
