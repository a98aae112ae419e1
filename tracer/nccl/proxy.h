/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy.h - what NCCL's proxy did for an execution, step by step: sums of steps, bytes, and of the
 * time that steps waited for the GPU, for the peer and for the network; and of what the network
 * plug-in told.
 *
 * Model: a step belongs to a proxy operation's execution, a network event to its step. Each is one
 * slot from its begin to its end, then a summand; the sums go with the execution's record. A step
 * is of one thread, NCCL's proxy; network events may be of others.
 * Units: nanoseconds, bytes. Memory: two pools, made at rs_proxy_init and used in turn; a handle
 * names a slot and its turn, so that a stale one is recognised and does nothing.
 */
#ifndef RS_TRACER_NCCL_PROXY_H
#define RS_TRACER_NCCL_PROXY_H

#include "core.h"

struct rs_proxy_sums {
    uint64_t steps, bytes, gpu_wait_ns, peer_wait_ns, net_wait_ns;
    uint64_t net_events, net_bytes, net_ns;
};

bool rs_proxy_init(void) RS_HIDDEN;
/* New sums, all 0; 0 where there are none. */
uint32_t rs_proxy_sums_new(void) RS_HIDDEN;
/* *ret is what they are; false where they are another's by now. */
bool rs_proxy_sums_get(uint32_t sums, struct rs_proxy_sums *ret) RS_HIDDEN;

/* Begins of a step and of an event below one: handles, 0 none. `step`: as rs_proxy_step gave it. */
uint64_t rs_proxy_step(uint32_t sums) RS_HIDDEN;
uint64_t rs_proxy_net(uint64_t step, uint64_t bytes) RS_HIDDEN;
/* The step is in this state of NCCL's now; `bytes` it has moved so far, 0 unknown. */
void rs_proxy_state(uint64_t step, int state, uint64_t bytes) RS_HIDDEN;
/* False: the handle is none of these. */
bool rs_proxy_stop(uint64_t handle) RS_HIDDEN;

/* The sums as slots behind an event, 0 where there are none. */
#define RS_PROXY_SLOTS_MAX 4
unsigned rs_proxy_slots(const struct rs_proxy_sums *sums) RS_HIDDEN;
void rs_proxy_put(struct rs_thread *t, unsigned at, const struct rs_proxy_sums *sums) RS_HIDDEN;

#endif
