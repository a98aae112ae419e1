/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.h - lays the events of each track into lanes in which slices nest and never half overlap.
 *
 * Viewers that draw a thread as a stack lose slices that overlap without nesting. Calls, ranges and
 * device work of a track go to its first lane as long as they nest there; what does not gets the
 * next lane that holds it. Spans (start/end ranges) overlap by nature and have lanes of their own.
 * Lanes of one rank are numbered from 1, track by track.
 */
#ifndef RS_EXPORT_LANES_H
#define RS_EXPORT_LANES_H

#include "model.h"

G_BEGIN_DECLS

typedef struct {
    guint32 first;  /* number of the track's first lane, within its rank */
    guint32 n;      /* lanes for what nests by nature, then ... */
    guint32 n_span; /* ... those for spans */
} RsTrackLanes;

typedef struct {
    RsTrackLanes *tracks; /* by RsTrack index */
    guint32 *of_event;    /* lane number, within the rank */
} RsLanes;

void rs_lanes_init(RsLanes *lanes, const RsModel *model);
void rs_lanes_release(RsLanes *lanes);

/* Where a slice is drawn to: an open one to the end of the run, unless its rank is known to have
 * died before. */
gint64 rs_lanes_end_ns(const RsModel *model, guint32 event);

G_END_DECLS
#endif
