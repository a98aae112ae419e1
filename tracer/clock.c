/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - ticks and what ties them to time: anchors, and round trips with other clock domains.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "state.h"

/* Of round trips in MPI_Init there are some hundred, of anchors one a second. */
#define PENDING_MAX ((size_t)64 << 10)

static alignas(8) char pending[PENDING_MAX]; /* anchors and probes as the CLOCK block has them */
static size_t pending_bytes;
static uint64_t pending_first = UINT64_MAX, pending_last; /* ticks */

static void note_span(uint64_t tick)
{
    pending_first = tick < pending_first ? tick : pending_first;
    pending_last = tick > pending_last ? tick : pending_last;
}

static void append(const void *record, size_t bytes, uint64_t tick)
{
    if (pending_bytes + bytes > PENDING_MAX)
        return;
    memcpy(pending + pending_bytes, record, bytes);
    pending_bytes += bytes;
    note_span(tick);
}

bool rs_clock_tsc_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* RINGSCOPE_TEST_CLOCK=OFFSET_NS[,DRIFT_PPM]: this process's clock as another machine's would be,
 * drifting since the monotonic clock stood at 0: so it is the same in all processes. */
static void shift(struct rs_anchor *a)
{
#ifdef RS_TEST_CLOCK
    double offset = 0, drift = 0;
    if (sscanf(rs_env.test_clock, "%lf,%lf", &offset, &drift) < 1)
        return;
    int64_t add = (int64_t)(offset + (double)a->monotonic_ns * drift * 1e-6);
    a->monotonic_ns += (uint64_t)add;
    a->realtime_ns += (uint64_t)add;
#else
    (void)a;
#endif
}

/* The best of a few: an interrupt between the reads would make an anchor useless. */
struct rs_anchor rs_clock_anchor(void)
{
    struct rs_anchor best = {0};
    for (int i = 0; i < 16; i++) {
        uint64_t before = rs_tick();
        uint64_t monotonic = nanoseconds(CLOCK_MONOTONIC);
        uint64_t between = rs_tick();
        uint64_t realtime = nanoseconds(CLOCK_REALTIME);
        uint32_t spread = (uint32_t)(between - before);
        if (best.kind && spread >= best.spread_ticks)
            continue;
        best.kind = RS_CLOCK_ANCHOR;
        best.spread_ticks = spread;
        best.tick = before + (between - before) / 2;
        best.monotonic_ns = monotonic;
        best.realtime_ns = realtime;
    }
    shift(&best);
    return best;
}

void rs_clock_anchor_locked(void)
{
    struct rs_anchor a = rs_clock_anchor();
    if (!rs_state.control)
        return;
    if (!rs_state.control->first_anchor.kind)
        rs_state.control->first_anchor = a;
    rs_state.control->last_anchor = a;
    append(&a, sizeof(a), a.tick);
}

void rs_clock_anchor_now(void)
{
    rs_lock();
    rs_clock_anchor_locked();
    rs_unlock();
}

void rs_clock_probe(const struct rs_clock_probe *probe)
{
    struct rs_clock_probe p = *probe;
    p.kind = RS_CLOCK_PROBE;
    rs_lock();
    append(&p, sizeof(p), p.sent);
    rs_unlock();
}

size_t rs_clock_payload(const void **ret, uint64_t *ret_first, uint64_t *ret_last)
{
    *ret = pending;
    *ret_first = pending_first;
    *ret_last = pending_last;
    return pending_bytes;
}

/* A first estimate for people who look at a capture; the analyzer uses the anchors. */
void rs_clock_start(void)
{
    if (!rs_state.core.use_tsc) {
        rs_meta_set_locked("clock.source", "monotonic");
        rs_meta_set_locked("clock.hz", "1000000000");
        rs_state.ticks_per_s = 1000000000;
        rs_clock_anchor_locked();
        return;
    }
    struct rs_anchor a = rs_clock_anchor(), b;
    do
        b = rs_clock_anchor();
    while (b.monotonic_ns - a.monotonic_ns < 2000000);
    char hz[32];
    snprintf(hz, sizeof(hz), "%.0f",
             (double)(b.tick - a.tick) * 1e9 / (double)(b.monotonic_ns - a.monotonic_ns));
#if defined(__aarch64__)
    rs_meta_set_locked("clock.source", "cntvct");
#else
    rs_meta_set_locked("clock.source", "tsc");
#endif
    rs_meta_set_locked("clock.hz", hz);
    rs_state.ticks_per_s = strtoull(hz, NULL, 10);
    rs_clock_anchor_locked();
}

void rs_clock_forget(size_t bytes)
{
    size_t gone = bytes < pending_bytes ? bytes : pending_bytes;
    pending_bytes -= gone;
    memmove(pending, pending + gone, pending_bytes);
    pending_first = UINT64_MAX;
    pending_last = 0;
    for (size_t at = 0; at < pending_bytes;) {
        struct rs_anchor a;
        struct rs_clock_probe p;
        memcpy(&a, pending + at, sizeof(a.kind));
        if (a.kind == RS_CLOCK_PROBE) {
            memcpy(&p, pending + at, sizeof(p));
            note_span(p.sent);
            at += sizeof(p);
        } else {
            memcpy(&a, pending + at, sizeof(a));
            note_span(a.tick);
            at += sizeof(a);
        }
    }
}
