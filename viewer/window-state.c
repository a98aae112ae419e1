/* SPDX-License-Identifier: Apache-2.0 */
#include "escape.h"
#include "window-internal.h"

static void origin_of(GtkWidget *widget, gint *x, gint *y)
{
    GtkWidget *top = gtk_widget_get_toplevel(widget);
    gint left = 0, up = 0;
    gtk_widget_translate_coordinates(widget, top, 0, 0, x, y);
    if (gtk_widget_get_window(top))
        gdk_window_get_origin(gtk_widget_get_window(top), &left, &up);
    *x += left;
    *y += up;
}

static void add_view(const RsViewer *w, GString *out)
{
    const RsScene *s = w->scene;
    gint x, y;
    origin_of(w->area, &x, &y);
    g_string_append_printf(out, "frames %u\narea %d %d %d %d\ngutter %d\nruler %d\n", w->frames, x,
                           y, s->width, s->height, RS_SCENE_GUTTER_PX, RS_SCENE_RULER_PX);
    g_string_append_printf(out, "from_ns %.0f\nto_ns %.0f\nscroll %d %d\nlines %u\n",
                           s->axis.from_ns, rs_axis_to_ns(&s->axis), s->scroll_px,
                           rs_scene_scroll_max(s), s->layout.lines->len);
    if (s->pointer_x >= RS_SCENE_GUTTER_PX)
        g_string_append_printf(out, "pointer_ns %.0f\n",
                               rs_axis_time(&s->axis, s->pointer_x - RS_SCENE_GUTTER_PX));
}

static void add_event(const RsViewer *w, GString *out, const gchar *key, guint32 event)
{
    const RsScene *s = w->scene;
    gdouble x = -1, y = -1, width = 0, height = 0;
    gint left, up;
    if (event == RS_NONE)
        return;
    origin_of(w->area, &left, &up);
    rs_scene_event_box(s, event, &x, &y, &width, &height);
    g_string_append_printf(out, "%s %u %d %.0f %.0f %.0f %.0f ", key, event,
                           rs_model_rank(s->model, rs_model_rank_of(s->model, event))->rank,
                           x + left, y + up, width, height);
    rs_escape_text(out, rs_model_str(s->model, rs_model_sig(s->model, event)->name));
    g_string_append_c(out, '\n');
}

static void add_findings(const RsViewer *w, GString *out)
{
    const RsScene *s = w->scene;
    g_string_append_printf(out, "finding %d\n", s->finding);
    for (guint i = 0; i < s->results->findings->len; i++) {
        const RsFinding *f = g_ptr_array_index(s->results->findings, i);
        GtkWidget *row =
            GTK_WIDGET(gtk_list_box_get_row_at_index(GTK_LIST_BOX(w->findings), (gint)i));
        gint x = 0, y = 0;
        origin_of(row, &x, &y);
        g_string_append_printf(out, "finding_at %u %d %d %.0f %.0f %s\n", i, x + 40, y + 12,
                               f->t_start_s * 1e9, f->t_end_s * 1e9, f->kind);
    }
    g_string_append(out, "marked");
    for (guint i = 0; i < s->model->ranks->len; i++)
        if (s->rank_marked[i])
            g_string_append_printf(out, " %d", rs_model_rank(s->model, i)->rank);
    g_string_append_c(out, '\n');
}

void rs_window_write_state(RsViewer *w)
{
    if (!w->options->state_file)
        return;
    g_autoptr(GString) out = g_string_new(NULL);
    add_view(w, out);
    add_event(w, out, "selected", w->scene->selected);
    add_event(w, out, "hover", w->scene->hover);
    add_findings(w, out);
    g_string_append_printf(out, "search_focus %d\n", gtk_widget_has_focus(w->search));
    g_file_set_contents(w->options->state_file, out->str, (gssize)out->len, NULL);
}
