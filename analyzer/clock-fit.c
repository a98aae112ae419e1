/* SPDX-License-Identifier: Apache-2.0 */
/* clock-fit.c - offset and drift between two clocks from where collectives end, and chains of fits.
 */
#include <math.h>
#include <stdlib.h>

#include "clock.h"
#include "stats.h"

/* Two quartz clocks, each off by the 50 ppm that their makers allow: where drift isn't known. */
#define UNKNOWN_DRIFT 100e-6
/* More drift than any clock has: the measurements lie. */
#define DRIFT_MAX   1e-3
#define DRIFT_SPAN  1000000000 /* meetings over less than this tell no drift */
#define SLOPES_FROM 200        /* meetings that take part in the estimate of drift */

gint64 rs_clock_fit_apply(const RsClockFit *f, gint64 own)
{
    return own + f->offset_ns + (gint64)llround(f->drift * (gdouble)(own - f->at_ns));
}

RsClockFit rs_clock_fit_chain(const RsClockFit *outer, const RsClockFit *inner)
{
    RsClockFit f = {.at_ns = inner->at_ns};
    gint64 between = inner->at_ns + inner->offset_ns;
    f.offset_ns = rs_clock_fit_apply(outer, between) - inner->at_ns;
    f.drift = (1 + inner->drift) * (1 + outer->drift) - 1;
    f.uncertainty_ns = inner->uncertainty_ns + outer->uncertainty_ns;
    return f;
}

static gint compare_meetings(gconstpointer a, gconstpointer c)
{
    const RsClockMeeting *x = a, *y = c;
    return x->own_end_ns < y->own_end_ns ? -1 : x->own_end_ns > y->own_end_ns;
}

/* Median of the slopes between pairs (Theil and Sen): up to a quarter of the meetings may be off.
 */
static gdouble median_slope(const RsClockMeeting *m, guint n)
{
    guint stride = MAX(1, n / SLOPES_FROM), used = n / stride;
    g_autofree gdouble *slopes = g_new(gdouble, (gsize)used * (used - 1) / 2 + 1);
    guint count = 0;
    gint64 span = m[n - 1].own_end_ns - m[0].own_end_ns;
    for (guint i = 0; i < used; i++) {
        for (guint j = i + 1; j < used; j++) {
            const RsClockMeeting *x = &m[i * stride], *y = &m[j * stride];
            gint64 dx = y->own_end_ns - x->own_end_ns;
            if (dx >= span / 4) /* near ones tell noise */
                slopes[count++] = (gdouble)((y->their_end_ns - x->their_end_ns) - dx) / (gdouble)dx;
        }
    }
    return count ? rs_median(slopes, count) : 0;
}

static gint64 median_offset(const RsClockMeeting *m, guint n, const RsClockFit *f)
{
    g_autofree gdouble *d = g_new(gdouble, n);
    gdouble first = (gdouble)(m[0].their_end_ns - m[0].own_end_ns);
    for (guint i = 0; i < n; i++)
        d[i] = (gdouble)(m[i].their_end_ns - m[i].own_end_ns) - first -
               f->drift * (gdouble)(m[i].own_end_ns - f->at_ns);
    return (gint64)llround(first + rs_median(d, n));
}

/* Offsets that no meeting contradicts: each clock's end is after the other's arrivals. */
static void feasible(const RsClockMeeting *m, guint n, const RsClockFit *f, gint64 *ret_low,
                     gint64 *ret_high)
{
    RsClockFit drift_only = {f->at_ns, 0, f->drift, 0};
    *ret_low = G_MININT64;
    *ret_high = G_MAXINT64;
    for (guint i = 0; i < n; i++) {
        *ret_low =
            MAX(*ret_low, m[i].their_arrival_ns - rs_clock_fit_apply(&drift_only, m[i].own_end_ns));
        *ret_high = MIN(*ret_high,
                        m[i].their_end_ns - rs_clock_fit_apply(&drift_only, m[i].own_arrival_ns));
    }
}

gint64 rs_clock_fit_spread(const RsClockMeeting *m, guint n, const RsClockFit *f)
{
    g_autofree gdouble *off = g_new(gdouble, n);
    for (guint i = 0; i < n; i++)
        off[i] = fabs((gdouble)(rs_clock_fit_apply(f, m[i].own_end_ns) - m[i].their_end_ns));
    return (gint64)ceil(rs_quantile(off, n, 0.9));
}

gboolean rs_clock_fit_meetings(RsClockMeeting *m, guint n, RsClockFit *ret_fit)
{
    if (n < 3)
        return FALSE;
    qsort(m, n, sizeof *m, compare_meetings);
    gint64 span = m[n - 1].own_end_ns - m[0].own_end_ns;
    RsClockFit f = {.at_ns = m[0].own_end_ns + span / 2};
    if (n >= 10 && span >= DRIFT_SPAN)
        f.drift = median_slope(m, n);
    if (fabs(f.drift) > DRIFT_MAX)
        return FALSE;
    f.offset_ns = median_offset(m, n, &f);
    gint64 low, high;
    feasible(m, n, &f, &low, &high);
    if (low <= high) {
        f.offset_ns = CLAMP(f.offset_ns, low, high);
        f.uncertainty_ns = MAX(f.offset_ns - low, high - f.offset_ns);
    } else {
        f.uncertainty_ns = rs_clock_fit_spread(m, n, &f) + (low - high);
    }
    if (f.drift == 0 && span < DRIFT_SPAN)
        f.uncertainty_ns += (gint64)ceil(UNKNOWN_DRIFT * (gdouble)span);
    *ret_fit = f;
    return TRUE;
}
