/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-options.h - rt-run's command line, and which rank goes where.
 */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stdbool.h>

struct run_host {
    const char *name;
    int slots;
    bool is_local; /* started without ssh */
    int ranks;     /* that it gets */
};

struct run_options {
    struct run_host *hosts; /* each once, in the order of -H; owned */
    int host_count;
    int *host_of; /* by rank: an index of hosts; owned */
    int size;
    const char *address, *interface; /* NULL: chosen */
    long port;                       /* 0: a free one */
    long start_s, grace_s;
    bool sets_start; /* for the ranks, too */
    bool tags_output;
    const char *ssh;        /* a shell's words, which get the host and the command line */
    const char **variables; /* NAME or NAME=VALUE; owned */
    int variable_count;
    char **program; /* NULL at its end */
};

/* What is wrong is said on standard error. Returns 0; or, with *ret_status, 1: nothing to run. */
int run_options_read(struct run_options *ret, int argc, char **argv, int *ret_status);
void run_options_release(struct run_options *o);

#endif
