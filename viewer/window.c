/* SPDX-License-Identifier: Apache-2.0 */
#include "window.h"

#include <stdio.h>

#include "details.h"
#include "escape.h"
#include "paint.h"
#include "window-internal.h"

#define LEGEND_PX     700
#define BAR_PX        34
#define ZOOM_STEP     1.5
#define EXIT_UNUSABLE 2

/* ---- drawing ---- */

static gboolean draw_area(GtkWidget *area, cairo_t *cr, gpointer data)
{
    RsViewer *w = data;
    if (!w->scene)
        return FALSE;
    rs_paint_scene(w->scene, cr);
    w->frames++;
    rs_window_write_state(w);
    return FALSE;
}

static gboolean draw_legend(GtkWidget *legend, cairo_t *cr, gpointer data)
{
    RsViewer *w = data;
    if (!w->scene)
        return FALSE;
    RsPen pen;
    rs_pen_init(&pen, cr);
    rs_paint_legend(w->scene, &pen, 0, gtk_widget_get_allocated_height(legend) / 2.0);
    rs_pen_release(&pen);
    return FALSE;
}

static void resized(GtkWidget *area, GdkRectangle *box, gpointer data)
{
    RsViewer *w = data;
    if (!w->scene)
        return;
    rs_scene_resize(w->scene, box->width, box->height);
    rs_window_changed(w);
}

static void scrolled(GtkAdjustment *adjustment, gpointer data)
{
    RsViewer *w = data;
    if (!w->scene)
        return;
    rs_scene_scroll_to(w->scene, (gint)gtk_adjustment_get_value(adjustment));
    gtk_widget_queue_draw(w->area);
}

void rs_window_changed(RsViewer *w)
{
    RsScene *s = w->scene;
    if (!s)
        return;
    rs_scene_scroll_to(s, s->scroll_px);
    gint body = rs_scene_body_px(s);
    gtk_adjustment_configure(w->adjustment, s->scroll_px, 0, MAX(s->layout.height, body), 40,
                             body * 0.9, body);
    gtk_widget_queue_draw(w->area);
}

void rs_window_select(RsViewer *w, guint32 event, gboolean reveal)
{
    rs_scene_select(w->scene, event);
    if (reveal)
        rs_scene_reveal(w->scene, event);
    rs_window_fill_details(w);
    rs_window_changed(w);
}

/* ---- help ---- */

void rs_window_show_help(RsViewer *w)
{
    static const gchar *const keys[][2] = {
        {"Zoom", "ctrl + wheel, + and \u2212, w and s: about the pointer"},
        {"Pan", "drag, shift + wheel, a and d"},
        {"Scroll", "wheel, \u2191 and \u2193, page keys"},
        {"Show all", "0 or Home"},
        {"Select", "click; \u2190 and \u2192 go on in its row; Esc lets go"},
        {"Fit selection", "f"},
        {"Hosts, ranks", "click a name to open or close; c for all"},
        {"Tensor phases", "t: thin rows or high ones with names"},
        {"Search", "ctrl + F; Enter or n: next; N: the one before"},
        {"Findings", "click one to see when and where; click again or . for each of its steps"},
        {"Close", "ctrl + Q"},
    };
    GtkWidget *dialog = gtk_message_dialog_new(GTK_WINDOW(w->window),
                                               GTK_DIALOG_MODAL | GTK_DIALOG_DESTROY_WITH_PARENT,
                                               GTK_MESSAGE_OTHER, GTK_BUTTONS_CLOSE, NULL);
    gtk_message_dialog_set_markup(GTK_MESSAGE_DIALOG(dialog), "<big><b>Keys and pointer</b></big>");
    gtk_window_set_title(GTK_WINDOW(dialog), "Keys and pointer");
    GtkWidget *grid = gtk_grid_new();
    gtk_grid_set_column_spacing(GTK_GRID(grid), 16);
    gtk_grid_set_row_spacing(GTK_GRID(grid), 4);
    for (gint i = 0; i < (gint)G_N_ELEMENTS(keys); i++) {
        g_autofree gchar *bold = g_markup_printf_escaped("<b>%s</b>", keys[i][0]);
        GtkWidget *name = gtk_label_new(NULL), *what = gtk_label_new(keys[i][1]);
        gtk_label_set_markup(GTK_LABEL(name), bold);
        gtk_label_set_xalign(GTK_LABEL(name), 0);
        gtk_label_set_xalign(GTK_LABEL(what), 0);
        gtk_grid_attach(GTK_GRID(grid), name, 0, i, 1, 1);
        gtk_grid_attach(GTK_GRID(grid), what, 1, i, 1, 1);
    }
    gtk_container_add(
        GTK_CONTAINER(gtk_message_dialog_get_message_area(GTK_MESSAGE_DIALOG(dialog))), grid);
    g_signal_connect(dialog, "response", G_CALLBACK(gtk_widget_destroy), NULL);
    gtk_widget_show_all(dialog);
}

/* ---- reading the run ---- */

typedef struct {
    RsViewer *w;
    gdouble share;
    gchar *what;
} Progress;

static gboolean show_progress(gpointer data)
{
    Progress *p = data;
    gtk_progress_bar_set_fraction(GTK_PROGRESS_BAR(p->w->progress), CLAMP(p->share, 0, 1));
    gtk_progress_bar_set_text(GTK_PROGRESS_BAR(p->w->progress), p->what);
    g_free(p->what);
    g_free(p);
    return G_SOURCE_REMOVE;
}

/* In the reader's thread: widgets belong to the main one. */
static void on_progress(gdouble share, const gchar *what, gpointer data)
{
    Progress *p = g_new(Progress, 1);
    *p = (Progress){data, share, g_strdup(what)};
    g_idle_add(show_progress, p);
}

static void read_run(GTask *task, gpointer source, gpointer data, GCancellable *cancel)
{
    RsViewer *w = data;
    GError *error = NULL;
    RsScene *scene = rs_scene_open(w->options->paths, w->options->run, on_progress, w, &error);
    if (scene)
        g_task_return_pointer(task, scene, (GDestroyNotify)rs_scene_free);
    else
        g_task_return_error(task, error);
}

/* A modal message, and the same on stderr for who started us there. */
static GtkWidget *show_message(RsViewer *w, GtkMessageType type, const gchar *title,
                               const gchar *what, const GError *error)
{
    g_autofree gchar *text = rs_escape_dup_text(error->message); /* names path or option itself */
    fprintf(stderr, "ringscope-viewer: %s\n", text);
    GtkWidget *dialog = gtk_message_dialog_new(GTK_WINDOW(w->window),
                                               GTK_DIALOG_MODAL | GTK_DIALOG_DESTROY_WITH_PARENT,
                                               type, GTK_BUTTONS_CLOSE, "%s", what);
    gtk_window_set_title(GTK_WINDOW(dialog), title);
    gtk_message_dialog_format_secondary_text(GTK_MESSAGE_DIALOG(dialog), "%s", text);
    gtk_widget_show_all(dialog);
    return dialog;
}

static void show_unreadable(RsViewer *w, const GError *error)
{
    w->status = EXIT_UNUSABLE;
    GtkWidget *dialog =
        show_message(w, GTK_MESSAGE_ERROR, "Unreadable run", "This run can't be shown", error);
    g_signal_connect(dialog, "response", G_CALLBACK(gtk_main_quit), NULL);
}

/* The run is there, what was asked for is not: it is told, and the whole run is shown. */
static void show_wanted(RsViewer *w)
{
    g_autoptr(GError) error = NULL;
    if (rs_wanted_show(w->options->wanted, w->scene, &error))
        return;
    GtkWidget *dialog = show_message(w, GTK_MESSAGE_WARNING, "Not in this run",
                                     "What was asked for is not in this run", error);
    g_signal_connect(dialog, "response", G_CALLBACK(gtk_widget_destroy), NULL);
}

static void show_status(RsViewer *w)
{
    g_autofree gchar *status = rs_scene_dup_status(w->scene);
    g_autoptr(GPtrArray) warnings = rs_details_warnings(w->scene);
    gtk_label_set_text(GTK_LABEL(w->status_label), status);
    if (warnings->len == 0)
        return;
    g_ptr_array_add(warnings, NULL);
    g_autofree gchar *all = g_strjoinv("\n", (gchar **)warnings->pdata);
    gtk_widget_set_tooltip_text(w->status_label, all);
}

static void show_scene(RsViewer *w, RsScene *scene)
{
    g_autofree gchar *title = rs_escape_dup_text(scene->title);
    g_autofree gchar *caption = g_strdup_printf("%s \u2013 Ringscope", title);
    w->scene = scene;
    gtk_label_set_text(GTK_LABEL(w->title), title);
    gtk_window_set_title(GTK_WINDOW(w->window), caption);
    GdkRectangle box;
    gtk_widget_get_allocation(w->area, &box);
    rs_scene_resize(scene, box.width, box.height);
    show_wanted(w);
    show_status(w);
    rs_window_fill_findings(w);
    rs_window_fill_details(w);
    gtk_stack_set_visible_child_name(GTK_STACK(w->stack), "run");
    gtk_widget_queue_draw(w->legend);
    rs_window_changed(w);
    gtk_widget_grab_focus(w->area);
}

static void run_read(GObject *source, GAsyncResult *result, gpointer data)
{
    RsViewer *w = data;
    g_autoptr(GError) error = NULL;
    RsScene *scene = g_task_propagate_pointer(G_TASK(result), &error);
    if (scene)
        show_scene(w, scene);
    else
        show_unreadable(w, error);
}

/* ---- widgets ---- */

static void zoom_in(GtkButton *button, gpointer data)
{
    RsViewer *w = data;
    if (w->scene)
        rs_scene_zoom(w->scene, ZOOM_STEP, RS_SCENE_GUTTER_PX + w->scene->axis.width_px / 2.0);
    rs_window_changed(w);
}

static void zoom_out(GtkButton *button, gpointer data)
{
    RsViewer *w = data;
    if (w->scene)
        rs_scene_zoom(w->scene, 1 / ZOOM_STEP, RS_SCENE_GUTTER_PX + w->scene->axis.width_px / 2.0);
    rs_window_changed(w);
}

static void zoom_fit(GtkButton *button, gpointer data)
{
    RsViewer *w = data;
    if (w->scene)
        rs_axis_fit(&w->scene->axis);
    rs_window_changed(w);
}

static void help_clicked(GtkButton *button, gpointer data)
{
    rs_window_show_help(data);
}

static void add_button(RsViewer *w, GtkWidget *bar, const gchar *icon, const gchar *tip,
                       GCallback clicked)
{
    GtkWidget *button = gtk_button_new_from_icon_name(icon, GTK_ICON_SIZE_BUTTON);
    gtk_button_set_relief(GTK_BUTTON(button), GTK_RELIEF_NONE);
    gtk_widget_set_tooltip_text(button, tip);
    gtk_widget_set_focus_on_click(button, FALSE);
    atk_object_set_name(gtk_widget_get_accessible(button), tip);
    g_signal_connect(button, "clicked", clicked, w);
    gtk_box_pack_start(GTK_BOX(bar), button, FALSE, FALSE, 0);
}

static GtkWidget *bar_new(RsViewer *w)
{
    GtkWidget *bar = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 4);
    gtk_widget_set_size_request(bar, -1, BAR_PX);
    gtk_container_set_border_width(GTK_CONTAINER(bar), 4);
    w->title = gtk_label_new("");
    gtk_label_set_ellipsize(GTK_LABEL(w->title), PANGO_ELLIPSIZE_MIDDLE);
    gtk_label_set_xalign(GTK_LABEL(w->title), 0);
    gtk_widget_set_size_request(w->title, RS_SCENE_GUTTER_PX - 16, -1);
    gtk_label_set_max_width_chars(GTK_LABEL(w->title), 18);
    gtk_style_context_add_class(gtk_widget_get_style_context(w->title), "title");
    gtk_widget_set_margin_start(w->title, 8);
    w->legend = gtk_drawing_area_new();
    g_signal_connect(w->legend, "draw", G_CALLBACK(draw_legend), w);
    gtk_widget_set_size_request(w->legend, LEGEND_PX, -1);
    w->count = gtk_label_new("");
    w->search = gtk_search_entry_new();
    gtk_entry_set_placeholder_text(GTK_ENTRY(w->search), "Search (ctrl+F)");
    gtk_entry_set_width_chars(GTK_ENTRY(w->search), 17);
    gtk_box_pack_start(GTK_BOX(bar), w->title, FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(bar), w->legend, FALSE, FALSE, 0);
    GtkWidget *right = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 0);
    gtk_box_pack_start(GTK_BOX(right), w->count, FALSE, FALSE, 4);
    gtk_box_pack_start(GTK_BOX(right), w->search, FALSE, FALSE, 4);
    add_button(w, right, "zoom-out-symbolic", "Zoom out (-)", G_CALLBACK(zoom_out));
    add_button(w, right, "zoom-in-symbolic", "Zoom in (+)", G_CALLBACK(zoom_in));
    add_button(w, right, "zoom-fit-best-symbolic", "Show all (0)", G_CALLBACK(zoom_fit));
    add_button(w, right, "help-about-symbolic", "Keys (?)", G_CALLBACK(help_clicked));
    gtk_box_pack_end(GTK_BOX(bar), right, FALSE, FALSE, 0);
    return bar;
}

static GtkWidget *timeline_new(RsViewer *w)
{
    GtkWidget *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 0);
    w->area = gtk_drawing_area_new();
    gtk_widget_set_can_focus(w->area, TRUE);
    gtk_widget_set_size_request(w->area, 400, 200);
    atk_object_set_name(gtk_widget_get_accessible(w->area), "Timeline");
    w->adjustment = gtk_adjustment_new(0, 0, 1, 1, 1, 1);
    w->scroll = gtk_scrollbar_new(GTK_ORIENTATION_VERTICAL, w->adjustment);
    g_signal_connect(w->area, "draw", G_CALLBACK(draw_area), w);
    g_signal_connect(w->area, "size-allocate", G_CALLBACK(resized), w);
    g_signal_connect(w->adjustment, "value-changed", G_CALLBACK(scrolled), w);
    gtk_box_pack_start(GTK_BOX(box), w->area, TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(box), w->scroll, FALSE, FALSE, 0);
    return box;
}

static GtkWidget *run_page_new(RsViewer *w)
{
    GtkWidget *page = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
    GtkWidget *panes = gtk_paned_new(GTK_ORIENTATION_HORIZONTAL);
    gtk_paned_pack1(GTK_PANED(panes), timeline_new(w), TRUE, FALSE);
    gtk_paned_pack2(GTK_PANED(panes), rs_window_side_new(w), FALSE, FALSE);
    w->status_label = gtk_label_new("");
    gtk_label_set_xalign(GTK_LABEL(w->status_label), 0);
    gtk_label_set_ellipsize(GTK_LABEL(w->status_label), PANGO_ELLIPSIZE_END);
    gtk_style_context_add_class(gtk_widget_get_style_context(w->status_label), "status");
    gtk_box_pack_start(GTK_BOX(page), bar_new(w), FALSE, FALSE, 0);
    gtk_box_pack_start(GTK_BOX(page), gtk_separator_new(GTK_ORIENTATION_HORIZONTAL), FALSE, FALSE,
                       0);
    gtk_box_pack_start(GTK_BOX(page), panes, TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(page), gtk_separator_new(GTK_ORIENTATION_HORIZONTAL), FALSE, FALSE,
                       0);
    gtk_box_pack_start(GTK_BOX(page), w->status_label, FALSE, FALSE, 0);
    return page;
}

static void load_style(void)
{
    static const gchar css[] = ".title { font-weight: bold; font-size: 14px; }"
                               ".status { font-size: 11px; padding: 4px 12px; }"
                               ".side, .side list { background: #f7f8fa; font-size: 12px; }"
                               ".heading { font-weight: bold; }"
                               ".soft { color: #626b78; font-size: 11px; }"
                               ".finding { padding: 6px 10px; }"
                               ".side row:selected { background: #fbe9dd; color: #1d2430;"
                               " box-shadow: inset 3px 0 #c2410c; }";
    g_autoptr(GtkCssProvider) provider = gtk_css_provider_new();
    gtk_css_provider_load_from_data(provider, css, -1, NULL);
    gtk_style_context_add_provider_for_screen(gdk_screen_get_default(),
                                              GTK_STYLE_PROVIDER(provider),
                                              GTK_STYLE_PROVIDER_PRIORITY_APPLICATION);
}

static GtkWidget *loading_page_new(RsViewer *w)
{
    w->progress = gtk_progress_bar_new();
    gtk_progress_bar_set_show_text(GTK_PROGRESS_BAR(w->progress), TRUE);
    gtk_progress_bar_set_text(GTK_PROGRESS_BAR(w->progress), "reading");
    gtk_widget_set_halign(w->progress, GTK_ALIGN_CENTER);
    gtk_widget_set_valign(w->progress, GTK_ALIGN_CENTER);
    gtk_widget_set_size_request(w->progress, 320, -1);
    return w->progress;
}

static void build(RsViewer *w)
{
    load_style();
    w->window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
    gtk_window_set_title(GTK_WINDOW(w->window), "Ringscope");
    gtk_window_set_default_size(GTK_WINDOW(w->window), w->options->width, w->options->height);
    w->stack = gtk_stack_new();
    gtk_stack_add_named(GTK_STACK(w->stack), loading_page_new(w), "loading");
    gtk_stack_add_named(GTK_STACK(w->stack), run_page_new(w), "run");
    gtk_container_add(GTK_CONTAINER(w->window), w->stack);
    g_signal_connect(w->window, "destroy", G_CALLBACK(gtk_main_quit), NULL);
    rs_window_connect_input(w);
    rs_window_connect_search(w);
    gtk_widget_show_all(w->window);
}

int rs_window_run(const RsWindowOptions *options)
{
    if (!gtk_init_check(NULL, NULL)) {
        fprintf(stderr, "ringscope-viewer: no display; --screenshot FILE.png needs none\n");
        return EXIT_UNUSABLE;
    }
    RsViewer w = {.options = options};
    build(&w);
    g_autoptr(GTask) task = g_task_new(NULL, NULL, run_read, &w);
    g_task_set_task_data(task, &w, NULL);
    g_task_run_in_thread(task, read_run);
    gtk_main();
    g_clear_pointer(&w.scene, rs_scene_free);
    return w.status;
}
