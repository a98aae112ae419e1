/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every algorithm of rt_coll over shared memory, against serial sums of exact integers, of two
 * types in all combinations (the others: test-rt-coll-types.c); and what happens in trouble.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll-cases.h"
#include "rt-process.h"
#include "rt-transport-shm.h"

/* None, one, fewer than ranks, not dividing, one block and a bit, several rounds of the ring. */
static const uint64_t counts[] = {0, 1, 3, 7, 12, 13, 1000, 4097, 65537, 300001};
#define COUNT_COUNT (sizeof counts / sizeof *counts)

static void run_subject(struct subject *s, int size, bool processes, rank_fn *fn)
{
    int result = run_ranks(size, processes, fn, s);
    if (result != 0)
        fail_msg("%s: %d ranks, type %d, op %d, %s, %s, from %llu elements on: %d", s->algorithm,
                 size, (int)s->type, (int)s->op, s->in_place ? "in place" : "apart",
                 processes ? "processes" : "threads", (unsigned long long)s->counts[0], result);
}

/* Runs `fn` in 1 to 8 ranks, two types, all operations and places, in threads or processes by
 * turns; the long ones for sums only: what cuts buffers up doesn't know the operation. */
static void run_everywhere(const char *algorithm, rank_fn *fn)
{
    int turn = 0;
    for (int size = 1; size <= 8; size++)
        for (int type = RT_FLOAT32; type <= RT_INT32; type++)
            for (int op = 0; op < RT_OP_COUNT; op++, turn++) {
                struct subject s = {.algorithm = algorithm,
                                    .type = (enum rt_type)type,
                                    .op = (enum rt_op)op,
                                    .in_place = turn % 3 == 0,
                                    .counts = counts,
                                    .count_count = op == RT_SUM ? COUNT_COUNT : COUNT_COUNT - 2};
                run_subject(&s, size, turn % 2 == 0, fn);
            }
}

static void allreduce_auto_equals_serial_sum(void **state)
{
    run_everywhere("auto", allreduce_rank);
}
static void allreduce_ring_equals_serial_sum(void **state)
{
    run_everywhere("ring", allreduce_rank);
}
static void allreduce_recursive_doubling_equals_serial_sum(void **state)
{
    run_everywhere("recursive-doubling", allreduce_rank);
}
static void allreduce_halving_doubling_equals_serial_sum(void **state)
{
    run_everywhere("halving-doubling", allreduce_rank);
}
static void allreduce_tree_equals_serial_sum(void **state)
{
    run_everywhere("tree", allreduce_rank);
}
static void allreduce_double_tree_equals_serial_sum(void **state)
{
    run_everywhere("double-tree", allreduce_rank);
}
static void allreduce_flat_equals_serial_sum(void **state)
{
    run_everywhere("flat", allreduce_rank);
}
static void reduce_scatter_gives_own_part(void **state)
{
    run_everywhere("reduce-scatter", reduce_scatter_rank);
}
static void allgather_gives_all_parts(void **state)
{
    run_everywhere("allgather", allgather_rank);
}
static void allgatherv_gives_parts_of_any_length(void **state)
{
    run_everywhere("allgatherv", allgatherv_rank);
}
static void alltoallv_gives_each_its_part(void **state)
{
    run_everywhere("alltoallv", alltoallv_rank);
}
static void broadcast_gives_the_roots_data(void **state)
{
    run_everywhere("binomial", broadcast_rank);
    run_everywhere("chain", broadcast_rank);
    run_everywhere("auto", broadcast_rank);
}
static void reduce_gives_root_the_sum(void **state)
{
    run_everywhere("reduce", reduce_rank);
}

static void *new_region(int size)
{
    return mmap(NULL, rt_shm_bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                0);
}

static void allreduce_find_unknown_is_null(void **state)
{
    assert_null(rt_allreduce_find("rings"));
    assert_non_null(strstr(rt_allreduce_names(), "halving-doubling"));
}

/* All layouts, by turns: each part of a host has partners of its own. */
static void allreduce_over_hosts_equals_serial_sum(void **state)
{
    int turn = 0;
    for (unsigned a = 0; a < coll_case_count; a++)
        for (int size = 1; size <= 8 && coll_cases[a].run == hosts_rank; size++)
            for (int hosts = 1 + (int)a % 2; hosts <= size && hosts <= MAX_HOSTS;
                 hosts += 2, turn++) {
                struct subject s = {.algorithm = coll_cases[a].name,
                                    .type = RT_INT32,
                                    .op = (enum rt_op)(turn % RT_OP_COUNT),
                                    .in_place = turn % 3 == 0,
                                    .hosts = hosts,
                                    .laid = (enum laid)(turn / 2 % LAID_COUNT),
                                    .counts = counts,
                                    .count_count = COUNT_COUNT - 2};
                run_subject(&s, size, turn % 8 == 0, hosts_rank);
            }
}

/* ---- barrier ---- */

static int barrier_rank(struct rt_transport *t, void *argument)
{
    uint32_t *arrived = argument;
    for (uint32_t round = 1; round <= 50; round++) {
        __atomic_fetch_add(arrived, 1, __ATOMIC_SEQ_CST);
        if (rt_barrier(t) != 0)
            return FAILED;
        if (__atomic_load_n(arrived, __ATOMIC_SEQ_CST) < round * (uint32_t)t->size)
            return WRONG_VALUE;
    }
    return 0;
}

static void barrier_waits_for_all(void **state)
{
    for (int size = 1; size <= 7; size++) {
        uint32_t arrived = 0;
        assert_int_equal(run_ranks(size, false, barrier_rank, &arrived), 0);
    }
}

/* ---- trouble ---- */

static int leaving_rank(struct rt_transport *t, void *argument)
{
    int32_t value = t->rank;
    if (t->rank == 1)
        return 0; /* leaves without a word */
    return rt_allreduce(t, &value, &value, 1, RT_INT32, RT_SUM) == -ECONNRESET ? 0 : FAILED;
}

static void allreduce_when_peer_leaves_returns_connreset(void **state)
{
    assert_int_equal(run_ranks(2, false, leaving_rank, NULL), 0);
    assert_int_equal(run_ranks(2, true, leaving_rank, NULL), 0);
}

/* Rank 1 leaves. Of the others only rank 2 waits for it; none releases before all have noticed. */
static int chained_rank(struct rt_transport *t, void *argument)
{
    int32_t values[16] = {0};
    if (t->rank == 1)
        return 0;
    int error = rt_allreduce_ring(t, values, values, 16, RT_INT32, RT_SUM);
    __atomic_fetch_add((int *)argument, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n((int *)argument, __ATOMIC_ACQUIRE) < t->size - 1)
        sched_yield();
    return error == -ECONNRESET ? 0 : FAILED;
}

static void allreduce_when_peer_leaves_ends_for_those_who_wait_for_others(void **state)
{
    int noticed = 0;
    assert_int_equal(run_ranks(5, false, chained_rank, &noticed), 0);
}

/* Its parent doesn't reap rank 1 before rank 0 has noticed: a zombie is dead. */
static void allreduce_when_peer_is_killed_returns_connreset(void **state)
{
    void *region = new_region(2);
    pid_t victim = fork();
    if (victim == 0) {
        struct rt_transport_shm t;
        if (rt_transport_shm_init(&t, region, 1, 2) == 0)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    struct rt_transport_shm t;
    assert_int_equal(rt_transport_shm_init(&t, region, 0, 2), 0);
    int32_t value = 1;
    assert_int_equal(rt_allreduce(&t.base, &value, &value, 1, RT_INT32, RT_SUM), -ECONNRESET);
    rt_transport_shm_release(&t);
    int status;
    assert_int_equal(waitpid(victim, &status, 0), victim);
    assert_true(WIFSIGNALED(status));
    munmap(region, rt_shm_bytes(2));
}

static int last_words_rank(struct rt_transport *t, void *argument)
{
    int32_t value = 40 + t->rank;
    struct rt_request r;
    if (t->rank == 1)
        return t->ops->send(t, &value, sizeof value, 0, &r) || t->ops->wait(t, &r, 1) ? FAILED : 0;
    int error = t->ops->recv(t, &value, sizeof value, 1, &r);
    while (!error && rt_shm_peer_alive((struct rt_transport_shm *)t, 1))
        sched_yield();
    error = error ? error : t->ops->wait(t, &r, 1);
    return error ? FAILED : value == 41 ? 0 : WRONG_VALUE;
}

static void recv_from_peer_that_left_gets_what_it_had_sent(void **state)
{
    assert_int_equal(run_ranks(2, false, last_words_rank, NULL), 0);
}

static void *abort_soon(void *argument)
{
    rt_transport_shm_abort(argument);
    return NULL;
}

static int aborting_rank(struct rt_transport *t, void *argument)
{
    if (t->rank == 1) { /* takes part in nothing, but stays until rank 0 is through */
        while (!__atomic_load_n((int *)argument, __ATOMIC_ACQUIRE))
            sched_yield();
        return 0;
    }
    int32_t value = 1;
    pthread_t thread;
    pthread_create(&thread, NULL, abort_soon, t);
    int error = rt_allreduce(t, &value, &value, 1, RT_INT32, RT_SUM);
    pthread_join(thread, NULL);
    __atomic_store_n((int *)argument, 1, __ATOMIC_RELEASE);
    return error == -ECANCELED ? 0 : FAILED;
}

static void allreduce_when_aborted_returns_canceled(void **state)
{
    int through = 0;
    assert_int_equal(run_ranks(2, false, aborting_rank, &through), 0);
}

static int disagreeing_rank(struct rt_transport *t, void *argument)
{
    int32_t values[8] = {0};
    int error =
        rt_allreduce_recursive_doubling(t, values, values, t->rank == 0 ? 4 : 8, RT_INT32, RT_SUM);
    return t->rank == 0 ? (error == -EMSGSIZE ? 0 : FAILED) : (error == -ECONNRESET ? 0 : FAILED);
}

static void allreduce_of_different_counts_is_an_error_not_an_overrun(void **state)
{
    assert_int_equal(run_ranks(2, false, disagreeing_rank, NULL), 0);
}

/* Three words for two of twice the size: no whole number of elements has come. */
static int broken_element_rank(struct rt_transport *t, void *argument)
{
    int32_t words[3] = {1, 2, 3};
    double numbers[2] = {0};
    struct rt_request r;
    if (t->rank == 0)
        return t->ops->send(t, words, sizeof words, 1, &r) || t->ops->wait(t, &r, 1) ? FAILED : 0;
    int error = t->ops->recv_reduce(t, numbers, numbers, 2, RT_FLOAT64, RT_SUM, 0, &r);
    return !error && t->ops->wait(t, &r, 1) == -EMSGSIZE ? 0 : FAILED;
}

static void reduce_of_a_part_of_an_element_is_an_error(void **state)
{
    assert_int_equal(run_ranks(2, false, broken_element_rank, NULL), 0);
}

static void shm_init_of_taken_place_is_busy(void **state)
{
    void *region = new_region(2);
    struct rt_transport_shm a, b;
    assert_int_equal(rt_transport_shm_init(&a, region, 0, 2), 0);
    assert_int_equal(rt_transport_shm_init(&b, region, 0, 2), -EBUSY);
    assert_int_equal(rt_transport_shm_init(&b, region, 2, 2), -EINVAL);
    rt_transport_shm_release(&a);
    munmap(region, rt_shm_bytes(2));
}

/* ---- many messages at once, as in a group of sends and receives ---- */

#define MESSAGES 5

static int crossing_rank(struct rt_transport *t, void *argument)
{
    enum { LENGTH = 70001 };
    int n = t->size, others = n - 1;
    int32_t *out = malloc(sizeof *out * LENGTH * (size_t)(MESSAGES * others));
    int32_t *in = malloc(sizeof *in * LENGTH * (size_t)(MESSAGES * others));
    struct rt_request *r = calloc((size_t)(2 * MESSAGES * others), sizeof *r);
    unsigned posted = 0;
    for (int m = 0; m < MESSAGES; m++)
        for (int d = 1; d < n; d++) {
            int to = (t->rank + d) % n, from = (t->rank + n - d) % n;
            size_t at = (size_t)(m * others + d - 1) * LENGTH, bytes = sizeof *in * (LENGTH - m);
            for (int i = 0; i < LENGTH; i++)
                out[at + (size_t)i] = t->rank * 1000000 + to * 100000 + m * 10000 + i % 9973;
            if (t->ops->send(t, out + at, bytes, to, &r[posted++]) != 0 ||
                t->ops->recv(t, in + at, bytes, from, &r[posted++]) != 0)
                return FAILED;
        }
    if (t->ops->wait(t, r, posted) != 0)
        return FAILED;
    for (int m = 0; m < MESSAGES; m++)
        for (int d = 1; d < n; d++)
            for (int i = 0; i < LENGTH - m; i++) {
                int from = (t->rank + n - d) % n;
                if (in[(size_t)(m * others + d - 1) * LENGTH + (size_t)i] !=
                    from * 1000000 + t->rank * 100000 + m * 10000 + i % 9973)
                    return WRONG_VALUE;
            }
    free(out);
    free(in);
    free(r);
    return 0;
}

static void wait_for_many_crossing_messages_delivers_all_in_order(void **state)
{
    assert_int_equal(run_ranks(4, false, crossing_rank, NULL), 0);
    assert_int_equal(run_ranks(3, true, crossing_rank, NULL), 0);
}

/* ---- parts and processes ---- */

static void part_first_covers_everything_once(void **state)
{
    const uint64_t huge = ((uint64_t)1 << 40) + 5;
    for (int n = 1; n < 20; n++) {
        assert_int_equal(rt_part_first(huge, n, 0), 0);
        assert_int_equal(rt_part_first(huge, n, n), huge);
        for (int i = 0; i < n; i++) {
            uint64_t part = rt_part_count(huge, n, i);
            assert_true(part == huge / (uint64_t)n || part == huge / (uint64_t)n + 1);
        }
    }
    assert_int_equal(rt_part_count(2, 3, 2), 0);
}

static void process_alive_knows_start_time(void **state)
{
    uint64_t start = rt_process_start(getpid());
    assert_true(start > 0);
    assert_true(rt_process_alive(getpid(), start));
    assert_false(rt_process_alive(getpid(), start + 1));
    assert_false(rt_process_alive(0x7ffffff0, start));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(part_first_covers_everything_once),
        cmocka_unit_test(process_alive_knows_start_time),
        cmocka_unit_test(allreduce_find_unknown_is_null),
        cmocka_unit_test(barrier_waits_for_all),
        cmocka_unit_test(allreduce_auto_equals_serial_sum),
        cmocka_unit_test(allreduce_ring_equals_serial_sum),
        cmocka_unit_test(allreduce_recursive_doubling_equals_serial_sum),
        cmocka_unit_test(allreduce_halving_doubling_equals_serial_sum),
        cmocka_unit_test(allreduce_tree_equals_serial_sum),
        cmocka_unit_test(allreduce_double_tree_equals_serial_sum),
        cmocka_unit_test(allreduce_flat_equals_serial_sum),
        cmocka_unit_test(allreduce_over_hosts_equals_serial_sum),
        cmocka_unit_test(reduce_scatter_gives_own_part),
        cmocka_unit_test(allgather_gives_all_parts),
        cmocka_unit_test(allgatherv_gives_parts_of_any_length),
        cmocka_unit_test(alltoallv_gives_each_its_part),
        cmocka_unit_test(broadcast_gives_the_roots_data),
        cmocka_unit_test(reduce_gives_root_the_sum),
        cmocka_unit_test(wait_for_many_crossing_messages_delivers_all_in_order),
        cmocka_unit_test(recv_from_peer_that_left_gets_what_it_had_sent),
        cmocka_unit_test(shm_init_of_taken_place_is_busy),
        cmocka_unit_test(allreduce_of_different_counts_is_an_error_not_an_overrun),
        cmocka_unit_test(reduce_of_a_part_of_an_element_is_an_error),
        cmocka_unit_test(allreduce_when_aborted_returns_canceled),
        cmocka_unit_test(allreduce_when_peer_leaves_returns_connreset),
        cmocka_unit_test(allreduce_when_peer_leaves_ends_for_those_who_wait_for_others),
        cmocka_unit_test(allreduce_when_peer_is_killed_returns_connreset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
