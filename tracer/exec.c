/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.c - the ways a program becomes another: its capture ends before, and goes on where that
 * fails. All of the C library's functions, as it calls itself by none of their names.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

#define EXPORT __attribute__((visibility("default")))

typedef int by_name(const char *, char *const[], char *const[]);
typedef int by_fd(int, char *const[], char *const[]);
typedef int by_place(int, const char *, char *const[], char *const[], int);

static by_name *real_execve, *real_execvpe;
static by_fd *real_fexecve;
static by_place *real_execveat;

void rs_exec_init(void)
{
    real_execve = (by_name *)dlsym(RTLD_NEXT, "execve");
    real_execvpe = (by_name *)dlsym(RTLD_NEXT, "execvpe");
    real_fexecve = (by_fd *)dlsym(RTLD_NEXT, "fexecve");
    real_execveat = (by_place *)dlsym(RTLD_NEXT, "execveat");
}

static int missing(void)
{
    errno = ENOSYS;
    return -1;
}

static int exec_by(by_name *real, const char *file, char *const argv[], char *const envp[])
{
    if (!real)
        return missing();
    if (access(file, X_OK) == 0 || !strchr(file, '/'))
        rs_life_end(RS_END_EXEC);
    int result = real(file, argv, envp);
    rs_life_go_on();
    return result;
}

EXPORT int execve(const char *file, char *const argv[], char *const envp[])
{
    return exec_by(real_execve, file, argv, envp);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    return exec_by(real_execvpe, file, argv, envp);
}

EXPORT int execv(const char *file, char *const argv[])
{
    return exec_by(real_execve, file, argv, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
    return exec_by(real_execvpe, file, argv, environ);
}

/* ---- the arguments one by one, and NULL; then perhaps the environment ---- */

static size_t count_arguments(const char *first, va_list rest)
{
    size_t n = 0;
    for (const char *a = first; a; a = va_arg(rest, const char *))
        n++;
    return n;
}

/* The list as argv, which has room for it; leaves `rest` behind its NULL. */
static void collect(char **argv, const char *first, va_list rest)
{
    const char *a = first;
    size_t n = 0;
    for (; a; a = va_arg(rest, const char *))
        argv[n++] = (char *)(uintptr_t)a;
    argv[n] = NULL;
}

/* Sets `argv`, on the caller's stack: no exec may allocate. `args` stands behind the NULL then. */
#define COLLECT(argv, first, args)                                                                 \
    va_list counted;                                                                               \
    va_start(args, first);                                                                         \
    va_copy(counted, args);                                                                        \
    char **argv = alloca((count_arguments(first, counted) + 1) * sizeof(char *));                  \
    va_end(counted);                                                                               \
    collect(argv, first, args)

EXPORT int execl(const char *file, const char *first, ...)
{
    va_list args;
    COLLECT(argv, first, args);
    va_end(args);
    return exec_by(real_execve, file, argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    va_list args;
    COLLECT(argv, first, args);
    va_end(args);
    return exec_by(real_execvpe, file, argv, environ);
}

EXPORT int execle(const char *file, const char *first, ...)
{
    va_list args;
    COLLECT(argv, first, args);
    char *const *envp = va_arg(args, char *const *);
    va_end(args);
    return exec_by(real_execve, file, argv, envp);
}

/* ---- without a path of its own ---- */

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    if (!real_fexecve)
        return missing();
    rs_life_end(RS_END_EXEC);
    int result = real_fexecve(fd, argv, envp);
    rs_life_go_on();
    return result;
}

EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
    if (!real_execveat)
        return missing();
    rs_life_end(RS_END_EXEC);
    int result = real_execveat(fd, path, argv, envp, flags);
    rs_life_go_on();
    return result;
}
