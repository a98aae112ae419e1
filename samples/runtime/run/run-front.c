/* SPDX-License-Identifier: Apache-2.0 */
#include "run-front.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt-net.h"
#include "run-hosts.h"
#include "run-output.h"
#include "run-wire.h"

#define SECOND_NS   1000000000u
#define TERM_NS     (2u * SECOND_NS) /* from SIGTERM to SIGKILL */
#define KILL_NS     (8u * SECOND_NS) /* ... and until agents are given up */
#define PATIENCE_NS (5u * SECOND_NS) /* after a signal that ranks may end by */

/* A host's agent. */
struct place {
    pid_t pid;
    struct run_wire wire;
    int host;
    bool is_there, is_ready, is_gone;
};

struct rank {
    pid_t pid; /* 0: not started */
    bool has_ended;
};

enum phase { CALLING, READYING, RUNNING, CLOSING };

struct front {
    const struct run_options *o;
    struct run_output output;
    struct place *places; /* by host */
    struct rank *ranks;
    struct pollfd *polled;
    enum phase phase;
    int left;                    /* ranks that haven't ended */
    int status;                  /* of the first that ended badly; else 0 */
    int port, signals, ended_by; /* the signal that rt-run got */
    char address[256], job[33];
    sigset_t before;
    bool can_not_start, is_ending, input_ends, may_feed;
    uint64_t next_ns; /* the deadline of what follows */
    int next_signal;  /* for all: 0 none yet */
};

static const char *host_name(const struct front *f, int host)
{
    return f->o->hosts[host].name;
}

static void tell_all(struct front *f, enum run_kind kind, int value, const char *text)
{
    for (int h = 0; h < f->o->host_count; h++)
        if (f->places[h].pid > 0 && !f->places[h].is_gone)
            run_wire_send(&f->places[h].wire, kind, -1, value, text, text ? strlen(text) + 1 : 0);
}

/* ---- ends ---- */

/* Ranks that are left have so long to end by themselves. */
static void end_within(struct front *f, uint64_t ns)
{
    if (f->is_ending)
        return;
    f->is_ending = true;
    f->next_ns = rt_net_now_ns() + ns;
    f->next_signal = SIGTERM;
}

static void fail_with(struct front *f, int status)
{
    if (f->status == 0)
        f->status = status;
    end_within(f, (uint64_t)f->o->grace_s * SECOND_NS);
}

static void close_places(struct front *f)
{
    if (f->phase == CLOSING)
        return;
    f->phase = CLOSING;
    f->next_ns = rt_net_now_ns() + KILL_NS;
    tell_all(f, RUN_END, 0, NULL);
    for (int h = 0; h < f->o->host_count; h++) /* whose way there hangs */
        if (f->places[h].pid > 0 && !f->places[h].is_gone && !f->places[h].is_there)
            kill(-f->places[h].pid, SIGTERM);
}

static void say_left(struct front *f, const char *what)
{
    char list[600] = "";
    size_t n = 0;
    for (int r = 0; r < f->o->size && n < sizeof list - 12; r++)
        if (!f->ranks[r].has_ended)
            n += (size_t)snprintf(list + n, sizeof list - n, " %d", r);
    if (n > 0)
        run_output_say(&f->output, "%s rank%s", what, list);
}

static void give_up_places(struct front *f)
{
    for (int h = 0; h < f->o->host_count; h++) {
        struct place *p = &f->places[h];
        if (p->pid <= 0 || p->is_gone)
            continue;
        run_output_say(&f->output, "host %s doesn't end what it runs: given up", host_name(f, h));
        kill(p->pid, SIGKILL);
    }
}

/* The deadline has passed. */
static void go_further(struct front *f)
{
    const uint64_t now = rt_net_now_ns();
    if (f->phase < RUNNING) {
        for (int h = 0; h < f->o->host_count; h++)
            if (f->places[h].pid > 0 && !f->places[h].is_ready && !f->can_not_start)
                run_output_say(&f->output, "host %s: no answer within %ld s (--start-timeout)",
                               host_name(f, h), f->o->start_s);
        f->status = 1;
        close_places(f);
    } else if (f->phase == CLOSING) {
        give_up_places(f);
        f->next_ns = UINT64_MAX;
    } else if (f->next_signal == SIGTERM) {
        say_left(f, "ends");
        tell_all(f, RUN_STOP, SIGTERM, NULL);
        tell_all(f, RUN_STOP, SIGCONT, NULL);
        f->next_signal = SIGKILL;
        f->next_ns = now + TERM_NS;
    } else if (f->next_signal == SIGKILL) {
        tell_all(f, RUN_STOP, SIGKILL, NULL);
        f->next_signal = 0;
        f->next_ns = now + KILL_NS;
    } else {
        close_places(f);
    }
}

/* ---- what agents say ---- */

static void say_started_badly(struct front *f, int host, int status)
{
    const bool is_local = f->o->hosts[host].is_local;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run_output_say(&f->output,
                   "host %s: rt-run could not be started there: %s ended with status %d%s%s",
                   host_name(f, host), is_local ? "its agent" : f->o->ssh, code,
                   code == 127 && !is_local ? "; it has to be where it is here, at " : "",
                   code == 127 && !is_local ? run_host_program() : "");
}

static void note_end(struct front *f, int rank)
{
    if (f->ranks[rank].has_ended)
        return;
    f->ranks[rank].has_ended = true;
    run_output_end(&f->output, rank);
    if (rank == 0)
        f->may_feed = false;
    if (--f->left == 0)
        close_places(f);
}

/* Its process ends soon, if it hasn't. */
static int wait_for_place(const struct place *p)
{
    int status = 0;
    for (int i = 0; waitpid(p->pid, &status, i < 100 ? WNOHANG : 0) == 0; i++) {
        poll(NULL, 0, 10);
        if (i == 99)
            kill(p->pid, SIGKILL);
    }
    return status;
}

/* What is wrong with other hosts is soon known, too. */
static void fail_to_start(struct front *f)
{
    const uint64_t soon = rt_net_now_ns() + SECOND_NS;
    f->can_not_start = true;
    if (f->next_ns > soon)
        f->next_ns = soon;
}

static void lose(struct front *f, struct place *p)
{
    const int status = wait_for_place(p);
    bool has_ranks = false;
    p->is_gone = true;
    run_wire_release(&p->wire);
    if (f->phase == CLOSING)
        return;
    for (int r = 0; r < f->o->size; r++)
        has_ranks = has_ranks || (f->o->host_of[r] == p->host && !f->ranks[r].has_ended);
    if (!p->is_there)
        say_started_badly(f, p->host, status);
    else if (has_ranks)
        run_output_say(&f->output,
                       "lost host %s, and its ranks: its rt-run, or the connection to "
                       "it, has ended",
                       host_name(f, p->host));
    fail_with(f, 1);
    if (f->phase < RUNNING)
        return fail_to_start(f);
    for (int r = 0; r < f->o->size; r++)
        if (f->o->host_of[r] == p->host)
            note_end(f, r);
}

static void take_exit(struct front *f, int rank, int status)
{
    char what[100];
    const int host = f->o->host_of[rank];
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (WIFSIGNALED(status))
        snprintf(what, sizeof what, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(what, sizeof what, "ended with status %d", code);
    if (code != 0 && !f->is_ending)
        run_output_say(&f->output, "rank %d (%s, process %d) %s", rank, host_name(f, host),
                       (int)f->ranks[rank].pid, what);
    if (code != 0)
        fail_with(f, f->is_ending && f->ended_by && code == 137 ? 128 + f->ended_by : code);
    note_end(f, rank);
}

/* Without rank 0's socket, or a program, there is no job. */
static void take_problem(struct front *f, const struct place *p, int status, const char *text)
{
    if (f->status == 0) {
        run_output_say(&f->output, "%s%s%s", f->o->host_count > 1 ? host_name(f, p->host) : "",
                       f->o->host_count > 1 ? ": " : "", text);
        f->status = status;
    }
    end_within(f, 0);
    tell_all(f, RUN_STOP, SIGKILL, NULL);
    close_places(f);
}

static void take(struct front *f, struct place *p, const struct run_frame *frame, const char *data)
{
    const bool is_rank = frame->rank >= 0 && frame->rank < f->o->size;
    switch (frame->kind) {
    case RUN_LISTENS:
        p->is_ready = true;
        if (p->host == f->o->host_of[0]) {
            f->port = frame->value;
            snprintf(f->address, sizeof f->address, "%s", data);
        }
        break;
    case RUN_PROBLEM:
        take_problem(f, p, frame->value, data);
        break;
    case RUN_STARTED:
        if (is_rank)
            f->ranks[frame->rank].pid = frame->value;
        break;
    case RUN_OUT:
    case RUN_ERR:
        if (is_rank)
            run_output_add(&f->output, frame->rank, frame->kind == RUN_ERR, data, frame->bytes);
        break;
    case RUN_TAKEN:
        f->may_feed = !f->input_ends;
        break;
    case RUN_EXITED:
        if (is_rank)
            take_exit(f, frame->rank, frame->value);
        break;
    default:
        break;
    }
}

/* What a login shell has printed before is shown as errors. */
static bool has_begun(struct front *f, struct place *p)
{
    struct run_buffer *b = &p->wire.input;
    if (p->is_there)
        return true;
    const char *begin =
        b->bytes ? memmem(b->data + b->at, b->bytes, RUN_MAGIC, strlen(RUN_MAGIC)) : NULL;
    if (!begin)
        return false;
    const size_t before = (size_t)(begin - (b->data + b->at));
    run_buffer_add(&f->output.pending[1], b->data + b->at, before);
    run_buffer_take(b, before + strlen(RUN_MAGIC));
    p->is_there = true;
    return true;
}

static void hear(struct front *f, struct place *p)
{
    struct run_frame frame;
    const char *data;
    int got = run_wire_read(&p->wire);
    const bool is_gone = got < 0;
    if (has_begun(f, p))
        while ((got = run_wire_next(&p->wire, &frame, &data)) > 0)
            take(f, p, &frame, data);
    if (is_gone || got < 0)
        lose(f, p);
}

/* ---- begin ---- */

static bool all_places(const struct front *f, bool ready)
{
    for (int h = 0; h < f->o->host_count; h++) {
        const struct place *p = &f->places[h];
        if (p->pid > 0 && !p->is_gone && !(ready ? p->is_ready : p->is_there))
            return false;
    }
    return true;
}

static void hand_out_jobs(struct front *f)
{
    for (int h = 0; h < f->o->host_count; h++) {
        struct run_buffer job = {0};
        if (f->places[h].pid <= 0)
            continue;
        run_host_pack(f->o, h, f->job, &job);
        run_wire_send(&f->places[h].wire, RUN_JOB, -1, 0, job.data + job.at, job.bytes);
        run_buffer_clear(&job);
    }
}

/* A host whose ssh is slow takes nothing from RT_START_TIMEOUT. */
static void step(struct front *f)
{
    if (f->phase < RUNNING && f->can_not_start) {
        if (all_places(f, false))
            close_places(f);
        return;
    }
    if (f->phase == CALLING && all_places(f, false)) {
        f->phase = READYING;
        hand_out_jobs(f);
    }
    if (f->phase == READYING && all_places(f, true)) {
        f->phase = RUNNING;
        f->next_ns = UINT64_MAX;
        f->may_feed = true;
        tell_all(f, RUN_START, f->port, f->address);
    }
}

static void start_places(struct front *f)
{
    for (int h = 0; h < f->o->host_count; h++) {
        struct place *p = &f->places[h];
        p->host = h;
        if (f->o->hosts[h].ranks == 0)
            continue;
        p->pid = run_host_start(f->o, h, &f->before, &p->wire);
        if (p->pid > 0)
            continue;
        run_output_say(&f->output, "host %s: %s", host_name(f, h), strerror(-(int)p->pid));
        f->status = 1;
        close_places(f);
        return;
    }
}

/* ---- input and signals ---- */

static void feed(struct front *f)
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

/* In the background a terminal's input is others'. */
static bool takes_input(const struct front *f)
{
    return f->phase == RUNNING && f->may_feed && (!isatty(0) || tcgetpgrp(0) == getpgrp());
}

static void take_signals(struct front *f)
{
    struct signalfd_siginfo info;
    while (read(f->signals, &info, sizeof info) == sizeof info) {
        const int s = (int)info.ssi_signo;
        const bool ends = s != SIGUSR1 && s != SIGUSR2;
        const bool is_second = ends && f->ended_by;
        if (ends)
            f->ended_by = s;
        if (is_second)
            run_output_drop(&f->output); /* nobody may be reading it */
        if (f->phase != RUNNING) {
            f->status = ends ? 128 + s : f->status;
            if (ends)
                close_places(f);
            continue;
        }
        tell_all(f, is_second ? RUN_STOP : RUN_SIGNAL, is_second ? SIGKILL : s, NULL);
        if (ends)
            end_within(f, PATIENCE_NS);
        if (is_second)
            f->next_ns = 0;
    }
}

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, 0};

static int watch_signals(struct front *f)
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

/* ---- from begin to end ---- */

enum { POLLED_SIGNALS, POLLED_INPUT, POLLED_OUTPUT, POLLED_PLACES = POLLED_OUTPUT + 2 };

static int timeout_of(const struct front *f)
{
    const uint64_t now = rt_net_now_ns();
    if (f->next_ns == UINT64_MAX)
        return -1;
    return now >= f->next_ns ? 0 : (int)((f->next_ns - now) / 1000000) + 1;
}

static void wait_for_news(struct front *f)
{
    struct pollfd *p = f->polled;
    const bool room = run_output_pending(&f->output) < RUN_OUTPUT_MAX;
    int n = POLLED_PLACES;
    p[POLLED_SIGNALS] = (struct pollfd){.fd = f->signals, .events = POLLIN};
    p[POLLED_INPUT] = (struct pollfd){.fd = takes_input(f) ? 0 : -1, .events = POLLIN};
    run_output_poll(&f->output, p + POLLED_OUTPUT);
    for (int h = 0; h < f->o->host_count; h++) {
        const struct place *place = &f->places[h];
        const bool is_there = place->pid > 0 && !place->is_gone;
        p[n++] = (struct pollfd){.fd = is_there && room ? place->wire.in : -1, .events = POLLIN};
        p[n++] = (struct pollfd){.fd = is_there && place->wire.output.bytes ? place->wire.out : -1,
                                 .events = POLLOUT};
    }
    poll(p, (nfds_t)n, timeout_of(f));
}

static bool is_done(const struct front *f)
{
    for (int h = 0; h < f->o->host_count; h++)
        if (f->places[h].pid > 0 && !f->places[h].is_gone)
            return false;
    return f->phase == CLOSING && run_output_pending(&f->output) == 0;
}

static void serve(struct front *f)
{
    while (!is_done(f)) {
        wait_for_news(f);
        if (f->polled[POLLED_SIGNALS].revents)
            take_signals(f);
        if (f->polled[POLLED_INPUT].revents)
            feed(f);
        for (int h = 0; h < f->o->host_count; h++)
            if (f->polled[POLLED_PLACES + h * 2].revents)
                hear(f, &f->places[h]);
        step(f);
        if (rt_net_now_ns() >= f->next_ns)
            go_further(f);
        for (int h = 0; h < f->o->host_count; h++)
            if (f->places[h].pid > 0)
                run_wire_flush(&f->places[h].wire); /* who is gone is heard of */
        if (run_output_flush(&f->output) == -EPIPE) {
            fail_with(f, 128 + SIGPIPE);
            f->next_ns = 0;
        }
    }
}

static void name_job(struct front *f)
{
    unsigned char bytes[16] = {0};
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        memcpy(bytes, &(uint64_t){rt_net_now_ns()}, sizeof(uint64_t));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(f->job + i * 2, 3, "%02x", bytes[i]);
}

int run_front(const struct run_options *o)
{
    struct front f = {.o = o, .left = o->size};
    f.places = calloc((size_t)o->host_count, sizeof *f.places);
    f.ranks = calloc((size_t)o->size, sizeof *f.ranks);
    f.polled = calloc((size_t)o->host_count * 2 + POLLED_PLACES, sizeof *f.polled);
    f.next_ns = rt_net_now_ns() + (uint64_t)o->start_s * SECOND_NS;
    if (!f.places || !f.ranks || !f.polled || run_output_init(&f.output, o->size, o->tags_output) ||
        watch_signals(&f)) {
        fputs("rt-run: no memory, or no descriptors\n", stderr);
        return 1;
    }
    name_job(&f);
    start_places(&f);
    serve(&f);
    for (int h = 0; h < o->host_count; h++)
        if (f.places[h].pid > 0)
            run_wire_release(&f.places[h].wire);
    run_output_release(&f.output);
    free(f.places);
    free(f.ranks);
    free(f.polled);
    return f.status;
}
