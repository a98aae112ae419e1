/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-front-parts.h - what rt-run knows of its job, and the parts of run_front(): how it ends, what
 * agents say, signals and input.
 */
#ifndef RUN_FRONT_PARTS_H
#define RUN_FRONT_PARTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "run-options.h"
#include "run-output.h"
#include "run-wire.h"

#define RUN_SECOND_NS 1000000000u

/* A host's agent. */
struct run_place {
    pid_t pid;
    struct run_wire wire;
    int host;
    bool is_there, is_ready, is_gone;
};

enum run_phase { RUN_CALLING, RUN_READYING, RUN_RUNNING, RUN_CLOSING };

struct run_front {
    const struct run_options *o;
    struct run_output output;
    struct run_place *places; /* by host */
    struct run_front_rank {
        pid_t pid; /* 0: not started */
        bool has_ended;
    } * ranks;
    struct pollfd *polled;
    enum run_phase phase;
    int left;                    /* ranks that haven't ended */
    int status;                  /* of the first that ended badly; else 0 */
    int port, signals, ended_by; /* the signal that rt-run got */
    char address[256], job[33];
    sigset_t before;
    bool can_not_start, is_ending, input_ends, may_feed;
    bool stops;       /* itself, as the ranks, once they have been told */
    uint64_t next_ns; /* the deadline of what follows */
    int next_signal;  /* for all: 0 none yet */
};

const char *run_front_host(const struct run_front *f, int host);
void run_front_tell_all(struct run_front *f, enum run_kind kind, int value, const char *text);

/* run-front-end.c. Ranks that are left have so long to end by themselves. */
void run_front_end_within(struct run_front *f, uint64_t ns);
/* The first that is told is rt-run's. */
void run_front_fail(struct run_front *f, int status);
void run_front_close(struct run_front *f);
/* The deadline has passed. */
void run_front_go_further(struct run_front *f);

/* run-front-hear.c. Of that agent there is something to read. */
void run_front_hear(struct run_front *f, struct run_place *p);

/* run-front-signals.c. Negative errno. */
int run_front_watch_signals(struct run_front *f);
void run_front_take_signals(struct run_front *f);
/* Stops rt-run until it is continued, where that was asked for and the agents have been told. */
void run_front_stop(struct run_front *f);
/* In the background a terminal's input is others'. */
bool run_front_takes_input(const struct run_front *f);
void run_front_feed(struct run_front *f);

#endif
