/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bits of sums that round: the same on all ranks and in all repeats for every algorithm; and,
 * where rt-coll.h says so, the same wherever a tensor lies in a buffer. Prints what the algorithms
 * would cost by their own account.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../near.h"
#include "coll-cases.h"
#include "rt-alloc.h"
#include "rt-coll.h"

enum { LENGTH = 777, LONGEST = 200003 };

struct bits {
    const struct rt_algorithm *algorithm;
    uint64_t count, first; /* the tensor begins there in a buffer of so many elements */
    enum rt_op op;
    float (*results)[LENGTH]; /* by rank */
};

/* Of all magnitudes: no order of summation rounds like another. */
static float number(int rank, uint64_t i)
{
    uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15u + (uint64_t)rank * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 31) * 0x94d049bb133111ebu;
    return (float)((int64_t)mixed >> 40) / (float)(1 << (mixed % 24));
}

static int sum_rank(struct rt_transport *t, void *argument)
{
    const struct bits *b = argument;
    float *data = calloc(b->count, sizeof *data);
    for (uint64_t i = 0; i < LENGTH; i++)
        data[b->first + i] = number(t->rank, i);
    int error = b->algorithm->fn(t, data, data, b->count, RT_FLOAT32, b->op);
    memcpy(b->results[t->rank], data + b->first, sizeof b->results[0]);
    free(data);
    return error;
}

static void sum(struct bits *b, int size)
{
    float results[8][LENGTH];
    struct bits with = *b;
    with.results = results;
    assert_int_equal(run_ranks(size, false, sum_rank, &with), 0);
    for (int r = 1; r < size; r++)
        assert_memory_equal(results[0], results[r], sizeof results[0]);
    memcpy(b->results[0], results[0], sizeof results[0]);
}

static const uint64_t places[][2] = {{LENGTH, 0}, {LENGTH + 1, 1}, {LONGEST, 60000}, {5000, 4000}};
enum { PLACES = sizeof places / sizeof *places };

static void sums_have_the_same_bits_in_every_repeat(void **state)
{
    float first[1][LENGTH], again[1][LENGTH];
    for (unsigned a = 0; rt_algorithm_at(a); a++)
        for (int i = 0; i < 3 * PLACES; i++) {
            struct bits b = {rt_algorithm_at(a), places[i / 3][0], places[i / 3][1], RT_SUM,
                             i % 3 == 0 ? first : again};
            sum(&b, 7);
            if (i % 3 != 0)
                assert_memory_equal(first, again, sizeof first);
        }
}

static void sums_with_the_same_bits_have_them_anywhere(void **state)
{
    float first[1][LENGTH], moved[1][LENGTH];
    for (unsigned a = 0; rt_algorithm_at(a); a++)
        for (int size = 2; size <= 8 && rt_algorithm_at(a)->same_bits; size++)
            for (int i = 0; i < PLACES; i++) {
                struct bits b = {rt_algorithm_at(a), places[i][0], places[i][1],
                                 size % 2 ? RT_SUM : RT_AVG, i == 0 ? first : moved};
                sum(&b, size);
                if (i > 0)
                    assert_memory_equal(first, moved, sizeof first);
            }
}

static void halving_and_doubling_have_the_same_bits(void **state)
{
    float doubling[1][LENGTH], halving[1][LENGTH];
    for (int size = 2; size <= 8; size++) {
        struct bits b = {rt_algorithm_find("recursive-doubling"), LENGTH, 0, RT_SUM, doubling};
        sum(&b, size);
        b = (struct bits){rt_algorithm_find("rabenseifner"), LONGEST, 100, RT_SUM, halving};
        sum(&b, size);
        assert_memory_equal(doubling, halving, sizeof doubling);
    }
}

/* These numbers show it where there is something to show. */
static void a_ring_has_other_bits_elsewhere(void **state)
{
    float first[1][LENGTH], moved[1][LENGTH];
    struct bits b = {rt_algorithm_find("ring"), LENGTH, 0, RT_SUM, first};
    sum(&b, 5);
    b = (struct bits){rt_algorithm_find("ring"), LONGEST, 60000, RT_SUM, moved};
    sum(&b, 5);
    assert_memory_not_equal(first, moved, sizeof first);
}

/* ---- those that aren't in the table ---- */

enum { OTHERS_RANKS = 7, OTHERS_ROOT = 2 };

struct other {
    const char *name;
    bool for_all;             /* all ranks get all */
    float (*results)[LENGTH]; /* by rank */
};

static const struct other others[] = {
    {.name = "reduce-scatter"},
    {.name = "reduce"},
    {"direct", true, NULL},
    {"two-level-ring", true, NULL},
    {"hierarchical:auto", true, NULL},
    {"hierarchical:ring", true, NULL},
    {"hierarchical:recursive-doubling", true, NULL},
    {"hierarchical:halving-doubling", true, NULL},
    {"hierarchical:tree", true, NULL},
    {"hierarchical:double-tree", true, NULL},
    {"hierarchical:flat", true, NULL},
};

static int over_hosts(struct rt_transport *t, const char *name, const float *in, float *out)
{
    static const int host[OTHERS_RANKS] = {0, 1, 0, 1, 1, 2, 1};
    const char *colon = strchr(name, ':');
    struct rt_layout layout;
    int error = rt_layout_init(&layout, host, OTHERS_RANKS);
    const struct rt_hosts hosts = {.all = t, .layout = &layout};
    if (error)
        return error;
    error = colon ? rt_allreduce_hierarchical(&hosts, rt_allreduce_find(colon + 1), in, out, LENGTH,
                                              RT_FLOAT32, RT_SUM)
                  : rt_allreduce_two_level_ring(&hosts, in, out, LENGTH, RT_FLOAT32, RT_SUM);
    rt_layout_release(&layout);
    return error;
}

static int other_rank(struct rt_transport *t, void *argument)
{
    const struct other *o = argument;
    float *in = rt_alloc(sizeof o->results[0]), *out = rt_alloc(sizeof o->results[0]);
    int error;
    memset(out, 0, sizeof o->results[0]);
    for (uint64_t i = 0; i < LENGTH; i++)
        in[i] = number(t->rank, i);
    if (strcmp(o->name, "reduce-scatter") == 0)
        error = rt_reduce_scatter_ring(t, in, out, LENGTH, RT_FLOAT32, RT_SUM);
    else if (strcmp(o->name, "reduce") == 0)
        error = rt_reduce_binomial(t, in, t->rank == OTHERS_ROOT ? out : NULL, LENGTH, RT_FLOAT32,
                                   RT_SUM, OTHERS_ROOT);
    else if (strcmp(o->name, "direct") == 0)
        error = rt_allreduce_direct(t, in, out, LENGTH, RT_FLOAT32, RT_SUM);
    else
        error = over_hosts(t, o->name, in, out);
    memcpy(o->results[t->rank], out, sizeof o->results[0]);
    rt_free(in);
    rt_free(out);
    return error;
}

static void other_sums_have_the_same_bits_in_every_repeat(void **state)
{
    static float results[4][OTHERS_RANKS][LENGTH];
    static const float zeros[LENGTH];
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        for (int i = 0; i < 4; i++) {
            struct other o = others[k];
            o.results = results[i];
            assert_int_equal(run_ranks(OTHERS_RANKS, false, other_rank, &o), 0);
            assert_memory_equal(results[0], results[i], sizeof results[0]);
            assert_memory_not_equal(results[i][OTHERS_ROOT], zeros, sizeof zeros);
            for (int r = 1; r < OTHERS_RANKS && o.for_all; r++)
                assert_memory_equal(results[i][0], results[i][r], sizeof zeros);
        }
}

/* Of doubles, so that a dot product's last bit shows. */
static int adasum_rank(struct rt_transport *t, void *argument)
{
    enum { TENSORS = 40, PADDED = 48 };
    uint64_t exact[TENSORS], padded[TENSORS];
    double alone[PADDED], fused[TENSORS][PADDED] = {{0}};
    int error = 0;
    for (int i = 0; i < TENSORS; i++) {
        exact[i] = (uint64_t)i + 1;
        padded[i] = PADDED;
        for (uint64_t k = 0; k < exact[i]; k++)
            fused[i][k] = number(t->rank, k * 64 + (uint64_t)i) * 1e-3;
    }
    double given[TENSORS][PADDED];
    memcpy(given, fused, sizeof given);
    error = rt_allreduce_adasum(t, fused, fused, padded, TENSORS, RT_FLOAT64);
    for (int i = 0; i < TENSORS && !error; i++) {
        error = rt_allreduce_adasum(t, given[i], alone, &exact[i], 1, RT_FLOAT64);
        if (!error && memcmp(alone, fused[i], exact[i] * sizeof(double)) != 0)
            error = WRONG_VALUE;
    }
    return error;
}

static void adasum_has_the_same_bits_alone_and_fused(void **state)
{
    for (int size = 2; size <= 5; size++)
        assert_int_equal(run_ranks(size, false, adasum_rank, NULL), 0);
}

static void costs_grow_with_bytes_and_follow_their_formulas(void **state)
{
    const struct rt_cost inside = {1e-6, 1e-10, 5e-11, 256 << 10};
    const struct rt_cost across = {3e-5, 8e-9, 5e-11, 16 << 20};
    printf("microseconds by the formulas, 8 ranks:\n%20s", "bytes");
    for (double bytes = 8; bytes < 1e9; bytes *= 64)
        printf(" %10.0f", bytes);
    for (unsigned a = 1; rt_algorithm_at(a); a++) {
        double before = 0;
        printf("\n%20s", rt_algorithm_at(a)->name);
        for (double bytes = 8; bytes < 1e9; bytes *= 64) {
            double now = rt_algorithm_at(a)->cost(&inside, 8, bytes);
            assert_true(now > before);
            printf(" %10.1f", (before = now) * 1e6);
        }
    }
    printf("\n");
    /* 2 of 8 ranks' hosts: a link's bytes are those of half a buffer a rank, but both share it */
    double flat = rt_cost_ring(&across, 8, 1e8);
    double levels = rt_cost_hierarchical(&inside, &across, rt_cost_ring, 2, 4, 1e8);
    assert_true(levels < flat);
    assert_near(rt_cost_ring(&across, 2, 1e6), 2 * 3e-5 + 1e6 * 8e-9 + 5e5 * 5e-11, 1e-12);
    assert_near(rt_cost_recursive_doubling(&across, 4, 1e6), 2 * (3e-5 + 1e6 * (8e-9 + 5e-11)),
                1e-12);
    assert_near(rt_cost_recursive_doubling(&across, 5, 0), 4 * 3e-5, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_same_bits_in_every_repeat),
        cmocka_unit_test(other_sums_have_the_same_bits_in_every_repeat),
        cmocka_unit_test(sums_with_the_same_bits_have_them_anywhere),
        cmocka_unit_test(halving_and_doubling_have_the_same_bits),
        cmocka_unit_test(a_ring_has_other_bits_elsewhere),
        cmocka_unit_test(adasum_has_the_same_bits_alone_and_fused),
        cmocka_unit_test(costs_grow_with_bytes_and_follow_their_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
