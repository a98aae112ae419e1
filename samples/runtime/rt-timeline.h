/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-timeline.h - what rank 0 knows of all tensors' lives, for a file in the format of Horovod's
 * timeline.
 *
 * Model: NEGOTIATE_<OP> from the first rank's announcement until the order, in it a tick of each
 * rank when it was ready (of those that joined: none), then <OP> and its activities. One file at a
 * time, in this process; without one a call is a test of a flag. What was under way when the file
 * was opened comes from its next step on.
 * Same names of different process sets are different tensors: the set's stands in their title.
 * Threads: any; one tensor's calls come one after the other. Memory: a tensor's name is kept until
 * rt_timeline_release.
 */
#ifndef RT_TIMELINE_H
#define RT_TIMELINE_H

#include <stdbool.h>

#include "rt-message.h"

struct rt_timeline_tensor;

/* -EBUSY: one is open. Else what opening it met. */
int rt_timeline_open(const char *path, bool mark_cycles);
/* What happened until now is in the file. Returns the first failure of writing; 0 where none was
 * open. */
int rt_timeline_close(void);
/* Closes, and forgets all tensors: nobody uses them any more. */
void rt_timeline_release(void);

/* The coordinator's side. */
void rt_timeline_ready(const struct rt_tensor *tensor, int rank);
void rt_timeline_agreed(const struct rt_tensor *tensor);

/* This rank's work: `op` is never freed. No activity: none follows. NULL is good for a tensor. */
struct rt_timeline_tensor *rt_timeline_begin(const struct rt_tensor *tensor, const char *op);
void rt_timeline_activity(struct rt_timeline_tensor *t, const char *activity);
void rt_timeline_end(struct rt_timeline_tensor *t);

/* The background thread looks for work. */
void rt_timeline_cycle(void);

/* "NEGOTIATE_ALLREDUCE" and "ALLREDUCE", as Horovod calls what is done to a tensor. */
const char *rt_timeline_negotiation(const struct rt_tensor *tensor);
const char *rt_timeline_operation(const struct rt_tensor *tensor);

#endif
