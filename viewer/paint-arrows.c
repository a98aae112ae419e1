/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "paint.h"

#define HEAD_PX 6

/* Where time `ns` of the event's row is; FALSE where the event is not drawn. */
static gboolean point_of(const RsScene *s, guint32 event, gint64 ns, gdouble *x, gdouble *y)
{
    gdouble left, top, width, height;
    if (event == RS_NONE || !rs_scene_event_box(s, event, &left, &top, &width, &height))
        return FALSE;
    *x = rs_axis_px(&s->axis, ns) + RS_SCENE_GUTTER_PX;
    *y = top + height / 2;
    return TRUE;
}

static void stroke(RsPen *pen, gdouble x0, gdouble y0, gdouble x1, gdouble y1, guint32 rgb,
                   gdouble width)
{
    gdouble bend = CLAMP(fabs(x1 - x0) / 2, 12, 60), direction = x1 >= x0 ? 1 : -1;
    rs_pen_ink(pen, rgb);
    cairo_set_line_width(pen->cr, width);
    cairo_move_to(pen->cr, x0, y0);
    cairo_curve_to(pen->cr, x0 + bend * direction, y0, x1 - bend, y1, x1, y1);
    cairo_stroke(pen->cr);
    cairo_move_to(pen->cr, x1, y1);
    cairo_line_to(pen->cr, x1 - HEAD_PX - width, y1 - HEAD_PX / 2.0);
    cairo_line_to(pen->cr, x1 - HEAD_PX - width, y1 + HEAD_PX / 2.0);
    cairo_close_path(pen->cr);
    cairo_fill(pen->cr);
}

/* A light border keeps the arrow visible on slices of any colour. Ends far outside are drawn at the
 * border: cairo's coordinates are not for nanoseconds a week away. */
static void arrow(RsPen *pen, const RsScene *s, gdouble x0, gdouble y0, gdouble x1, gdouble y1)
{
    gdouble far = s->width * 2.0;
    x0 = CLAMP(x0, -far, far);
    x1 = CLAMP(x1, -far, far);
    stroke(pen, x0, y0, x1, y1, RS_PAPER, 3.5);
    stroke(pen, x0, y0, x1, y1, RS_INK, 1.5);
}

static void paint_message(const RsScene *s, RsPen *pen, const RsMessage *m)
{
    gdouble x0, y0, x1, y1;
    guint32 done = m->recv;
    if (done != RS_NONE && rs_model_sig(s->model, done)->klass == RS_CLASS_RECV_START &&
        s->model->events.link[done] != RS_NONE)
        done = s->model->events.link[done];
    if (m->send == RS_NONE || done == RS_NONE)
        return;
    if (point_of(s, m->send, s->model->events.start_ns[m->send], &x0, &y0) &&
        point_of(s, done, m->end_ns, &x1, &y1))
        arrow(pen, s, x0, y0, x1, y1);
}

/* From the last to arrive, when it did, to the others, which had waited until then. */
static void paint_instance(const RsScene *s, RsPen *pen, const RsInstance *in)
{
    const RsModel *m = s->model;
    guint32 n = g_array_index(m->comms, RsComm, in->comm).n_members, from = RS_NONE;
    const guint32 *members = &g_array_index(m->member_events, guint32, in->first_member);
    gdouble x0, y0, x1, y1;
    for (guint32 i = 0; i < n && from == RS_NONE; i++)
        if (members[i] != RS_NONE && rs_model_rank_of(m, members[i]) == in->last_rank)
            from = members[i];
    if (!in->timed || !point_of(s, from, in->last_arrival_ns, &x0, &y0))
        return;
    for (guint32 i = 0; i < n; i++)
        if (members[i] != from && point_of(s, members[i], in->last_arrival_ns, &x1, &y1))
            arrow(pen, s, x0, y0, x1, y1);
}

void rs_paint_arrows(const RsScene *s, RsPen *pen)
{
    guint first, last;
    if (s->selected == RS_NONE)
        return;
    rs_scene_messages_of(s, s->selected, &first, &last);
    for (guint i = first; i < last; i++)
        paint_message(s, pen,
                      &g_array_index(s->model->messages, RsMessage,
                                     g_array_index(s->messages, RsEventMessage, i).message));
    guint32 instance = s->rows.instance_of[s->selected];
    if (instance != RS_NONE)
        paint_instance(s, pen, &g_array_index(s->model->instances, RsInstance, instance));
}
