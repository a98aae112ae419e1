/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rt-train.h"

#define METRICS_MAX 16

int rt_gradients_init(struct rt_gradients *g, const struct rt_gradient *gradient, unsigned n,
                      unsigned passes, bool weighted)
{
    if (n == 0 || passes == 0 || !gradient)
        return -EINVAL;
    *g = (struct rt_gradients){.gradient = gradient,
                               .n = n,
                               .passes = passes,
                               .weighted = weighted,
                               .rows_handle = -1,
                               .handle = malloc(n * sizeof *g->handle)};
    if (!g->handle)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        g->handle[i] = -1;
    return 0;
}

void rt_gradients_release(struct rt_gradients *g)
{
    free(g->handle);
    *g = (struct rt_gradients){.rows_handle = -1};
}

static bool last_pass(const struct rt_gradients *g)
{
    return g->pass == g->passes - 1;
}

int rt_gradients_begin(struct rt_gradients *g, uint64_t rows)
{
    if (g->rows_handle >= 0)
        return -EALREADY;
    if (g->pass == 0) {
        g->step_rows = 0;
        for (unsigned i = 0; i < g->n; i++)
            memset(g->gradient[i].data, 0, g->gradient[i].count * sizeof(float));
    }
    g->step_rows += rows;
    if (!g->weighted || !last_pass(g))
        return 0;
    /* an integer: of a float compression would leave 11 bits, or infinity */
    g->rows_handle = rt_allreduce_async("gradients.rows", &g->step_rows, &g->rows, 1, RT_UINT64,
                                        RT_SUM, 1, 1, g->options);
    return g->rows_handle < 0 ? g->rows_handle : 0;
}

int rt_gradients_ready(struct rt_gradients *g, unsigned i)
{
    if (i >= g->n)
        return -EINVAL;
    if (!last_pass(g))
        return 0;
    if (g->handle[i] >= 0) /* it is on its way, and must still be waited for */
        return -EALREADY;
    const struct rt_gradient *t = &g->gradient[i];
    g->handle[i] = rt_allreduce_async(t->name, t->data, t->data, t->count, RT_FLOAT32,
                                      g->weighted ? RT_SUM : RT_AVG, 1,
                                      g->weighted ? 1 : 1.0 / g->passes, g->options);
    return g->handle[i] < 0 ? g->handle[i] : 0;
}

static int wait_for(int *handle, int otherwise)
{
    int result = *handle < 0 ? otherwise : rt_wait(*handle);
    *handle = -1;
    return result;
}

int rt_gradients_wait(struct rt_gradients *g)
{
    if (!last_pass(g)) {
        g->pass++;
        return 0;
    }
    g->pass = 0;
    int result = wait_for(&g->rows_handle, g->weighted ? -EINVAL : 0);
    for (unsigned i = 0; i < g->n; i++) {
        int one = wait_for(&g->handle[i], -EINVAL);
        result = result < 0 ? result : one;
    }
    if (result < 0)
        return result;
    for (unsigned i = 0; g->weighted && g->rows > 0 && i < g->n; i++)
        for (uint64_t k = 0; k < g->gradient[i].count; k++)
            g->gradient[i].data[k] /= (float)g->rows;
    return 1;
}

int rt_mean_over_ranks(const char *name, double *values, unsigned n, double weight)
{
    static const struct rt_options whole = {.compression = RT_COMPRESSION_NONE};
    double sums[METRICS_MAX + 1];
    if (n > METRICS_MAX || (n > 0 && !values))
        return -EINVAL;
    for (unsigned i = 0; i < n; i++)
        sums[i] = weight == 0 ? 0 : values[i] * weight;
    sums[n] = weight;
    int handle = rt_allreduce_async(name, sums, sums, n + 1, RT_FLOAT64, RT_SUM, 1, 1, &whole);
    int result = handle < 0 ? handle : rt_wait(handle);
    if (result < 0)
        return result;
    for (unsigned i = 0; i < n; i++)
        values[i] = sums[n] == 0 ? 0 : sums[i] / sums[n];
    return 0;
}
