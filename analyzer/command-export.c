/* SPDX-License-Identifier: Apache-2.0 */
/* command-export.c - `ringscope export RUN --format FORMAT -o FILE`: one file for other tools. */
#include "command.h"
#include "export/export.h"
#include "names.h"
#include "scope.h"

typedef struct {
    RsScopeOptions scope;
    gchar *format, *output, *kinds;
} Options;

/* "call,range" to bits; FALSE where a word is no kind. */
static gboolean parse_kinds(const gchar *text, guint *ret_kinds)
{
    *ret_kinds = 0;
    if (!text)
        return TRUE;
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    for (guint i = 0; words[i]; i++) {
        gint k = rs_kind_of_name(words[i]);
        if (k < 0)
            return FALSE;
        *ret_kinds |= 1u << k;
    }
    return words[0] != NULL;
}

static int export_run(const Options *o, const RsExportFormat *format, guint kinds, int argc,
                      char **argv)
{
    g_autoptr(RsModel) m = rs_command_open(argc, argv);
    if (!m)
        return RS_EXIT_FAILED;
    rs_command_warn(m);
    RsScope scope;
    g_autoptr(GError) error = NULL;
    if (!rs_scope_init(&scope, &o->scope, m, &error)) {
        rs_scope_release(&scope);
        return rs_command_fail(error);
    }
    gboolean cut = scope.from_s > 0 || scope.to_s > 0 || scope.ranks || scope.steps || kinds;
    g_autoptr(RsResults) results = rs_analyze(m, &scope);
    g_autoptr(RsModel) part = cut ? rs_model_cut(m, &scope, kinds) : NULL;
    rs_scope_release(&scope);
    RsExport x = {cut ? part : m, results, rs_command_progress, NULL};
    gboolean good = format->write(&x, o->output, &error);
    rs_command_progress(1, "", NULL);
    return good ? 0 : rs_command_fail(error);
}

int rs_command_export(const RsCommand *self, int argc, char **argv)
{
    static Options o;
    const GOptionEntry entries[] = {
        {"format", 0, 0, G_OPTION_ARG_STRING, &o.format, "chrome, sqlite or csv", "FORMAT"},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &o.output, "the file to write", "FILE"},
        RS_SCOPE_ENTRIES(o.scope),
        RS_COMMAND_RUN_ENTRIES,
        {"kinds", 0, 0, G_OPTION_ARG_STRING, &o.kinds,
         "only these: call, device, range, span, mark, counter, lost, io", "KIND,..."},
        G_OPTION_ENTRY_NULL,
    };
    int status;
    guint kinds;
    if (!rs_command_parse(self, entries, FALSE, &argc, &argv, &status))
        return status;
    const RsExportFormat *format = rs_export_format_find(o.format ? o.format : "");
    if (o.format && !format)
        return rs_command_usage(self, "no format '%s': chrome, sqlite or csv", o.format);
    if (argc < 2)
        return rs_command_usage(
            self, "which run? Give a run folder, captures, an .sqlite file or traces");
    if (!format)
        return rs_command_usage(self, "which format? Give --format chrome, sqlite or csv");
    if (!o.output || !*o.output)
        return rs_command_usage(self, "where to? Give -o FILE");
    if (!parse_kinds(o.kinds, &kinds))
        return rs_command_usage(
            self,
            "--kinds %s: expected call, device, range, span, mark, counter, lost "
            "or io, with commas",
            o.kinds);
    for (int i = 1; i < argc; i++)
        if (rs_command_is_same_file(argv[i], o.output))
            return rs_command_usage(self, "-o %s: is the run itself: name another file", o.output);
    return export_run(&o, format, kinds, argc, argv);
}
