/* SPDX-License-Identifier: Apache-2.0 */
#include "details.h"
#include "escape.h"
#include "window-internal.h"

#define SIDE_PX      320
#define WARNINGS_MAX 50

static GtkWidget *label_new(const gchar *text, const gchar *style)
{
    GtkWidget *label = gtk_label_new(text);
    gtk_label_set_xalign(GTK_LABEL(label), 0);
    gtk_label_set_yalign(GTK_LABEL(label), 0);
    gtk_label_set_line_wrap(GTK_LABEL(label), TRUE);
    gtk_label_set_line_wrap_mode(GTK_LABEL(label), PANGO_WRAP_WORD_CHAR);
    gtk_label_set_max_width_chars(GTK_LABEL(label), 30);
    if (style)
        gtk_style_context_add_class(gtk_widget_get_style_context(label), style);
    return label;
}

/* ---- findings ---- */

static void finding_activated(GtkListBox *list, GtkListBoxRow *row, gpointer data)
{
    RsViewer *w = data;
    gint index = gtk_list_box_row_get_index(row);
    if (!w->scene || index >= (gint)w->scene->results->findings->len)
        return;
    if (w->scene->finding == index)
        rs_scene_next_step(w->scene);
    else
        rs_scene_show_finding(w->scene, index);
    rs_window_select(w, RS_NONE, FALSE);
}

static GtkWidget *finding_new(const RsFinding *f)
{
    GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 2);
    g_autofree gchar *title = rs_escape_dup_text(f->title);
    g_autofree gchar *cost = rs_details_dup_finding_cost(f);
    gtk_style_context_add_class(gtk_widget_get_style_context(box), "finding");
    gtk_container_add(GTK_CONTAINER(box), label_new(title, NULL));
    gtk_container_add(GTK_CONTAINER(box), label_new(cost, "soft"));
    return box;
}

void rs_window_fill_findings(RsViewer *w)
{
    const GPtrArray *findings = w->scene->results->findings;
    for (guint i = 0; i < findings->len; i++)
        gtk_container_add(GTK_CONTAINER(w->findings), finding_new(g_ptr_array_index(findings, i)));
    if (findings->len == 0) {
        GtkWidget *none = label_new("Nothing found that costs this run time.", "soft");
        gtk_style_context_add_class(gtk_widget_get_style_context(none), "finding");
        GtkWidget *row = gtk_list_box_row_new();
        gtk_container_add(GTK_CONTAINER(row), none);
        gtk_list_box_row_set_selectable(GTK_LIST_BOX_ROW(row), FALSE);
        gtk_container_add(GTK_CONTAINER(w->findings), row);
    }
    gtk_widget_show_all(w->findings);
    if (w->scene->finding >= 0)
        gtk_list_box_select_row(
            GTK_LIST_BOX(w->findings),
            gtk_list_box_get_row_at_index(GTK_LIST_BOX(w->findings), w->scene->finding));
}

/* ---- details ---- */

static void destroy(GtkWidget *child, gpointer data)
{
    gtk_widget_destroy(child);
}

static void clear(GtkWidget *container)
{
    gtk_container_foreach(GTK_CONTAINER(container), destroy, NULL);
}

static void attach(RsViewer *w, gint line, const gchar *key, const gchar *value)
{
    GtkWidget *text = label_new(value, NULL);
    gtk_label_set_selectable(GTK_LABEL(text), TRUE);
    gtk_widget_set_can_focus(text, FALSE); /* keys stay with the timeline */
    gtk_widget_set_hexpand(text, TRUE);
    if (key) {
        gtk_grid_attach(GTK_GRID(w->details), label_new(key, "soft"), 0, line, 1, 1);
        gtk_grid_attach(GTK_GRID(w->details), text, 1, line, 1, 1);
    } else {
        gtk_grid_attach(GTK_GRID(w->details), text, 0, line, 2, 1);
    }
}

static void fill_finding(RsViewer *w, const RsFinding *f)
{
    gint line = 0;
    for (guint i = 0; i < f->evidence->len; i++) {
        g_autofree gchar *text = rs_escape_dup_text(g_ptr_array_index(f->evidence, i));
        attach(w, line++, NULL, text);
    }
    g_autofree gchar *remedy = rs_escape_dup_text(f->remedy);
    g_autofree gchar *confidence = g_strdup_printf("%.0f %%", f->confidence * 100);
    attach(w, line++, "confidence", confidence);
    attach(w, line++, "remedy", remedy);
}

/* Nothing is looked at: what to do, and why the picture is not whole. */
static void fill_hint(RsViewer *w)
{
    g_autoptr(GPtrArray) warnings = rs_details_warnings(w->scene);
    attach(w, 0, NULL, "Click a slice to see what it is, or a finding to see where it shows.");
    for (guint i = 0; i < MIN(warnings->len, WARNINGS_MAX); i++)
        attach(w, (gint)i + 1, "warning", g_ptr_array_index(warnings, i));
    g_autofree gchar *more = g_strdup_printf("and %u more", warnings->len - WARNINGS_MAX);
    if (warnings->len > WARNINGS_MAX)
        attach(w, WARNINGS_MAX + 1, "", more);
}

void rs_window_fill_details(RsViewer *w)
{
    RsScene *s = w->scene;
    clear(w->details);
    g_autoptr(GPtrArray) all = rs_details_of_event(s, s->selected);
    for (guint i = 0; i < all->len; i++) {
        const RsDetail *d = g_ptr_array_index(all, i);
        attach(w, (gint)i, d->key, d->value);
    }
    if (all->len == 0 && s->finding >= 0)
        fill_finding(w, g_ptr_array_index(s->results->findings, (guint)s->finding));
    else if (all->len == 0)
        fill_hint(w);
    gtk_widget_show_all(w->details);
}

/* ---- search ---- */

void rs_window_search_next(RsViewer *w, gboolean backwards)
{
    const gchar *text = gtk_entry_get_text(GTK_ENTRY(w->search));
    guint32 event = w->scene ? rs_scene_find(w->scene, text, backwards) : RS_NONE;
    gtk_label_set_text(GTK_LABEL(w->count), *text && event == RS_NONE ? "not found" : "");
    if (event != RS_NONE)
        rs_window_select(w, event, TRUE);
}

static void search_activated(GtkEntry *entry, gpointer data)
{
    rs_window_search_next(data, FALSE);
}

void rs_window_connect_search(RsViewer *w)
{
    g_signal_connect(w->search, "activate", G_CALLBACK(search_activated), w);
}

/* ---- both ---- */

static GtkWidget *section_new(const gchar *title, GtkWidget *inside)
{
    GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 6);
    GtkWidget *scrolled = gtk_scrolled_window_new(NULL, NULL);
    gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(scrolled), GTK_POLICY_NEVER,
                                   GTK_POLICY_AUTOMATIC);
    gtk_container_add(GTK_CONTAINER(scrolled), inside);
    GtkWidget *heading = label_new(title, "heading");
    gtk_widget_set_margin_start(heading, 10);
    gtk_widget_set_margin_top(heading, 10);
    gtk_box_pack_start(GTK_BOX(box), heading, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(box), scrolled, TRUE, TRUE, 0);
    return box;
}

GtkWidget *rs_window_side_new(RsViewer *w)
{
    GtkWidget *side = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
    gtk_widget_set_size_request(side, SIDE_PX, -1);
    gtk_style_context_add_class(gtk_widget_get_style_context(side), "side");
    w->findings = gtk_list_box_new();
    g_signal_connect(w->findings, "row-activated", G_CALLBACK(finding_activated), w);
    w->details = gtk_grid_new();
    gtk_grid_set_column_spacing(GTK_GRID(w->details), 10);
    gtk_grid_set_row_spacing(GTK_GRID(w->details), 4);
    gtk_container_set_border_width(GTK_CONTAINER(w->details), 10);
    gtk_box_pack_start(GTK_BOX(side), section_new("Findings", w->findings), TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(side), gtk_separator_new(GTK_ORIENTATION_HORIZONTAL), FALSE, FALSE,
                       0);
    gtk_box_pack_start(GTK_BOX(side), section_new("Selection", w->details), TRUE, TRUE, 0);
    return side;
}
