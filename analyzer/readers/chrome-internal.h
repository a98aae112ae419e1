/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome-internal.h - what the parts of the reader of Chrome traces share.
 *
 * chrome.c walks the document and hands over one record after the other. chrome-event.c turns a
 * record into events at once where it can; what has to wait for other records (ends, asynchronous
 * ones, arrows) is kept in short rows until chrome-finish.c pairs them, when the whole file is
 * known: metadata may stand anywhere. Until then tracks belong to no process.
 * Format: definitions.md section 9.
 */
#ifndef RS_READERS_CHROME_INTERNAL_H
#define RS_READERS_CHROME_INTERNAL_H

#include "json-window.h"
#include "reader.h"

G_BEGIN_DECLS

/* Times from here on are those of a clock that runs for long: 11.5 days, no trace is so long. */
#define RS_CHROME_EPOCH_NS    G_GINT64_CONSTANT(1000000000000000)
#define RS_CHROME_RANKS_MAX   (1 << 20)
#define RS_CHROME_IMPLIED_MAX (1u << 22) /* members of groups that no list names, all together */
#define RS_CHROME_ARGS_MAX    128        /* of one record; more are left out */

/* The fields of a record that mean something. */
typedef struct {
    RsJsonSpan ph, name, cat, ts, dur, pid, tid, id, args;
} RsChromeRecord;

/* A pid, tid or id: numbers and strings are apart, whatever their digits. */
typedef struct {
    guint64 value; /* the number, or an RsStr */
    guint64 is_text;
} RsChromeId;

typedef struct {
    RsChromeId pid, tid;
} RsChromeTrackKey;

typedef struct {
    RsChromeId id;
    RsStr name, labels;
    guint32 process; /* the builder's, at the end */
    guint64 events;  /* of host tracks */
    gboolean device; /* its name says so */
} RsChromePid;

typedef struct {
    RsChromeTrackKey key;
    guint32 pid;   /* of RsChrome.pids */
    guint32 track; /* the builder's, RS_NONE until something stands on it */
    RsStr name;
    gboolean device;
} RsChromeTrack;

/* What an event is for us, by its category. */
typedef enum {
    RS_CHROME_RANGE,
    RS_CHROME_KERNEL,
    RS_CHROME_COPY,
    RS_CHROME_SET,
    RS_CHROME_DEVICE_RANGE,
    RS_CHROME_RUNTIME,  /* a call of the CUDA or HIP runtime or driver */
    RS_CHROME_OPERATOR, /* a range of a profiler, whose arguments are about the profiler's own ids
                         */
    RS_CHROME_SPAN,
    RS_CHROME_MARK,
} RsChromeClass;

/* B and E. */
typedef struct {
    gint64 ns;
    guint32 track;
    guint32 event; /* the builder's; RS_NONE: an end */
    RsStr name;    /* of an end: 0 none */
    guint32 order;
} RsChromeStackRow;

/* Asynchronous slices and arrows: paired by key. */
typedef struct {
    guint64 key;
    gint64 ns;
    RsStr name;
    guint32 track;
    guint32 sig;
    guint32 order;
    gchar phase; /* b n e; s t f */
} RsChromePairRow;

typedef struct {
    guint64 correlation;
    guint32 event;
    gboolean device;
} RsChromeLaunch;

/* A collective whose number is not in the file: counted by time. */
typedef struct {
    gint64 ns;
    guint32 comm, event;
} RsChromeUnnumbered;

/* What can be wrong with what a record means. */
typedef enum {
    RS_CHROME_NO_TIME,
    RS_CHROME_ZERO_TIME,
    RS_CHROME_NEGATIVE,
    RS_CHROME_OUT_OF_RANGE,
    RS_CHROME_NO_PHASE,
    RS_CHROME_UNKNOWN_PHASE,
    RS_CHROME_NOT_SHOWN,
    RS_CHROME_END_ALONE,
    RS_CHROME_BEGIN_ALONE,
    RS_CHROME_CROSSING,
    RS_CHROME_ASYNC_END_ALONE,
    RS_CHROME_FLOW_START_ALONE,
    RS_CHROME_FLOW_END_ALONE,
    RS_CHROME_FLOW_BACK,
    RS_CHROME_ARGS_LEFT_OUT,
    RS_CHROME_COUNTER_RANGE,
    RS_CHROME_TROUBLES,
} RsChromeTrouble;

typedef struct {
    RsBuilder *b;
    RsInput *input;
    const gchar *path;
    const RsReadOptions *options;
    RsJsonWindow window;

    /* what is wrong with the text: the first of it, and how much */
    const gchar *fault; /* NULL none */
    guint64 fault_offset;
    guint64 skipped, odd_values, deep_values;
    guint64 rescan_left; /* bytes that may be scanned again after damage */
    guint64 records;     /* with a phase */
    guint64 trouble[RS_CHROME_TROUBLES];

    /* what the file says of itself */
    gint32 rank, world_size;
    gint64 base_time_ns; /* baseTimeNanoseconds: added to all times */
    gboolean is_kineto;
    GString *host;
    RsJsonField fields[RS_CHROME_ARGS_MAX], args[RS_CHROME_ARGS_MAX];
    GString *text; /* scratch */

    guint unit_digits; /* 3; 0 where times can only be nanoseconds */
    gboolean has_base, epoch;
    gint64 base_ns; /* the first time: taken off all */
    gint64 last_ns; /* after that */
    gint64 least_ns;

    GHashTable *track_ids; /* RsChromeTrackKey -> index into tracks + 1 */
    GHashTable *pid_ids;   /* RsChromeId -> index into pids + 1 */
    GArray *tracks;        /* RsChromeTrack */
    GArray *pids;          /* RsChromePid */
    guint32 last_track;

    GHashTable *sigs;   /* hash of what a signature is made of -> the builder's + 1 */
    GHashTable *groups; /* name and members of a process group -> the builder's communicator + 1 */
    GHashTable *group_ranks; /* name of a process group -> its ranks as text, by distributedInfo */
    GArray *stack;           /* RsChromeStackRow */
    GArray *async;           /* RsChromePairRow */
    GArray *flows;           /* RsChromePairRow */
    GArray *launches;        /* RsChromeLaunch */
    GArray *unnumbered;      /* RsChromeUnnumbered */
    gboolean is_horovod;
    gboolean is_stuck;            /* the trace ended inside a collective */
    GArray *ticks, *negotiations; /* chrome-horovod.c */
    gint32 max_member;            /* greatest world rank that a process group names, -1 */
    guint64 implied_left;         /* of RS_CHROME_IMPLIED_MAX */
    gint32 own_member;            /* the rank that collectives say is theirs, -1 */
} RsChrome;

/* chrome-event.c */
void rs_chrome_add(RsChrome *c, const RsChromeRecord *r);
/* Fills c->args from the record's; returns how many. */
guint rs_chrome_scan_args(RsChrome *c, const RsChromeRecord *r);
const RsJsonSpan *rs_chrome_arg(const RsChrome *c, guint n, const gchar *key);
RsStr rs_chrome_string(RsChrome *c, const RsJsonSpan *s);

/* chrome-tracks.c */
guint32 rs_chrome_track(RsChrome *c, const RsChromeRecord *r); /* index into tracks */
RsChromePid *rs_chrome_pid(RsChrome *c, const RsJsonSpan *s);
guint32 rs_chrome_builder_track(RsChrome *c, guint32 track);
guint64 rs_chrome_hash(guint64 seed, const gchar *bytes, gsize n);
void rs_chrome_tracks_init(RsChrome *c);
void rs_chrome_tracks_release(RsChrome *c);
void rs_chrome_metadata(RsChrome *c, const RsChromeRecord *r);
void rs_chrome_place_tracks(RsChrome *c);
/* `p` may be NULL. */
guint32 rs_chrome_add_process(RsChrome *c, gint32 rank, const RsChromePid *p);

/* chrome-collective.c: what a record's arguments say of a collective (definitions.md section 3). */
gboolean rs_chrome_is_communication(const gchar *name, gsize n);
/* Completes the signature of a device event that communicates; TRUE where *ret_seq is its number.
 * `n`: of c->args. */
gboolean rs_chrome_collective(RsChrome *c, guint n, RsSig *sig, guint32 *ret_seq);
void rs_chrome_distributed_info(RsChrome *c, const RsJsonSpan *info);
/* What a kernel's name tells of a signature that has no fields. */
void rs_chrome_name_kernel(RsChrome *c, RsSig *sig);

/* chrome-horovod.c */
void rs_chrome_horovod_init(RsChrome *c);
void rs_chrome_horovod_release(RsChrome *c);
gboolean rs_chrome_is_negotiation(const RsJsonSpan *name);
/* FALSE: not named by a rank. */
gboolean rs_chrome_tick(RsChrome *c, const RsChromeRecord *r, gint64 ns);
void rs_chrome_negotiated(RsChrome *c, const RsChromeStackRow *begin, gint64 end_ns, gboolean open);
void rs_chrome_place_horovod(RsChrome *c);

/* chrome-finish.c */
void rs_chrome_finish(RsChrome *c);

G_END_DECLS
#endif
