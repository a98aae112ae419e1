/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks share a host, for even and uneven hosts, in blocks and dealt out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "rt-topology.h"

#define RANKS_MAX 8

/* The layout has one letter a rank: its host. */
static struct rt_topology of(const char *layout, int rank)
{
    char hosts[RANKS_MAX][RT_HOST_MAX] = {{0}};
    int size = 0;
    for (; layout[size]; size++)
        snprintf(hosts[size], RT_HOST_MAX, "node-%c", layout[size]);
    return rt_topology_of((const char(*)[RT_HOST_MAX])hosts, rank, size);
}

static void check(const char *layout, int rank, struct rt_topology want)
{
    struct rt_topology t = of(layout, rank);
    assert_int_equal(t.rank, rank);
    assert_int_equal(t.host, want.host);
    assert_int_equal(t.host_count, want.host_count);
    assert_int_equal(t.local_rank, want.local_rank);
    assert_int_equal(t.local_size, want.local_size);
    assert_int_equal(t.cross_rank, want.cross_rank);
    assert_int_equal(t.cross_size, want.cross_size);
    assert_int_equal(t.even, want.even);
}

static void topology_of_blocks_is_even(void **state)
{
    check("bbaa", 0, (struct rt_topology){0, 0, 0, 2, 0, 2, 0, 2, true});
    check("bbaa", 3, (struct rt_topology){0, 0, 1, 2, 1, 2, 1, 2, true});
}

static void topology_of_dealt_ranks_is_even(void **state)
{
    check("abcabc", 4, (struct rt_topology){0, 0, 1, 3, 1, 2, 1, 3, true});
}

static void topology_of_uneven_hosts_counts_those_with_that_local_rank(void **state)
{
    check("aaabcc", 2, (struct rt_topology){0, 0, 0, 3, 2, 3, 0, 1, false});
    check("aaabcc", 3, (struct rt_topology){0, 0, 1, 3, 0, 1, 1, 3, false});
    check("aaabcc", 5, (struct rt_topology){0, 0, 2, 3, 1, 2, 1, 2, false});
}

static void topology_of_one_rank_is_alone(void **state)
{
    check("a", 0, (struct rt_topology){0, 0, 0, 1, 0, 1, 0, 1, true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topology_of_blocks_is_even),
        cmocka_unit_test(topology_of_dealt_ranks_is_even),
        cmocka_unit_test(topology_of_uneven_hosts_counts_those_with_that_local_rank),
        cmocka_unit_test(topology_of_one_rank_is_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
