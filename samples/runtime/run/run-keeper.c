/* SPDX-License-Identifier: Apache-2.0 */
#include "run-keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run-ranks.h"

#define NAME    "rank-keeper"
#define KILL_NS 5000000000u

/* Passes on who asks for an end. */
static int wait_for_agent(pid_t pid, const sigset_t *signals)
{
    for (;;) {
        int status = 0;
        const pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (got < 0 && errno != EINTR)
            return 1;
        if (sigwaitinfo(signals, NULL) == SIGTERM)
            kill(pid, SIGTERM);
    }
}

int run_keeper(int (*agent)(void))
{
    sigset_t mask, before;
    sigemptyset(&mask);
    for (const int *s = (const int[]){SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, 0}; *s; s++)
        sigaddset(&mask, *s);
    sigprocmask(SIG_BLOCK, &mask, &before);
    run_ranks_adopt();
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return 1;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(1);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return agent();
    }
    prctl(PR_SET_NAME, NAME);
    const int status = wait_for_agent(pid, &mask);
    run_ranks_outlast(SIGKILL, KILL_NS);
    return status;
}
