/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - one run in memory: what every rank did, in columns, all ranks on one clock.
 *
 * Model: readers hand over event by event (model-builder.h); rs_builder_finish aligns clocks, pairs
 * collectives and messages, finds steps and returns the model. From then on it is read-only and may
 * be read from any number of threads.
 * Units: nanoseconds since the run began (the earliest event of any rank is at 0); bytes.
 * Memory: an event is one row of the columns below, 32 bytes; what repeats (operation,
 * communicator, type, count, peer, tag, name) is interned as a signature.
 * Order: the events of one track are sorted by (start, longer first, order in the capture).
 */
#ifndef RS_ANALYZER_MODEL_H
#define RS_ANALYZER_MODEL_H

#include <glib.h>

#include "ops.h"
#include "rsc.h"

G_BEGIN_DECLS

#define RS_NONE G_MAXUINT32 /* "no such index", for every guint32 index */

typedef guint32 RsStr; /* interned string; 0 is "" */

typedef enum {
    RS_KIND_CALL,   /* MPI or NCCL call on the host */
    RS_KIND_DEVICE, /* execution on the device: NCCL operation, kernel, copy */
    RS_KIND_RANGE,  /* NVTX push/pop */
    RS_KIND_SPAN,   /* NVTX start/end: may overlap on its track */
    RS_KIND_MARK,
    RS_KIND_COUNTER,
    RS_KIND_HOLE, /* events were lost here: count of them; RS_HOLE_LIMIT is its name where the
                   * capture's size limit left them out */
    RS_KIND_IO,
} RsKind;
#define RS_HOLE_LIMIT "left out by the size limit"
#define RS_HOLE_OFF   "capture switched off" /* how many events that was nobody counted */
#define RS_KIND_COUNT (RS_KIND_IO + 1)

/* What is no rank in a communicator. */
typedef enum {
    RS_PEER_NONE = -1,
    RS_PEER_ANY = -2,
    RS_PEER_UNKNOWN = -3, /* of a message's source: no status told it */
} RsPeer;

/* What an event is, without when and where: interned. */
typedef struct {
    guint8 kind;        /* RsKind */
    guint8 klass;       /* enum rs_op_class */
    guint8 coll;        /* enum rs_coll */
    guint8 api;         /* enum rs_op_api */
    guint16 op;         /* ops table, or of what CUPTI told enum rs_builtin_op; 0 none */
    guint16 member;     /* own rank in comm + 1 where one process holds several of its members (one
                         * process, many devices); 0: as RsComm.members says */
    RsStr name;         /* "MPI_Allreduce", the range's text, the counter's name */
    RsStr dtype, redop; /* 0 none */
    guint32 comm;       /* RsComm index, RS_NONE none */
    gint32 peer;        /* root, destination or source: rank in comm, or RsPeer */
    gint32 tag;
    RsStr domain, category; /* ranges; of what CUPTI told: a kernel's full name; graph and node */
    guint32 color;
    guint64 count; /* elements as passed */
    guint64 bytes; /* message: payload; collective: as nccl-tests count, what a rank passes,
                    * and times the members where each has a part of its own */
} RsSig;

typedef enum {
    RS_FLAG_FAILED = 1 << 0,
    RS_FLAG_OPEN = 1 << 1, /* had not ended when the capture did; end = the last time known */
    RS_FLAG_CAPTURED = 1 << 2,
    RS_FLAG_IN_PLACE = 1 << 3,
    RS_FLAG_SEQ = 1 << 4, /* seq holds the collective's number */
    RS_FLAG_RECOVERED = 1 << 5,
} RsFlag;

/* Columns, all `n` long, indexed by event. */
typedef struct {
    guint32 n;
    gint64 *start_ns;
    gint64 *end_ns; /* >= start_ns */
    guint32 *sig;   /* RsSig index */
    guint16 *flags; /* RsFlag */
    guint16 *aux;   /* range: depth */
    guint32 *seq;   /* collective: number on its communicator; counter: bits of a float; what CUPTI
                     * told: its correlation */
    guint32 *link;  /* nonblocking start: the event that completed it; device: its call; RS_NONE */
} RsEvents;

/* A field of what a program attached to a range or mark: an NVTX payload. */
typedef struct {
    guint32 event;
    RsStr name, schema; /* schema: the layout's name, 0 none */
    RsStr text;         /* the text, or what the number means; 0 none */
    guint64 value;      /* bits of it */
    guint32 type;       /* struct rs_ext_fields: 1 u64, 2 i64, 3 f64, 4 text */
} RsArg;

/* A row of slices that belong to one thread or device stream of one rank. Events of a track are
 * events [first, first + n). */
typedef struct {
    guint32 rank; /* RsRank index */
    guint32 first, n;
    RsStr name; /* "main", "thread 4243", "NCCL device 0" */
    guint64 tid;
    gboolean device;
} RsTrack;

typedef enum {
    RS_ENDING_UNKNOWN, /* still running, killed on another host, or the capture was cut */
    RS_ENDING_CLEAN,   /* the capture was closed by a living process */
    RS_ENDING_EXITED,  /* the same, but inside a call, or with MPI not finalized */
    RS_ENDING_ABORTED, /* it called MPI_Abort */
    RS_ENDING_KILLED,  /* saved from the rings of a dead process */
    RS_ENDING_RUNNING, /* of rs_run_look alone: it lives, and what it is in is known */
    RS_ENDING_COUNT
} RsEnding;

typedef struct {
    gint32 rank;    /* world rank; -1 unknown (then the label tells) */
    guint32 host;   /* RsHost index */
    guint32 domain; /* clock domain index */
    gint64 pid;
    RsStr program, path; /* path: the capture it came from */
    guint32 first_track, n_tracks;
    gint64 first_ns, last_ns; /* of early endings: it was seen alive up to last_ns */
    guint64 events, dropped;
    RsEnding ending;
    gboolean missing; /* no capture of this rank was found; all else is zero, host too */
    RsStr note;       /* why it is incomplete; "" where it is not */
    guint32 first_off, off_count; /* in RsModel.offs: so often was its capture switched off */
    gint64 off_ns, off_until_ns;  /* for so long in all, and until then the last time */
    gboolean unseen;    /* nothing says what it did since: it may be in a call that began then */
    guint32 open_event; /* the innermost call it was in at the end, RS_NONE */
} RsRank;

typedef struct {
    RsStr name;
    gdouble nic_mbps; /* of its fastest interface that carries the run; 0 unknown */
} RsHost;

typedef struct {
    RsStr name;       /* machine and time namespace */
    gint64 offset_ns; /* added to its time at its first event */
    gdouble drift_ppm;
    gint64 uncertainty_ns; /* of its ticks, and of what joins it to the reference clock */
} RsDomain;

/* A communicator, one for all its members. */
typedef struct {
    guint64 identity, parent;
    guint32 api; /* enum rs_comm_api */
    gint32 size;
    guint32 n_members; /* entries of members: size, fewer where nobody says who the rest are */
    guint32 *members;  /* RsRank index by rank in the communicator; RS_NONE where absent */
    RsStr name;
} RsComm;

/*
 * One collective over all its ranks, matched by (communicator identity, sequence).
 * A member's event is what occupied that rank: the device interval where one exists, else the call;
 * rs_model_arrival_ns and rs_model_done_ns tell when it came and when it had the result.
 * A communicator of which only one member has a capture gives no instances: nothing to match.
 */
typedef struct {
    guint32 comm; /* RsComm index */
    guint32 seq;
    guint32 sig;          /* of the first member present */
    guint32 n_present;    /* members whose events we have */
    guint32 first_member; /* in RsModel.member_events: n_members entries, RS_NONE where absent */
    gint64 first_arrival_ns, last_arrival_ns, last_end_ns; /* over the members present */
    guint32 last_rank;                                     /* RsRank index of the last to arrive */
    guint32 step;                                          /* RS_NONE outside steps */
    gboolean complete;                                     /* all members present, all ended */
    gboolean timed;      /* arrivals are known: host-blocking, or device intervals exist */
    gboolean warmup;     /* first of its (communicator, operation, size class) */
    gboolean mismatched; /* members disagree on operation, type, count or root */
} RsInstance;

/* A moment at which all ranks must be ready, not a call: ranges named NEGOTIATE_* of one tensor,
 * matched by (tensor, occurrence). Same arrival logic as RsInstance. */
typedef struct {
    RsStr name; /* the tensor */
    guint32 occurrence;
    guint32 first_member; /* in member_events: n_ranks entries by RsRank index */
    guint32 n_present;
    gint64 first_arrival_ns, last_arrival_ns, last_end_ns;
    guint32 last_rank;
    guint32 step;
} RsRendezvous;

/* One message, matched by (communicator, source, destination, tag, order). */
typedef struct {
    guint32 send, recv; /* events; RS_NONE where one side is missing */
    guint32 src, dst;   /* RsRank index */
    guint64 bytes;
    gint64 both_ns; /* when both sides had arrived; of one side where the other is missing */
    gint64 end_ns;  /* when the receiver had it */
    guint32 step;
    gboolean timed; /* both sides known and ended, and their times are those of the transfer:
                     * host-blocking or completed calls, or device intervals */
} RsMessage;

typedef struct {
    guint32 number;          /* as the program counts, else from 0 */
    gboolean complete;       /* all ranks have its beginning and end */
    gint64 start_ns, end_ns; /* earliest begin, latest end over ranks */
    guint32 first_span;      /* in RsModel.step_spans: n_ranks entries */
} RsStep;

typedef struct {
    gint64 start_ns, end_ns; /* equal: the rank has no such step */
} RsSpan;

typedef struct {
    gchar *path;
    guint64 offset;
    gchar *text;
} RsWarning;

typedef struct { /* capture of a rank (RsRank index) was switched off */
    guint32 rank, event;
    gint64 start_ns, end_ns;
} RsOffTime;

typedef struct _RsModel RsModel;
struct _RsModel {
    RsEvents events;
    GArray *args;            /* RsArg, by event */
    GArray *sigs;            /* RsSig */
    GArray *tracks;          /* RsTrack, by rank then thread */
    GArray *ranks;           /* RsRank, sorted by world rank */
    GArray *hosts;           /* RsHost, in order of their lowest rank */
    GArray *domains;         /* RsDomain */
    GArray *comms;           /* RsComm */
    GArray *instances;       /* RsInstance, by last arrival */
    GArray *rendezvous;      /* RsRendezvous, by last arrival */
    GArray *messages;        /* RsMessage, by both_ns */
    GArray *offs;            /* RsOffTime, by rank then start */
    GArray *steps;           /* RsStep */
    GArray *step_spans;      /* RsSpan */
    GArray *member_events;   /* guint32 */
    GPtrArray *warnings;     /* RsWarning */
    GHashTable *meta;        /* char* "rank/key" or "key" -> char* */
    GPtrArray *strings;      /* by RsStr */
    gint32 world_size;       /* ranks the run had; >= ranks->len where captures are missing */
    gint64 base_realtime_ns; /* Unix time of 0 */
    gint64 duration_ns;
    gint64 clock_uncertainty_ns; /* greatest over domains */
    const gchar *clock_method;   /* "single domain", "round trips", "collective ends", "none" */
    gboolean clock_trusted;
    const gchar *step_source; /* "marks", "ranges", "repetition", "none" */
    gboolean incomplete;      /* something is missing: ranks' notes and warnings say what */
    guint64 dropped;
};

static inline const gchar *rs_model_str(const RsModel *m, RsStr s)
{
    return (const gchar *)g_ptr_array_index(m->strings, s);
}
static inline const RsSig *rs_model_sig(const RsModel *m, guint32 event)
{
    return &g_array_index(m->sigs, RsSig, m->events.sig[event]);
}
static inline RsRank *rs_model_rank(const RsModel *m, guint32 i)
{
    return &g_array_index(m->ranks, RsRank, i);
}
/* The fields of an event, in their order: *ret_n of them. Binary search. */
const RsArg *rs_model_args(const RsModel *m, guint32 event, guint *ret_n);
/* The track an event stands on: binary search over tracks. */
guint32 rs_model_track_of(const RsModel *m, guint32 event);
static inline const gchar *rs_model_host_name(const RsModel *m, guint32 host)
{
    return rs_model_str(m, g_array_index(m->hosts, RsHost, host).name);
}
/* Of ranks whose host nobody wrote down, as most traces of other tools don't. */
#define RS_HOST_UNKNOWN "unknown host"
static inline gboolean rs_model_host_is_known(const RsModel *m, guint32 host)
{
    return !g_str_equal(rs_model_host_name(m, host), RS_HOST_UNKNOWN);
}
gboolean rs_model_hosts_are_known(const RsModel *m);
/* RsRank index of an event. */
guint32 rs_model_rank_of(const RsModel *m, guint32 event);
/* When the event's rank arrived at, and had the result of, the operation that `event` is or starts:
 * a nonblocking start is done when its completion call ends (RsEvents.link). */
static inline gint64 rs_model_arrival_ns(const RsModel *m, guint32 event)
{
    return m->events.start_ns[event];
}
gint64 rs_model_done_ns(const RsModel *m, guint32 event);
/* Of the events in the time that is known, 0 to 1: what rings had no room for. */
gdouble rs_model_lost_share(const RsModel *m);
/* What the capture's size limit left out: time of which nothing is known. */
gboolean rs_model_is_left_out(const RsModel *m, guint32 event);
/* Capture was switched off: time of which nothing is known, either. */
gboolean rs_model_is_off(const RsModel *m, guint32 event);
/* Whether capture of the rank (RsRank index) was off at some time in [from, to]. */
gboolean rs_model_was_off(const RsModel *m, guint32 rank, gint64 from_ns, gint64 to_ns);
/* Whether two members' events may meet in one collective: the same operation, type, count and root.
 * Of one that has not ended the reduction is not known. */
gboolean rs_model_calls_agree(const RsModel *m, guint32 a, guint32 b);
/* Index of the first step that ends after `ns` on the rank (RsRank index), steps->len if none;
 * steps that the rank doesn't have count by the others' end. Binary search: a rank's steps are in
 * order. */
guint32 rs_model_first_step(const RsModel *m, guint32 rank, gint64 ns);
/* Whether a range of these times is a step of the rank (RsRank index), whatever it is called.
 * Binary search. */
gboolean rs_model_is_step(const RsModel *m, guint32 rank, gint64 start_ns, gint64 end_ns);
/* k of [2^k, 2^(k+1)); RS_NONE for 0 bytes. */
guint32 rs_size_class(guint64 bytes);
/* "rank 2 (host1:4242)", the same text in every export and window. Returned: free it. */
gchar *rs_model_dup_rank_label(const RsModel *m, guint32 rank);

void rs_model_free(RsModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RsModel, rs_model_free)

G_END_DECLS
#endif
