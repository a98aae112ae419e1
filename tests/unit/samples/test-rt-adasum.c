/* SPDX-License-Identifier: Apache-2.0 */
/* Adasum over shared memory against its formula, one rank after the other; and its properties. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rt-convert.h"
#include "rt-ranks.h"
#include "rt-reference.h"

enum { MOST_RANKS = 9 };

/* Beside each other: none, one, some, more than are worked on at once, and more than a message. */
static const uint64_t counts[] = {3, 0, 1, 1025, 64, 70001};
enum { TENSORS = sizeof counts / sizeof *counts };

static const enum rt_type types[] = {RT_FLOAT32, RT_FLOAT64, RT_FLOAT16, RT_BFLOAT16};
enum { TYPES = sizeof types / sizeof *types };

typedef double value_fn(int rank, int tensor, uint64_t i);

/* Neither orthogonal nor parallel; numbers that every type holds. */
static double mixed(int rank, int tensor, uint64_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u + (uint64_t)rank * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 31) * 0x94d049bb133111ebu + (uint64_t)tensor;
    return (double)(x >> 40 & 63) - 20;
}

/* ---- the reference ---- */

static double rounded(double value, enum rt_type type)
{
    return type == RT_FLOAT64   ? value
           : type == RT_FLOAT32 ? (double)(float)value
                                : nearest_small(value, type);
}

static void combine(double *a, const double *b, uint64_t n, enum rt_type type)
{
    double aa = 0, ab = 0, bb = 0;
    for (uint64_t i = 0; i < n; i++) {
        aa += a[i] * a[i];
        ab += a[i] * b[i];
        bb += b[i] * b[i];
    }
    for (uint64_t i = 0; i < n; i++)
        a[i] = rounded((aa > 0 ? 1 - ab / (2 * aa) : 1) * a[i] +
                           (bb > 0 ? 1 - ab / (2 * bb) : 1) * b[i],
                       type);
}

/* What is said of pairs: of n = p + e ranks the first 2 e pair up, then numbers that differ in one
 * bit after the other. */
static double *reference(int size, int tensor, enum rt_type type, value_fn *value)
{
    const uint64_t n = counts[tensor];
    double *all = malloc((size_t)size * n * sizeof *all + 1);
    for (int r = 0; r < size; r++)
        for (uint64_t i = 0; i < n; i++)
            all[(uint64_t)r * n + i] = value(r, tensor, i);
    double *by_number[MOST_RANKS];
    int working = 1;
    while (working * 2 <= size)
        working *= 2;
    const int extra = size - working;
    for (int k = 0; k < working; k++) {
        by_number[k] = all + (uint64_t)(k < extra ? 2 * k : k + extra) * n;
        if (k < extra)
            combine(by_number[k], by_number[k] + n, n, type);
    }
    for (int apart = 1; apart < working; apart *= 2)
        for (int k = 0; k < working; k += 2 * apart)
            combine(by_number[k], by_number[k + apart], n, type);
    return all; /* the first is number 0's */
}

/* ---- ranks ---- */

struct subject {
    enum rt_type type;
    int in_place, one_by_one;
    value_fn *value;
    char *results; /* all ranks' */
    uint64_t bytes;
};

static uint64_t all_counts(void)
{
    uint64_t sum = 0;
    for (int t = 0; t < TENSORS; t++)
        sum += counts[t];
    return sum;
}

static int rank_of_subject(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    const uint64_t each = rt_type_bytes(s->type);
    char *in = malloc(s->bytes), *out = s->results + (uint64_t)t->rank * s->bytes;
    char *at = s->in_place ? out : in;
    int error = 0;
    for (int k = 0; k < TENSORS; k++)
        for (uint64_t i = 0; i < counts[k]; i++, at += each)
            set_element(at, 0, s->type, s->value(t->rank, k, i));
    const char *from = s->in_place ? out : in;
    if (!s->one_by_one)
        error = rt_allreduce_adasum(t, from, out, counts, TENSORS, s->type);
    for (int k = 0; k < TENSORS && s->one_by_one && !error; k++) {
        error = rt_allreduce_adasum(t, from, out, &counts[k], 1, s->type);
        from += counts[k] * each;
        out += counts[k] * each;
    }
    free(in);
    return error;
}

static struct subject run(int size, enum rt_type type, int in_place, int one_by_one,
                          value_fn *value)
{
    struct subject s = {type,  in_place, one_by_one,
                        value, NULL,     all_counts() * rt_type_bytes(type)};
    s.results = calloc((size_t)size, s.bytes);
    assert_int_equal(run_ranks(size, false, rank_of_subject, &s), 0);
    for (int r = 1; r < size; r++) /* the same bits on all */
        assert_memory_equal(s.results, s.results + (uint64_t)r * s.bytes, s.bytes);
    return s;
}

/* A double's sum in another order may round another way: of a step in the type. */
static double step_of(double value, enum rt_type type)
{
    const int bits = type == RT_FLOAT64 ? 40 : type == RT_FLOAT32 ? 22 : type == RT_FLOAT16 ? 9 : 6;
    return ldexp(fabs(value) + 1, -bits);
}

static void check(int size, const struct subject *s)
{
    const char *at = s->results;
    for (int k = 0; k < TENSORS; k++) {
        double *want = reference(size, k, s->type, s->value);
        for (uint64_t i = 0; i < counts[k]; i++, at += rt_type_bytes(s->type)) {
            double got = element(at, 0, s->type);
            if (!(fabs(got - want[i]) <= step_of(want[i], s->type)))
                fail_msg("%d ranks, type %d, tensor %d [%llu]: %.17g, expected %.17g", size,
                         (int)s->type, k, (unsigned long long)i, got, want[i]);
        }
        free(want);
    }
}

static void adasum_gives_what_its_formula_gives(void **state)
{
    for (int size = 1; size <= MOST_RANKS; size++) {
        const enum rt_type type = types[size % TYPES];
        struct subject s = run(size, type, size % 2, 0, mixed);
        check(size, &s);
        free(s.results);
    }
    for (int k = 0; k < TYPES; k++) {
        struct subject s = run(3 + k % 2, types[k], k % 2, 0, mixed);
        check(3 + k % 2, &s);
        free(s.results);
    }
}

static void adasum_of_many_tensors_is_that_of_each(void **state)
{
    struct subject together = run(6, RT_FLOAT32, 0, 0, mixed);
    struct subject apart = run(6, RT_FLOAT32, 1, 1, mixed);
    assert_memory_equal(together.results, apart.results, together.bytes);
    free(together.results);
    free(apart.results);
}

/* ---- properties ---- */

/* Ranks share no index. */
static double orthogonal(int rank, int tensor, uint64_t i)
{
    (void)tensor;
    return i % MOST_RANKS == (uint64_t)rank ? (double)(i % 61) - 30 : 0;
}

static double parallel(int rank, int tensor, uint64_t i)
{
    (void)rank;
    return (double)((i + (uint64_t)tensor) % 61) - 30;
}

static double first_alone(int rank, int tensor, uint64_t i)
{
    return rank == 1 ? parallel(rank, tensor, i) : 0;
}

static double nothing(int rank, int tensor, uint64_t i)
{
    (void)rank, (void)tensor, (void)i;
    return 0;
}

static double not_finite(int rank, int tensor, uint64_t i)
{
    if (rank == 2 && i == 0 && tensor == 0)
        return NAN;
    return rank == 1 && i == 0 && tensor == 2 ? INFINITY : parallel(rank, tensor, i);
}

static double got_of(const struct subject *s, int tensor, uint64_t i)
{
    uint64_t first = 0;
    for (int k = 0; k < tensor; k++)
        first += counts[k];
    return element(s->results, first + i, s->type);
}

/* Where ranks' vectors are orthogonal the sum; where they are equal that vector. */
static void check_exact(value_fn *value, bool is_sum)
{
    for (int size = 2; size <= MOST_RANKS; size += size == 5 ? 4 : 1) {
        struct subject s = run(size, RT_FLOAT64, 0, 0, value);
        for (int k = 0; k < TENSORS; k++)
            for (uint64_t i = 0; i < counts[k]; i++) {
                double want = is_sum ? 0 : value(0, k, i);
                for (int r = 0; r < size && is_sum; r++)
                    want += value(r, k, i);
                assert_true(fabs(got_of(&s, k, i) - want) < 1e-12);
            }
        free(s.results);
    }
}

static void adasum_of_orthogonal_vectors_is_their_sum(void **state)
{
    check_exact(orthogonal, true);
}

static void adasum_of_equal_vectors_is_their_average(void **state)
{
    check_exact(parallel, false);
}

static double one_and_three(int rank, int tensor, uint64_t i)
{
    return (rank == 0 ? 1 : 3) * parallel(rank, tensor, i);
}

static void adasum_of_parallel_vectors_is_their_average(void **state)
{
    struct subject s = run(2, RT_FLOAT64, 0, 0, one_and_three);
    for (int k = 0; k < TENSORS; k++)
        for (uint64_t i = 0; i < counts[k]; i++)
            assert_true(fabs(got_of(&s, k, i) - 2 * parallel(0, k, i)) < 1e-12);
    free(s.results);
}

static void adasum_with_zero_vectors_is_the_other(void **state)
{
    check_exact(first_alone, true);
    check_exact(nothing, true);
}

static void adasum_of_what_is_not_finite_is_nan_in_that_tensor_alone(void **state)
{
    struct subject s = run(4, RT_FLOAT32, 0, 0, not_finite);
    for (uint64_t i = 0; i < counts[0]; i++)
        assert_true(isnan(got_of(&s, 0, i)));
    assert_true(isnan(got_of(&s, 2, 0)));
    for (uint64_t i = 0; i < counts[3]; i++)
        assert_true(got_of(&s, 3, i) == parallel(0, 3, i));
    free(s.results);
}

static int rank_of_integers(struct rt_transport *t, void *argument)
{
    int32_t data[2] = {1, 2};
    const uint64_t two = 2;
    (void)argument;
    return rt_allreduce_adasum(t, data, data, &two, 1, RT_INT32) == -EINVAL ? 0 : 1;
}

static void adasum_of_integers_is_refused(void **state)
{
    assert_int_equal(run_ranks(2, false, rank_of_integers, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adasum_gives_what_its_formula_gives),
        cmocka_unit_test(adasum_of_many_tensors_is_that_of_each),
        cmocka_unit_test(adasum_of_orthogonal_vectors_is_their_sum),
        cmocka_unit_test(adasum_of_equal_vectors_is_their_average),
        cmocka_unit_test(adasum_of_parallel_vectors_is_their_average),
        cmocka_unit_test(adasum_with_zero_vectors_is_the_other),
        cmocka_unit_test(adasum_of_what_is_not_finite_is_nan_in_that_tensor_alone),
        cmocka_unit_test(adasum_of_integers_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
