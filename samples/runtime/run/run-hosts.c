/* SPDX-License-Identifier: Apache-2.0 */
#include "run-hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* ---- agents ---- */

const char *run_host_program(void)
{
    static char path[PATH_MAX];
    const ssize_t n = *path ? 1 : readlink("/proc/self/exe", path, sizeof path - 1);
    return n > 0 ? path : "rt-run";
}

/* As one word of a shell. */
static void quote(struct run_buffer *b, const char *text)
{
    run_buffer_add(b, "'", 1);
    for (; *text; text++)
        if (*text == '\'')
            run_buffer_add(b, "'\\''", 4);
        else
            run_buffer_add(b, text, 1);
    run_buffer_add(b, "'", 1);
}

__attribute__((noreturn)) static void become_agent(const struct run_options *o, int host)
{
    struct run_buffer line = {0}, command = {0};
    if (o->hosts[host].is_local) {
        execl(run_host_program(), "rt-run", "--agent", (char *)NULL);
        _exit(127);
    }
    run_buffer_add(&line, "exec ", 5);
    quote(&line, run_host_program());
    run_pack(&line, " --agent");
    run_buffer_add(&command, "exec ", 5);
    run_buffer_add(&command, o->ssh, strlen(o->ssh));
    run_pack(&command, " \"$@\"");
    execl("/bin/sh", "sh", "-c", command.data, "rt-run", o->hosts[host].name, line.data,
          (char *)NULL);
    _exit(127);
}

static void close_both(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

pid_t run_host_start(const struct run_options *o, int host, const sigset_t *signals,
                     struct run_wire *ret)
{
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC))
        return -errno;
    if (pipe2(from, O_CLOEXEC)) {
        const int error = -errno;
        close_both(to);
        return error;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0); /* a terminal's signals go by rt-run */
        dup2(to[0], 0);
        dup2(from[1], 1);
        sigprocmask(SIG_SETMASK, signals, NULL);
        become_agent(o, host);
    }
    const int error = -errno;
    if (pid < 0) {
        close_both(to);
        close_both(from);
        return error;
    }
    close(to[0]);
    close(from[1]);
    run_wire_init(ret, from[0], to[1]);
    return pid;
}

/* ---- the job ---- */

static void add_variable(struct run_buffer *b, int *count, const char *name, size_t bytes,
                         const char *value)
{
    run_buffer_add(b, name, bytes);
    run_buffer_add(b, "=", 1);
    run_pack(b, value);
    ++*count;
}

static bool goes_along(const char *variable)
{
    static const char *const begins[] = {"RT_", "RINGSCOPE_", "LD_PRELOAD="};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(variable, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static void pack_variables(const struct run_options *o, int host, const char *job,
                           struct run_buffer *ret)
{
    struct run_buffer all = {0};
    char number[32];
    int count = 0;
    for (char **e = environ; *e && !o->hosts[host].is_local; e++) {
        const size_t n = strcspn(*e, "=");
        if (goes_along(*e) && (*e)[n] == '=')
            add_variable(&all, &count, *e, n, *e + n + 1);
    }
    for (int i = 0; i < o->variable_count; i++) {
        const size_t n = strcspn(o->variables[i], "=");
        const bool has_value = o->variables[i][n] == '=';
        const char *value = has_value ? o->variables[i] + n + 1 : getenv(o->variables[i]);
        if (value)
            add_variable(&all, &count, o->variables[i], n, value);
    }
    snprintf(number, sizeof number, "%d", o->size);
    add_variable(&all, &count, "RT_SIZE", 7, number);
    add_variable(&all, &count, "RT_JOB", 6, job);
    if (o->interface)
        add_variable(&all, &count, "RT_INTERFACE", 12, o->interface);
    if (o->sets_start) {
        snprintf(number, sizeof number, "%ld", o->start_s);
        add_variable(&all, &count, "RT_START_TIMEOUT", 16, number);
    }
    run_pack_number(ret, count);
    run_buffer_add(ret, all.data + all.at, all.bytes);
    run_buffer_clear(&all);
}

/* By which the others reach rank 0; "" where that is its interface's. */
static const char *address_of_root(const struct run_options *o)
{
    static char own[256];
    const struct run_host *first = &o->hosts[o->host_of[0]];
    const char *interface = o->interface ? o->interface : getenv("RT_INTERFACE");
    int used = 0;
    for (int h = 0; h < o->host_count; h++)
        used += o->hosts[h].ranks > 0;
    if (o->address)
        return o->address;
    if (interface && *interface)
        return "";
    if (used == 1)
        return "127.0.0.1";
    if (!first->is_local)
        return first->name;
    gethostname(own, sizeof own - 1);
    return own;
}

void run_host_pack(const struct run_options *o, int host, const char *job, struct run_buffer *ret)
{
    char folder[PATH_MAX] = "/";
    int words = 0;
    if (!getcwd(folder, sizeof folder))
        strcpy(folder, "/");
    run_pack(ret, folder);
    run_pack(ret, address_of_root(o));
    run_pack_number(ret, o->port);
    pack_variables(o, host, job, ret);
    while (o->program[words])
        words++;
    run_pack_number(ret, words);
    for (int i = 0; i < words; i++)
        run_pack(ret, o->program[i]);
    run_pack_number(ret, o->hosts[host].ranks);
    for (int r = 0; r < o->size; r++)
        if (o->host_of[r] == host)
            run_pack_number(ret, r);
}
