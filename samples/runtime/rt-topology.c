/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-topology.h"

#include <string.h>

static bool same_host(const char (*hosts)[RT_HOST_MAX], int a, int b)
{
    return strncmp(hosts[a], hosts[b], RT_HOST_MAX) == 0;
}

/* Ranks below `end` on the host of `rank`. */
static int count_before(const char (*hosts)[RT_HOST_MAX], int rank, int end)
{
    int n = 0;
    for (int r = 0; r < end; r++)
        n += same_host(hosts, r, rank);
    return n;
}

struct rt_topology rt_topology_of(const char (*hosts)[RT_HOST_MAX], int rank, int size)
{
    struct rt_topology t = {.rank = rank, .size = size, .even = true};
    t.local_rank = count_before(hosts, rank, rank);
    t.local_size = count_before(hosts, rank, size);
    for (int first = 0; first < size; first++) {
        if (count_before(hosts, first, first) > 0)
            continue; /* not its host's lowest rank */
        int ranks = count_before(hosts, first, size);
        bool mine = same_host(hosts, first, rank);
        t.even = t.even && ranks == t.local_size;
        if (mine) {
            t.host = t.host_count;
            t.cross_rank = t.cross_size;
        }
        t.cross_size += ranks > t.local_rank;
        t.host_count++;
    }
    return t;
}

void rt_topology_number_hosts(const char (*hosts)[RT_HOST_MAX], int size, int *ret)
{
    for (int r = 0; r < size; r++) {
        ret[r] = 0;
        while (!same_host(hosts, ret[r], r))
            ret[r]++;
    }
}
