/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device-clock.h - times of a GPU's timer as ticks of the process's clock.
 *
 * The timer counts nanoseconds, nearly always of real time; we hear of a stamp a little after it
 * was taken. The least lag heard of so far tells whether that holds: below 1 ms it is taken as
 * delay; a greater, or a negative one, as the timer's own offset, and subtracted. All threads.
 */
#ifndef RS_TRACER_NCCL_DEVICE_CLOCK_H
#define RS_TRACER_NCCL_DEVICE_CLOCK_H

#include "core.h"

struct rs_device_clock {
    uint64_t tick, monotonic_ns; /* at init */
    int64_t least_lag_ns;        /* atomic */
};

void rs_device_clock_init(struct rs_device_clock *clock) RS_HIDDEN;
/* The tick of `timer`; now, where the timer is 0 or can't be meant. */
uint64_t rs_device_clock_tick(struct rs_device_clock *clock, uint64_t timer) RS_HIDDEN;

#endif
