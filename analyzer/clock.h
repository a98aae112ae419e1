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

/* Both clocks at one moment, which is known to `uncertainty_ns`. */
typedef struct {
    gint64 own_ns, their_ns;
    gint64 uncertainty_ns;
} RsClockPoint;

/* The moment of a round trip, from its four stamps: uncertain by half of what the two ways took. */
RsClockPoint rs_clock_point_of_trip(gint64 sent, gint64 their_received, gint64 their_sent,
                                    gint64 received);

/*
 * From round trips: the shortest of each cluster in time counts; with two clusters or more, drift
 * too. [from_ns, to_ns] is what the fit will be used for: away from the clusters it is less
 * certain. FALSE without a point. Reorders `points`.
 */
gboolean rs_clock_fit_trips(RsClockPoint *points, guint n, gint64 from_ns, gint64 to_ns,
                            RsClockFit *ret_fit);

/* A synchronising collective as two clocks saw it: nobody has the result before all have come. */
typedef struct {
    gint64 own_arrival_ns, own_end_ns;     /* latest arrival and earliest end on this clock */
    gint64 their_arrival_ns, their_end_ns; /* on the other */
} RsClockMeeting;

/* From meetings: robust against late leavers; at least 3. Reorders `meetings`. */
gboolean rs_clock_fit_meetings(RsClockMeeting *meetings, guint n, RsClockFit *ret_fit);

G_END_DECLS
#endif
