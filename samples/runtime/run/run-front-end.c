/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>

#include "rt-net.h"
#include "run-front-parts.h"

#define TERM_NS (2u * RUN_SECOND_NS) /* from SIGTERM to SIGKILL */
#define KILL_NS (8u * RUN_SECOND_NS) /* ... and until agents are given up */

/* Ranks that are left have so long to end by themselves. */
void run_front_end_within(struct run_front *f, uint64_t ns)
{
    if (f->is_ending)
        return;
    f->is_ending = true;
    f->next_ns = rt_now_ns() + ns;
    f->next_signal = SIGTERM;
}

void run_front_fail(struct run_front *f, int status)
{
    if (f->status == 0)
        f->status = status;
    run_front_end_within(f, (uint64_t)f->o->grace_s * RUN_SECOND_NS);
}

void run_front_close(struct run_front *f)
{
    if (f->phase == RUN_CLOSING)
        return;
    f->phase = RUN_CLOSING;
    f->next_ns = rt_now_ns() + KILL_NS;
    run_front_tell_all(f, RUN_END, 0, NULL);
    for (int h = 0; h < f->o->host_count; h++) /* whose way there hangs */
        if (f->places[h].pid > 0 && !f->places[h].is_gone && !f->places[h].is_there)
            kill(-f->places[h].pid, SIGTERM);
}

static void say_left(struct run_front *f, const char *what)
{
    char list[600] = "";
    size_t n = 0;
    for (int r = 0; r < f->o->size && n < sizeof list - 12; r++)
        if (!f->ranks[r].has_ended)
            n += (size_t)snprintf(list + n, sizeof list - n, " %d", r);
    if (n > 0)
        run_output_say(&f->output, "%s rank%s", what, list);
}

static void give_up_places(struct run_front *f)
{
    for (int h = 0; h < f->o->host_count; h++) {
        struct run_place *p = &f->places[h];
        if (p->pid <= 0 || p->is_gone)
            continue;
        run_output_say(&f->output, "host %s doesn't end what it runs: given up",
                       run_front_host(f, h));
        kill(p->pid, SIGKILL);
    }
}

/* The deadline has passed. */
void run_front_go_further(struct run_front *f)
{
    const uint64_t now = rt_now_ns();
    if (f->phase < RUN_RUNNING) {
        for (int h = 0; h < f->o->host_count; h++)
            if (f->places[h].pid > 0 && !f->places[h].is_ready && !f->can_not_start)
                run_output_say(&f->output, "host %s: no answer within %ld s (--start-timeout)",
                               run_front_host(f, h), f->o->start_s);
        f->status = 1;
        run_front_close(f);
    } else if (f->phase == RUN_CLOSING) {
        give_up_places(f);
        f->next_ns = UINT64_MAX;
    } else if (f->next_signal == SIGTERM) {
        say_left(f, "ends");
        run_front_tell_all(f, RUN_STOP, SIGTERM, NULL);
        run_front_tell_all(f, RUN_STOP, SIGCONT, NULL);
        f->next_signal = SIGKILL;
        f->next_ns = now + TERM_NS;
    } else if (f->next_signal == SIGKILL) {
        run_front_tell_all(f, RUN_STOP, SIGKILL, NULL);
        f->next_signal = 0;
        f->next_ns = now + KILL_NS;
    } else {
        run_front_close(f);
    }
}
