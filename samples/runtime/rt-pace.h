/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-pace.h - when the background thread announces what was handed over, and how long it sleeps
 * between two looks.
 *
 * Model: what is handed over while nothing is under way is announced at once. What comes while
 * something is waits for more to go with it, until that is done or a cycle has passed since the
 * last announcement: so one tensor after another isn't held up, and many at a time are fused.
 *
 * A thread that has just done something looks again for some microseconds, giving way to others,
 * as an answer takes less than sleeping and waking does; where ranks are more than processors it
 * doesn't. Then it sleeps: until its bell rings (rt-bells.h), or where that can't be relied on in
 * naps that grow from some microseconds to a cycle.
 *
 * Units: nanoseconds of one clock. No memory, no errors; reads no clock itself.
 */
#ifndef RT_PACE_H
#define RT_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define RT_PACE_FOREVER UINT64_MAX

struct rt_pace {
    uint64_t cycle_ns;
    bool crowded; /* more ranks than processors on the host */
    bool rung;    /* a bell tells of all that comes */
    uint64_t announced_ns, awake_ns, nap_ns;
    unsigned looks; /* since something was done, or the bell rang */
};

/* What there is. */
struct rt_pace_work {
    bool new_ones;  /* handed over and not announced */
    bool under_way; /* announced and not done */
    bool sending;   /* something that needs this thread's attention to go out */
};

void rt_pace_init(struct rt_pace *p, uint64_t cycle_ns, bool crowded, bool rung);

/* May what was handed over be announced now? */
bool rt_pace_may_announce(const struct rt_pace *p, uint64_t now_ns, bool under_way);
void rt_pace_announced(struct rt_pace *p, uint64_t now_ns);
/* Something was done, or the bell rang. */
void rt_pace_active(struct rt_pace *p, uint64_t now_ns);
/* How long to sleep after a look that found nothing to do; 0: look again at once. */
uint64_t rt_pace_rest_ns(struct rt_pace *p, uint64_t now_ns, struct rt_pace_work work);

#endif
