/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model-builder.h - how readers make a model: add processes, tracks, signatures, events, finish.
 *
 * Model: a process is one capture (or one rank of a foreign trace). Processes of the same world
 * rank become one RsRank: the one with the most events is the rank, the others add tracks to it.
 * Tracks and events may be added in any order; finish sorts them. Handles (guint32) count from 0 in
 * order of adding, and are the builder's own: after finish only strings, signatures and
 * communicators keep their numbers. Times are in the process's `unit`; finish puts all of them on
 * one axis. Strings given are copied. Errors: adding never fails; what can't be true is clamped,
 * and what would not fit (more than 2^32 - 2 events) is counted as dropped.
 */
#ifndef RS_ANALYZER_MODEL_BUILDER_H
#define RS_ANALYZER_MODEL_BUILDER_H

#include "model.h"

G_BEGIN_DECLS

typedef struct _RsBuilder RsBuilder;

typedef enum {
    RS_TIME_ALIGNED,   /* ns on one axis for all processes: nothing to align */
    RS_TIME_MONOTONIC, /* ns of the clock domain's monotonic clock */
    RS_TIME_TICKS,     /* a counter; `anchors` turn it into the monotonic clock */
} RsTimeUnit;

/* What is known of a process; readers fill it in place, up to finish. */
typedef struct {
    gint32 rank;       /* world rank, -1 unknown */
    gint32 world_size; /* 0 unknown */
    gint64 pid;
    gchar *host, *domain, *program, *path; /* owned; set them by rs_builder_set_text */
    RsTimeUnit unit;
    gdouble tick_hz; /* RS_TIME_TICKS: as calibrated by the process, 0 unknown */
    GArray *anchors; /* struct rs_anchor */
    GArray *probes;  /* struct rs_clock_probe */
    guint64 dropped;
    gdouble nic_mbps; /* 0 unknown */
    RsEnding ending;
    gchar *note; /* why it is incomplete, NULL where it is not; owned */
} RsProcess;

RsBuilder *rs_builder_new(void);
void rs_builder_free(RsBuilder *builder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RsBuilder, rs_builder_free)

/* Adds a process; `host` is its domain too until set otherwise. Borrowed struct, see above. */
guint32 rs_builder_add_process(RsBuilder *b, gint32 rank, const gchar *host, gint64 pid);
RsProcess *rs_builder_process(RsBuilder *b, guint32 process);
void rs_builder_set_text(gchar **field, const gchar *text);

guint32 rs_builder_add_track(RsBuilder *b, guint32 process, const gchar *name, guint64 tid,
                             gboolean device);

/* What the reader learned late: whose track it is. How deep its ranges stand in each other is found
 * by their times. */
void rs_builder_set_track(RsBuilder *b, guint32 track, guint32 process, const gchar *name,
                          gboolean device);

RsStr rs_builder_string(RsBuilder *b, const gchar *text);
RsStr rs_builder_string_len(RsBuilder *b, const gchar *text, gsize bytes); /* made valid UTF-8 */

const gchar *rs_builder_text(const RsBuilder *b, RsStr s); /* borrowed */

/* The communicator of `identity`, added where it is new. */
guint32 rs_builder_comm(RsBuilder *b, guint64 identity, guint64 parent, guint32 api, gint32 size,
                        const gchar *name);
/* Who its members are: world ranks by rank in it; or, where that is unknown, one at a time. */
void rs_builder_comm_members(RsBuilder *b, guint32 comm, const gint32 *world_ranks, guint32 n);
void rs_builder_comm_join(RsBuilder *b, guint32 comm, guint32 process, gint32 comm_rank);

/* Interns a signature. */
guint32 rs_builder_sig(RsBuilder *b, const RsSig *sig);
const RsSig *rs_builder_peek_sig(const RsBuilder *b, guint32 sig); /* until the next one is added */
const RsSig *rs_builder_peek_event_sig(const RsBuilder *b, guint32 event);
/* RsSig filled with "none" everywhere; name may be NULL. */
RsSig rs_builder_sig_init(RsBuilder *b, RsKind kind, const gchar *name);

/* Adds an event; returns its handle, RS_NONE where there are too many. */
guint32 rs_builder_event(RsBuilder *b, guint32 track, guint32 sig, gint64 start, gint64 end,
                         guint16 flags, guint16 aux, guint32 seq);

/* What was learned after the event was added: its end, its collective's number. */
void rs_builder_end(RsBuilder *b, guint32 event, gint64 end, guint16 flags_off);
void rs_builder_number(RsBuilder *b, guint32 event, guint32 seq);

/* What only some events have. Where `source` is RS_PEER_UNKNOWN, so is `tag`. */
void rs_builder_request(RsBuilder *b, guint32 event, guint64 request);
void rs_builder_done(RsBuilder *b, guint32 event, guint64 request, gint32 source, gint32 tag);
void rs_builder_status(RsBuilder *b, guint32 event, gint32 source, gint32 tag, guint64 bytes);
void rs_builder_second(RsBuilder *b, guint32 event, gint32 source, gint32 tag, guint64 bytes);
/* A field of the event's payload; those of one event keep their order. */
void rs_builder_arg(RsBuilder *b, const RsArg *arg);
/* Links known beforehand (SQLite): `event` is completed by, or on a device is called by, `other`.
 */
void rs_builder_link(RsBuilder *b, guint32 event, guint32 other);

/* A loss, for the reader of the report: file, offset, what. Printf-like. */
void rs_builder_warn(RsBuilder *b, const gchar *path, guint64 offset, const gchar *format, ...)
    G_GNUC_PRINTF(4, 5);
/* How much there is: to take back what was added since, but for strings, signatures,
 * communicators, warnings and what is known of the whole run. */
typedef struct {
    guint processes, tracks, events, extras, args;
} RsBuilderMark;
RsBuilderMark rs_builder_mark(const RsBuilder *b);
void rs_builder_take_back(RsBuilder *b, const RsBuilderMark *mark);

/* `process` RS_NONE: of the run. The last value of a key wins. */
void rs_builder_meta(RsBuilder *b, guint32 process, const gchar *key, const gchar *value);

typedef enum {
    RS_FINISH_ALL = 0,
    RS_FINISH_ORDER_ONLY = 1 << 0, /* sort and index only: the caller fills in instances, messages,
                                    * steps. Events added track by track in order, tracks by rank,
                                    * keep their numbers */
    RS_FINISH_NO_MISSING = 1 << 1, /* ranks without a capture are not asked for: no missing rows */
} RsFinishFlags;

/* Makes the model and frees the builder. */
RsModel *rs_builder_finish(RsBuilder *builder, RsFinishFlags flags);

G_END_DECLS
#endif
