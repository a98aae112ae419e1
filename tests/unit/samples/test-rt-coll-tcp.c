/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every algorithm of rt_coll over TCP on this host's loopback, against a serial reference:
 *
 *   test-rt-coll-tcp          all pairs of type, operation, algorithm, length, ranks, place, hosts
 *                             and transport: threads by IPv4 and by IPv6, processes
 *                             (RT_COLL_SEED=... for the same rows again)
 *   test-rt-coll-tcp threads  the same between threads alone, for a thread sanitizer
 *   test-rt-coll-tcp all      the full product, in short blocks, which takes hours
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "coll-cases.h"
#include "covering.h"
#include "tcp-ranks.h"

#define BLOCK_BYTES       (16u << 10) /* short: many of them in short buffers */
#define SHORT_BLOCK_BYTES 256u        /* as millions of cases want them */

enum { THREADS, THREADS_V6, THREAD_TRANSPORTS, PROCESSES = THREAD_TRANSPORTS, TRANSPORTS };

static int run(int size, unsigned transport, rank_fn *fn, struct subject *s)
{
    return run_ranks_tcp(size, transport == PROCESSES, transport == THREADS_V6, BLOCK_BYTES, fn, s);
}

static int run_short_blocks(int size, unsigned transport, rank_fn *fn, struct subject *s)
{
    return run_ranks_tcp(size, transport == PROCESSES, transport == THREADS_V6, SHORT_BLOCK_BYTES,
                         fn, s);
}

static void run_pairs(unsigned transports)
{
    const struct coll_runner r = {.seed = covering_seed("RT_COLL_SEED"),
                                  .transports = transports,
                                  .block_bytes = BLOCK_BYTES,
                                  .run = run};
    assert_int_equal(coll_cases_run(&r), 0);
}

static void all_algorithms_by_pairs_equal_serial_reference(void **state)
{
    run_pairs(TRANSPORTS);
}

static void all_algorithms_by_pairs_in_threads_equal_serial_reference(void **state)
{
    run_pairs(THREAD_TRANSPORTS);
}

static void the_full_product_equals_serial_reference(void **state)
{
    const struct coll_runner r = {.all = true,
                                  .progress = true,
                                  .transports = TRANSPORTS,
                                  .block_bytes = SHORT_BLOCK_BYTES,
                                  .run = run_short_blocks};
    assert_int_equal(coll_cases_run(&r), 0);
}

/* ---- in trouble ---- */

/* Long messages, so that sockets are full in the midst of one; blocks of the transport's own. */
static void long_allreduces_equal_serial_reference(void **state)
{
    static const uint64_t counts[] = {1500007, 131072};
    struct subject s = {
        .algorithm = "auto", .type = RT_FLOAT32, .op = RT_SUM, .counts = counts, .count_count = 2};
    assert_int_equal(run_ranks_tcp(3, false, false, 0, allreduce_rank, &s), 0);
    s.algorithm = "ring";
    assert_int_equal(run_ranks_tcp(4, true, false, 0, allreduce_rank, &s), 0);
}

/* Rank 1 is in the midst of a message, has sent another before, or never comes at all. */
static int leaving_rank(struct rt_transport *t, void *argument)
{
    const int after = *(const int *)argument;
    int32_t value = t->rank;
    for (int i = 0; i < after; i++)
        if (rt_allreduce(t, &value, &value, 1, RT_INT32, RT_SUM))
            return FAILED;
    if (t->rank == 1)
        return 0;
    return rt_allreduce(t, &value, &value, 1, RT_INT32, RT_SUM) == -ECONNRESET ? 0 : FAILED;
}

static void allreduce_when_peer_leaves_returns_connreset(void **state)
{
    for (int after = 0; after < 3; after++) {
        assert_int_equal(run_ranks_tcp(2, after % 2, false, 0, leaving_rank, &after), 0);
        assert_int_equal(run_ranks_tcp(2, !(after % 2), false, 0, leaving_rank, &after), 0);
    }
}

/* Nothing that closes would tell rank 0. */
static int awaiting_rank(struct rt_transport *t, void *argument)
{
    int32_t value;
    struct rt_request r;
    if (t->rank == 1)
        return 0;
    return t->ops->recv(t, &value, sizeof value, 1, &r) == 0 &&
                   t->ops->wait(t, &r, 1) == -ECONNRESET
               ? 0
               : FAILED;
}

static void recv_from_peer_that_ended_before_it_connected_returns_connreset(void **state)
{
    assert_int_equal(run_ranks_tcp(2, false, false, 0, awaiting_rank, NULL), 0);
    assert_int_equal(run_ranks_tcp(2, true, true, 0, awaiting_rank, NULL), 0);
}

struct patience {
    int is_connected;
    int through; /* atomic */
};

/* Rank 1 is there, connected or not, and says nothing. */
static int patient_rank(struct rt_links *links, void *argument)
{
    struct patience *p = argument;
    static const int ranks[] = {0, 1};
    struct rt_transport *t = rt_transport_tcp_new(&links->base, 3, ranks, 2, links->rank);
    int32_t value = 1;
    struct rt_request r;
    int error = t ? 0 : -ENOMEM;
    if (!error && p->is_connected) /* both ways */
        error = rt_allreduce(t, &value, &value, 1, RT_INT32, RT_SUM);
    links->base.deadline_ns = rt_now_ns() + 30000000;
    if (!error && links->rank == 0) {
        error = t->ops->recv(t, &value, sizeof value, 1, &r);
        error = error ? error : t->ops->wait(t, &r, 1);
        error = error == -ETIMEDOUT && links->base.late == 1 ? 0 : FAILED;
        __atomic_store_n(&p->through, 1, __ATOMIC_RELEASE);
    }
    while (!__atomic_load_n(&p->through, __ATOMIC_ACQUIRE))
        sched_yield();
    rt_transport_tcp_free(t);
    return error;
}

static void recv_from_silent_peer_with_deadline_is_timedout(void **state)
{
    for (int is_connected = 0; is_connected < 2; is_connected++) {
        struct patience p = {.is_connected = is_connected};
        assert_int_equal(run_links(2, false, false, patient_rank, &p), 0);
    }
}

static int disagreeing_rank(struct rt_transport *t, void *argument)
{
    int32_t values[8] = {0};
    int error =
        rt_allreduce_recursive_doubling(t, values, values, t->rank == 0 ? 4 : 8, RT_INT32, RT_SUM);
    return error == -EMSGSIZE || error == -ECONNRESET ? 0 : FAILED;
}

static void allreduce_of_different_counts_is_an_error_not_an_overrun(void **state)
{
    assert_int_equal(run_ranks_tcp(2, false, false, 0, disagreeing_rank, NULL), 0);
}

#define MESSAGES 5

/* Many at once each way, of lengths from one byte on, waited for together. */
static int crossing_rank(struct rt_transport *t, void *argument)
{
    enum { LENGTH = 70001 };
    const int n = t->size, others = n - 1;
    const size_t all = (size_t)(MESSAGES * others);
    char *out = malloc(all * LENGTH), *in = calloc(all, LENGTH);
    struct rt_request *r = calloc(2 * all, sizeof *r);
    unsigned posted = 0;
    for (int m = 0; m < MESSAGES; m++)
        for (int d = 1; d < n; d++) {
            const int to = (t->rank + d) % n, from = (t->rank + n - d) % n;
            const size_t at = (size_t)(m * others + d - 1) * LENGTH;
            const uint64_t bytes = m == 2 ? 1 : LENGTH - (unsigned)m;
            memset(out + at, t->rank * 37 + to * 5 + m, LENGTH);
            if (t->ops->send(t, out + at, bytes, to, &r[posted++]) != 0 ||
                t->ops->recv(t, in + at, bytes, from, &r[posted++]) != 0)
                return FAILED;
        }
    int result = t->ops->wait(t, r, posted) ? FAILED : 0;
    for (int m = 0; m < MESSAGES && result == 0; m++)
        for (int d = 1; d < n; d++) {
            const int from = (t->rank + n - d) % n, bytes = m == 2 ? 1 : LENGTH - m;
            const char *got = in + (size_t)(m * others + d - 1) * LENGTH;
            const char expected = (char)(from * 37 + t->rank * 5 + m);
            for (int i = 0; i < LENGTH; i++)
                if (got[i] != (i < bytes ? expected : 0))
                    result = WRONG_VALUE;
        }
    free(out);
    free(in);
    free(r);
    return result;
}

static void wait_for_many_crossing_messages_delivers_all_in_order(void **state)
{
    assert_int_equal(run_ranks_tcp(4, false, false, 0, crossing_rank, NULL), 0);
    assert_int_equal(run_ranks_tcp(3, true, true, 0, crossing_rank, NULL), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest pairs[] = {
        cmocka_unit_test(all_algorithms_by_pairs_equal_serial_reference),
        cmocka_unit_test(long_allreduces_equal_serial_reference),
        cmocka_unit_test(wait_for_many_crossing_messages_delivers_all_in_order),
        cmocka_unit_test(allreduce_when_peer_leaves_returns_connreset),
        cmocka_unit_test(recv_from_peer_that_ended_before_it_connected_returns_connreset),
        cmocka_unit_test(recv_from_silent_peer_with_deadline_is_timedout),
        cmocka_unit_test(allreduce_of_different_counts_is_an_error_not_an_overrun),
    };
    const struct CMUnitTest threads[] = {
        cmocka_unit_test(all_algorithms_by_pairs_in_threads_equal_serial_reference),
    };
    const struct CMUnitTest all[] = {cmocka_unit_test(the_full_product_equals_serial_reference)};
    if (argc > 1 && strcmp(argv[1], "threads") == 0)
        return cmocka_run_group_tests(threads, NULL, NULL);
    return argc > 1 && strcmp(argv[1], "all") == 0 ? cmocka_run_group_tests(all, NULL, NULL)
                                                   : cmocka_run_group_tests(pairs, NULL, NULL);
}
