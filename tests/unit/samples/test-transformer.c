/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transformer's gradients against differences of its loss, in double (this file's build of it);
 * what it sees and what not; that it learns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../near.h"
#include "adam.h"
#include "transformer.h"

#define CONTEXT 7
#define ROWS    3

static const struct transformer_shape shape = {CONTEXT, 12, 2, 3};
static const uint8_t text[] = "abacus and abbot, bad cab";

static void make(struct transformer *t, const struct transformer_shape *of)
{
    assert_int_equal(transformer_init(t, of, ROWS, 42), 0);
    for (int b = 0; b < ROWS; b++)
        transformer_set_row(t, b, text + 5 * b);
    /* away from 0 and 1, where a wrong term would go unseen */
    uint64_t random = 9;
    for (unsigned i = 0; i < t->tensors; i++)
        for (uint64_t k = 0; k < t->tensor[i].count; k++)
            t->tensor[i].value[k] += 0.2 * ((double)(train_random(&random) >> 11) / (1L << 52) - 1);
}

static void clear_gradients(struct transformer *t)
{
    for (unsigned i = 0; i < t->tensors; i++)
        memset(t->tensor[i].gradient, 0, t->tensor[i].count * sizeof *t->tensor[i].gradient);
}

static void run_backward(struct transformer *t)
{
    for (unsigned p = t->parts; p-- > 0;)
        transformer_backward(t, p);
}

static double loss_at(struct transformer *t, train_real *value, double at)
{
    const double was = *value;
    *value = at;
    double loss = transformer_forward(t, ROWS);
    *value = was;
    return loss;
}

/* Of the sum of the rows' losses, by differences of fourth order. */
static double slope(struct transformer *t, train_real *value)
{
    const double was = *value, h = 1e-3;
    double near = loss_at(t, value, was + h) - loss_at(t, value, was - h);
    double far = loss_at(t, value, was + 2 * h) - loss_at(t, value, was - 2 * h);
    return ROWS * (8 * near - far) / (12 * h);
}

static void check_gradients(const struct transformer_shape *of)
{
    struct transformer t;
    make(&t, of);
    transformer_forward(&t, ROWS);
    run_backward(&t);
    for (unsigned i = 0; i < t.tensors; i++) {
        struct train_tensor *tensor = &t.tensor[i];
        double largest = 0;
        for (uint64_t k = 0; k < tensor->count; k += 1 + tensor->count / 60) {
            double expected = slope(&t, &tensor->value[k]), got = tensor->gradient[k];
            largest = fmax(largest, fabs(expected));
            if (fabs(expected - got) > 1e-6 + 1e-5 * fabs(expected))
                fail_msg("%s[%llu]: %.9g, by differences %.9g", tensor->name, (unsigned long long)k,
                         got, expected);
        }
        assert_true(largest > 1e-3 || strstr(tensor->name, "embedding")); /* or it proves nothing */
    }
    transformer_release(&t);
}

static void gradients_are_those_of_differences(void **state)
{
    static const struct transformer_shape shapes[] = {
        {CONTEXT, 12, 2, 3}, {CONTEXT, 8, 1, 1}, {1, 6, 1, 2}, {CONTEXT, 5, 0, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_gradients(&shapes[i]);
}

static void gradients_add_up_over_passes(void **state)
{
    struct transformer t;
    make(&t, &shape);
    transformer_forward(&t, ROWS);
    run_backward(&t);
    double whole = t.tensor[6].gradient[3];
    clear_gradients(&t);
    for (int b = 0; b < ROWS; b++) {
        transformer_set_row(&t, 0, text + 5 * b);
        transformer_forward(&t, 1);
        run_backward(&t);
    }
    assert_near(t.tensor[6].gradient[3], whole, 1e-12);
    assert_near(transformer_forward(&t, 0), 0, 0);
    run_backward(&t); /* of no rows: nothing */
    assert_near(t.tensor[6].gradient[3], whole, 1e-12);
    transformer_release(&t);
}

static void later_bytes_are_not_seen(void **state)
{
    struct transformer t;
    uint8_t changed[sizeof text];
    make(&t, &shape);
    memcpy(changed, text, sizeof text);
    transformer_forward(&t, 1);
    double before[3 * TRANSFORMER_BYTES];
    memcpy(before, t.score, sizeof before);
    changed[3] = 'Z';
    transformer_set_row(&t, 0, changed);
    transformer_forward(&t, 1);
    assert_memory_equal(before, t.score, sizeof before); /* places 0 to 2 */
    assert_true(before[0] != t.score[3 * TRANSFORMER_BYTES]);
    transformer_release(&t);
}

static void adam_learns_a_text_by_heart(void **state)
{
    struct transformer t;
    struct adam adam;
    make(&t, &shape);
    assert_int_equal(adam_init(&adam, t.tensor, t.tensors), 0);
    double first = transformer_forward(&t, ROWS), last = 0;
    for (int step = 0; step < 150; step++) {
        clear_gradients(&t);
        last = transformer_forward(&t, ROWS);
        run_backward(&t);
        adam_step(&adam, 0.01);
    }
    assert_true(first > 4 && last < 0.5);
    adam_release(&adam);
    transformer_release(&t);
}

/* By hand: the first step is `rate` against the gradient's sign, whatever its size. */
static void adam_steps_are_the_papers(void **state)
{
    train_real value[2] = {1, 2}, gradient[2] = {0.5, -30};
    struct train_tensor tensor = {"t", 2, value, gradient};
    struct adam adam;
    struct rt_parameter entries[3];
    assert_int_equal(adam_init(&adam, &tensor, 1), 0);
    adam_step(&adam, 0.1);
    assert_near(value[0], 0.9, 1e-8);
    assert_near(value[1], 2.1, 1e-8);
    gradient[0] = 1;
    adam_step(&adam, 0.1);
    double mean = (0.9 * 0.05 + 0.1) / (1 - 0.81);
    double square = (0.999 * 0.00025 + 0.001) / (1 - 0.998001);
    assert_near(value[0], 0.9 - 0.1 * mean / (sqrt(square) + 1e-8), 1e-7);
    adam_state(&adam, entries);
    assert_int_equal(*(int64_t *)entries[2].data, 2);
    assert_string_equal(entries[1].name, "square.t");
    adam_release(&adam);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(gradients_add_up_over_passes),
        cmocka_unit_test(later_bytes_are_not_seen),
        cmocka_unit_test(adam_learns_a_text_by_heart),
        cmocka_unit_test(adam_steps_are_the_papers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
