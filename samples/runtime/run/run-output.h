/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-output.h - what ranks write, on rt-run's standard output and error: as it comes, or with
 * tags, whole lines that say whose they are.
 *
 * Nothing waits: what a slow reader doesn't take is kept. A tagged line ends where the rank ends,
 * and is cut after a MiB.
 */
#ifndef RUN_OUTPUT_H
#define RUN_OUTPUT_H

#include <poll.h>

#include "run-wire.h"

#define RUN_OUTPUT_MAX (1u << 20) /* of which the caller keeps */

struct run_output {
    int ranks;
    struct run_buffer pending[2]; /* output, errors */
    struct run_buffer *lines;     /* by rank, of both; NULL: no tags */
    bool is_broken[2];
};

/* -ENOMEM. */
int run_output_init(struct run_output *o, int ranks, bool with_tags);
void run_output_release(struct run_output *o);
void run_output_add(struct run_output *o, int rank, bool is_error, const char *data, size_t bytes);
/* The rank writes no more. */
void run_output_end(struct run_output *o, int rank);
/* A line of rt-run's own. */
__attribute__((format(printf, 2, 3))) void run_output_say(struct run_output *o, const char *format,
                                                          ...);
/* From now on nothing is written. */
void run_output_drop(struct run_output *o);
size_t run_output_pending(const struct run_output *o);
/* What to wait for: two. */
void run_output_poll(const struct run_output *o, struct pollfd *ret);
/* Writes what can be written. -EPIPE: nobody reads the output any more. */
int run_output_flush(struct run_output *o);

#endif
