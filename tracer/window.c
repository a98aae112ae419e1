/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c - switches capture off and on: by the clock (RINGSCOPE_START), by the program's steps
 * (RINGSCOPE_STEPS), or because somebody asked (control.c), who has the last word.
 *
 * Off means that calls leave no record; what gives handles a meaning and collectives their numbers
 * goes on (core.h), so ranks that switch at different moments still match. Each switch stands in
 * the control file before the drain thread writes it to the capture: recovery finds those that it
 * had not written yet. Where they come faster than that, capture stays on.
 */
#include "window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "state.h"

#define ROOM_LEFT 2u /* an off leaves room for its on */

/* With the lock, but for what the inline functions of window.h read first. */
static struct {
    bool off, asked;
    bool early_or_late; /* by the clock */
    bool other_step;
    uint64_t begin_ns; /* 0 not begun */
} window;
volatile bool rs_window_by_steps, rs_window_leaving;

/* ---- switching ---- */

static uint32_t unwritten(const struct rs_ring_process *c)
{
    return c->switch_count - c->switches_written;
}

static void put(bool on, enum rs_switch_why why, uint64_t tick)
{
    struct rs_ring_process *c = rs_state.control;
    c->switches[c->switch_count % RS_RING_SWITCHES] =
        (struct rs_switch){.tick = tick, .on = on, .why = why};
    __atomic_store_n(&c->switch_count, c->switch_count + 1, __ATOMIC_RELEASE);
}

/* The time between is a little too short rather than too long. */
static void set(bool on, enum rs_switch_why why)
{
    const struct rs_ring_process *c = rs_state.control;
    if (!c || on == !window.off || (!on && unwritten(c) + ROOM_LEFT > RS_RING_SWITCHES))
        return;
    window.off = !on;
    if (on)
        put(on, why, rs_tick());
    if (rs_state.on[RS_ON_KEEP])
        __atomic_store_n(&rs_state.on[RS_ON_RECORD], on, __ATOMIC_SEQ_CST);
    if (!on)
        put(on, why, rs_tick());
}

static void apply_windows(enum rs_switch_why why)
{
    if (!window.asked)
        set(!window.early_or_late && !window.other_step, why);
}

void rs_window_ask(bool on, enum rs_switch_why why)
{
    rs_lock();
    window.asked = true;
    rs_window_by_steps = rs_window_leaving = false;
    set(on, why);
    rs_unlock();
}

bool rs_window_is_off(void)
{
    return window.off;
}

/* A child that begins off says so in its own capture. */
void rs_window_start(void)
{
    if (!window.begin_ns) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        window.begin_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        window.early_or_late = rs_env.start_s > 0;
        window.other_step = rs_env.steps[0];
        rs_window_by_steps = window.other_step;
    }
    if (window.off) {
        window.off = false;
        set(false, RS_SWITCH_CONTROL);
    }
    apply_windows(window.early_or_late ? RS_SWITCH_TIME : RS_SWITCH_STEPS);
}

/* ---- by the clock ---- */

uint64_t rs_window_look(uint64_t now_ns, uint64_t most_ns)
{
    uint64_t start = (uint64_t)(rs_env.start_s * 1e9), stop = (uint64_t)(rs_env.stop_s * 1e9);
    if (!window.begin_ns || (!start && !stop))
        return most_ns;
    uint64_t at = now_ns > window.begin_ns ? now_ns - window.begin_ns : 0;
    rs_lock();
    window.early_or_late = at < start || (stop && at >= stop);
    apply_windows(RS_SWITCH_TIME);
    rs_unlock();
    uint64_t next = at < start ? start - at : at < stop ? stop - at : most_ns;
    return next < most_ns ? next : most_ns;
}

/* ---- by steps ---- */

/* "3,5-9,20-": one word of it, false where it is none. */
static bool parse_range(const char **text, unsigned long *ret_first, unsigned long *ret_last)
{
    const char *p = *text;
    char *end;
    if (*p < '0' || *p > '9')
        return false;
    *ret_first = *ret_last = strtoul(p, &end, 10);
    if (*end == '-') {
        p = end + 1;
        *ret_last = *p >= '0' && *p <= '9' ? strtoul(p, &end, 10) : UINT32_MAX;
        if (*p < '0' || *p > '9')
            end = (char *)(uintptr_t)p;
    }
    *text = end;
    return *ret_first <= *ret_last && *ret_last <= UINT32_MAX;
}

bool rs_window_steps_are_right(const char *text)
{
    unsigned long first, last;
    for (;; text++) {
        if (!parse_range(&text, &first, &last) || (*text && *text != ','))
            return false;
        if (!*text)
            return true;
    }
}

static bool is_wanted(uint32_t number)
{
    unsigned long first, last;
    for (const char *p = rs_env.steps; parse_range(&p, &first, &last); p++) {
        if (number >= first && number <= last)
            return true;
        if (!*p)
            break;
    }
    return false;
}

/* What tells steps: the program's own marks before names, and the more telling name. */
enum { BY_MARKS = -1, BY_NOTHING = 100 };
static int told_by = BY_NOTHING;
static uint32_t without_number;

static void begin_step(int by, bool numbered, uint32_t number)
{
    int saved = errno;
    rs_lock();
    if (by <= told_by && rs_window_by_steps) {
        without_number = by < told_by ? 0 : without_number;
        told_by = by;
        window.other_step = !is_wanted(numbered ? number : without_number++);
        if (!window.other_step)
            apply_windows(RS_SWITCH_STEPS);
        rs_window_leaving = window.other_step && !window.off;
    }
    rs_unlock();
    errno = saved;
}

void rs_window_number_slow(uint32_t number)
{
    begin_step(BY_MARKS, true, number);
}

/* As analyzer/steps.c reads names. */
void rs_window_text_slow(const char *text)
{
    static const char *const names[] = {"profilerstep", "step", "iteration", "iter"};
    for (int i = 0; text && i < (int)(sizeof(names) / sizeof(names[0])); i++) {
        size_t n = strlen(names[i]);
        if (strncasecmp(text, names[i], n) != 0)
            continue;
        const char *rest = text + n + strspn(text + n, " #_:-=");
        size_t digits = strspn(rest, "0123456789");
        if (rest[digits] || digits > 9)
            continue;
        begin_step(i, digits > 0, (uint32_t)strtoul(digits ? rest : "0", NULL, 10));
        return;
    }
}

void rs_window_leave_slow(void)
{
    int saved = errno;
    rs_lock();
    if (rs_window_leaving)
        apply_windows(RS_SWITCH_STEPS);
    rs_window_leaving = false;
    rs_unlock();
    errno = saved;
}

void rs_window_forget(void)
{
    rs_window_leaving = false;
}

/* ---- to the capture ---- */

size_t rs_window_payload(const void **ret, uint64_t *ret_first, uint64_t *ret_last)
{
    static struct rs_switch copies[RS_RING_SWITCHES];
    const struct rs_ring_process *c = rs_state.control;
    uint32_t n = unwritten(c);
    for (uint32_t i = 0; i < n; i++)
        copies[i] = c->switches[(c->switches_written + i) % RS_RING_SWITCHES];
    if (n) {
        *ret_first = copies[0].tick;
        *ret_last = copies[n - 1].tick;
    }
    *ret = copies;
    return n * sizeof(*copies);
}

void rs_window_wrote(size_t bytes)
{
    __atomic_store_n(&rs_state.control->switches_written,
                     rs_state.control->switches_written +
                         (uint32_t)(bytes / sizeof(struct rs_switch)),
                     __ATOMIC_RELEASE);
}
