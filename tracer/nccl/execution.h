/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution.h - what a device did for an NCCL operation: from the start of its first kernel
 * channel to the end of its last, or of the last proxy operation, as one record with the
 * operation's own numbers.
 *
 * Model: an execution is begun once for each operation, then expects channels (by number where
 * NCCL tells it) and sees each begin and end, on whatever threads. When the last expected one has
 * ended, and the call that made it no longer holds it, the record is written into the ring of the
 * thread that saw that. A second run of the same operation (a replayed graph) is a record without
 * number.
 * Memory: a pool of RS_EXECUTIONS slots, made at rs_executions_init and used in turn; a handle
 * names a slot and its turn, so that one that is stale, 0 or anything else is recognised and does
 * nothing. An execution whose slot was taken again before it ended is counted as lost.
 * Threads: all, without locks.
 */
#ifndef RS_TRACER_NCCL_EXECUTION_H
#define RS_TRACER_NCCL_EXECUTION_H

#include "core.h"

#define RS_EXECUTIONS 65536u

struct rs_execution_facts {
    const struct rs_comm *on;
    uint16_t op, flags;
    int32_t peer;
    uint64_t count;
    uint32_t dtype, redop, seq;
};

/* False: no memory, or tried in vain before. */
bool rs_executions_init(void) RS_HIDDEN;
/* The handle, 0 on failure. `held`: not before rs_execution_release. */
uint64_t rs_execution_new(const struct rs_execution_facts *facts, bool held) RS_HIDDEN;
void rs_execution_release(uint64_t execution) RS_HIDDEN;
/* A part of it was enqueued, of `channels` channels; 0: their number is not known. */
bool rs_execution_expect(uint64_t execution, unsigned channels) RS_HIDDEN;
/* One of the expected channels begins, and is not to be recorded. */
void rs_execution_expect_less(uint64_t execution) RS_HIDDEN;
/* One of its channels has begun and not ended. */
bool rs_execution_is_running(uint64_t execution) RS_HIDDEN;
/* Where it is a message: the peer, if it was not known before. */
void rs_execution_set_peer(uint64_t execution, int32_t peer) RS_HIDDEN;

/* A channel's handle, 0 where `execution` is none. Times are ticks; rs_channel_ends at 0: now. */
uint64_t rs_channel_begin(uint64_t execution, uint64_t tick) RS_HIDDEN;
/* A proxy operation beside kernel channels: the execution lasts to its end too, where it began
 * before the last channel ended. Ended by rs_channel_stop. */
uint64_t rs_channel_begin_beside(uint64_t execution) RS_HIDDEN;
/* What steps of the proxy operation `channel` are summed up in (proxy.h); 0 none. */
uint32_t rs_channel_sums(uint64_t channel) RS_HIDDEN;
void rs_channel_ends(uint64_t channel, uint64_t tick) RS_HIDDEN;
void rs_channel_stop(uint64_t channel) RS_HIDDEN;

/* The communicator ends: writes executions of it whose channels came fewer than expected. */
void rs_executions_finish(const struct rs_comm *on) RS_HIDDEN;
/* Executions lost so far. */
uint64_t rs_executions_lost(void) RS_HIDDEN;

#endif
