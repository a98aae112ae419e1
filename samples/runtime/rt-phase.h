/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-phase.h - Horovod's phases of a tensor, shown to a profiler as NVTX ranges, and noted in the
 * timeline file where one is open.
 *
 * Model: NEGOTIATE_<KIND> from hand-over until all ranks have it, then <KIND> until it is done, and
 * in it one activity after another (QUEUE, MEMCPY_IN_FUSION_BUFFER, NCCL_REDUCESCATTER, ...). All
 * in the domain "horovod", with the tensor's name, and its
 * process set's where that isn't all ranks, as category. Costs nothing without a profiler.
 * Threads: one tensor's phases by one thread at a time.
 */
#ifndef RT_PHASE_H
#define RT_PHASE_H

#include <stdint.h>

#include "rt-message.h"
#include "rt-timeline.h"

struct rt_phases {
    uint32_t category;
    uint64_t whole;    /* NEGOTIATE_<KIND>, then <KIND> */
    uint64_t activity; /* inside <KIND> */
    struct rt_timeline_tensor *timeline;
};

void rt_phases_init(void);
void rt_phases_release(void);

void rt_phase_negotiate(struct rt_phases *p, const struct rt_tensor *tensor);
void rt_phase_agreed(struct rt_phases *p, const struct rt_tensor *tensor);
/* Ends the activity before; NULL: none follows. */
void rt_phase_activity(struct rt_phases *p, const char *activity);
void rt_phase_done(struct rt_phases *p);

#endif
