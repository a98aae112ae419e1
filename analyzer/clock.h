/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the arithmetic of clocks: ticks to nanoseconds, and one clock against another.
 *
 * Nothing here knows of captures or models: points in, lines out. Every uncertainty is a bound that
 * the data support, in ns; "unknown" is never small.
 */
#ifndef RS_ANALYZER_CLOCK_H
#define RS_ANALYZER_CLOCK_H

#include <glib.h>

#include "rsc.h"

G_BEGIN_DECLS

/* ---- ticks of a counter to the monotonic clock of its machine ---- */

typedef struct {
    guint64 tick;
    gint64 ns;
    gdouble ns_per_tick; /* from here to the next knot */
} RsTickKnot;

/* Straight lines between knots: the kernel steers the monotonic clock, so one line would not do. */
typedef struct {
    GArray *knots;         /* RsTickKnot, rising */
    gdouble before;        /* ns per tick before the first knot */
    gint64 uncertainty_ns; /* half the widest spread of the anchors used */
} RsTickMap;

/* From anchors of all processes that share the counter, in any order. hz: as calibrated by the
 * process, 0 unknown. Without an anchor the map has no origin: ticks count from `origin`. */
void rs_tick_map_init(RsTickMap *map, const struct rs_anchor *anchors, guint n, gdouble hz,
                      guint64 origin);
void rs_tick_map_clear(RsTickMap *map);
gint64 rs_tick_map_ns(const RsTickMap *map, guint64 tick);

/* ---- one clock against another ---- */

/* theirs = own + offset_ns + drift * (own - at_ns), true to uncertainty_ns. */
typedef struct {
    gint64 at_ns, offset_ns;
    gdouble drift;
    gint64 uncertainty_ns;
} RsClockFit;

gint64 rs_clock_fit_apply(const RsClockFit *fit, gint64 own_ns);
/* `outer` after `inner`, as one. */
RsClockFit rs_clock_fit_chain(const RsClockFit *outer, const RsClockFit *inner);

/*
 * What is known of a clock against another: moments of which one came before the other. A round
 * trip gives two, so does a collective that nobody leaves before all have come, a message gives
 * one.
 */
typedef struct _RsClockBounds RsClockBounds;

RsClockBounds *rs_clock_bounds_new(void);
RsClockBounds *rs_clock_bounds_dup(const RsClockBounds *bounds);
void rs_clock_bounds_free(RsClockBounds *bounds);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RsClockBounds, rs_clock_bounds_free)

/* `own_before` (on this clock) came before `their_after` (on the other), `their_before` before
 * `own_after`; a pair of which one is RS_CLOCK_UNKNOWN tells nothing. */
#define RS_CLOCK_UNKNOWN G_MININT64
void rs_clock_bounds_add(RsClockBounds *bounds, gint64 own_before_ns, gint64 their_after_ns,
                         gint64 their_before_ns, gint64 own_after_ns);

/* FALSE where no line of a clock's possible drift satisfies them all. */
gboolean rs_clock_bounds_agree(const RsClockBounds *bounds);

/*
 * The line in the middle of all that are possible; its uncertainty reaches the outermost of them
 * anywhere in [from_ns, to_ns] (own clock). Where drift can't be told it is taken to be 100 ppm at
 * most. Bounds that contradict each other are widened by as much. FALSE without a bound of either
 * side. Changes `bounds`.
 */
gboolean rs_clock_bounds_fit(RsClockBounds *bounds, gint64 from_ns, gint64 to_ns,
                             RsClockFit *ret_fit);

/* A synchronising collective as two clocks saw it: nobody has the result before all have come. */
typedef struct {
    gint64 own_arrival_ns, own_end_ns;     /* latest arrival and earliest end on this clock */
    gint64 their_arrival_ns, their_end_ns; /* on the other */
} RsClockMeeting;

/* From meetings: robust against late leavers; at least 3. Reorders `meetings`. */
gboolean rs_clock_fit_meetings(RsClockMeeting *meetings, guint n, RsClockFit *ret_fit);
/* How far nine of ten ends of the meetings are from the fit. */
gint64 rs_clock_fit_spread(const RsClockMeeting *meetings, guint n, const RsClockFit *fit);

G_END_DECLS
#endif
