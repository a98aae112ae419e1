/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "rt-net.h"
#include "run-front-parts.h"
#include "run-hosts.h"

static void say_started_badly(struct run_front *f, int host, int status)
{
    const bool is_local = f->o->hosts[host].is_local;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run_output_say(&f->output,
                   "host %s: rt-run could not be started there: %s ended with status %d%s%s",
                   run_front_host(f, host), is_local ? "its agent" : f->o->ssh, code,
                   code == 127 && !is_local ? "; it has to be where it is here, at " : "",
                   code == 127 && !is_local ? run_host_program() : "");
}

static void note_end(struct run_front *f, int rank)
{
    if (f->ranks[rank].has_ended)
        return;
    f->ranks[rank].has_ended = true;
    run_output_end(&f->output, rank);
    if (rank == 0)
        f->may_feed = false;
    if (--f->left == 0)
        run_front_close(f);
}

/* Its process ends soon, if it hasn't. */
static int wait_for_place(const struct run_place *p)
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
static void fail_to_start(struct run_front *f)
{
    const uint64_t soon = rt_now_ns() + RUN_SECOND_NS;
    f->can_not_start = true;
    if (f->next_ns > soon)
        f->next_ns = soon;
}

static void lose(struct run_front *f, struct run_place *p)
{
    const int status = wait_for_place(p);
    bool has_ranks = false;
    p->is_gone = true;
    run_wire_release(&p->wire);
    if (f->phase == RUN_CLOSING)
        return;
    for (int r = 0; r < f->o->size; r++)
        has_ranks = has_ranks || (f->o->host_of[r] == p->host && !f->ranks[r].has_ended);
    if (!p->is_there)
        say_started_badly(f, p->host, status);
    else if (has_ranks)
        run_output_say(&f->output,
                       "lost host %s, and its ranks: its rt-run, or the connection to "
                       "it, has ended",
                       run_front_host(f, p->host));
    run_front_fail(f, 1);
    if (f->phase < RUN_RUNNING)
        return fail_to_start(f);
    for (int r = 0; r < f->o->size; r++)
        if (f->o->host_of[r] == p->host)
            note_end(f, r);
}

static void take_exit(struct run_front *f, int rank, int status)
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
        run_output_say(&f->output, "rank %d (%s, process %d) %s", rank, run_front_host(f, host),
                       (int)f->ranks[rank].pid, what);
    if (code != 0)
        run_front_fail(f, f->is_ending && f->ended_by && code == 137 ? 128 + f->ended_by : code);
    note_end(f, rank);
}

/* Without rank 0's socket, or a program, there is no job. */
static void take_problem(struct run_front *f, const struct run_place *p, int status,
                         const char *text)
{
    if (f->status == 0) {
        run_output_say(&f->output, "%s%s%s", f->o->host_count > 1 ? run_front_host(f, p->host) : "",
                       f->o->host_count > 1 ? ": " : "", text);
        f->status = status;
    }
    run_front_end_within(f, 0);
    run_front_tell_all(f, RUN_STOP, SIGKILL, NULL);
    run_front_close(f);
}

static void take(struct run_front *f, struct run_place *p, const struct run_frame *frame,
                 const char *data)
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
static bool has_begun(struct run_front *f, struct run_place *p)
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

void run_front_hear(struct run_front *f, struct run_place *p)
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
