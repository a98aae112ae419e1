/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scene.h - one run as it is looked at now: what is in view, selected, pointed at, found.
 *
 * Model: the picture of `width` x `height` pixels has a ruler on top and a gutter with names at the
 * left; the rest shows [scroll_px, ...) of the layout and the axis' part of time. Everything a user
 * can do is a function here, none of which needs a display; the window turns events into calls.
 */
#ifndef RS_VIEWER_SCENE_H
#define RS_VIEWER_SCENE_H

#include "analysis.h"
#include "axis.h"
#include "layout.h"
#include "run.h"

G_BEGIN_DECLS

#define RS_SCENE_GUTTER_PX 176
#define RS_SCENE_RULER_PX  40

typedef struct {
    guint32 event, message;
} RsEventMessage;

typedef struct {
    RsModel *model;     /* owned */
    RsResults *results; /* owned */
    gchar *title;       /* owned: the run's name as given */
    RsRows rows;
    RsLayout layout;
    RsAxis axis;
    gint width, height, scroll_px;
    guint32 selected, hover; /* events, RS_NONE */
    gint pointer_x;          /* -1: not over the picture */
    gint finding;            /* index in results->findings; -1 */
    gint finding_step;       /* index of the step of it that is shown; -1: all of its time */
    guint8 *rank_marked;     /* by RsRank index: of the finding */
    GArray *messages;        /* RsEventMessage by event: who sends, receives, completes what */
} RsScene;

/* Reads and analyses a run; may be called from any thread. `options` as in run.h, may be NULL. NULL
 * and `error` where it is unreadable.
 */
RsScene *rs_scene_open(const gchar *const *paths, const RsRunOptions *options,
                       void (*progress)(gdouble, const gchar *, gpointer), gpointer data,
                       GError **error);
/* Takes `model`. */
RsScene *rs_scene_new(RsModel *model, const gchar *title);
void rs_scene_free(RsScene *scene);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RsScene, rs_scene_free)

void rs_scene_resize(RsScene *scene, gint width, gint height);
/* Height of what the layout is seen through, and how far it can scroll. */
gint rs_scene_body_px(const RsScene *scene);
gint rs_scene_scroll_max(const RsScene *scene);
void rs_scene_scroll_to(RsScene *scene, gint scroll_px);

/* x and y as in the picture. */
void rs_scene_zoom(RsScene *scene, gdouble factor, gdouble x);
guint32 rs_scene_event_at(const RsScene *scene, gdouble x, gdouble y);
guint32 rs_scene_line_at(const RsScene *scene, gdouble x, gdouble y);
/* Where a drawn event lies in the picture; FALSE where its host is closed or it is not drawn. */
gboolean rs_scene_event_box(const RsScene *scene, guint32 event, gdouble *x, gdouble *y,
                            gdouble *width, gdouble *height);

void rs_scene_select(RsScene *scene, guint32 event);
/* Moves, and where it must zooms, until the event is in view; opens its rank. */
void rs_scene_reveal(RsScene *scene, guint32 event);
/* Zooms to the selected event, or else to the finding's time. */
void rs_scene_focus(RsScene *scene);
/* Shows the time and ranks of finding `index` and marks them; -1 marks nothing. */
void rs_scene_show_finding(RsScene *scene, gint index);
/* Zooms to the next step in which the finding that is shown was seen; after the last one, to all of
 * its time. */
void rs_scene_next_step(RsScene *scene);
/* The next event after (backwards: before) the selected one, in order of time, whose name, tensor
 * or communicator contains `text`, whatever the case; starts again at the end. RS_NONE: none. */
guint32 rs_scene_find(const RsScene *scene, const gchar *text, gboolean backwards);
/* The first that begins in the time in view, else the first of all. RS_NONE: none. */
guint32 rs_scene_find_in_view(const RsScene *scene, const gchar *text);
/* The slice before (dx -1) or after (dx 1) the selected one in its row; at the end that one.
 * RS_NONE: nothing is selected. */
guint32 rs_scene_neighbour(const RsScene *scene, gint dx);

/* Messages of an event: [first, last) in scene->messages. */
void rs_scene_messages_of(const RsScene *scene, guint32 event, guint *first, guint *last);
/* One line: ranks, time, clock, what is missing. Returned: free it. */
gchar *rs_scene_dup_status(const RsScene *scene);
/* The finding's ranks and hosts are those of `rank`. */
gboolean rs_scene_finding_has_rank(const RsScene *scene, const RsFinding *finding, guint32 rank);

G_END_DECLS
#endif
