/* SPDX-License-Identifier: Apache-2.0 */
/* The perceptron's gradients against differences of its loss; its batches can be found again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "../near.h"
#include "net.h"

#define ROWS 6

static void step_along(struct train_tensor *t, const float *start, double by)
{
    for (uint64_t k = 0; k < t->count; k++)
        t->value[k] = (float)((double)start[k] + by * (double)t->gradient[k]);
}

/* Along the gradient, by its length: the slope of the loss there is the length's square. */
static void gradients_are_those_of_differences(void **state)
{
    struct net net;
    static float start[NET_INPUTS * 200];
    assert_int_equal(net_init(&net, 0.01, ROWS, 3, 0), 0);
    net_load(&net);
    net_forward(&net);
    for (int i = NET_LAYERS; i-- > 0;)
        net_backward(&net, i);
    for (int i = 0; i < NET_TENSORS; i++) {
        struct train_tensor *t = &net.tensor[i];
        double square = 0;
        assert_true(t->count <= sizeof start / sizeof *start);
        memcpy(start, t->value, t->count * sizeof *start);
        for (uint64_t k = 0; k < t->count; k++)
            square += (double)t->gradient[k] * (double)t->gradient[k];
        assert_true(square > 1e-6);
        const double h = 2e-3 / sqrt(square);
        step_along(t, start, h);
        double more = (double)net_forward(&net);
        step_along(t, start, -h);
        double slope = (more - (double)net_forward(&net)) / (2 * h);
        memcpy(t->value, start, t->count * sizeof *start);
        if (fabs(slope - square) > 0.01 * square)
            fail_msg("%s: %g, by differences %g", t->name, square, slope);
    }
    net_release(&net);
}

static void sums_add_up_to_rows_times_the_mean(void **state)
{
    struct net net;
    assert_int_equal(net_init(&net, 0.01, ROWS, 3, 0), 0);
    net_load(&net);
    net_forward(&net);
    net_backward(&net, NET_LAYERS - 1);
    float mean = net.tensor[5].gradient[2];
    net.adds = true;
    net.divides = false;
    net_backward(&net, NET_LAYERS - 1);
    assert_near(net.tensor[5].gradient[2], mean + ROWS * mean, 1e-5);
    net_release(&net);
}

static void skipped_batches_are_those_loaded(void **state)
{
    struct net loaded, skipped;
    assert_int_equal(net_init(&loaded, 0.01, ROWS, 3, 2), 0);
    assert_int_equal(net_init(&skipped, 0.01, ROWS, 3, 2), 0);
    for (int i = 0; i < 5; i++)
        net_load(&loaded);
    net_skip(&skipped, 4);
    net_load(&skipped);
    assert_memory_equal(loaded.activation[0], skipped.activation[0],
                        ROWS * NET_INPUTS * sizeof(float));
    assert_memory_equal(loaded.label, skipped.label, ROWS * sizeof *loaded.label);
    net_release(&loaded);
    net_release(&skipped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(sums_add_up_to_rows_times_the_mean),
        cmocka_unit_test(skipped_batches_are_those_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
