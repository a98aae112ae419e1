/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gatherings.h - the moments at which ranks must have come together, and who was late for them.
 *
 * Model: a gathering is a collective of which all members are known and timed, or a rendezvous: in
 * runtimes that agree on a tensor before they reduce it, a late rank shows in the agreement and never
 * in the collective. Where a run has rendezvous, collectives count only if the main thread makes
 * them: when a runtime's own thread comes to one says nothing about its rank.
 * Gatherings of one communicator (or of all rendezvous) are a stream. The lateness of the last rank is
 * its arrival minus the median arrival of the others. Of that, its own doing is at most how much more
 * own time (timeline.h) it spent since the stream's last gathering than the median other did: what it
 * spent waiting for a message, a link or another rank is not.
 * A chain is a run of gatherings for which somebody had come before the one before was complete: they
 * share one delay, so the largest counts for all.
 */
#ifndef RS_ANALYSES_GATHERINGS_H
#define RS_ANALYSES_GATHERINGS_H

#include "analysis.h"

G_BEGIN_DECLS

#define RS_STREAM_RENDEZVOUS RS_NONE

typedef struct {
    guint32 stream;          /* RsComm index, or RS_STREAM_RENDEZVOUS */
    guint32 index;           /* of the instance or rendezvous */
    guint32 step;            /* RsStep index, RS_NONE */
    guint32 last_rank;       /* RsRank index */
    guint32 n_members;
    gint64 first_arrival_ns, last_arrival_ns;
    gint64 late_ns;          /* last arrival - median arrival of the others */
    gint64 own_ns;           /* of that, its own doing; 0 where nothing is known */
    gint64 spread_ns;        /* median distance of the others from their median */
} RsGathering;

/* The previous complete instance of the same communicator, by instance index; RS_NONE for the first.
 * Returned: free it. */
guint32 *rs_gatherings_previous_dup(const RsModel *model);

/* Appends the window's gatherings. */
void rs_gatherings_collect(GArray *array, const RsWindow *window, const guint32 *previous);
/* By stream, then time: the same order however they were collected. */
void rs_gatherings_sort(GArray *array);

G_END_DECLS
#endif
