/* SPDX-License-Identifier: Apache-2.0 */
/* Bells between ranks, as threads and as processes: what is rung wakes, and nothing is missed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rt-alloc.h"
#include "rt-bells.h"
#include "rt-ranks.h"

enum { RANKS = 3, ROUNDS = 2000 };

struct fake {
    struct rt_fabric base;
    struct rt_transport *t;
};

static int allgather(struct rt_fabric *f, const void *mine, void *ret, size_t bytes)
{
    return rt_allgather_ring(((struct fake *)f)->t, mine, ret, bytes * (uint64_t)f->size, RT_UINT8);
}

static const struct rt_fabric_ops ops = {.allgather = allgather};

static struct rt_bells *make(struct fake *f, struct rt_transport *t, int others_host)
{
    char hosts[RANKS][RT_HOST_MAX] = {"a", "a", ""};
    int error;
    hosts[RANKS - 1][0] = others_host ? 'b' : 'a';
    *f = (struct fake){{.ops = &ops, .rank = t->rank, .size = t->size}, t};
    return rt_bells_new(&f->base, (const char(*)[RT_HOST_MAX])hosts, &error);
}

/* Rank 0 rings all, and each rings back. Without a bell no round would end. */
static int answer_each_other(struct rt_transport *t, void *argument)
{
    struct fake f;
    struct rt_bells *b = make(&f, t, 0);
    if (!b || !rt_bells_are_whole(b))
        return b ? 2 : 1;
    uint32_t wanted = 0;
    for (int i = 0; i < ROUNDS; i++) {
        wanted += t->rank == 0 ? RANKS - 1 : 1;
        for (int r = 1; r < RANKS && t->rank == 0; r++)
            rt_bells_ring(b, r);
        for (uint32_t n; (n = rt_bells_number(b)) != wanted;)
            rt_bells_wait(b, n, RT_BELLS_FOREVER);
        if (t->rank != 0)
            rt_bells_ring(b, 0);
    }
    int error = rt_barrier(t);
    rt_bells_free(b);
    return error ? 3 : 0;
}

static int ring_over_hosts(struct rt_transport *t, void *argument)
{
    struct fake f;
    struct rt_bells *b = make(&f, t, 1);
    if (!b || rt_bells_are_whole(b) != (t->rank == 1))
        return b ? 2 : 1;
    rt_bells_ring(b, 0);         /* rank 2 in vain */
    rt_bells_ring(b, RANKS - 1); /* rank 0 too, and rank 1, which has nothing to say to it */
    if (rt_barrier(t))
        return 3;
    const uint32_t number = rt_bells_number(b);
    rt_bells_wait(b, number + 1, RT_BELLS_FOREVER); /* it isn't that number: no waiting */
    rt_bells_wait(b, number, 1000);
    rt_bells_free(b);
    /* its own, and rank 1's */
    return number == (t->rank == 0 ? 2 : t->rank == 2 ? 1 : 0) ? 0 : 4;
}

/* Rank 0 rings the others when they have ended, and have taken memory. */
static int ring_who_has_ended(struct rt_transport *t, void *argument)
{
    enum { PAGES = 8 };
    static const char zeros[4096];
    struct fake f;
    struct rt_bells *b = make(&f, t, 0);
    char *taken[PAGES] = {0};
    if (!b)
        return 1;
    if (t->rank != 0)
        rt_bells_free(b);
    for (int i = 0; i < PAGES; i++) {
        taken[i] = rt_alloc(sizeof zeros);
        memset(taken[i], 0, sizeof zeros);
    }
    int error = rt_barrier(t);
    for (int r = 1; r < RANKS && t->rank == 0; r++)
        rt_bells_ring(b, r);
    error = error ? error : rt_barrier(t);
    for (int i = 0; i < PAGES; i++) {
        error = error ? error : memcmp(taken[i], zeros, sizeof zeros) ? 2 : 0;
        rt_free(taken[i]);
    }
    if (t->rank == 0)
        rt_bells_free(b);
    return error;
}

static void ranks_answer_each_other(void **state)
{
    assert_int_equal(run_ranks(RANKS, false, answer_each_other, NULL), 0);
    assert_int_equal(run_ranks(RANKS, true, answer_each_other, NULL), 0);
}

static void ranks_of_another_host_are_out_of_reach(void **state)
{
    assert_int_equal(run_ranks(RANKS, false, ring_over_hosts, NULL), 0);
    assert_int_equal(run_ranks(RANKS, true, ring_over_hosts, NULL), 0);
}

static void ring_of_a_rank_that_has_ended_changes_nothing_of_its(void **state)
{
    assert_int_equal(run_ranks(RANKS, false, ring_who_has_ended, NULL), 0);
    assert_int_equal(run_ranks(RANKS, true, ring_who_has_ended, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_answer_each_other),
        cmocka_unit_test(ranks_of_another_host_are_out_of_reach),
        cmocka_unit_test(ring_of_a_rank_that_has_ended_changes_nothing_of_its),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
