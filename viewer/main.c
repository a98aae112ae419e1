/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - ringscope-viewer: the timeline of a run, in a window or as a picture. */
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "picture.h"
#include "wanted.h"
#include "window.h"

#define EXIT_UNUSABLE 2
#define SIZE_LEAST    200
#define SIZE_MOST     16384
#define SEE_HELP      "(try: ringscope-viewer --help)"

typedef struct {
    gchar *screenshot, *size, *state_file;
    RsScopeOptions time;
    gchar *finding, *select, *rank;
    GArray *ranks;    /* of `rank` */
    RsRunOptions run; /* of `ranks` */
    gchar **paths;
    gint width, height;
} Options;

static int fail(const gchar *format, ...) G_GNUC_PRINTF(1, 2);
static int fail(const gchar *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree gchar *text = g_strdup_vprintf(format, args);
    va_end(args);
    fprintf(stderr, "ringscope-viewer: %s\n", text);
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

/* GLib would print its help in the locale's letters, and that may have no dots. */
static gboolean parse(Options *o, int *argc, char ***argv, GError **error)
{
    gboolean help = FALSE;
    GOptionEntry entries[] = {
        {"screenshot", 0, 0, G_OPTION_ARG_FILENAME, &o->screenshot,
         "Write a picture instead of opening a window; needs no display", "FILE.png"},
        {"size", 0, 0, G_OPTION_ARG_STRING, &o->size, "Of the window or picture (1280x800)", "WxH"},
        {"from", 0, 0, G_OPTION_ARG_STRING, &o->time.from, "Show the run from this second on", "S"},
        {"to", 0, 0, G_OPTION_ARG_STRING, &o->time.to, "Show the run up to this second", "S"},
        {"finding", 0, 0, G_OPTION_ARG_STRING, &o->finding, "Show finding N, from 1", "N"},
        {"select", 0, 0, G_OPTION_ARG_STRING, &o->select,
         "Select the first slice in view whose name contains TEXT", "TEXT"},
        {"rank", 0, 0, G_OPTION_ARG_STRING, &o->rank,
         "Of traces of other tools: each file's rank, in their order", "LIST"},
        {"state-file", 0, 0, G_OPTION_ARG_FILENAME, &o->state_file,
         "Write what the window shows to a file after each change, for tests", "FILE"},
        {"help", 'h', 0, G_OPTION_ARG_NONE, &help, "Show this", NULL},
        {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &o->paths, NULL, "RUN..."},
        {0},
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(context, "Shows the timeline of a run: a run folder, captures, an "
                                          "exported .sqlite, or traces of other "
                                          "tools.");
    g_option_context_set_description(
        context, "Example: ringscope-viewer --screenshot run.png --from 0.5 --to 0.6 my-run");
    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_set_help_enabled(context, FALSE);
    if (!g_option_context_parse(context, argc, argv, error))
        return FALSE;
    if (help) {
        g_autofree gchar *text = g_option_context_get_help(context, TRUE, NULL);
        fputs(text, stdout);
        exit(fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_UNUSABLE);
    }
    return TRUE;
}

static gboolean parse_ranks(Options *o, GError **error)
{
    if (!o->rank)
        return TRUE;
    o->ranks = rs_scope_parse_list(o->rank, "rank", error);
    if (!o->ranks)
        return FALSE;
    o->run = (RsRunOptions){(const gint32 *)(void *)o->ranks->data, o->ranks->len};
    return TRUE;
}

static int write_screenshot(const Options *o, const RsWanted *wanted)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(RsScene) s =
        rs_scene_open((const gchar *const *)o->paths, &o->run, NULL, NULL, &error);
    if (!s)
        return fail("%s", error->message);
    rs_scene_resize(s, o->width, o->height);
    if (!rs_wanted_show(wanted, s, &error))
        return fail("%s", error->message);
    if (!rs_picture_write(s, o->screenshot, o->width, o->height, &error))
        return fail("--screenshot %s", error->message);
    return 0;
}

static int run(Options *o)
{
    const RsWanted wanted = {o->time, o->finding, o->select};
    g_autoptr(GError) error = NULL;
    if (!o->paths || !o->paths[0])
        return fail("no run: name a run folder, captures, an .sqlite file or traces " SEE_HELP);
    if (!parse_size(o))
        return fail("--size %s: expected WIDTHxHEIGHT, such as 1280x800, each from %d to %d",
                    o->size, SIZE_LEAST, SIZE_MOST);
    if (o->screenshot && !*o->screenshot)
        return fail("--screenshot: no file given, such as run.png");
    if (!rs_wanted_check(&wanted, &error) || !parse_ranks(o, &error))
        return fail("%s", error->message);
    if (o->screenshot)
        return write_screenshot(o, &wanted);
    RsWindowOptions window = {.paths = (const gchar *const *)o->paths,
                              .run = &o->run,
                              .width = o->width,
                              .height = o->height,
                              .wanted = &wanted,
                              .state_file = o->state_file};
    return rs_window_run(&window);
}

int main(int argc, char **argv)
{
    Options o = {.width = 1280, .height = 800};
    setlocale(LC_CTYPE, "");
    signal(SIGXFSZ, SIG_IGN); /* a picture over the limit is an error that can be told */
    g_autoptr(GError) error = NULL;
    int status = parse(&o, &argc, &argv, &error)
                     ? run(&o)
                     : fail("wrong usage: %s " SEE_HELP, error->message);
    g_free(o.screenshot);
    g_free(o.size);
    g_free(o.state_file);
    g_free(o.time.from);
    g_free(o.time.to);
    g_free(o.finding);
    g_free(o.select);
    g_free(o.rank);
    g_clear_pointer(&o.ranks, g_array_unref);
    g_strfreev(o.paths);
    return status;
}
