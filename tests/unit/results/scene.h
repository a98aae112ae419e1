/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scene.h - small runs, event by event, with times in microseconds: tests whose arithmetic a reader
 * can do in the head.
 *
 * Every rank has one main thread; threads and device streams are added where a test needs them.
 */
#ifndef RS_TESTS_SCENE_H
#define RS_TESTS_SCENE_H

#include "analysis.h"
#include "model-builder.h"

G_BEGIN_DECLS

#define SCENE_RANKS_MAX 16

typedef struct {
    RsBuilder *b;
    guint n_ranks;
    guint32 process[SCENE_RANKS_MAX], main[SCENE_RANKS_MAX], other[SCENE_RANKS_MAX],
        device[SCENE_RANKS_MAX];
    guint32 world, nccl;
    guint64 request;
} Scene;

/* `n_ranks` ranks, in blocks on `n_hosts` hosts of one clock; a communicator "world" over all. */
void scene_init(Scene *s, guint n_ranks, guint n_hosts);
/* Ends the scene. */
RsModel *scene_finish(Scene *s);

/* On the main thread, in the default domain. */
void scene_range(Scene *s, guint rank, const gchar *name, guint depth, gdouble from_us,
                 gdouble to_us);
/* A call that no table knows further: klass says what it is. */
void scene_call(Scene *s, guint rank, const gchar *name, enum rs_op_class klass, gdouble from_us,
                gdouble to_us);
void scene_io(Scene *s, guint rank, gdouble from_us, gdouble to_us);
void scene_kernel(Scene *s, guint rank, gdouble from_us, gdouble to_us);
/* Number `seq` on world, of `count` floats; thread 0 main, 1 another host thread. */
void scene_collective(Scene *s, guint rank, enum rs_coll coll, guint32 seq, guint64 count,
                      gint thread, gdouble from_us, gdouble to_us);
/* The same, but nonblocking, and completed by nothing. */
void scene_nonblocking(Scene *s, guint rank, guint32 seq, gdouble from_us, gdouble to_us);
/* NCCL's call, and its device interval unless to_us <= from_us. */
void scene_nccl(Scene *s, guint rank, enum rs_coll coll, guint32 seq, guint64 count,
                gdouble call_us, gdouble from_us, gdouble to_us);
/* A span NEGOTIATE_ALLREDUCE of `tensor`. */
void scene_negotiate(Scene *s, guint rank, const gchar *tensor, gdouble from_us, gdouble to_us);
/* A blocking send on `src` and receive on `dst`. */
void scene_message(Scene *s, guint src, guint dst, guint64 bytes, gdouble send_us, gdouble recv_us,
                   gdouble end_us);

/* Calls that never ended: a collective as above, a receive from rank `src`. */
void scene_open_collective(Scene *s, guint rank, enum rs_coll coll, guint32 seq, gdouble from_us,
                           gdouble to_us);
void scene_open_receive(Scene *s, guint rank, guint src, gdouble from_us, gdouble to_us);
/* How the rank ended, and when it was last seen alive. */
void scene_end(Scene *s, guint rank, RsEnding ending, gdouble at_us);

/* The finding of `kind` number `index`, NULL where there are fewer. */
const RsFinding *scene_finding(const RsResults *results, const gchar *kind, guint index);
const RsBreakdown *scene_breakdown(const RsResults *results, guint rank, guint32 step);
/* The reason why `analysis` is not applicable, NULL where it is. */
const gchar *scene_reason(const RsResults *results, const gchar *analysis);
/* FALSE for NAN on one side only, or a difference. */
gboolean scene_same_results(const RsResults *a, const RsResults *b);

G_END_DECLS
#endif
