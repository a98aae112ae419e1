/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gatherings.h - the moments at which ranks must have come together, and who was late for them.
 *
 * Model: a gathering is a collective of which all members are known and timed, or a rendezvous: in
 * runtimes that agree on a tensor before they reduce it, a late rank shows in the agreement and
 * never in the collective. Where a run has rendezvous, collectives count only if the main thread
 * makes them: when a runtime's own thread comes to one says nothing about its rank. Gatherings of
 * one communicator (or of all rendezvous) are a stream. The lateness of the last rank is its
 * arrival minus the median arrival of the others, each without what messages held it up since the
 * stream's last gathering: whom a late rank holds up comes late with it. What the last rank spent
 * waiting for another is not its own doing: from its arrival the path is followed back, over the
 * messages for which a rank stood blocked until their other side came, to that last gathering. The
 * culprit is the rank on that path with the most own time (timeline.h) since then, and to blame for
 * at most how much more that is than the median of the others. Time in a transfer is nobody's own.
 * A chain is a run of gatherings for which somebody had come before the one before was complete:
 * they share one delay, so the largest counts for all.
 */
#ifndef RS_ANALYSES_GATHERINGS_H
#define RS_ANALYSES_GATHERINGS_H

#include "analysis.h"

G_BEGIN_DECLS

#define RS_STREAM_RENDEZVOUS RS_NONE

typedef struct {
    guint32 stream;    /* RsComm index, or RS_STREAM_RENDEZVOUS */
    guint32 index;     /* of the instance or rendezvous */
    guint32 step;      /* RsStep index, RS_NONE */
    guint32 last_rank; /* RsRank index */
    guint32 culprit;   /* RsRank index; RS_NONE where nobody's own doing made it late */
    guint32 n_members;
    gint64 first_arrival_ns, last_arrival_ns;
    gint64 late_ns;   /* last arrival - median arrival of the others, unheld by messages */
    gint64 own_ns;    /* of that, the culprit's doing; 0 where nothing is known */
    gint64 spread_ns; /* median distance of the others from their median */
} RsGathering;

/* What the way back needs of a model; read-only. */
typedef struct _RsGatheringIndex RsGatheringIndex;
RsGatheringIndex *rs_gathering_index_new(const RsModel *model);
void rs_gathering_index_free(RsGatheringIndex *index);

/* Appends the window's gatherings. */
void rs_gatherings_collect(GArray *array, const RsWindow *window, const RsGatheringIndex *index);
/* By stream, then time: the same order however they were collected. */
void rs_gatherings_sort(GArray *array);

G_END_DECLS
#endif
