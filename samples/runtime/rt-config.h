/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-config.h - the runtime's settings, from the environment (the list stands in rt.h).
 */
#ifndef RT_CONFIG_H
#define RT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rt-coll.h"
#include "rt.h"

struct rt_config {
    uint64_t fusion_threshold; /* bytes */
    uint64_t cycle_ns;
    bool hierarchical;
    enum rt_compression compression; /* where an operation says nothing */
    rt_allreduce_fn *allreduce;      /* between hosts, or over all ranks */
};

/* -EINVAL, and the message says which setting, what it holds and what it may hold. */
int rt_config_read(struct rt_config *ret, char *message, size_t message_bytes);

#endif
