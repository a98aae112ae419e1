/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analysis.h - the shape of everything that draws conclusions: {init, feed, merge, finish}.
 *
 * Model: an analysis keeps a partial state. feed() takes one window of the run, merge() adds the
 * partial of another worker, finish() turns the whole into results. Sums are integer nanoseconds
 * and ties go by (rank, sequence), so the answer is the same however the run was cut. One that
 * looks at the model as a whole has finish() alone, which gets a state of NULL. One analysis, one
 * file; analyses.c lists them in the order of their finish().
 */
#ifndef RS_ANALYZER_ANALYSIS_H
#define RS_ANALYZER_ANALYSIS_H

#include "model.h"

G_BEGIN_DECLS

typedef struct _RsTimeline RsTimeline; /* analyses/timeline.h */

/* What every analysis may look at: the whole model, what its ranks spent their time on, and which
 * part of it was asked for. Read-only, shared by all workers. */
typedef struct {
    const RsModel *model;
    const RsTimeline *timelines; /* by RsRank index */
    const guint8 *rank_in;       /* by RsRank index: 1 where the scope holds the rank */
    gint64 span_ns;              /* length of the part of the run that is looked at */
    guint32 n_steps;             /* that lie in it, or reach into it */
    gboolean whole;              /* nothing was cut away */
} RsContext;

/* A part of a run: instances, rendezvous, messages by half-open index ranges, and time, half-open.
 * Windows that cover the same things once give the same results, however they were cut; time and
 * index ranges may be cut at different places. */
typedef struct {
    const RsContext *ctx;
    gint64 from_ns, to_ns;
    guint32 first_instance, last_instance;
    guint32 first_rendezvous, last_rendezvous;
    guint32 first_message, last_message;
} RsWindow;

typedef struct {
    const gchar *kind;     /* design.md's list: "straggler", "slow-link", ... */
    gchar *title;          /* one line: who, where, what; rs_analyze adds what it costs */
    const gchar *severity; /* "high" (from 10 % of the run), "medium" (3 %), "low" */
    gdouble confidence;    /* 0..1 */
    gdouble cost_s, cost_percent;
    gboolean fatal;        /* the run ended by it: of high severity, and before all others */
    gboolean wrong;        /* an error of the program, whatever it costs: high, and next */
    GArray *ranks;         /* gint32 world ranks */
    GPtrArray *hosts;      /* char* */
    GArray *communicators; /* guint64 identities */
    GArray *steps;         /* guint32 step numbers */
    gdouble t_start_s, t_end_s;
    GPtrArray *evidence; /* char*, a sentence with numbers each */
    gchar *remedy;       /* what a person can do */
} RsFinding;

typedef struct {
    const gchar *analysis;
    gchar *reason;
} RsNotApplicable;

/* Per rank, per step (step RS_NONE: all that was looked at).
 * wall = compute + comm_exposed + wait + io + idle, exactly. comm_hidden is part of compute. */
typedef struct {
    guint32 rank, step;
    gint64 wall_ns, compute_ns, comm_exposed_ns, comm_hidden_ns, wait_ns, io_ns, idle_ns;
} RsBreakdown;

/* Per (operation, api, size class, device or not); bandwidths in bytes/s, NAN where there is none.
 */
typedef struct {
    guint8 coll, api;
    guint32 size_class; /* k of [2^k, 2^(k+1)), RS_NONE where no bytes move */
    guint64 count;      /* instances */
    guint64 timed;      /* of them: complete, arrivals known */
    guint64 sampled;    /* of those: not warm-ups; the medians are theirs, -1 where it is 0 */
    guint64 bytes;      /* S summed over instances */
    gint64 call_ns_median, wait_ns_median, transfer_ns_median; /* wait: mean over the members */
    gint64 wait_ns_sum;     /* over timed instances and members */
    gint64 transfer_ns_sum; /* over timed instances */
    gdouble algbw_call, algbw_transfer, busbw_call, busbw_transfer; /* medians over instances */
    gboolean device;                                                /* times are device intervals */
} RsCollMetric;

/* Per ordered pair of different hosts. */
typedef struct {
    guint32 src_host, dst_host;
    guint64 messages, bytes;
    gint64 busy_ns;         /* union of the transfers */
    guint64 big_messages;   /* of the size from which a message tells bandwidth, not latency */
    guint64 big_from_bytes; /* that size; 0: too few messages to tell, bandwidths are NAN */
    gdouble bandwidth; /* bytes/s of the big ones, from the receivers: upper quartile by bytes over
                          spells of uninterrupted transfer (transfers.h) */
    gdouble best_bandwidth; /* the same, best tenth */
} RsLinkMetric;

typedef struct {
    GPtrArray *findings;       /* RsFinding, the fatal ones, then dearest first */
    GPtrArray *not_applicable; /* RsNotApplicable */
    GArray *breakdown;         /* RsBreakdown: ranks for the run, then ranks x steps */
    GArray *collectives;       /* RsCollMetric */
    GArray *links;             /* RsLinkMetric */
} RsResults;

typedef struct {
    const gchar *name;
    const gchar *help;         /* one line */
    const gchar *const *kinds; /* of findings it may make; NULL at the end, NULL where none */
    /* all five, or finish alone */
    gsize state_size;
    void (*init)(gpointer state, const RsContext *ctx);
    void (*feed)(gpointer state, const RsWindow *window);
    void (*merge)(gpointer state, gconstpointer other);
    void (*finish)(gpointer state, const RsContext *ctx, RsResults *results);
    void (*release)(gpointer state);
} RsAnalysis;

/* NULL-terminated. A finish() may read the results of those before it. */
extern const RsAnalysis *const rs_analyses[];

/* Options of a report: what part of the run to look at. Zero means all. */
typedef struct {
    gdouble from_s, to_s; /* to_s 0: the end */
    GArray *ranks;        /* gint32, NULL all */
    GArray *steps;        /* guint32, NULL all */
} RsScope;

/* Runs every analysis over `model`; scope may be NULL. Returned: free with rs_results_free. */
RsResults *rs_analyze(const RsModel *model, const RsScope *scope);
void rs_results_free(RsResults *results);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RsResults, rs_results_free)

/* ---- for analyses ---- */

RsFinding *rs_finding_new(const gchar *kind);
void rs_finding_free(RsFinding *finding);
/* Adds the rank (RsRank index) and its host. */
void rs_finding_place(RsFinding *finding, const RsModel *model, guint32 rank);
/* Adds a sentence to the evidence. */
void rs_finding_say(RsFinding *finding, const gchar *format, ...) G_GNUC_PRINTF(2, 3);
/* Sets cost, its share of the run, and the severity that follows from it. Where causes overlap,
 * rs_analyze takes some of it back: texts of an analysis don't name it. */
void rs_finding_cost(RsFinding *finding, const RsContext *ctx, gint64 cost_ns);
/* Whether some analysis before named what ended the run. */
gboolean rs_results_have_fatal(const RsResults *results);
void rs_results_not_applicable(RsResults *results, const gchar *analysis, const gchar *format, ...)
    G_GNUC_PRINTF(3, 4);

G_END_DECLS
#endif
