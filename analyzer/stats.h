/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - medians and quantiles of samples; exact, whatever the order the samples came in.
 */
#ifndef RS_ANALYZER_STATS_H
#define RS_ANALYZER_STATS_H

#include <glib.h>

/* All sort `values` in place. The median of an even number is the mean of the middle two. */
gint64 rs_median_ns(gint64 *values, guint n); /* n 0: -1 */
gdouble rs_median(gdouble *values, guint n);  /* n 0: NAN */
/* The smallest value that at least `share` of the values do not pass; n 0: NAN. */
gdouble rs_quantile(gdouble *values, guint n, gdouble share);

#endif
