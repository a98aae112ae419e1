/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-table.h - the operations of this rank that were handed over and are not done, and the handles
 * by which callers wait for them. Each has its process set's names.
 *
 * Model: callers add operations and wait; the background thread takes new ones, finds them by name
 * and finishes them. Results stay with the handle until it was waited for.
 * Threads: any. Memory: an operation belongs to the table from add to finish.
 */
#ifndef RT_TABLE_H
#define RT_TABLE_H

#include <stdbool.h>

#include "rt-operation.h"

struct rt_table;

struct rt_table *rt_table_new(void); /* NULL: no memory */
/* Nobody may use it any more. */
void rt_table_free(struct rt_table *t);

/* Takes `operation` and returns its handle; else -EEXIST: one of that name is not done, -EBUSY: one
 * of kind RT_JOIN and its set is not done (of kind RT_SHUTDOWN nevertheless), -ESHUTDOWN: closed,
 * -ENOMEM, and the operation stays the caller's. */
int rt_table_add(struct rt_table *t, struct rt_operation *operation);
/* 1 done, 0 not, -EINVAL. */
int rt_table_poll(struct rt_table *t, int handle);
/* Waits and frees the handle. On failure *ret_text, where there is one, is the caller's to free. */
int rt_table_wait(struct rt_table *t, int handle, char **ret_text);

/* ---- the background thread's side ---- */

/* From now on every operation that is added calls `ring`, in the caller's thread and under a lock:
 * it must be short. Not after rt_table_close. */
void rt_table_set_bell(struct rt_table *t, void (*ring)(void *data), void *data);
/* Is there one nobody was told of? */
bool rt_table_has_new(struct rt_table *t);
/* The next operation nobody was told of, in the order they were added; NULL none. */
struct rt_operation *rt_table_take_new(struct rt_table *t);
/* Announced and not done; NULL none. */
struct rt_operation *rt_table_find(struct rt_table *t, int set, const char *name);
/* Frees the operation; whoever waits goes on. `text` may be NULL. */
void rt_table_finish(struct rt_table *t, struct rt_operation *operation, int result,
                     const char *text);
/* Finishes all of that set; new ones are taken. Returns how many had been announced. */
unsigned rt_table_fail_set(struct rt_table *t, int set, int result, const char *text);
/* Finishes all with `result`, and refuses new ones. */
void rt_table_close(struct rt_table *t, int result, const char *text);
/* From any thread: who waits now or later gets `result`, while the operations stay the background
 * thread's, which may be in the midst of one. The first call counts. */
void rt_table_break(struct rt_table *t, int result, const char *text);
char *rt_table_dup_broken_text(struct rt_table *t); /* NULL: it isn't broken */

#endif
