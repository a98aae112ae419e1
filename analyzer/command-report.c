/* SPDX-License-Identifier: Apache-2.0 */
/* command-report.c - `ringscope report RUN`: findings and metrics. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "report/report.h"
#include "scope.h"

typedef struct {
    RsScopeOptions scope;
    gchar *format, *fail_on;
} Options;

static gboolean is_kind(const gchar *word)
{
    for (guint i = 0; rs_analyses[i]; i++)
        if (rs_analyses[i]->kinds && g_strv_contains(rs_analyses[i]->kinds, word))
            return TRUE;
    return FALSE;
}

/* A guard that waits for what nobody looks for would never fail: such a word is wrong usage. */
static const gchar *find_unknown(gchar **list)
{
    for (guint i = 0; list && list[i]; i++)
        if (!is_kind(list[i]))
            return list[i];
    return NULL;
}

static gchar *dup_kinds(void)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    for (guint i = 0; rs_analyses[i]; i++)
        for (guint k = 0; rs_analyses[i]->kinds && rs_analyses[i]->kinds[k]; k++)
            g_ptr_array_add(all, (gpointer)rs_analyses[i]->kinds[k]);
    g_ptr_array_add(all, NULL);
    return g_strjoinv(", ", (gchar **)all->pdata);
}

static gboolean found_any(const RsResults *results, gchar **list)
{
    for (guint i = 0; i < results->findings->len; i++) {
        const RsFinding *f = g_ptr_array_index(results->findings, i);
        if (g_strv_contains((const gchar *const *)list, f->kind))
            return TRUE;
    }
    return FALSE;
}

static int print_report(const Options *o, const RsReportFormat *format, int argc, char **argv,
                        gchar **fail_on)
{
    g_autoptr(RsModel) m = rs_command_open(argc, argv);
    if (!m)
        return RS_EXIT_FAILED;
    RsScope scope;
    g_autoptr(GError) error = NULL;
    if (!rs_scope_init(&scope, &o->scope, m, &error)) {
        rs_scope_release(&scope);
        return rs_command_fail(error);
    }
    g_autoptr(RsResults) results = rs_analyze(m, &scope);
    RsReport report = {.model = m, .results = results, .name = argv[1]};
    report.cut = scope.from_s > 0 || scope.to_s > 0 || scope.ranks || scope.steps;
    rs_scope_release(&scope);
    g_autofree gchar *text = format->write(&report);
    fputs(text, stdout);
    return fail_on && found_any(results, fail_on) ? 1 : 0;
}

int rs_command_report(const RsCommand *self, int argc, char **argv)
{
    static Options o;
    g_autofree gchar *kinds = dup_kinds();
    g_autofree gchar *fail_on_help = g_strconcat("exit 1 where one is found: ", kinds, NULL);
    const GOptionEntry entries[] = {
        {"format", 0, 0, G_OPTION_ARG_STRING, &o.format, "text (default) or json", "FORMAT"},
        RS_SCOPE_ENTRIES(o.scope),
        RS_COMMAND_RUN_ENTRIES,
        {"fail-on", 0, 0, G_OPTION_ARG_STRING, &o.fail_on, fail_on_help, "KIND,..."},
        G_OPTION_ENTRY_NULL,
    };
    int status;
    if (!rs_command_parse(self, entries, FALSE, &argc, &argv, &status))
        return status;
    const RsReportFormat *format = rs_report_format_find(o.format ? o.format : "text");
    if (!format)
        return rs_command_usage(self, "no format '%s': text or json", o.format);
    if (argc < 2)
        return rs_command_usage(
            self, "which run? Give a run folder, captures, an .sqlite file or traces");
    if (o.fail_on && !*o.fail_on)
        return rs_command_usage(self, "--fail-on: no kind of finding given; there are %s", kinds);
    g_auto(GStrv) fail_on = o.fail_on ? g_strsplit(o.fail_on, ",", -1) : NULL;
    const gchar *unknown = find_unknown(fail_on);
    if (unknown)
        return rs_command_usage(self, "--fail-on %s: no finding that is looked for; there are %s",
                                unknown, kinds);
    return print_report(&o, format, argc, argv, fail_on);
}
