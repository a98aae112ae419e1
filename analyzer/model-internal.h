/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model-internal.h - what a model is made of on its way: shared by the builder and the passes that
 * finish it (order, clocks, matching, steps), by nobody else.
 */
#ifndef RS_ANALYZER_MODEL_INTERNAL_H
#define RS_ANALYZER_MODEL_INTERNAL_H

#include "model-builder.h"

G_BEGIN_DECLS

typedef struct {
    gint64 start, end; /* in the process's unit */
    guint32 sig, track, seq, link;
    guint16 flags, aux;
} RsRawEvent;

typedef enum { RS_EXTRA_REQUEST, RS_EXTRA_DONE, RS_EXTRA_STATUS, RS_EXTRA_SECOND } RsExtraKind;

/* Sorted by event after ordering; then `event` is the model's index. */
typedef struct {
    guint32 event;
    guint32 kind; /* RsExtraKind */
    gint32 source, tag;
    guint64 value; /* the request, or bytes */
} RsExtra;

typedef struct {
    guint32 process;
    RsStr name;
    guint64 tid;
    gboolean device;
    gboolean nests; /* the depth of its ranges is not told: it is how they nest */
} RsRawTrack;

typedef struct {
    guint32 process;
    gint32 comm_rank;
} RsJoin;

typedef struct {
    gint32 *world_ranks; /* by rank in it, NULL unknown */
    guint32 n_world_ranks;
    GArray *joins; /* RsJoin */
} RsRawComm;

struct _RsBuilder {
    RsModel *model; /* strings, sigs, comms, warnings and meta grow here from the start */
    GHashTable *string_ids, *sig_ids, *comm_ids;
    GPtrArray *processes; /* RsProcess */
    GArray *tracks;       /* RsRawTrack */
    GArray *raw_comms;    /* RsRawComm, parallel to model->comms */
    GArray *events;       /* RsRawEvent */
    GArray *extras;       /* RsExtra */

    /* filled while finishing */
    gint64 *whole_ns;         /* by RsRank: events before were left out by the size limit, 0 none */
    gboolean cut_in_front;    /* some rank has such, or its capture was switched off */
    guint32 *rank_of_process; /* RsRank index */
    guint32 *process_of_track; /* by the model's track */
    guint8 *nests;             /* by the model's track */
    GHashTable *comm_rank_of;  /* (comm, RsRank index) -> rank in comm + 1 */
};

/* model.c */
RsModel *rs_model_new(void);

/* order.c: ranks, hosts, tracks and events into the model's arrays; times still in their units. */
void rs_order_ranks(RsBuilder *b, RsFinishFlags flags);
void rs_order_events(RsBuilder *b);
/* depths.c: of ranges on tracks that have only times. */
void rs_depths_find(RsBuilder *b);

/* comms.c: members as RsRank indices, and the way back. */
void rs_comms_resolve(RsBuilder *b);
/* Rank of the event's process in the communicator of its signature, -1 unknown. */
gint32 rs_comms_rank_of(const RsBuilder *b, guint32 event, guint32 rank);

/* align.c: raw events to monotonic ns (before ordering), then all domains on one axis (after
 * collectives are paired), then the axis from 0. */
void rs_align_ticks(RsBuilder *b);
void rs_align_domains(RsBuilder *b); /* align-domains.c */
void rs_align_base(RsBuilder *b);

#define RS_TIME_MAX ((gint64)1 << 58) /* no time is greater; sums of a few never overflow */
/* Clock domain of a process. */
guint32 rs_align_domain_of(const RsBuilder *b, guint32 process);
/* Realtime minus monotonic of a domain, by its first anchor; FALSE without one. */
gboolean rs_align_wall_offset(const RsBuilder *b, guint32 domain, gint64 *ret);

/* Matching: pair_* need no times between ranks, time_* fill in the arrivals once there is one axis.
 */
void rs_requests_link(RsBuilder *b);
void rs_devices_link(RsBuilder *b);
void rs_collectives_pair(RsBuilder *b);
void rs_collectives_time(RsBuilder *b);
void rs_messages_pair(RsBuilder *b);
void rs_messages_time(RsBuilder *b);
/* Whether its two calls surely belong together, and say when it was sent and when it was there. */
gboolean rs_message_is_witness(const RsModel *m, const RsMessage *msg);
void rs_rendezvous_find(RsBuilder *b);
void rs_steps_find(RsBuilder *b);

/* True where a member of this collective can't have the result before all have come. */
gboolean rs_coll_synchronises(guint8 coll);

G_END_DECLS
#endif
