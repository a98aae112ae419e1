/* SPDX-License-Identifier: Apache-2.0 */
/* clock-fit.c - offset and drift between two clocks, from round trips or from collectives. */
#include <math.h>
#include <stdlib.h>

#include "clock.h"

/* A clock that nobody measured twice may run off by this much (quartz, steered by NTP). */
#define UNKNOWN_DRIFT 10e-6
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

RsClockPoint rs_clock_point_of_trip(gint64 sent, gint64 their_received, gint64 their_sent,
                                    gint64 received)
{
    gint64 on_the_way = (received - sent) - (their_sent - their_received);
    RsClockPoint p = {sent + (received - sent) / 2,
                      their_received + (their_sent - their_received) / 2,
                      on_the_way > 0 ? (on_the_way + 1) / 2 : 0};
    return p;
}

static gint compare_points(gconstpointer a, gconstpointer c)
{
    const RsClockPoint *x = a, *y = c;
    return x->own_ns < y->own_ns ? -1 : x->own_ns > y->own_ns;
}

/* Leaves the shortest trip of each cluster, in place; returns how many. */
static guint best_of_clusters(RsClockPoint *p, guint n)
{
    qsort(p, n, sizeof *p, compare_points);
    gint64 gap = MAX(50000000, (p[n - 1].own_ns - p[0].own_ns) / 20);
    guint kept = 0;
    gint64 last = 0;
    for (guint i = 0; i < n; i++) {
        if (kept == 0 || p[i].own_ns - last > gap)
            last = p[i].own_ns, p[kept++] = p[i];
        else if (last = p[i].own_ns, p[i].uncertainty_ns < p[kept - 1].uncertainty_ns)
            p[kept - 1] = p[i];
    }
    return kept;
}

static gdouble difference(const RsClockPoint *p)
{
    return (gdouble)(p->their_ns - p->own_ns);
}

/* Least squares, weighted by 1/uncertainty, about the middle of the points. */
static void fit_line(const RsClockPoint *p, guint n, RsClockFit *f)
{
    gdouble w_sum = 0, x_mean = 0, y_mean = 0, xx = 0, xy = 0;
    gdouble y0 = difference(&p[0]);
    f->at_ns = p[0].own_ns + (p[n - 1].own_ns - p[0].own_ns) / 2;
    for (guint i = 0; i < n; i++) {
        gdouble w = 1.0 / (gdouble)MAX(p[i].uncertainty_ns, 1);
        w_sum += w;
        x_mean += w * (gdouble)(p[i].own_ns - f->at_ns);
        y_mean += w * (difference(&p[i]) - y0);
    }
    x_mean /= w_sum;
    y_mean /= w_sum;
    for (guint i = 0; i < n; i++) {
        gdouble w = 1.0 / (gdouble)MAX(p[i].uncertainty_ns, 1);
        gdouble x = (gdouble)(p[i].own_ns - f->at_ns) - x_mean;
        xx += w * x * x;
        xy += w * x * (difference(&p[i]) - y0 - y_mean);
    }
    f->drift = xx > 0 ? xy / xx : 0;
    f->offset_ns = (gint64)llround(y0 + y_mean - f->drift * x_mean);
}

static void fit_one(const RsClockPoint *p, RsClockFit *f)
{
    f->at_ns = p->own_ns;
    f->offset_ns = p->their_ns - p->own_ns;
    f->drift = 0;
    f->uncertainty_ns = p->uncertainty_ns;
}

static gint64 outside(gint64 from, gint64 to, gint64 first, gint64 last)
{
    return MAX(MAX(first - from, to - last), 0);
}

static void fit_many(const RsClockPoint *p, guint n, gint64 from, gint64 to, RsClockFit *f)
{
    fit_line(p, n, f);
    gint64 worst = 0;
    for (guint i = 0; i < n; i++) {
        gint64 off = llabs(rs_clock_fit_apply(f, p[i].own_ns) - p[i].their_ns);
        worst = MAX(worst, p[i].uncertainty_ns + off);
    }
    gint64 span = p[n - 1].own_ns - p[0].own_ns;
    gdouble drift_error =
        (gdouble)(p[0].uncertainty_ns + p[n - 1].uncertainty_ns) / (gdouble)MAX(span, 1);
    gint64 away = outside(from, to, p[0].own_ns, p[n - 1].own_ns);
    f->uncertainty_ns = worst + (gint64)ceil(MIN(drift_error, DRIFT_MAX) * (gdouble)away);
}

gboolean rs_clock_fit_trips(RsClockPoint *points, guint n, gint64 from, gint64 to,
                            RsClockFit *ret_fit)
{
    if (n == 0)
        return FALSE;
    n = best_of_clusters(points, n);
    if (n > 1) {
        fit_many(points, n, from, to, ret_fit);
        if (fabs(ret_fit->drift) <= DRIFT_MAX)
            return TRUE;
    }
    const RsClockPoint *best = &points[0];
    for (guint i = 1; i < n; i++)
        if (points[i].uncertainty_ns < best->uncertainty_ns)
            best = &points[i];
    fit_one(best, ret_fit);
    gint64 away = outside(from, to, best->own_ns, best->own_ns);
    ret_fit->uncertainty_ns += (gint64)ceil(UNKNOWN_DRIFT * (gdouble)away);
    for (guint i = 0; i < n; i++) { /* what contradicts the one point widens it */
        gint64 off = llabs(rs_clock_fit_apply(ret_fit, points[i].own_ns) - points[i].their_ns);
        ret_fit->uncertainty_ns =
            MAX(ret_fit->uncertainty_ns, off - MIN(off, points[i].uncertainty_ns));
    }
    return TRUE;
}

/* ---- meetings ---- */

static gint compare_meetings(gconstpointer a, gconstpointer c)
{
    const RsClockMeeting *x = a, *y = c;
    return x->own_end_ns < y->own_end_ns ? -1 : x->own_end_ns > y->own_end_ns;
}

static gint compare_doubles(gconstpointer a, gconstpointer c)
{
    gdouble x = *(const gdouble *)a, y = *(const gdouble *)c;
    return x < y ? -1 : x > y;
}

static gdouble median(gdouble *v, guint n)
{
    qsort(v, n, sizeof *v, compare_doubles);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
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
    return count ? median(slopes, count) : 0;
}

static gint64 median_offset(const RsClockMeeting *m, guint n, const RsClockFit *f)
{
    g_autofree gdouble *d = g_new(gdouble, n);
    gdouble first = (gdouble)(m[0].their_end_ns - m[0].own_end_ns);
    for (guint i = 0; i < n; i++)
        d[i] = (gdouble)(m[i].their_end_ns - m[i].own_end_ns) - first -
               f->drift * (gdouble)(m[i].own_end_ns - f->at_ns);
    return (gint64)llround(first + median(d, n));
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

/* How far nine of ten ends are from the line. */
static gint64 spread_of_ends(const RsClockMeeting *m, guint n, const RsClockFit *f)
{
    g_autofree gdouble *off = g_new(gdouble, n);
    for (guint i = 0; i < n; i++)
        off[i] = fabs((gdouble)(rs_clock_fit_apply(f, m[i].own_end_ns) - m[i].their_end_ns));
    qsort(off, n, sizeof *off, compare_doubles);
    return (gint64)ceil(off[MIN(n - 1, n * 9 / 10)]);
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
        f.uncertainty_ns = spread_of_ends(m, n, &f) + (low - high);
    }
    if (f.drift == 0 && span < DRIFT_SPAN)
        f.uncertainty_ns += (gint64)ceil(UNKNOWN_DRIFT * (gdouble)span);
    *ret_fit = f;
    return TRUE;
}
