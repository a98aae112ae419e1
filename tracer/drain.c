/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.c - the thread that writes rings to the capture file, so that no traced thread waits for a
 * disk. It takes no signal, holds no descriptor of its own, and ends with the process.
 */
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "parts.h"
#include "state.h"

#define SHORTEST_NS ((long)5000000)
#define LONGEST_NS  ((long)100000000)
#define ANCHOR_NS   60000000000u

#define OWN_STACK     ((size_t)256 << 10)
#define FOREIGN_STACK ((size_t)4 << 20) /* where it calls CUPTI or NVML */
#define FOREIGN_PARTS (RS_PART_CUDA | RS_PART_COUNTERS)

void rs_drain_wake(void)
{
    if (__atomic_exchange_n(&rs_state.wake, 1, __ATOMIC_RELAXED) == 0)
        syscall(SYS_futex, &rs_state.wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void sleep_at_most(long ns)
{
    struct timespec t = {.tv_nsec = ns};
    syscall(SYS_futex, &rs_state.wake, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
    __atomic_store_n(&rs_state.wake, 0, __ATOMIC_RELAXED);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Whether there was anything to write. */
static bool drain_once(uint64_t *last_anchor)
{
    rs_lock();
    uint64_t before = rs_state.control ? rs_state.control->capture_bytes : 0;
    uint64_t now = now_ns(CLOCK_MONOTONIC);
    if (now - *last_anchor > ANCHOR_NS) {
        rs_clock_anchor_locked();
        *last_anchor = now;
    }
    if (rs_writer_claim(0)) {
        if (!rs_state.ended) {
            rs_cost_calibrate();
            rs_writer_drain();
            rs_threads_drop_ended();
        }
        rs_writer_release();
    }
    if (rs_state.control)
        __atomic_store_n(&rs_state.control->alive_tick, rs_tick(), __ATOMIC_RELAXED);
    rs_state.drain_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    bool wrote = rs_state.control && rs_state.control->capture_bytes != before;
    rs_unlock();
    return wrote;
}

static void write_rings(void *last_anchor)
{
    drain_once(last_anchor);
}

static void *drain(void *unused)
{
    uint64_t last_anchor = now_ns(CLOCK_MONOTONIC);
    long pause = SHORTEST_NS;
    prctl(PR_SET_NAME, "ringscope");
    rs_quiet = 1;
    for (;;) {
        uint64_t now = now_ns(CLOCK_MONOTONIC);
        sleep_at_most((long)rs_window_look(now, (uint64_t)pause));
        rs_window_look(now_ns(CLOCK_MONOTONIC), 0);
        rs_control_look(now_ns(CLOCK_MONOTONIC));
        rs_counters_sample(now_ns(CLOCK_MONOTONIC));
        rs_cuda_look(now_ns(CLOCK_MONOTONIC), write_rings, &last_anchor);
        if (drain_once(&last_anchor))
            pause = SHORTEST_NS;
        else if (pause < LONGEST_NS)
            pause *= 2;
    }
    return unused;
}

void rs_drain_start(void)
{
    if (rs_state.draining)
        return;
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes,
                              rs_env.parts & FOREIGN_PARTS ? FOREIGN_STACK : OWN_STACK);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rs_state.draining = pthread_create(&thread, &attributes, drain, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!rs_state.draining)
        rs_meta_set_locked("off.drain", "no thread could be made: written at the end only");
}
