/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-execute-parts.h - carries out what gives each rank a part, or a part from each.
 *
 * By NCCL where all ranks are on one host and it has the operation; else by MPI over all. How many
 * rows ranks bring they tell each other first. Threads: the background thread alone.
 */
#ifndef RT_EXECUTE_PARTS_H
#define RT_EXECUTE_PARTS_H

#include "rt-execute.h"

int rt_execute_allgather(const struct rt_batch *b);
int rt_execute_reducescatter(const struct rt_batch *b);
int rt_execute_alltoall(const struct rt_batch *b);

#endif
