/* SPDX-License-Identifier: Apache-2.0 */
/*
 * axis.h - the one place that turns nanoseconds into pixels: zoom, pan, ticks, words for times.
 *
 * Model: `width_px` pixels show the time from `from_ns` on, `ns_per_px` each. What there is to see
 * is [first_ns, last_ns]; an axis never shows more than that and a small margin, and never less
 * than a few nanoseconds. Plain arithmetic: no display, no allocation but the texts.
 */
#ifndef RS_VIEWER_AXIS_H
#define RS_VIEWER_AXIS_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    gint64 first_ns, last_ns;
    gdouble from_ns, ns_per_px;
    gint width_px;
} RsAxis;

/* Shows everything. last_ns <= first_ns counts as one microsecond. */
void rs_axis_init(RsAxis *axis, gint64 first_ns, gint64 last_ns, gint width_px);
/* Keeps the time that is shown, on another width. */
void rs_axis_resize(RsAxis *axis, gint width_px);
void rs_axis_fit(RsAxis *axis);
void rs_axis_show(RsAxis *axis, gdouble from_ns, gdouble to_ns);
/* factor 2 shows half as much; the time at `px` stays there unless a bound forbids it. */
void rs_axis_zoom(RsAxis *axis, gdouble factor, gdouble px);
/* Positive: later times come into view. */
void rs_axis_pan(RsAxis *axis, gdouble px);

static inline gdouble rs_axis_px(const RsAxis *axis, gint64 time_ns)
{
    return ((gdouble)time_ns - axis->from_ns) / axis->ns_per_px;
}
static inline gdouble rs_axis_time(const RsAxis *axis, gdouble px)
{
    return axis->from_ns + px * axis->ns_per_px;
}
static inline gdouble rs_axis_to_ns(const RsAxis *axis)
{
    return rs_axis_time(axis, axis->width_px);
}

/* Distance of ticks, 1, 2 or 5 times a power of ten, at least `min_px` apart. */
gint64 rs_axis_tick_ns(const RsAxis *axis, gint min_px);
/* "12.5 ms": a time on a ruler whose ticks are `tick_ns` apart, in one unit for the whole ruler,
 * which is chosen by the greatest time in view. Returned: free it. */
gchar *rs_axis_dup_tick(const RsAxis *axis, gint64 time_ns, gint64 tick_ns);
/* "1.234 ms", "17 ns": three or four digits that matter. Returned: free it. */
gchar *rs_axis_dup_duration(gint64 ns);
gchar *rs_axis_dup_bytes(guint64 bytes);

G_END_DECLS
#endif
