/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-ranks.h - the processes of one host's ranks, and what these start.
 *
 * Each rank leads a process group of its own, and is killed with the process that started it, which
 * adopts what the ranks' processes leave: so all of it can be found, and ended.
 */
#ifndef RUN_RANKS_H
#define RUN_RANKS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run_rank {
    int rank, local_rank;
    pid_t pid;    /* 0: not started, or has ended */
    int out, err; /* what it writes is read here; -1 closed */
    int in;       /* of rank 0, what is written here it reads; -1 */
};

struct run_start {
    char *const *program;
    const sigset_t *signals; /* that it begins with blocked */
    int listener;            /* rank 0's, -1 none */
};

/* This process adopts from now on what its descendants leave. */
void run_ranks_adopt(void);
/* The caller has set what ranks share in the environment. Negative errno: there is no such process,
 * of -ENOENT, -EACCES... the program is the cause. */
int run_rank_start(struct run_rank *r, const struct run_start *how);
/* Sends a signal to all descendants of this process, whatever group or session they are in. Returns
 * how many there are. */
int run_ranks_signal_all(int signal);
/* Sends it, 0: none, and reaps until this process has no children, at most so long; whether it has
 * none. */
bool run_ranks_outlast(int signal, uint64_t ns);

#endif
