/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-runtime.h - what the files that make up rt.h's calls share: the runtime of this process.
 *
 * Threads: rt_self is written by rt_init and rt_shutdown alone.
 */
#ifndef RT_RUNTIME_H
#define RT_RUNTIME_H

#include "rt-worker.h"

#define RT_RESERVED "rt." /* names of the runtime's own operations begin so */

extern struct rt_runtime {
    struct rt_worker *worker; /* NULL: not running */
    struct rt_table *table;
    struct rt_topology topology;
    enum rt_compression compression; /* where an operation says nothing */
} rt_self;

/* Keeps the text for rt_error, and returns `error`. */
__attribute__((format(printf, 2, 3))) int rt_fail(int error, const char *format, ...);
/* That this rank is in the set, for the tensor of that name. -ESHUTDOWN, -ENOENT, -EPERM, said. */
int rt_look_at_set(const char *name, int set, struct rt_set_view *ret);
/* Takes the operation, which may be NULL; returns its handle. */
int rt_hand_over(struct rt_operation *o, const struct rt_options *options);

#endif
