/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - at a clean end a process has its own capture converted, by the tool that lies beside
 * this library. The tool runs as a grandchild that the program does not hear of, in silence,
 * without this library. Nothing here allocates (life.c says why).
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "state.h"

#define LARGEST ((off_t)256 << 20)
#define STACK   ((size_t)64 << 10)

/* How long the program's end may wait: far longer than the tool takes. */
#define LEAST_SECONDS    20u
#define BYTES_PER_SECOND ((off_t)1 << 20)

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

/* The environment without what would trace the tool: one mapping of `*ret_bytes` bytes, NULL where
 * there is no memory. */
static char **clean_environment(size_t *ret_bytes)
{
    size_t n = 0, k = 0;
    while (environ && environ[n])
        n++;
    *ret_bytes = (n + 1) * sizeof(char *);
    char **clean =
        mmap(NULL, *ret_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (clean == MAP_FAILED)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) && strncmp(environ[i], "RINGSCOPE_", 10) &&
            strncmp(environ[i], "LD_AUDIT=", 9))
            clean[k++] = environ[i];
    return clean;
}

struct job {
    const char *const *argv;
    char *const *envp;
    char *stack; /* of the tool until it execs */
    unsigned seconds;
    int status; /* of the tool, as wait tells it */
};

/* Shares the parent's memory until it execs; the parent waits. Calls nothing that is wrapped, or
 * where a thread can be cancelled. The alarm goes on in the tool, whose end it is. */
static int become_tool(void *data)
{
    const struct job *job = data;
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigaction(SIGALRM, &by_default, NULL); /* these are the child's own, unlike the memory */
    alarm(job->seconds);
    int null = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_execve, job->argv[0], job->argv, job->envp);
    syscall(SYS_exit, 127);
    return 127;
}

/* Between the program and the tool: a process that execs raises SIGCHLD at its end and is found by
 * any wait(), one that doesn't exec ends as quietly as clone was told. Shares the program's memory.
 */
static int wait_for_tool(void *data)
{
    struct job *job = data;
    int pid = clone(become_tool, job->stack, CLONE_VM | CLONE_VFORK | SIGCHLD, job);
    if (pid > 0)
        syscall(SYS_wait4, pid, &job->status, __WALL, NULL);
    syscall(SYS_exit, 0);
    return 0;
}

/* Both children run with all signals blocked: a handler of the program must not run in them.
 * false: it took too long. */
static bool run_tool(const char *const argv[], char *const envp[], unsigned seconds)
{
    sigset_t all, before;
    char *stacks =
        mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stacks == MAP_FAILED)
        return true;
    struct job job = {argv, envp, stacks + STACK, seconds, 0};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = clone(wait_for_tool, stacks + 2 * STACK, CLONE_VM, &job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* The child shares errno: only the result tells. */
    while (pid > 0 && syscall(SYS_wait4, pid, NULL, __WALL, NULL) != pid && kill(pid, 0) == 0)
        ;
    munmap(stacks, 2 * STACK);
    return !WIFSIGNALED(job.status) || WTERMSIG(job.status) != SIGALRM;
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
    size_t bytes;
    char **clean = clean_environment(&bytes);
    if (!clean)
        return;
    unsigned seconds = LEAST_SECONDS + (unsigned)(st.st_size / BYTES_PER_SECOND);
    if (!run_tool(argv, clean, seconds))
        rs_say("%s: not converted within %u s; `ringscope merge` can do it", capture, seconds);
    munmap(clean, bytes);
}
