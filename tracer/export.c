/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - at a clean end a process has its own capture converted, by the tool that lies beside
 * this library. The tool runs as a child that raises no signal, in silence, without this library.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "state.h"

#define LARGEST ((off_t)256 << 20)
#define STACK   ((size_t)64 << 10)

static bool find_tool(char *ret, size_t size)
{
    static const char *const places[] = {"", "../analyzer/", "../bin/", "../../bin/",
                                         "../../../bin/"};
    const char *library = rs_life_library(), *slash = strrchr(library, '/');
    for (unsigned i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(ret, size, "%.*s%sringscope", (int)(slash + 1 - library), library, places[i]);
        if (access(ret, X_OK) == 0)
            return true;
    }
    return false;
}

/* The environment without what would trace the tool. Returned: free the array, not its strings. */
static char **clean_environment(void)
{
    size_t n = 0;
    while (environ && environ[n])
        n++;
    char **clean = calloc(n + 1, sizeof(*clean));
    for (size_t i = 0, k = 0; clean && i < n; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) && strncmp(environ[i], "RINGSCOPE_", 10) &&
            strncmp(environ[i], "LD_AUDIT=", 9))
            clean[k++] = environ[i];
    return clean;
}

struct job {
    const char *const *argv;
    char *const *envp;
};

/* Shares the parent's memory until it execs; the parent waits. Calls no wrapped function. */
static int become_tool(void *data)
{
    const struct job *job = data;
    sigset_t none;
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_execve, job->argv[0], job->argv, job->envp);
    syscall(SYS_exit, 127);
    return 127;
}

/* Signals wait meanwhile: a handler must not run in the child, which shares our memory. */
static void run_tool(const char *const argv[], char *const envp[])
{
    struct job job = {argv, envp};
    sigset_t all, before;
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = clone(become_tool, stack + STACK, CLONE_VM | CLONE_VFORK, &job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    munmap(stack, STACK);
}

void rs_export_capture(const char *capture)
{
    char tool[RS_RING_PATH_MAX + 32];
    struct stat st;
    if (!(rs_env.export_chrome || rs_env.export_sqlite) || !capture[0] || stat(capture, &st) != 0 ||
        st.st_size > LARGEST || !find_tool(tool, sizeof(tool)))
        return;
    const char *argv[8] = {tool, "merge", capture, "--quiet"};
    if (!rs_env.export_chrome || !rs_env.export_sqlite) {
        argv[4] = "--format";
        argv[5] = rs_env.export_chrome ? "chrome" : "sqlite";
    }
    char **clean = clean_environment();
    if (clean)
        run_tool(argv, clean);
    free(clean);
}
