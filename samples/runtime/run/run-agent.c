/* SPDX-License-Identifier: Apache-2.0 */
#include "run-agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt-net.h"
#include "rt-root.h"
#include "run-ranks.h"
#include "run-wire.h"

#define OUTPUT_MAX (1u << 20)  /* not sent yet; ranks then wait */
#define LEAVE_NS   300000000u  /* what ranks have left behind may end by itself */
#define TERM_NS    1000000000u /* ... after SIGTERM */
#define KILL_NS    5000000000u /* ... after SIGKILL */

struct agent {
    struct run_wire wire;
    int signals; /* a signalfd */
    sigset_t before;
    struct run_rank *ranks;
    int count, size, listener;
    char **program;
    char *job; /* what `program` points into */
    char address[256];
    struct run_buffer input; /* rank 0's */
    bool input_ends, untaken, ends;
    struct pollfd *polled;
};

static void say(struct agent *a, int status, const char *text)
{
    run_wire_send(&a->wire, RUN_PROBLEM, -1, status, text, strlen(text) + 1);
}

/* ---- the job ---- */

static void set_strings(const char **at, const char *end)
{
    for (long n = run_unpack_number(at, end); n > 0; n--) {
        char *pair = strdup(run_unpack(at, end)), *value = pair ? strchr(pair, '=') : NULL;
        if (value) {
            *value = 0;
            setenv(pair, value + 1, 1);
        }
        free(pair);
    }
}

static int read_program(struct agent *a, const char **at, const char *end)
{
    const long n = run_unpack_number(at, end);
    a->program = calloc((size_t)n + 1, sizeof *a->program);
    for (long i = 0; i < n && a->program; i++)
        a->program[i] = (char *)run_unpack(at, end);
    return a->program ? 0 : -ENOMEM;
}

static int read_ranks(struct agent *a, const char **at, const char *end)
{
    a->count = (int)run_unpack_number(at, end);
    a->ranks = calloc((size_t)a->count + 1, sizeof *a->ranks);
    free(a->polled);
    a->polled = calloc((size_t)a->count * 3 + 3, sizeof *a->polled);
    for (int i = 0; i < a->count && a->ranks; i++) {
        const int rank = (int)run_unpack_number(at, end);
        a->ranks[i] = (struct run_rank){.rank = rank, .local_rank = i, .out = -1, .err = -1};
        a->ranks[i].in = -1;
    }
    return a->ranks && a->polled ? 0 : -ENOMEM;
}

/* Where rank 0 waits: the socket is made here, so that nobody else gets its port. */
static int listen_for_rank_0(struct agent *a, const char *address, long *port, char *message,
                             size_t message_bytes)
{
    union rt_net_place at, interface;
    if (!*address) { /* RT_INTERFACE's */
        const int found = rt_net_interface(AF_UNSPEC, &interface, message, message_bytes);
        if (found < 0)
            return found;
        rt_net_address(&interface, a->address, sizeof a->address);
    } else {
        snprintf(a->address, sizeof a->address, "%s", address);
    }
    if (*port)
        return 0;
    a->listener = rt_root_listen(a->address, 0, NULL, &at, message, message_bytes);
    if (a->listener >= 0)
        *port = rt_net_port(&at);
    return a->listener < 0 ? a->listener : 0;
}

static void take_job(struct agent *a, const char *data, size_t bytes)
{
    char message[512] = "no memory", number[32];
    a->job = malloc(bytes);
    if (!a->job)
        return say(a, 1, message);
    memcpy(a->job, data, bytes);
    const char *at = a->job, *end = a->job + bytes, *folder = run_unpack(&at, end);
    if (chdir(folder)) {
        snprintf(message, sizeof message, "no folder %.400s there: %s", folder, strerror(errno));
        return say(a, 1, message);
    }
    const char *address = run_unpack(&at, end);
    long port = run_unpack_number(&at, end);
    set_strings(&at, end);
    int error = read_program(a, &at, end);
    if (!error)
        error = read_ranks(a, &at, end);
    snprintf(number, sizeof number, "%d", a->count);
    setenv("RT_LOCAL_SIZE", number, 1);
    if (!error && a->count > 0 && a->ranks[0].rank == 0)
        error = listen_for_rank_0(a, address, &port, message, sizeof message);
    if (error)
        say(a, 1, message);
    else
        run_wire_send(&a->wire, RUN_LISTENS, -1, (int)port, a->address, strlen(a->address) + 1);
}

/* Shells' statuses: 127 no such program, 126 it can't be run. */
static void say_not_started(struct agent *a, const struct run_rank *r, int error)
{
    char text[1024];
    const bool missing = error == -ENOENT && access(a->program[0], F_OK) != 0;
    if (missing)
        snprintf(text, sizeof text, "no program %.800s", a->program[0]);
    else
        snprintf(text, sizeof text, "rank %d can't be started: %.800s: %s", r->rank, a->program[0],
                 strerror(-error));
    say(a, missing ? 127 : 126, text);
}

static void start_ranks(struct agent *a, int port, const char *address)
{
    const struct run_start how = {a->program, &a->before, a->listener};
    char number[16];
    snprintf(number, sizeof number, "%d", port);
    setenv("RT_PORT", number, 1);
    setenv("RT_ADDR", address, 1);
    for (int i = 0; i < a->count; i++) {
        struct run_rank *r = &a->ranks[i];
        const int error = run_rank_start(r, &how);
        if (error) {
            say_not_started(a, r, error);
            break;
        }
        run_wire_send(&a->wire, RUN_STARTED, r->rank, r->pid, NULL, 0);
    }
    if (a->listener >= 0)
        close(a->listener); /* rank 0 has it */
    a->listener = -1;
}

/* ---- what ranks write and read ---- */

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* At most `most` bytes. */
static void forward(struct agent *a, struct run_rank *r, int *fd, size_t most)
{
    static char data[RUN_PIECE];
    const ssize_t n = read(*fd, data, most < sizeof data ? most : sizeof data);
    if (n > 0)
        run_wire_send(&a->wire, fd == &r->out ? RUN_OUT : RUN_ERR, r->rank, 0, data, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_end(fd);
}

/* Of a rank that has ended: what others that have its descriptors may write yet is not waited for.
 */
static void forward_rest(struct agent *a, struct run_rank *r, int *fd)
{
    int left = 0;
    if (*fd >= 0 && ioctl(*fd, FIONREAD, &left) != 0)
        left = 0;
    while (*fd >= 0 && left > 0) {
        const int piece = left < RUN_PIECE ? left : RUN_PIECE;
        forward(a, r, fd, (size_t)piece);
        left -= piece;
    }
    close_end(fd);
}

static void feed_rank_0(struct agent *a)
{
    struct run_rank *r = &a->ranks[0];
    while (r->in >= 0 && a->input.bytes > 0) {
        const ssize_t n = write(r->in, a->input.data + a->input.at, a->input.bytes);
        if (n > 0)
            run_buffer_take(&a->input, (size_t)n);
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR)
            close_end(&r->in); /* it reads no more */
    }
    if (a->untaken && r->in >= 0)
        run_wire_send(&a->wire, RUN_TAKEN, 0, 0, NULL, 0);
    a->untaken = false;
    if (a->input_ends)
        close_end(&r->in);
}

/* ---- ends ---- */

static void reap(struct agent *a)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int i = 0; i < a->count; i++) {
            struct run_rank *r = &a->ranks[i];
            if (r->pid != pid)
                continue;
            forward_rest(a, r, &r->out);
            forward_rest(a, r, &r->err);
            close_end(&r->in);
            r->pid = 0;
            run_wire_send(&a->wire, RUN_EXITED, r->rank, status, NULL, 0);
        }
}

/* `in_peace`: by itself first. */
static void end_all(bool in_peace)
{
    if ((in_peace && run_ranks_outlast(0, LEAVE_NS)) || run_ranks_outlast(SIGTERM, TERM_NS))
        return;
    run_ranks_outlast(SIGKILL, KILL_NS);
}

static void signal_groups(const struct agent *a, int signal)
{
    for (int i = 0; i < a->count; i++)
        if (a->ranks[i].pid > 0)
            kill(-a->ranks[i].pid, signal);
}

/* ---- orders ---- */

static void obey(struct agent *a, const struct run_frame *f, const char *data)
{
    switch (f->kind) {
    case RUN_JOB:
        take_job(a, data, f->bytes);
        break;
    case RUN_START:
        if (a->program)
            start_ranks(a, f->value, data);
        break;
    case RUN_SIGNAL:
        signal_groups(a, f->value);
        break;
    case RUN_STOP:
        run_ranks_signal_all(f->value);
        break;
    case RUN_INPUT:
        a->untaken = true;
        run_buffer_add(&a->input, data, f->bytes);
        break;
    case RUN_INPUT_END:
        a->input_ends = true;
        break;
    default:
        a->ends = true;
    }
}

/* Whether the other end is there. */
static bool hear(struct agent *a)
{
    struct run_frame frame;
    const char *data;
    int got = run_wire_read(&a->wire);
    if (got)
        return false;
    while (!a->ends && (got = run_wire_next(&a->wire, &frame, &data)) > 0)
        obey(a, &frame, data);
    if (a->count > 0 && (a->untaken || a->input_ends))
        feed_rank_0(a);
    return got >= 0;
}

static int fill_polled(struct agent *a)
{
    int n = 0;
    a->polled[n++] = (struct pollfd){.fd = a->wire.in, .events = POLLIN};
    a->polled[n++] =
        (struct pollfd){.fd = a->wire.output.bytes > 0 ? a->wire.out : -1, .events = POLLOUT};
    a->polled[n++] = (struct pollfd){.fd = a->signals, .events = POLLIN};
    for (int i = 0; i < a->count; i++) {
        const struct run_rank *r = &a->ranks[i];
        const bool room = a->wire.output.bytes < OUTPUT_MAX;
        a->polled[n++] = (struct pollfd){.fd = room ? r->out : -1, .events = POLLIN};
        a->polled[n++] = (struct pollfd){.fd = room ? r->err : -1, .events = POLLIN};
        a->polled[n++] = (struct pollfd){.fd = a->input.bytes > 0 ? r->in : -1, .events = POLLOUT};
    }
    return n;
}

static void serve_ranks(struct agent *a)
{
    for (int i = 0; i < a->count; i++) {
        struct run_rank *r = &a->ranks[i];
        const struct pollfd *p = &a->polled[3 + i * 3];
        if (p[0].revents && r->out >= 0)
            forward(a, r, &r->out, RUN_PIECE);
        if (p[1].revents && r->err >= 0)
            forward(a, r, &r->err, RUN_PIECE);
        if (p[2].revents && r->in >= 0)
            feed_rank_0(a);
    }
}

/* Signals that came for this process: the ranks are not its group, and are ended in order. */
static bool is_told_to_end(struct agent *a)
{
    struct signalfd_siginfo info;
    bool told = false;
    while (read(a->signals, &info, sizeof info) == sizeof info)
        told = told || info.ssi_signo == SIGTERM;
    return told;
}

static void serve(struct agent *a)
{
    bool there = a->polled != NULL;
    while (there && !a->ends) {
        const int n = fill_polled(a);
        if (poll(a->polled, (nfds_t)n, -1) < 0 && errno != EINTR)
            break;
        serve_ranks(a);
        if (a->polled[2].revents)
            there = !is_told_to_end(a);
        reap(a);
        if (a->polled[0].revents && there)
            there = hear(a);
        if (run_wire_flush(&a->wire))
            there = false;
    }
}

int run_agent(void)
{
    struct agent a = {.listener = -1};
    sigset_t mask;
    const int in = fcntl(0, F_DUPFD_CLOEXEC, 3), out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    const int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (in < 0 || out < 0 || none < 0 || dup2(none, 0) < 0 || dup2(2, 1) < 0)
        return 1;
    close(none);
    sigemptyset(&mask);
    for (const int *s = (const int[]){SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, 0}; *s; s++)
        sigaddset(&mask, *s);
    sigprocmask(SIG_BLOCK, &mask, &a.before);
    signal(SIGPIPE, SIG_IGN);
    a.polled = calloc(3, sizeof *a.polled);
    a.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    run_ranks_adopt();
    run_wire_init(&a.wire, in, out);
    run_buffer_add(&a.wire.output, RUN_MAGIC, sizeof RUN_MAGIC - 1);
    if (a.signals >= 0 && run_wire_flush(&a.wire) == 0)
        serve(&a);
    end_all(a.ends);
    run_wire_release(&a.wire);
    run_buffer_clear(&a.input);
    free(a.ranks);
    free(a.polled);
    free(a.program);
    free(a.job);
    return 0;
}
