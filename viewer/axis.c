/* SPDX-License-Identifier: Apache-2.0 */
#include "axis.h"

#include <math.h>

#define MARGIN        0.01 /* of all there is, on either side */
#define NS_PER_PX_MIN 0.02 /* a nanosecond on 50 pixels: doubles hold days to far below that */

static gdouble margin_ns(const RsAxis *a)
{
    return (gdouble)(a->last_ns - a->first_ns) * MARGIN;
}

static gdouble span_max_ns(const RsAxis *a)
{
    return (gdouble)(a->last_ns - a->first_ns) + 2 * margin_ns(a);
}

static void clamp(RsAxis *a)
{
    gdouble widest = span_max_ns(a) / a->width_px;
    a->ns_per_px = CLAMP(a->ns_per_px, MIN(NS_PER_PX_MIN, widest), widest);
    gdouble low = (gdouble)a->first_ns - margin_ns(a);
    gdouble high = (gdouble)a->last_ns + margin_ns(a) - a->ns_per_px * a->width_px;
    a->from_ns = MAX(low, MIN(a->from_ns, high));
}

void rs_axis_init(RsAxis *a, gint64 first_ns, gint64 last_ns, gint width_px)
{
    *a = (RsAxis){.first_ns = first_ns, .last_ns = last_ns, .width_px = MAX(width_px, 1)};
    if (last_ns <= first_ns)
        a->last_ns = first_ns + 1000;
    rs_axis_fit(a);
}

void rs_axis_resize(RsAxis *a, gint width_px)
{
    gdouble span = a->ns_per_px * a->width_px;
    a->width_px = MAX(width_px, 1);
    a->ns_per_px = span / a->width_px;
    clamp(a);
}

void rs_axis_fit(RsAxis *a)
{
    a->from_ns = (gdouble)a->first_ns - margin_ns(a);
    a->ns_per_px = span_max_ns(a) / a->width_px;
}

void rs_axis_show(RsAxis *a, gdouble from_ns, gdouble to_ns)
{
    a->ns_per_px = MAX(to_ns - from_ns, 0) / a->width_px;
    gdouble middle = (from_ns + to_ns) / 2;
    a->ns_per_px = MAX(a->ns_per_px, NS_PER_PX_MIN);
    a->from_ns = middle - a->ns_per_px * a->width_px / 2;
    clamp(a);
}

void rs_axis_zoom(RsAxis *a, gdouble factor, gdouble px)
{
    if (!(factor > 0))
        return;
    gdouble at = rs_axis_time(a, px);
    a->ns_per_px /= factor;
    gdouble widest = span_max_ns(a) / a->width_px;
    a->ns_per_px = CLAMP(a->ns_per_px, MIN(NS_PER_PX_MIN, widest), widest);
    a->from_ns = at - px * a->ns_per_px;
    clamp(a);
}

void rs_axis_pan(RsAxis *a, gdouble px)
{
    a->from_ns += px * a->ns_per_px;
    clamp(a);
}

gint64 rs_axis_tick_ns(const RsAxis *a, gint min_px)
{
    gdouble least = a->ns_per_px * MAX(min_px, 1);
    gdouble tick = 1;
    while (tick < least) {
        if (tick * 2 >= least)
            return (gint64)(tick * 2);
        if (tick * 5 >= least)
            return (gint64)(tick * 5);
        tick *= 10;
    }
    return (gint64)tick;
}

typedef struct {
    gdouble ns;
    const gchar *name;
} Unit;

static const Unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "\u00b5s"}, {1, "ns"}};

static const Unit *unit_for(gdouble ns)
{
    for (guint i = 0; i < G_N_ELEMENTS(units) - 1; i++)
        if (fabs(ns) >= units[i].ns)
            return &units[i];
    return &units[G_N_ELEMENTS(units) - 1];
}

gchar *rs_axis_dup_tick(const RsAxis *a, gint64 time_ns, gint64 tick_ns)
{
    const Unit *unit = unit_for(MAX(fabs(rs_axis_to_ns(a)), fabs(a->from_ns)));
    gint digits = (gint)ceil(log10(unit->ns / (gdouble)tick_ns) - 1e-9);
    return g_strdup_printf("%.*f %s", MAX(digits, 0), (gdouble)time_ns / unit->ns, unit->name);
}

gchar *rs_axis_dup_duration(gint64 ns)
{
    const Unit *unit = unit_for((gdouble)ns);
    gdouble value = (gdouble)ns / unit->ns;
    gint digits = unit->ns == 1 ? 0 : fabs(value) < 10 ? 3 : fabs(value) < 100 ? 2 : 1;
    return g_strdup_printf("%.*f %s", digits, value, unit->name);
}

gchar *rs_axis_dup_bytes(guint64 bytes)
{
    static const gchar *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    gdouble value = (gdouble)bytes;
    guint i = 0;
    for (; value >= 1024 && i < G_N_ELEMENTS(names) - 1; i++)
        value /= 1024;
    return g_strdup_printf(value == floor(value) ? "%.0f %s" : "%.1f %s", value, names[i]);
}
