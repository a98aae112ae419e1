/* SPDX-License-Identifier: Apache-2.0 */
/* clock-ticks.c - ticks of a counter to the monotonic clock, by anchors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define BUCKET_NS 10000000 /* anchors nearer than this: the sharpest speaks for them */
#define TRUST_SLOPE_NS                                                                             \
    1000000000                     /* a line this long tells the rate better than the calibration  \
                                    */
#define TIME_MAX ((gint64)1 << 58) /* sums of a few such never overflow */

static gint compare_anchors(gconstpointer a, gconstpointer c)
{
    const struct rs_anchor *x = a, *y = c;
    return x->tick < y->tick ? -1 : x->tick > y->tick;
}

/* Keeps the sharpest anchor of each bucket, in place; returns how many are left. */
static guint thin_out(struct rs_anchor *a, guint n)
{
    guint kept = 0;
    guint64 bucket = 0;
    for (guint i = 0; i < n; i++) {
        if (kept > 0 && a[i].monotonic_ns - bucket < BUCKET_NS) {
            if (a[i].spread_ticks < a[kept - 1].spread_ticks)
                a[kept - 1] = a[i];
            continue;
        }
        bucket = a[i].monotonic_ns;
        a[kept++] = a[i];
    }
    return kept;
}

static gint compare_spreads(gconstpointer a, gconstpointer c)
{
    guint32 x = *(const guint32 *)a, y = *(const guint32 *)c;
    return x < y ? -1 : x > y;
}

static guint32 median_spread(const struct rs_anchor *a, guint n)
{
    guint32 *s = g_new(guint32, n);
    for (guint i = 0; i < n; i++)
        s[i] = a[i].spread_ticks;
    qsort(s, n, sizeof *s, compare_spreads);
    guint32 median = s[n / 2];
    g_free(s);
    return median;
}

/* Anchors taken while the process was scheduled away are blunt; two must be left. */
static guint drop_blunt(struct rs_anchor *a, guint n)
{
    if (n < 3)
        return n;
    guint64 limit = 8 * ((guint64)median_spread(a, n) + 16);
    guint kept = 0;
    for (guint i = 0; i < n; i++)
        if (a[i].spread_ticks <= limit || (i + 1 == n && kept < 2))
            a[kept++] = a[i];
    return kept;
}

static void add_knot(RsTickMap *map, const struct rs_anchor *a)
{
    RsTickKnot k = {a->tick, (gint64)MIN(a->monotonic_ns, (guint64)TIME_MAX), 0};
    if (map->knots->len > 0) {
        RsTickKnot *last = &g_array_index(map->knots, RsTickKnot, map->knots->len - 1);
        if (k.tick <= last->tick || k.ns <= last->ns)
            return;
        last->ns_per_tick = (gdouble)(k.ns - last->ns) / (gdouble)(k.tick - last->tick);
    }
    g_array_append_val(map->knots, k);
}

/* Rate beyond an end: of the knots nearest to it that are far enough apart, else as calibrated. */
static gdouble rate_at_end(const GArray *knots, gboolean last, gdouble hz)
{
    guint n = knots->len;
    const RsTickKnot *k = (const RsTickKnot *)(void *)knots->data;
    for (guint i = 1; i < n; i++) {
        const RsTickKnot *x = last ? &k[n - 1 - i] : &k[0];
        const RsTickKnot *y = last ? &k[n - 1] : &k[i];
        if (y->ns - x->ns >= TRUST_SLOPE_NS || (hz <= 0 && i + 1 == n))
            return (gdouble)(y->ns - x->ns) / (gdouble)(y->tick - x->tick);
    }
    return hz > 0 ? 1e9 / hz : 1;
}

void rs_tick_map_init(RsTickMap *map, const struct rs_anchor *anchors, guint n, gdouble hz,
                      guint64 origin)
{
    map->knots = g_array_new(FALSE, FALSE, sizeof(RsTickKnot));
    map->uncertainty_ns = 0;
    if (!(hz > 1e3 && hz < 1e12))
        hz = 0;
    struct rs_anchor *a = g_memdup2(anchors, n * sizeof *a);
    if (n > 0)
        qsort(a, n, sizeof *a, compare_anchors);
    n = drop_blunt(a, thin_out(a, n));
    guint32 spread = 0;
    for (guint i = 0; i < n; i++) {
        add_knot(map, &a[i]);
        spread = MAX(spread, a[i].spread_ticks);
    }
    g_free(a);
    if (map->knots->len == 0) {
        RsTickKnot k = {origin, 0, 0};
        g_array_append_val(map->knots, k);
    }
    map->before = rate_at_end(map->knots, FALSE, hz);
    RsTickKnot *last = &g_array_index(map->knots, RsTickKnot, map->knots->len - 1);
    last->ns_per_tick = rate_at_end(map->knots, TRUE, hz);
    map->uncertainty_ns = (gint64)ceil(spread * MAX(map->before, last->ns_per_tick) / 2);
}

void rs_tick_map_clear(RsTickMap *map)
{
    g_clear_pointer(&map->knots, g_array_unref);
}

static guint knot_before(const GArray *knots, guint64 tick)
{
    guint low = 0, high = knots->len;
    while (high - low > 1) {
        guint mid = low + (high - low) / 2;
        if (g_array_index(knots, RsTickKnot, mid).tick <= tick)
            low = mid;
        else
            high = mid;
    }
    return low;
}

gint64 rs_tick_map_ns(const RsTickMap *map, guint64 tick)
{
    const RsTickKnot *k = &g_array_index(map->knots, RsTickKnot, knot_before(map->knots, tick));
    gdouble ns = tick >= k->tick ? (gdouble)(tick - k->tick) * k->ns_per_tick
                                 : -(gdouble)(k->tick - tick) * map->before;
    return k->ns + (gint64)llround(CLAMP(ns, -(gdouble)TIME_MAX, (gdouble)TIME_MAX));
}
