/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-worker.h - the background thread: announces what is ready, carries out what is ordered.
 *
 * Model: a rank sends what was handed over to rank 0, looks for orders and carries them out. When
 * it does so rt-pace.h says; between it sleeps until there is something to do (rt-bells.h), rather
 * than spin. With nothing handed over no order can concern it, as an order takes every rank's
 * announcement; rank 0 alone goes on to look where there are process sets without it.
 */
#ifndef RT_WORKER_H
#define RT_WORKER_H

#include "rt-config.h"
#include "rt-sets.h"
#include "rt-table.h"
#include "rt-topology.h"

struct rt_worker;

/* Starts the thread and waits until all is set up. NULL: *ret_error, and the message. */
struct rt_worker *rt_worker_new(const struct rt_config *config, struct rt_table *table,
                                struct rt_topology *ret_topology, int *ret_error, char *message,
                                size_t message_bytes);
/* From any thread, until rt_worker_join. */
struct rt_sets *rt_worker_sets(struct rt_worker *w);
/* Waits for the thread's end, which an operation of kind RT_SHUTDOWN brings. */
void rt_worker_join(struct rt_worker *w);

#endif
