/* SPDX-License-Identifier: Apache-2.0 */
/* rt_coll with counts beyond 32 bits, and what its costs say, on a transport that moves nothing and
 * notes what it is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rt-coll.h"

/* ---- counts beyond 32 bits: a transport that moves nothing, and notes what it is asked for ----
 */

struct sham {
    struct rt_transport base;
    const char *low, *high; /* what may be touched */
    uint64_t sent_bytes, received_bytes, reduced_bytes, longest_bytes;
    const char *received_end; /* of the highest address received to */
    int outside;
    unsigned receives;
};

static void note(struct sham *s, const void *data, uint64_t bytes, uint64_t *sum)
{
    const char *first = data;
    s->outside += first < s->low || first + bytes > s->high;
    s->longest_bytes = bytes > s->longest_bytes ? bytes : s->longest_bytes;
    *sum += bytes;
}

static int sham_send(struct rt_transport *t, const void *data, uint64_t bytes, int peer,
                     struct rt_request *ret)
{
    struct sham *s = (struct sham *)t;
    note(s, data, bytes, &s->sent_bytes);
    return 0;
}

static int sham_recv(struct rt_transport *t, void *data, uint64_t bytes, int peer,
                     struct rt_request *ret)
{
    struct sham *s = (struct sham *)t;
    const char *end = (const char *)data + bytes;
    s->received_end = end > s->received_end ? end : s->received_end;
    s->receives++;
    note(s, data, bytes, &s->received_bytes);
    return 0;
}

static int sham_recv_reduce(struct rt_transport *t, void *out, const void *operand, uint64_t count,
                            enum rt_type type, enum rt_op op, int peer, struct rt_request *ret)
{
    struct sham *s = (struct sham *)t;
    note(s, out, count * rt_type_bytes(type), &s->reduced_bytes);
    s->receives++;
    return 0;
}

static int sham_wait(struct rt_transport *t, struct rt_request *requests, unsigned n)
{
    return 0;
}

static const struct rt_transport_ops sham_ops = {
    .send = sham_send, .recv = sham_recv, .recv_reduce = sham_recv_reduce, .wait = sham_wait};

/* Six thousand million elements in address space that nobody touches. */
static void check_beyond_32_bits(enum rt_type type)
{
    const uint64_t each = rt_type_bytes(type), count = 6000000007u, bytes = count * each;
    char *space = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(space != MAP_FAILED);
    for (int rank = 0; rank < 3; rank += 2) {
        struct sham ring = {
            .base = {.ops = &sham_ops, .rank = rank, .size = 3, .block_bytes = 16u << 20},
            .low = space,
            .high = space + bytes};
        struct sham chain = ring, gather = ring;
        assert_int_equal(rt_allreduce_ring(&ring.base, space, space, count, type, RT_SUM), 0);
        /* all but one part reduced, all but one received whole; parts of a round differ by one
         * element */
        const uint64_t rounds = bytes / (3 * (16u << 20)) + 1, slack = each * rounds;
        assert_in_range(ring.reduced_bytes, bytes / 3 * 2 - slack, bytes / 3 * 2 + slack);
        assert_in_range(ring.received_bytes, bytes / 3 * 2 - slack, bytes / 3 * 2 + slack);
        assert_in_range(ring.sent_bytes, bytes / 3 * 4 - slack, bytes / 3 * 4 + slack);
        assert_int_equal(rt_broadcast_chain(&chain.base, space, count, type, 1), 0);
        assert_int_equal(chain.received_bytes, bytes);
        assert_ptr_equal(chain.received_end, space + bytes);
        assert_int_equal(rt_allgather_ring(&gather.base,
                                           space + rt_part_first(count, 3, rank) * each, space,
                                           count, type),
                         0);
        assert_int_equal(gather.received_bytes, bytes - rt_part_count(count, 3, rank) * each);
        assert_int_equal(ring.outside + chain.outside + gather.outside, 0);
        assert_true(ring.longest_bytes <= 16u << 20 && gather.longest_bytes <= 16u << 20);
    }
    munmap(space, bytes);
}

static void counts_beyond_32_bits_are_cut_into_blocks_that_cover_them(void **state)
{
    check_beyond_32_bits(RT_FLOAT32);
    check_beyond_32_bits(RT_FLOAT64);
    check_beyond_32_bits(RT_BFLOAT16);
    check_beyond_32_bits(RT_INT8);
}

/* A rank waits for as many messages, one after the other, gives as many bytes and reduces as many
 * as the algorithm's head says, where there is one block and each step has one partner. */
static void messages_and_bytes_are_those_of_the_costs(void **state)
{
    static const char *const names[] = {"ring", "recursive-doubling", "halving-doubling"};
    enum { COUNT = 1 << 16, BYTES = COUNT * 4 };
    const struct rt_cost messages = {.a = 1, .block = BYTES}, bytes = {.b = 1, .block = BYTES},
                         reduced = {.g = 1, .block = BYTES};
    float *data = calloc(COUNT, sizeof *data);
    assert_non_null(data);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (int n = 2; n <= 16; n *= 2)
            for (int rank = 0; rank < n; rank++) {
                const struct rt_algorithm *a = rt_algorithm_find(names[k]);
                struct sham s = {
                    .base = {.ops = &sham_ops, .rank = rank, .size = n, .block_bytes = BYTES}};
                assert_int_equal(a->fn(&s.base, data, data, COUNT, RT_FLOAT32, RT_SUM), 0);
                assert_int_equal(s.receives, (unsigned)a->cost(&messages, n, BYTES));
                assert_int_equal(s.sent_bytes, (uint64_t)a->cost(&bytes, n, BYTES));
                assert_int_equal(s.reduced_bytes, (uint64_t)a->cost(&reduced, n, BYTES));
                rt_transport_release(&s.base);
            }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_and_bytes_are_those_of_the_costs),
        cmocka_unit_test(counts_beyond_32_bits_are_cut_into_blocks_that_cover_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
