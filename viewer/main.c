/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - ringscope-viewer: the timeline of a run, in a window or as a picture. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "picture.h"
#include "window.h"

#define EXIT_UNUSABLE 2
#define SIZE_LEAST    200
#define SIZE_MOST     16384

typedef struct {
    gchar *screenshot, *size, *state_file;
    gdouble from_s, to_s;
    gint finding;
    gchar *select;
    gchar **paths;
    gint width, height;
} Options;

static int fail(const gchar *where, const gchar *what)
{
    fprintf(stderr, "ringscope-viewer: %s: %s\n", where, what);
    return EXIT_UNUSABLE;
}

static gboolean parse_size(Options *o)
{
    gchar after;
    if (!o->size)
        return TRUE;
    return sscanf(o->size, "%dx%d%c", &o->width, &o->height, &after) == 2 &&
           o->width >= SIZE_LEAST && o->height >= SIZE_LEAST && o->width <= SIZE_MOST &&
           o->height <= SIZE_MOST;
}

static gboolean parse(Options *o, int *argc, char ***argv, GError **error)
{
    GOptionEntry entries[] = {
        {"screenshot", 0, 0, G_OPTION_ARG_FILENAME, &o->screenshot,
         "Write a picture instead of opening a window; needs no display", "FILE.png"},
        {"size", 0, 0, G_OPTION_ARG_STRING, &o->size, "Of the window or picture (1280x800)", "WxH"},
        {"from", 0, 0, G_OPTION_ARG_DOUBLE, &o->from_s, "Show the run from this second on", "S"},
        {"to", 0, 0, G_OPTION_ARG_DOUBLE, &o->to_s, "Show the run up to this second", "S"},
        {"finding", 0, 0, G_OPTION_ARG_INT, &o->finding, "Show finding N, from 1", "N"},
        {"select", 0, 0, G_OPTION_ARG_STRING, &o->select,
         "Select the first slice in view whose name contains TEXT", "TEXT"},
        {"state-file", 0, 0, G_OPTION_ARG_FILENAME, &o->state_file,
         "Write what the window shows to a file after each change, for tests", "FILE"},
        {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &o->paths, NULL, "RUN..."},
        {0},
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(
        context, "Shows the timeline of a run: a run folder, captures, or an exported .sqlite.");
    g_option_context_set_description(
        context, "Example: ringscope-viewer --screenshot run.png --from 0.5 --to 0.6 my-run");
    g_option_context_add_main_entries(context, entries, NULL);
    return g_option_context_parse(context, argc, argv, error);
}

/* The slice that the picture shows the details of: in the time shown, else anywhere. */
static void select_named(RsScene *s, const gchar *text)
{
    gint64 from = (gint64)s->axis.from_ns;
    guint32 first = RS_NONE;
    for (guint32 tries = 0; tries <= s->model->events.n; tries++) {
        guint32 e = rs_scene_find(s, text, FALSE);
        if (e == RS_NONE || e == first)
            break;
        first = first == RS_NONE ? e : first;
        rs_scene_select(s, e);
        if (s->model->events.start_ns[e] >= from)
            return;
    }
}

static int write_screenshot(const Options *o)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(RsScene) s = rs_scene_open((const gchar *const *)o->paths, NULL, NULL, &error);
    if (!s) {
        fprintf(stderr, "ringscope-viewer: %s\n", error->message); /* names the file itself */
        return EXIT_UNUSABLE;
    }
    rs_scene_resize(s, o->width, o->height);
    if (o->finding > 0)
        rs_scene_show_finding(s, o->finding - 1);
    if (o->from_s > 0 || o->to_s > 0)
        rs_axis_show(&s->axis, o->from_s * 1e9,
                     o->to_s > 0 ? o->to_s * 1e9 : (gdouble)s->model->duration_ns);
    if (o->select)
        select_named(s, o->select);
    if (!rs_picture_write(s, o->screenshot, o->width, o->height, &error))
        return fail("--screenshot", error->message);
    return 0;
}

static int run(Options *o)
{
    if (!o->paths || !o->paths[0])
        return fail("no run", "name a run folder, captures or an .sqlite file; --help says more");
    if (!parse_size(o))
        return fail(o->size, "not a size; expected WIDTHxHEIGHT, such as 1280x800");
    if (o->from_s < 0 || o->to_s < 0 || (o->to_s > 0 && o->to_s <= o->from_s))
        return fail("--from, --to", "expected seconds, the second after the first");
    if (o->screenshot)
        return write_screenshot(o);
    RsWindowOptions window = {.paths = (const gchar *const *)o->paths,
                              .width = o->width,
                              .height = o->height,
                              .from_s = o->from_s,
                              .to_s = o->to_s,
                              .state_file = o->state_file};
    return rs_window_run(&window);
}

int main(int argc, char **argv)
{
    Options o = {.width = 1280, .height = 800};
    signal(SIGXFSZ, SIG_IGN); /* a picture over the limit is an error that can be told */
    g_autoptr(GError) error = NULL;
    int status = parse(&o, &argc, &argv, &error) ? run(&o) : fail("wrong usage", error->message);
    g_free(o.screenshot);
    g_free(o.size);
    g_free(o.state_file);
    g_free(o.select);
    g_strfreev(o.paths);
    return status;
}
