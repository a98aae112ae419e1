/* SPDX-License-Identifier: Apache-2.0 */
/* Why a tensor failed. */
#include "rt-coordinator-state.h"

static void say_left(const struct rt_coordinator *c, const struct rt_waiting *w,
                     struct rt_bytes *text)
{
    char title[RT_TITLE_MAX];
    rt_say(text, "tensor %s will not be ready: shut down without it:",
           rt_tensor_title(&w->tensor, title));
    for (int r = 0; r < c->size; r++)
        if (c->leaving[r] && !w->said[r])
            rt_say(text, " rank %d", r);
}

static void say_given_up(const struct rt_coordinator *c, const struct rt_waiting *w,
                         struct rt_bytes *text)
{
    char title[RT_TITLE_MAX];
    rt_say(text, "tensor %s has waited %.1f s for ", rt_tensor_title(&w->tensor, title),
           rt_coordinator_age_s(c, w));
    rt_waiting_say_missing(w, text);
    rt_say(text, " (RT_STALL_SHUTDOWN_TIME)");
}

static void say_joined(const struct rt_coordinator *c, const struct rt_waiting *w,
                       struct rt_bytes *text)
{
    char title[RT_TITLE_MAX];
    if (rt_changes_sets(w->tensor.kind))
        rt_say(text, "process sets change where no rank has joined; have joined:");
    else
        rt_say(text, "tensor %s: its root, rank %d, has joined", rt_tensor_title(&w->tensor, title),
               w->tensor.root);
    for (int r = 0; r < c->size && rt_changes_sets(w->tensor.kind); r++)
        if (!w->said[r])
            rt_say(text, " rank %d", r);
}

void rt_coordinator_say_why(const struct rt_coordinator *c, const struct rt_waiting *w,
                            struct rt_bytes *text)
{
    char title[RT_TITLE_MAX];
    if (w->closed)
        rt_say(text, "tensor %s: the process set was removed before all its ranks had it",
               rt_tensor_title(&w->tensor, title));
    else if (w->lost)
        say_left(c, w, text);
    else if (w->given_up)
        say_given_up(c, w, text);
    else if (w->differs)
        rt_waiting_say_mismatch(w, text);
    else
        say_joined(c, w, text);
}
