/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-control.h - messages between the coordinator and the ranks, of any length; flush alone blocks.
 *
 * Threads: the background thread alone. Errors: -EIO, -ENOMEM.
 */
#ifndef RT_CONTROL_H
#define RT_CONTROL_H

#include "rt-message.h"

struct rt_control;

/* `comm` points to an MPI_Comm of the runtime's own. NULL: no memory. */
struct rt_control *rt_control_new(const void *comm);
/* Waits for messages under way. NULL-safe. */
void rt_control_free(struct rt_control *c);

/* The bytes are copied. */
int rt_control_send(struct rt_control *c, int to, const struct rt_bytes *message);
/* Waits until what was sent is on its way without this rank's help. */
int rt_control_flush(struct rt_control *c);
/* 1 and a message (the caller frees its data), 0 none has come. */
int rt_control_receive(struct rt_control *c, int *ret_from, struct rt_bytes *ret);

#endif
