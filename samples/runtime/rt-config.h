/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-config.h - the runtime's settings, from the environment (the list stands in rt.h).
 */
#ifndef RT_CONFIG_H
#define RT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rt-choice.h"
#include "rt.h"

struct rt_config {
    uint64_t fusion_threshold; /* bytes */
    uint32_t cache_capacity;   /* tensors */
    uint64_t cycle_ns;
    bool hierarchical; /* NCCL inside hosts: not where a plan goes by MPI alone */
    bool is_planned;   /* every allreduce goes by `plan` */
    struct rt_plan plan;
    bool deterministic;
    uint64_t stall_warning_ns, stall_shutdown_ns; /* 0: never */
    bool exits_on_death;                          /* of another rank */
    unsigned host_timeout_s;                      /* 0: never */
    enum rt_compression compression;              /* where an operation says nothing */
    const char *timeline;                         /* path; NULL: none */
    bool mark_cycles;
};

/* -EINVAL, and the message says which setting, what it holds and what it may hold. */
int rt_config_read(struct rt_config *ret, char *message, size_t message_bytes);
/* The first variable from `*at` on whose name begins as the runtime's do and is none of them, for a
 * warning; NULL: no more. *at is 0 at first. */
const char *rt_config_unknown(size_t *at);

#endif
