/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "rt-net.h"
#include "run-front-parts.h"

#define PATIENCE_NS (5u * RUN_SECOND_NS) /* after a signal that ranks may end by */

void run_front_feed(struct run_front *f)
{
    static char data[RUN_PIECE];
    struct run_wire *w = &f->places[f->o->host_of[0]].wire;
    const ssize_t n = read(0, data, sizeof data);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    f->may_feed = false;
    f->input_ends = n <= 0;
    run_wire_send(w, n > 0 ? RUN_INPUT : RUN_INPUT_END, 0, 0, data, n > 0 ? (size_t)n : 0);
}

bool run_front_takes_input(const struct run_front *f)
{
    return f->phase == RUN_RUNNING && f->may_feed && (!isatty(0) || tcgetpgrp(0) == getpgrp());
}

void run_front_take_signals(struct run_front *f)
{
    struct signalfd_siginfo info;
    while (read(f->signals, &info, sizeof info) == sizeof info) {
        const int s = (int)info.ssi_signo;
        const bool ends = s != SIGUSR1 && s != SIGUSR2 && s != SIGTSTP && s != SIGCONT;
        const bool is_second = ends && f->ended_by;
        f->stops = s == SIGTSTP || (f->stops && s != SIGCONT);
        if (ends)
            f->ended_by = s;
        if (is_second)
            run_output_drop(&f->output); /* nobody may be reading it */
        if (f->phase != RUN_RUNNING) {
            f->status = ends ? 128 + s : f->status;
            if (ends)
                run_front_close(f);
            continue;
        }
        run_front_tell_all(f, is_second ? RUN_STOP : RUN_SIGNAL,
                           is_second      ? SIGKILL
                           : s == SIGTSTP ? SIGSTOP
                                          : s,
                           NULL);
        if (ends)
            run_front_end_within(f, PATIENCE_NS);
        if (is_second)
            f->next_ns = 0;
    }
}

void run_front_stop(struct run_front *f)
{
    sigset_t pending;
    if (!f->stops)
        return;
    for (int h = 0; h < f->o->host_count; h++)
        if (f->places[h].pid > 0 && !f->places[h].is_gone && f->places[h].wire.output.bytes > 0)
            return;
    f->stops = false;
    sigpending(&pending);
    if (sigismember(&pending, SIGCONT)) /* a stop would forget it */
        return;
    const uint64_t start = rt_now_ns();
    raise(SIGSTOP);
    if (f->next_ns != UINT64_MAX) /* nobody had that time */
        f->next_ns += rt_now_ns() - start;
}

static const int passed_on[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGTSTP, SIGCONT, 0};

int run_front_watch_signals(struct run_front *f)
{
    sigset_t mask;
    sigemptyset(&mask);
    for (const int *s = passed_on; *s; s++)
        sigaddset(&mask, *s);
    sigprocmask(SIG_BLOCK, &mask, &f->before);
    signal(SIGPIPE, SIG_IGN);
    f->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return f->signals < 0 ? -errno : 0;
}
