/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-two-hosts.h - the hierarchical allreduce's way between two hosts: within rt_coll only.
 */
#ifndef RT_TWO_HOSTS_H
#define RT_TWO_HOSTS_H

#include <stdbool.h>

#include "rt-coll.h"

/* Two hosts, alike, and enough to cut into pieces? */
bool rt_two_hosts_fits(const struct rt_hosts *hosts, uint64_t bytes);
/* Where it fits. */
int rt_allreduce_two_hosts(const struct rt_hosts *hosts, const void *in, void *out, uint64_t count,
                           enum rt_type type, enum rt_op op);

#endif
