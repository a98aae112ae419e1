/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.c - the program's own marks, by schemas/ringscope.h: NVTX's ranges and texts under another
 * entry, so that both nest in the same stack and cost the same.
 */
#include "ringscope.h"

#include <errno.h>
#include <stdio.h>

#include "nvtx/names.h"
#include "nvtx/ranges.h"
#include "window.h"

/* Ranges of the program are popped apart from those of NVTX's domains. */
static const char own_ranges;

/* NULL where nothing is to be recorded. As NVTX: marks alone leave no file. */
static struct rs_nvtx_what *describe(const char *name, struct rs_nvtx_what *what)
{
    rs_window_text(name);
    if (!rs_core || !*rs_core->started || !rs_thread_if_recording())
        return NULL;
    *what = (struct rs_nvtx_what){.name = rs_nvtx_message_id(name)};
    return what;
}

static void mark(const char *name)
{
    int saved = errno;
    struct rs_nvtx_what what;
    rs_nvtx_mark(describe(name, &what));
    errno = saved;
}

static void range_push(const char *name)
{
    int saved = errno;
    struct rs_nvtx_what what;
    rs_nvtx_push(&own_ranges, describe(name, &what));
    errno = saved;
}

static void range_pop(void)
{
    int saved = errno;
    rs_nvtx_pop(&own_ranges);
    errno = saved;
}

/* The text is what analyzer/steps.c takes for a step. */
static void step(uint32_t number)
{
    char name[32];
    int saved = errno;
    struct rs_nvtx_what what;
    snprintf(name, sizeof(name), "step %u", number);
    rs_window_number(number);
    if (describe(name, &what)) {
        what.payload = number;
        what.payload_type = 1;
        rs_nvtx_mark(&what);
    }
    rs_window_leave();
    errno = saved;
}

static void counter(const char *name, const char *unit, double value)
{
    int saved = errno;
    struct rs_nvtx_what what;
    if (describe(name, &what)) {
        uint32_t unit_id = rs_nvtx_message_id(unit);
        struct rs_thread *t = rs_thread_if_recording();
        if (t && rs_room(t, 1)) {
            struct rs_counter_event *e = rs_slot(t, 0);
            *e = (struct rs_counter_event){.op = RS_OP_COUNTER, .name = what.name};
            e->unit = unit_id;
            e->value = value;
            e->start = e->end = rs_tick();
            rs_commit(t, 1);
        }
    }
    errno = saved;
}

extern const struct ringscope_marks ringscope_marks_v1;
__attribute__((visibility("default"))) const struct ringscope_marks ringscope_marks_v1 = {
    sizeof(struct ringscope_marks), mark, range_push, range_pop, step, counter,
};
