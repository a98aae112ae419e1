/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-topology.h - which ranks share a host, and each rank's place in it.
 *
 * Hosts are numbered by their lowest rank, whatever their names and however ranks are laid on them.
 */
#ifndef RT_TOPOLOGY_H
#define RT_TOPOLOGY_H

#include <stdbool.h>

#define RT_HOST_MAX 256 /* bytes of a host's name, with the end */

struct rt_topology {
    int rank, size;
    int host, host_count;
    int local_rank, local_size;
    int cross_rank, cross_size; /* among hosts that have a rank of this local rank */
    bool even;                  /* every host has as many ranks */
};

/* `hosts` has a name for each of the `size` ranks. */
struct rt_topology rt_topology_of(const char (*hosts)[RT_HOST_MAX], int rank, int size);

/* A number for each rank, the same for those of one host. */
void rt_topology_number_hosts(const char (*hosts)[RT_HOST_MAX], int size, int *ret);

#endif
