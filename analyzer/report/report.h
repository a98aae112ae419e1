/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - results as something to read: one row of the table is one format.
 *
 * A format turns a model and its results into one text; nothing is printed here. Numbers come from
 * the results alone, so that every format says the same. What JSON says is fixed by
 * schemas/report.schema.json; what is unknown is null there and "-" in text, never NaN or 0.
 */
#ifndef RS_ANALYZER_REPORT_H
#define RS_ANALYZER_REPORT_H

#include "analysis.h"

G_BEGIN_DECLS

#define RS_REPORT_SCHEMA_VERSION 1

typedef struct {
    const RsModel *model;
    const RsResults *results;
    const gchar *name; /* what the user called the run */
    gboolean cut;      /* a scope was given: not all of the run is in it */
} RsReport;

typedef struct {
    const gchar *name;
    gchar *(*write)(const RsReport *report); /* returned: free it */
} RsReportFormat;

extern const RsReportFormat rs_report_formats[]; /* ends with a NULL name */
const RsReportFormat *rs_report_format_find(const gchar *name);

gchar *rs_report_json(const RsReport *report);
gchar *rs_report_text(const RsReport *report);

/* POP's efficiencies from the breakdown of the run (as its multiplicative model has them), on
 * computing time; NAN where nothing computed. parallel = load_balance x communication. */
typedef struct {
    gdouble parallel, load_balance, communication;
} RsPop;
RsPop rs_report_pop(const RsResults *results);

/* The run's NCCL was the stand-in of samples/hostnccl. */
gboolean rs_report_is_standin(const RsModel *model);

/* Events that the captures' size limit left out, over all ranks. */
typedef struct {
    guint64 events; /* 0 none, and the rest is 0 */
    gint64 from_ns, to_ns;
    GArray *ranks; /* gint32 */
} RsLimited;
void rs_report_limited(const RsModel *model, RsLimited *ret);
void rs_limited_clear(RsLimited *limited);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RsLimited, rs_limited_clear)

/* Time while capture was switched off. */
typedef struct {
    guint64 times;            /* over all ranks; 0 never, and the rest is 0 */
    gint64 least_ns, most_ns; /* of the ranks that were */
    GArray *ranks;            /* gint32 */
} RsOff;
void rs_report_off(const RsModel *model, RsOff *ret);
void rs_off_clear(RsOff *off);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RsOff, rs_off_clear)

/* What the tracer itself cost, over all ranks that say so. */
typedef struct {
    gdouble event_ns; /* what a record costs its thread; NAN unknown, and so is the rest */
    gdouble total_ns; /* of all ranks' threads */
    gdouble percent;  /* of these ranks' time */
    gdouble drain_ns; /* CPU time of the threads that write captures */
    gdouble bytes;    /* that they wrote */
} RsTracing;
RsTracing rs_report_tracing(const RsReport *report);

G_END_DECLS
#endif
