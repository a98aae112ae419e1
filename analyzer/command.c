/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plural.h"
#include "scope.h"

#define WARNINGS_SHOWN 20

gboolean rs_command_quiet;
gchar *rs_command_rank;

static GOptionContext *make_context(const RsCommand *self, const GOptionEntry *entries,
                                    gboolean strict)
{
    static const GOptionEntry common[] = {
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &rs_command_quiet, "no progress, no notes", NULL},
        G_OPTION_ENTRY_NULL};
    g_autofree gchar *what =
        g_strdup_printf("%s%s- %s", self->arguments, *self->arguments ? " " : "", self->help);
    GOptionContext *context = g_option_context_new(what);
    if (entries)
        g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_add_main_entries(context, common, NULL);
    g_option_context_set_strict_posix(context, strict);
    g_option_context_set_help_enabled(context, FALSE);
    g_autofree gchar *example = g_strdup_printf("Example:\n  %s", self->example);
    g_option_context_set_description(context, example);
    return context;
}

static gboolean wants_help(int argc, char **argv, gboolean strict)
{
    for (int i = 1; i < argc; i++) {
        if (g_str_equal(argv[i], "--help") || g_str_equal(argv[i], "-h"))
            return TRUE;
        if (g_str_equal(argv[i], "--") || (strict && argv[i][0] != '-'))
            return FALSE;
    }
    return FALSE;
}

gboolean rs_command_parse(const RsCommand *self, const GOptionEntry *entries, gboolean strict,
                          int *argc, char ***argv, int *ret_status)
{
    g_autofree gchar *prgname = g_strdup_printf("ringscope %s", self->name);
    g_set_prgname(prgname);
    g_autoptr(GOptionContext) context = make_context(self, entries, strict);
    if (wants_help(*argc, *argv, strict)) {
        g_autofree gchar *help = g_option_context_get_help(context, TRUE, NULL);
        fputs(help, stdout);
        *ret_status = 0;
        return FALSE;
    }
    g_autoptr(GError) error = NULL;
    if (!g_option_context_parse(context, argc, argv, &error)) {
        *ret_status = rs_command_usage(self, "%s", error->message);
        return FALSE;
    }
    return TRUE;
}

int rs_command_usage(const RsCommand *self, const gchar *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree gchar *text = g_strdup_vprintf(format, args);
    va_end(args);
    fprintf(stderr, "ringscope %s: %s (try: ringscope %s --help)\n", self->name, text, self->name);
    return RS_EXIT_FAILED;
}

int rs_command_fail(const GError *error)
{
    fprintf(stderr, "ringscope: %s\n", error->message);
    return RS_EXIT_FAILED;
}

void rs_command_progress(gdouble share, const gchar *what, gpointer data)
{
    static gint64 begin_us, last_us;
    static gboolean shown;
    gint64 now = g_get_monotonic_time();
    if (begin_us == 0)
        begin_us = now;
    if (rs_command_quiet || !isatty(STDERR_FILENO))
        return;
    if (share >= 1) {
        if (shown)
            fputs("\r\033[K", stderr);
        shown = FALSE;
        begin_us = 0;
    } else if (now - begin_us > G_USEC_PER_SEC && now - last_us > G_USEC_PER_SEC / 10) {
        fprintf(stderr, "\r\033[K%s: %.0f %%", what, share * 100);
        shown = TRUE;
        last_us = now;
    }
}

gboolean rs_command_run_options(RsRunOptions *options, GArray **ret_ranks, GError **error)
{
    *options = (RsRunOptions){0};
    *ret_ranks = NULL;
    if (!rs_command_rank)
        return TRUE;
    *ret_ranks = rs_scope_parse_list(rs_command_rank, "rank", error);
    if (!*ret_ranks)
        return FALSE;
    options->ranks = (const gint32 *)(void *)(*ret_ranks)->data;
    options->n_ranks = (*ret_ranks)->len;
    return TRUE;
}

gboolean rs_command_is_same_file(const gchar *a, const gchar *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

RsModel *rs_command_open(int argc, char **argv)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new();
    for (int i = 1; i < argc; i++)
        g_ptr_array_add(paths, argv[i]);
    g_ptr_array_add(paths, NULL);
    RsRunOptions options;
    g_autoptr(GArray) ranks = NULL;
    g_autoptr(GError) error = NULL;
    RsModel *m = NULL;
    if (rs_command_run_options(&options, &ranks, &error))
        m = rs_run_open_as((const gchar *const *)paths->pdata, &options, rs_command_progress, NULL,
                           &error);
    rs_command_progress(1, "", NULL);
    if (!m)
        rs_command_fail(error);
    return m;
}

void rs_command_warn(const RsModel *m)
{
    if (rs_command_quiet)
        return;
    for (guint i = 0; i < m->warnings->len && i < WARNINGS_SHOWN; i++) {
        const RsWarning *w = g_ptr_array_index(m->warnings, i);
        if (w->path[0] && w->offset)
            fprintf(stderr, "ringscope: %s: at byte %" G_GUINT64_FORMAT ": %s\n", w->path,
                    w->offset, w->text);
        else
            fprintf(stderr, "ringscope: %s%s%s\n", w->path, w->path[0] ? ": " : "", w->text);
    }
    if (m->warnings->len > WARNINGS_SHOWN)
        fprintf(stderr, "ringscope: and %u more such note%s\n", m->warnings->len - WARNINGS_SHOWN,
                rs_plural(m->warnings->len - WARNINGS_SHOWN));
}
