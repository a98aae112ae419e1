/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phases.h - how much own time (timeline.h) ranks spend in the ranges that a program names.
 */
#ifndef RS_ANALYSES_PHASES_H
#define RS_ANALYSES_PHASES_H

#include "analysis.h"

G_BEGIN_DECLS

typedef struct {
    const gchar *name;        /* borrowed from the model */
    gboolean per_step;        /* else, in a run without steps, per occurrence on the rank */
    gint64 own_ns, others_ns; /* over the run, divided by steps or occurrences */
    gdouble share;            /* of all that the rank spends more than the others, in any phase */
} RsPhaseExcess;

/* Finds the range on main threads in which `rank` spends most more own time than the median of the
 * other `member`s (by RsRank index). What a range holds inside is not its own: a step's range has
 * what no phase has. FALSE where there is none. */
gboolean rs_phases_excess(const RsContext *ctx, const guint8 *member, guint32 rank,
                          RsPhaseExcess *ret_excess);

G_END_DECLS
#endif
