/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endings.h - how ranks ended, what they were in, and for whom they waited then.
 *
 * Rule: a rank waits for those that its innermost open call can't go on without: the members absent
 * from its collective, the peer of its send, receive or probe; in a completion call, those of the
 * receives and collectives that it had started and that nothing completed. Of a member whose
 * capture is missing, cut, or lacks events, absence says nothing.
 */
#ifndef RS_ANALYSES_ENDINGS_H
#define RS_ANALYSES_ENDINGS_H

#include "model.h"

G_BEGIN_DECLS

/* A rank lives on after it was last seen alive: 0.1 s at most, longer where its processor is busy.
 */
#define RS_ALIVE_SEEN_NS 500000000

typedef struct {
    guint32 event;   /* the call it is in, RS_NONE */
    GArray *targets; /* guint32 RsRank indices, each once; empty: for nobody that is known */
} RsWait;

/* By RsRank index. Free with rs_waits_free. */
RsWait *rs_waits_new(const RsModel *model);
void rs_waits_free(RsWait *waits, guint32 n);
/* Marks in `named` (by RsRank index) those for whom others wait while they wait for nobody; returns
 * how many. One that polls may wait for anybody and is left out, unless it is `first` (RS_NONE
 * none), which is known to have stopped before all others. */
guint rs_waits_find_roots(const RsModel *model, const RsWait *waits, guint32 first,
                          gboolean *named);
/* Ranks (RsRank indices) of which each waits for the next, the last for the first; NULL where there
 * are none. */
GArray *rs_waits_find_cycle(const RsModel *model, const RsWait *waits);

/* "clean", "exited", "aborted", "killed", "unknown": as in the table enum_ending. */
const gchar *rs_ending_name(RsEnding ending);
/* "was killed at 1.234 s in MPI_Recv from rank 3". Returned: free it. */
gchar *rs_ending_dup_text(const RsModel *model, guint32 rank);
/* "MPI_Barrier, number 7 on MPI_COMM_WORLD", "MPI_Recv from rank 3". Returned: free it. */
gchar *rs_ending_dup_call(const RsModel *model, guint32 event);
/* Whether what the rank did not record it did not do. */
gboolean rs_ending_is_whole(const RsModel *model, guint32 rank);
/* Up to when the members that are still in an instance wait for others: G_MAXINT64 where somebody
 * never came, -1 where nobody knows. */
gint64 rs_ending_gathered_ns(const RsModel *model, const RsInstance *instance);
/* Exited in a call or without MPI_Finalize, aborted, killed: not as its program ends. */
gboolean rs_ending_is_early(const RsRank *rank);
/* Whether another tool's trace tells of it, which ends where the profiler was stopped. */
gboolean rs_ending_is_of_trace(const RsModel *m, const RsRank *rank);
gboolean rs_ending_any_early(const RsModel *model);

G_END_DECLS
#endif
