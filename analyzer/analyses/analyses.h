/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyses.h - the analyses that exist, and definitions that several of them share.
 */
#ifndef RS_ANALYSES_ANALYSES_H
#define RS_ANALYSES_ANALYSES_H

#include "analysis.h"

G_BEGIN_DECLS

extern const RsAnalysis rs_analysis_deadlock_cycle;
extern const RsAnalysis rs_analysis_missing_rank;
extern const RsAnalysis rs_analysis_integrity;
extern const RsAnalysis rs_analysis_unobserved;
extern const RsAnalysis rs_analysis_mismatch;
extern const RsAnalysis rs_analysis_breakdown;
extern const RsAnalysis rs_analysis_collectives;
extern const RsAnalysis rs_analysis_links;
extern const RsAnalysis rs_analysis_straggler;
extern const RsAnalysis rs_analysis_slow_link;

/* busbw = algbw x this, for `n` ranks (definitions.md section 1); NAN where none is defined. */
gdouble rs_busbw_factor(guint8 coll, guint32 n);

/* Uncertainty of a time difference between these two ranks: 0 on one clock. */
gint64 rs_uncertainty_between_ns(const RsModel *model, guint32 rank_a, guint32 rank_b);

/* The run part of rs_analyze, for tests: what the scope selects, cut into windows of about
 * `pieces` pieces each, fed to `pieces` states in turn and merged last to first. */
RsResults *rs_analyze_pieces(const RsModel *model, const RsScope *scope, guint pieces);

G_END_DECLS
#endif
