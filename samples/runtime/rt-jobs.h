/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-jobs.h - carries out rank 0's orders on the operations that this rank has handed over.
 *
 * Threads: the background thread alone. Errors: a negative errno; then the runtime can only end.
 */
#ifndef RT_JOBS_H
#define RT_JOBS_H

#include "rt-sets.h"

struct rt_jobs {
    struct rt_table *table; /* borrowed, as the next */
    struct rt_sets *sets;
    bool ended;        /* the last order was carried out */
    char message[300]; /* of an error: what was wrong, where more than its number is known */
};

/* Keeps the orders of a message that concern this rank, and carries them out. */
int rt_jobs_obey(struct rt_jobs *j, const struct rt_bytes *message);

#endif
