/* SPDX-License-Identifier: Apache-2.0 */
#include "device-clock.h"

#define DELAY_MAX_NS 1000000
#define LAG_MAX_NS   10000000000 /* of a stamp that is heard of late */
#define RATE_MIN_NS  1000000     /* between two readings, for a rate */

static uint64_t now_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void rs_device_clock_init(struct rs_device_clock *clock)
{
    *clock = (struct rs_device_clock){
        .tick = rs_tick(), .monotonic_ns = now_ns(CLOCK_MONOTONIC), .least_lag_ns = INT64_MAX};
}

static int64_t own_offset(struct rs_device_clock *clock, int64_t lag)
{
    int64_t least = __atomic_load_n(&clock->least_lag_ns, __ATOMIC_RELAXED);
    while (lag < least && !__atomic_compare_exchange_n(&clock->least_lag_ns, &least, lag, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    least = lag < least ? lag : least;
    return least >= 0 && least < DELAY_MAX_NS ? 0 : least;
}

uint64_t rs_device_clock_tick(struct rs_device_clock *clock, uint64_t timer)
{
    uint64_t now = rs_tick(), elapsed_ns = now_ns(CLOCK_MONOTONIC) - clock->monotonic_ns;
    if (timer == 0 || elapsed_ns < RATE_MIN_NS)
        return now;
    int64_t lag = (int64_t)(now_ns(CLOCK_REALTIME) - timer);
    lag -= own_offset(clock, lag);
    if (lag < 0 || lag > LAG_MAX_NS || (uint64_t)lag > elapsed_ns)
        return now;
    double ticks_per_ns = (double)(now - clock->tick) / (double)elapsed_ns;
    return now - (uint64_t)((double)lag * ticks_per_ns);
}
