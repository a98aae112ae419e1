/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

static int compare_ns(const void *a, const void *b)
{
    gint64 x = *(const gint64 *)a, y = *(const gint64 *)b;
    return x < y ? -1 : x > y;
}

static int compare_doubles(const void *a, const void *b)
{
    gdouble x = *(const gdouble *)a, y = *(const gdouble *)b;
    return x < y ? -1 : x > y;
}

gint64 rs_median_ns(gint64 *values, guint n)
{
    if (n == 0)
        return -1;
    qsort(values, n, sizeof *values, compare_ns);
    if (n % 2)
        return values[n / 2];
    gint64 low = values[n / 2 - 1];
    return low + (values[n / 2] - low) / 2;
}

gdouble rs_median(gdouble *values, guint n)
{
    if (n == 0)
        return NAN;
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

gdouble rs_quantile(gdouble *values, guint n, gdouble share)
{
    if (n == 0)
        return NAN;
    qsort(values, n, sizeof *values, compare_doubles);
    gdouble at = ceil(share * n) - 1;
    return values[at < 0 ? 0 : at >= n ? n - 1 : (guint)at];
}
