/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "details.h"
#include "window-internal.h"

#define ZOOM_STEP 1.25
#define DRAG_PX   4
#define SCROLL_PX 60
#define PAN_SHARE 0.1 /* of the view */

/* ---- pointer ---- */

static gboolean pressed(GtkWidget *area, GdkEventButton *event, gpointer data)
{
    RsViewer *w = data;
    gtk_widget_grab_focus(area);
    if (event->button != 1 || !w->scene)
        return FALSE;
    w->pressed = TRUE;
    w->dragged = FALSE;
    w->press_x = w->last_x = event->x;
    w->press_y = w->last_y = event->y;
    return TRUE;
}

static void drag(RsViewer *w, gdouble x, gdouble y)
{
    RsScene *s = w->scene;
    if (!w->dragged && hypot(x - w->press_x, y - w->press_y) < DRAG_PX)
        return;
    w->dragged = TRUE;
    rs_axis_pan(&s->axis, w->last_x - x);
    rs_scene_scroll_to(s, s->scroll_px + (gint)(w->last_y - y));
    w->last_x = x;
    w->last_y = y;
    rs_window_changed(w);
}

static gboolean moved(GtkWidget *area, GdkEventMotion *event, gpointer data)
{
    RsViewer *w = data;
    if (!w->scene)
        return FALSE;
    w->scene->pointer_x = (gint)event->x;
    if (w->pressed) {
        drag(w, event->x, event->y);
    } else {
        guint32 hover = rs_scene_event_at(w->scene, event->x, event->y);
        w->scene->hover = hover;
    }
    gtk_widget_queue_draw(area);
    return TRUE;
}

static void click(RsViewer *w, gdouble x, gdouble y)
{
    guint32 line = rs_scene_line_at(w->scene, x, y);
    guint32 event = rs_scene_event_at(w->scene, x, y);
    gboolean heading =
        line != RS_NONE && rs_layout_line(&w->scene->layout, line)->kind != RS_LINE_ROW;
    if (event == RS_NONE && heading) {
        rs_layout_toggle(&w->scene->layout, line);
        rs_window_changed(w);
    } else {
        rs_window_select(w, event, FALSE);
    }
}

static gboolean released(GtkWidget *area, GdkEventButton *event, gpointer data)
{
    RsViewer *w = data;
    if (event->button != 1 || !w->pressed || !w->scene)
        return FALSE;
    w->pressed = FALSE;
    if (!w->dragged)
        click(w, event->x, event->y);
    return TRUE;
}

static gboolean left(GtkWidget *area, GdkEventCrossing *event, gpointer data)
{
    RsViewer *w = data;
    if (!w->scene)
        return FALSE;
    w->scene->pointer_x = -1;
    w->scene->hover = RS_NONE;
    gtk_widget_queue_draw(area);
    return FALSE;
}

static void scroll_deltas(const GdkEventScroll *event, gdouble *dx, gdouble *dy)
{
    *dx = event->direction == GDK_SCROLL_RIGHT ? 1 : event->direction == GDK_SCROLL_LEFT ? -1 : 0;
    *dy = event->direction == GDK_SCROLL_DOWN ? 1 : event->direction == GDK_SCROLL_UP ? -1 : 0;
    if (event->direction == GDK_SCROLL_SMOOTH) {
        *dx = event->delta_x;
        *dy = event->delta_y;
    }
}

static gboolean wheel(GtkWidget *area, GdkEventScroll *event, gpointer data)
{
    RsViewer *w = data;
    gdouble dx, dy;
    if (!w->scene)
        return FALSE;
    scroll_deltas(event, &dx, &dy);
    if (event->state & GDK_CONTROL_MASK) {
        rs_scene_zoom(w->scene, pow(ZOOM_STEP, -dy), event->x);
    } else {
        gdouble along = event->state & GDK_SHIFT_MASK ? dx + dy : dx;
        gdouble down = event->state & GDK_SHIFT_MASK ? 0 : dy;
        rs_axis_pan(&w->scene->axis, along * w->scene->axis.width_px * PAN_SHARE);
        rs_scene_scroll_to(w->scene, w->scene->scroll_px + (gint)(down * SCROLL_PX));
    }
    rs_window_changed(w);
    return TRUE;
}

static gboolean tooltip(GtkWidget *area, gint x, gint y, gboolean keyboard, GtkTooltip *tip,
                        gpointer data)
{
    RsViewer *w = data;
    guint32 event = w->scene && !keyboard ? rs_scene_event_at(w->scene, x, y) : RS_NONE;
    if (event == RS_NONE)
        return FALSE;
    g_autofree gchar *text = rs_details_dup_tooltip(w->scene, event);
    GdkRectangle box = {x - 4, y - 4, 8, 8};
    gtk_tooltip_set_text(tip, text);
    gtk_tooltip_set_tip_area(tip, &box);
    return TRUE;
}

/* ---- keys ---- */

/* About the pointer where it is over the picture, else about its middle. */
static void zoom_key(RsViewer *w, gdouble factor)
{
    gint x = w->scene->pointer_x;
    if (x < RS_SCENE_GUTTER_PX)
        x = RS_SCENE_GUTTER_PX + w->scene->axis.width_px / 2;
    rs_scene_zoom(w->scene, factor, x);
}

static void move_selection(RsViewer *w, gint dx)
{
    guint32 next = rs_scene_neighbour(w->scene, dx);
    if (next != RS_NONE)
        rs_window_select(w, next, TRUE);
    else
        rs_axis_pan(&w->scene->axis, dx * w->scene->axis.width_px * PAN_SHARE);
}

static void close_all(RsScene *s)
{
    gboolean any_open = FALSE;
    for (guint i = 0; i < s->model->ranks->len; i++)
        any_open = any_open || !s->layout.rank_closed[i];
    rs_layout_close_all(&s->layout, any_open);
}

static gboolean view_key(RsViewer *w, guint key)
{
    RsScene *s = w->scene;
    gdouble step = s->axis.width_px * PAN_SHARE;
    gint page = (gint)(rs_scene_body_px(s) * 0.9);
    switch (key) {
    case GDK_KEY_plus:
    case GDK_KEY_equal:
    case GDK_KEY_KP_Add:
    case GDK_KEY_w:
        zoom_key(w, ZOOM_STEP);
        return TRUE;
    case GDK_KEY_minus:
    case GDK_KEY_KP_Subtract:
    case GDK_KEY_s:
        zoom_key(w, 1 / ZOOM_STEP);
        return TRUE;
    case GDK_KEY_a:
        rs_axis_pan(&s->axis, -step);
        return TRUE;
    case GDK_KEY_d:
        rs_axis_pan(&s->axis, step);
        return TRUE;
    case GDK_KEY_0:
    case GDK_KEY_KP_0:
    case GDK_KEY_Home:
        rs_axis_fit(&s->axis);
        return TRUE;
    case GDK_KEY_Up:
        rs_scene_scroll_to(s, s->scroll_px - SCROLL_PX);
        return TRUE;
    case GDK_KEY_Down:
        rs_scene_scroll_to(s, s->scroll_px + SCROLL_PX);
        return TRUE;
    case GDK_KEY_Page_Up:
        rs_scene_scroll_to(s, s->scroll_px - page);
        return TRUE;
    case GDK_KEY_Page_Down:
        rs_scene_scroll_to(s, s->scroll_px + page);
        return TRUE;
    default:
        return FALSE;
    }
}

static gboolean selection_key(RsViewer *w, guint key)
{
    switch (key) {
    case GDK_KEY_f:
        rs_scene_focus(w->scene);
        return TRUE;
    case GDK_KEY_c:
        close_all(w->scene);
        return TRUE;
    case GDK_KEY_period:
        rs_scene_next_step(w->scene);
        return TRUE;
    case GDK_KEY_t:
        rs_layout_open_spans(&w->scene->layout, !w->scene->layout.spans_open);
        return TRUE;
    case GDK_KEY_Left:
        move_selection(w, -1);
        return TRUE;
    case GDK_KEY_Right:
        move_selection(w, 1);
        return TRUE;
    case GDK_KEY_Escape:
        rs_scene_show_finding(w->scene, -1);
        gtk_list_box_unselect_all(GTK_LIST_BOX(w->findings));
        rs_window_select(w, RS_NONE, FALSE);
        return TRUE;
    case GDK_KEY_n:
        rs_window_search_next(w, FALSE);
        return TRUE;
    case GDK_KEY_N:
        rs_window_search_next(w, TRUE);
        return TRUE;
    case GDK_KEY_question:
        rs_window_show_help(w);
        return TRUE;
    default:
        return FALSE;
    }
}

static gboolean control_key(RsViewer *w, guint key)
{
    if (key == GDK_KEY_f || key == GDK_KEY_F)
        gtk_widget_grab_focus(w->search);
    else if (key == GDK_KEY_q)
        gtk_widget_destroy(w->window);
    else
        return FALSE;
    return TRUE;
}

static gboolean key(GtkWidget *window, GdkEventKey *event, gpointer data)
{
    RsViewer *w = data;
    gboolean typing = gtk_widget_has_focus(w->search);
    if (event->state & GDK_CONTROL_MASK && control_key(w, event->keyval))
        return TRUE;
    if (typing && event->keyval == GDK_KEY_Escape) {
        gtk_widget_grab_focus(w->area);
        return TRUE;
    }
    if (typing || !w->scene || event->state & (GDK_CONTROL_MASK | GDK_MOD1_MASK))
        return FALSE;
    if (!view_key(w, event->keyval) && !selection_key(w, event->keyval))
        return FALSE;
    rs_window_changed(w);
    return TRUE;
}

void rs_window_connect_input(RsViewer *w)
{
    gtk_widget_add_events(w->area, GDK_BUTTON_PRESS_MASK | GDK_BUTTON_RELEASE_MASK |
                                       GDK_POINTER_MOTION_MASK | GDK_SCROLL_MASK |
                                       GDK_SMOOTH_SCROLL_MASK | GDK_LEAVE_NOTIFY_MASK);
    gtk_widget_set_has_tooltip(w->area, TRUE);
    g_signal_connect(w->area, "query-tooltip", G_CALLBACK(tooltip), w);
    g_signal_connect(w->area, "button-press-event", G_CALLBACK(pressed), w);
    g_signal_connect(w->area, "button-release-event", G_CALLBACK(released), w);
    g_signal_connect(w->area, "motion-notify-event", G_CALLBACK(moved), w);
    g_signal_connect(w->area, "leave-notify-event", G_CALLBACK(left), w);
    g_signal_connect(w->area, "scroll-event", G_CALLBACK(wheel), w);
    g_signal_connect(w->window, "key-press-event", G_CALLBACK(key), w);
}
