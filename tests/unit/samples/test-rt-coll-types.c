/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every algorithm of rt_coll with every type and operation, over shared memory between threads and
 * between processes, against a serial reference:
 *
 *   test-rt-coll-types        all pairs of type, operation, algorithm, length, ranks, place, hosts
 *                             and transport (RT_COLL_SEED=... for the same rows again)
 *   test-rt-coll-types threads   the same between threads alone, for a thread sanitizer
 *   test-rt-coll-types all    the full product, in short blocks: 3.4 million cases
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "coll-cases.h"
#include "covering.h"

#define BLOCK_BYTES       (256u << 10)
#define SHORT_BLOCK_BYTES 256u /* many of them in short buffers, which millions of cases want */

static int run(int size, unsigned transport, rank_fn *fn, struct subject *s)
{
    return run_ranks(size, transport == 1, fn, s);
}

struct short_blocks {
    rank_fn *fn;
    struct subject *subject;
};

static int rank_of_short_blocks(struct rt_transport *t, void *argument)
{
    const struct short_blocks *b = argument;
    t->block_bytes = SHORT_BLOCK_BYTES;
    return b->fn(t, b->subject);
}

static int run_short_blocks(int size, unsigned transport, rank_fn *fn, struct subject *s)
{
    struct short_blocks b = {fn, s};
    return run_ranks(size, transport == 1, rank_of_short_blocks, &b);
}

static void all_types_and_operations_in_all_algorithms_equal_serial_reference(void **state)
{
    static const uint64_t length[] = {13};
    for (unsigned a = 0; a < coll_case_count; a++)
        for (int type = 0; type < RT_TYPE_COUNT; type++)
            for (int op = 0; op < RT_OP_COUNT; op++) {
                struct subject s = {.algorithm = coll_cases[a].name,
                                    .type = (enum rt_type)type,
                                    .op = (enum rt_op)op,
                                    .hosts = 2 + type % 2,
                                    .laid = (enum laid)(op % LAID_COUNT),
                                    .counts = length,
                                    .count_count = 1};
                int result = run_ranks(4 + (type + op) % 3, false, coll_cases[a].run, &s);
                if (result != 0)
                    fail_msg("%s: type %d, op %d: %d", s.algorithm, type, op, result);
            }
}

static void nan_and_infinity_pass_through_all_allreduces(void **state)
{
    static const enum rt_type floats[] = {RT_FLOAT32,  RT_FLOAT64,     RT_FLOAT16,
                                          RT_BFLOAT16, RT_FLOAT8_E4M3, RT_FLOAT8_E5M2};
    static const uint64_t length[] = {203};
    int turn = 0;
    for (unsigned a = 0; a < coll_case_count; a++)
        for (int type = 0; type < 6; type++)
            for (int op = 0; op < RT_OP_COUNT; op++, turn++) {
                struct subject s = {.algorithm = coll_cases[a].name,
                                    .type = floats[type],
                                    .op = (enum rt_op)op,
                                    .in_place = turn % 2,
                                    .hosts = 1 + turn % MAX_HOSTS,
                                    .laid = (enum laid)(turn % LAID_COUNT),
                                    .counts = length,
                                    .count_count = 1};
                if (coll_cases[a].run != allreduce_rank && coll_cases[a].run != hosts_rank)
                    continue;
                int result = run_ranks(2 + turn % 5, false, not_finite_rank, &s);
                if (result != 0)
                    fail_msg("%s: type %d, op %d, %d ranks: %d", s.algorithm, (int)s.type, op,
                             2 + turn % 5, result);
            }
}

static void all_types_in_all_algorithms_by_pairs_equal_serial_reference(void **state)
{
    const struct coll_runner r = {.seed = covering_seed("RT_COLL_SEED"),
                                  .transports = 2,
                                  .block_bytes = BLOCK_BYTES,
                                  .run = run};
    assert_int_equal(coll_cases_run(&r), 0);
}

static void all_types_by_pairs_in_threads_equal_serial_reference(void **state)
{
    const struct coll_runner r = {.seed = covering_seed("RT_COLL_SEED"),
                                  .transports = 1,
                                  .block_bytes = BLOCK_BYTES,
                                  .run = run};
    assert_int_equal(coll_cases_run(&r), 0);
}

static void the_full_product_equals_serial_reference(void **state)
{
    const struct coll_runner r = {.all = true,
                                  .progress = true,
                                  .transports = 2,
                                  .block_bytes = SHORT_BLOCK_BYTES,
                                  .run = run_short_blocks};
    assert_int_equal(coll_cases_run(&r), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest pairs[] = {
        cmocka_unit_test(nan_and_infinity_pass_through_all_allreduces),
        cmocka_unit_test(all_types_and_operations_in_all_algorithms_equal_serial_reference),
        cmocka_unit_test(all_types_in_all_algorithms_by_pairs_equal_serial_reference),
    };
    const struct CMUnitTest all[] = {cmocka_unit_test(the_full_product_equals_serial_reference)};
    const struct CMUnitTest threads[] = {
        cmocka_unit_test(all_types_and_operations_in_all_algorithms_equal_serial_reference),
        cmocka_unit_test(all_types_by_pairs_in_threads_equal_serial_reference),
    };
    if (argc > 1 && strcmp(argv[1], "threads") == 0)
        return cmocka_run_group_tests(threads, NULL, NULL);
    return argc > 1 && strcmp(argv[1], "all") == 0 ? cmocka_run_group_tests(all, NULL, NULL)
                                                   : cmocka_run_group_tests(pairs, NULL, NULL);
}
