/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

static void fill_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (guint i = 0; i < G_N_ELEMENTS(forwarded); i++)
        sigaddset(set, forwarded[i]);
}

/* In the child: never returns. What went wrong goes through the pipe, which a good exec closes. */
G_GNUC_NORETURN static void become(gchar **argv, gchar **environment, const sigset_t *mask,
                                   int tell)
{
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvpe(argv[0], argv, environment);
    int cause = errno;
    if (write(tell, &cause, sizeof cause) < 0)
        _exit(126);
    _exit(127);
}

static gboolean wait_for(pid_t child, const sigset_t *set, int *ret_status)
{
    for (;;) {
        siginfo_t info;
        int sig = sigwaitinfo(set, &info);
        if (sig < 0)
            continue; /* EINTR */
        if (sig != SIGCHLD) {
            gboolean from_terminal = info.si_code == SI_KERNEL;
            if (!from_terminal)
                kill(child, sig);
            continue;
        }
        int status;
        if (waitpid(child, &status, WNOHANG) != child)
            continue;
        *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return TRUE;
    }
}

static gboolean started(int hear, pid_t child, const gchar *program, GError **error)
{
    int cause;
    gssize n;
    do
        n = read(hear, &cause, sizeof cause);
    while (n < 0 && errno == EINTR);
    if (n != sizeof cause)
        return TRUE;
    waitpid(child, NULL, 0);
    g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "%s: can't be run: %s", program,
                g_strerror(cause));
    return FALSE;
}

gboolean rs_launch(gchar **argv, gchar **environment, int *ret_status, GError **error)
{
    sigset_t set, before;
    int ends[2];
    fill_set(&set);
    signal(SIGCHLD, SIG_DFL); /* where our parent ignores it, children would vanish unheard */
    sigprocmask(SIG_BLOCK, &set, &before);
    pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child == 0)
        become(argv, environment, &before, ends[1]);
    gboolean ok = child > 0;
    if (!ok) {
        g_set_error(error, RS_ERROR, RS_ERROR_IO, "can't start a process: %s", g_strerror(errno));
    } else {
        close(ends[1]);
        ok = started(ends[0], child, argv[0], error) && wait_for(child, &set, ret_status);
        close(ends[0]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ok;
}
