/* SPDX-License-Identifier: Apache-2.0 */
#include "run-ranks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt-clock.h"

/* Above what shells' scripts use for themselves. */
#define LISTENER_FROM 30
#define LOOK_MS       10

void run_ranks_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* ---- starting ---- */

static void set_number(const char *name, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

static void hand_down(int listener)
{
    const int fd = listener < 0 ? -1 : fcntl(listener, F_DUPFD, LISTENER_FROM);
    if (fd >= 0)
        set_number("RT_LISTEN_FD", fd);
}

struct pipes {
    int in[2], out[2], err[2], failed[2];
};

static void close_pipe(int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

static void close_pipes(struct pipes *p)
{
    close_pipe(p->in);
    close_pipe(p->out);
    close_pipe(p->err);
    close_pipe(p->failed);
}

static int open_pipes(struct pipes *p, bool has_input)
{
    *p = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    if ((has_input && pipe2(p->in, O_CLOEXEC)) || pipe2(p->out, O_CLOEXEC) ||
        pipe2(p->err, O_CLOEXEC) || pipe2(p->failed, O_CLOEXEC)) {
        const int error = -errno;
        close_pipes(p);
        return error;
    }
    return 0;
}

__attribute__((noreturn)) static void become(const struct run_rank *r, const struct run_start *how,
                                             struct pipes *p, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    set_number("RT_RANK", r->rank);
    set_number("RT_LOCAL_RANK", r->local_rank);
    unsetenv("RT_LISTEN_FD");
    if (r->rank == 0)
        hand_down(how->listener);
    if (p->in[0] >= 0)
        dup2(p->in[0], 0);
    dup2(p->out[1], 1);
    dup2(p->err[1], 2);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, how->signals, NULL);
    execvp(how->program[0], how->program);
    const int error = errno;
    if (write(p->failed[1], &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

int run_rank_start(struct run_rank *r, const struct run_start *how)
{
    struct pipes p;
    int failed = 0;
    int error = open_pipes(&p, r->rank == 0);
    if (error)
        return error;
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(r, how, &p, parent);
    if (pid < 0) {
        error = -errno;
        close_pipes(&p);
        return error;
    }
    setpgid(pid, pid); /* whoever is first: a signal may come now */
    close(p.failed[1]);
    p.failed[1] = -1;
    /* the pipe closes where the program begins */
    while (read(p.failed[0], &failed, sizeof failed) < 0 && errno == EINTR)
        ;
    if (failed) {
        waitpid(pid, NULL, 0);
        close_pipes(&p);
        return -failed;
    }
    r->pid = pid;
    r->out = p.out[0];
    r->err = p.err[0];
    r->in = p.in[1];
    p.out[0] = p.err[0] = p.in[1] = -1;
    close_pipes(&p);
    fcntl(r->out, F_SETFL, O_NONBLOCK);
    fcntl(r->err, F_SETFL, O_NONBLOCK);
    if (r->in >= 0)
        fcntl(r->in, F_SETFL, O_NONBLOCK);
    return 0;
}

/* ---- descendants ---- */

struct process {
    pid_t pid, parent;
    bool ours;
};

/* 0 where it has ended. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    const char *end = strrchr(text, ')'); /* a name may have anything in it */
    char state;
    int parent;
    return end && sscanf(end + 1, " %c %d", &state, &parent) == 2 && state != 'Z' && state != 'X'
               ? parent
               : 0;
}

static struct process *list_processes(int *ret_count)
{
    struct process *all = NULL;
    int count = 0, room = 0;
    DIR *dir = opendir("/proc");
    const struct dirent *e;
    while (dir && (e = readdir(dir))) {
        const pid_t pid = atoi(e->d_name);
        const pid_t parent = pid > 0 ? parent_of(e->d_name) : 0;
        if (parent == 0)
            continue;
        if (count == room) {
            room = room * 2 + 256;
            struct process *grown = realloc(all, (size_t)room * sizeof *all);
            if (!grown)
                break;
            all = grown;
        }
        all[count++] = (struct process){pid, parent, false};
    }
    if (dir)
        closedir(dir);
    *ret_count = count;
    return all;
}

static int by_pid(const void *a, const void *b)
{
    const pid_t left = ((const struct process *)a)->pid, right = ((const struct process *)b)->pid;
    return left < right ? -1 : left > right;
}

static bool is_ours(const struct process *all, int count, pid_t pid)
{
    const struct process key = {.pid = pid};
    const struct process *p =
        pid == getpid() ? NULL : bsearch(&key, all, (size_t)count, sizeof key, by_pid);
    return pid == getpid() || (p && p->ours);
}

int run_ranks_signal_all(int signal)
{
    int count, ours = 0;
    bool more = true;
    struct process *all = list_processes(&count);
    if (all)
        qsort(all, (size_t)count, sizeof *all, by_pid);
    while (more) {
        more = false;
        for (int i = 0; i < count; i++)
            if (!all[i].ours && is_ours(all, count, all[i].parent)) {
                all[i].ours = more = true;
                kill(all[i].pid, signal);
                ours++;
            }
    }
    free(all);
    return ours;
}

/* Reaps what has ended. */
static bool is_childless(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

bool run_ranks_outlast(int signal, uint64_t ns)
{
    const uint64_t end = rt_now_ns() + ns;
    if (is_childless())
        return true;
    if (signal)
        run_ranks_signal_all(signal);
    if (signal == SIGTERM)
        run_ranks_signal_all(SIGCONT); /* who is stopped hears nothing */
    while (!is_childless()) {
        if (rt_now_ns() >= end)
            return false;
        poll(NULL, 0, LOOK_MS);
        if (signal == SIGKILL)
            run_ranks_signal_all(signal); /* what has been forked since */
    }
    return true;
}
