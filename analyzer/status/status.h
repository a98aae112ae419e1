/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h - what each rank is in, who waits for whom, and who is missing: of a live, hung or
 * killed run.
 *
 * Model: made of a model that rs_run_look gave; who waits for whom is endings.h. Times are in ns
 * before the moment at which the rank was last seen alive, which is now for a living one.
 */
#ifndef RS_STATUS_STATUS_H
#define RS_STATUS_STATUS_H

#include "analyses/endings.h"
#include "model.h"

G_BEGIN_DECLS

#define RS_STATUS_SCHEMA_VERSION 1

/* A wait this long is told as a hang: shorter ones come and go in every run. */
#define RS_STATUS_STUCK_NS 1000000000

typedef struct {
    guint32 call;     /* the innermost call it is in, RS_NONE */
    gint64 call_ns;   /* for so long */
    guint32 last;     /* where it is in none: the call it came out of last, RS_NONE */
    gint64 last_ns;   /* so long ago */
    GPtrArray *stack; /* char*, innermost first; NULL not asked for */
} RsRankStatus;

/* How far a rank is on a communicator: the number of its newest collective there. */
typedef struct {
    guint32 comm, number, rank; /* RsComm index, number, RsRank index */
} RsProgressAt;

typedef struct {
    const RsModel *model;
    const gchar *name;
    GArray *progress;    /* RsProgressAt, in order of its fields */
    RsRankStatus *ranks; /* by RsRank index */
    RsWait *waits;       /* by RsRank index */
    gboolean *roots;     /* by RsRank index: others wait for it for long, it for nobody */
    guint n_roots;
    GArray *cycle;    /* guint32 RsRank indices, each waits for the next for long; NULL none */
    gchar *no_stacks; /* why there are none of some rank; NULL where all were read or none asked */
} RsStatus;

/* `model` stays the caller's. */
void rs_status_init(RsStatus *status, const RsModel *model, const gchar *name);
void rs_status_release(RsStatus *status);

/* stacks.c. Reads the native stack of each living rank of this host and user, which stops it for a
 * moment; what can't be read is told in no_stacks. */
void rs_status_read_stacks(RsStatus *status);

/* The longest of the waits for `rank` (RsRank index): who, RS_NONE nobody; and how many wait. */
guint32 rs_status_longest_wait(const RsStatus *status, guint32 rank, guint *ret_n);

/* As JSON by schemas/status.schema.json, as text. Returned: free it. */
gchar *rs_status_json(const RsStatus *status);
/* `each`: a line for each rank, else ranks in the same call share one. */
gchar *rs_status_text(const RsStatus *status, gboolean each);

G_END_DECLS
#endif
