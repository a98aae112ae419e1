/* SPDX-License-Identifier: Apache-2.0 */
#include "merge.h"

#include <string.h>

#include "export/export.h"
#include "plural.h"
#include "recover.h"
#include "run-files.h"

typedef struct {
    const gchar *name, *suffix;
    gboolean (*write)(const RsExport *what, const gchar *path, GError **error);
} Target;

static const Target targets[] = {
    {"chrome", ".json", rs_export_chrome},
    {"sqlite", ".sqlite", rs_export_sqlite},
};

static gboolean wants(const gchar *formats, const gchar *name)
{
    if (!formats)
        return TRUE;
    g_auto(GStrv) words = g_strsplit(formats, ",", -1);
    return g_strv_contains((const gchar *const *)words, name);
}

static gboolean check_formats(const gchar *formats, GError **error)
{
    g_auto(GStrv) words = g_strsplit(formats ? formats : "chrome,sqlite", ",", -1);
    for (guint i = 0; i == 0 || words[i]; i++) {
        const gchar *word = words[i] ? words[i] : "";
        if (g_str_equal(word, "chrome") || g_str_equal(word, "sqlite"))
            continue;
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "no format '%s': chrome or sqlite", word);
        return FALSE;
    }
    return TRUE;
}

/* Saves what killed processes left. A ring that can't be appended is still read from where it is.
 */
static gboolean recover_all(const RsRunFiles *files, GPtrArray *notes)
{
    for (guint i = 0; i < files->captures->len; i++) {
        const RsRunFile *f = g_ptr_array_index(files->captures, i);
        g_autoptr(GError) error = NULL;
        guint64 events = 0;
        if (!rs_recover(f->path, &events, &error))
            g_ptr_array_add(notes, g_strdup(error->message));
        else if (events)
            g_ptr_array_add(notes, g_strdup_printf("%s: %" G_GUINT64_FORMAT
                                                   " event%s saved from the rings of its killed "
                                                   "process",
                                                   f->path, events, rs_plural(events)));
    }
    return TRUE;
}

static gboolean take_off(gchar *name, const gchar *ending)
{
    gboolean has = g_str_has_suffix(name, ending);
    if (has)
        name[strlen(name) - strlen(ending)] = '\0';
    return has;
}

static gchar *default_prefix(const gchar *path, gboolean is_trace)
{
    if (g_file_test(path, G_FILE_TEST_IS_DIR))
        return g_build_filename(path, "run", NULL);
    g_autofree gchar *name = g_strdup(path);
    if (take_off(name, ".rsc") || !is_trace)
        return g_steal_pointer(&name);
    if (!take_off(name, ".gz"))
        take_off(name, ".zst");
    take_off(name, ".json");
    return g_strconcat(name, "-run", NULL); /* never the trace itself */
}

static void add_notes(RsModel *m, const GPtrArray *notes)
{
    for (guint i = 0; i < notes->len; i++) {
        RsWarning *w = g_new0(RsWarning, 1);
        w->path = g_strdup("");
        w->text = g_strdup(g_ptr_array_index(notes, i));
        g_ptr_array_add(m->warnings, w);
    }
}

/* The conclusions go into the SQLite file of a run; one process alone has none to draw. */
static RsResults *analyze(const RsMerge *what, const RsModel *m)
{
    if (m->ranks->len < 2 || !wants(what->formats, "sqlite"))
        return NULL;
    if (what->progress)
        what->progress(0.82, "analyzing", what->data);
    return rs_analyze(m, NULL);
}

static gboolean write_targets(const RsMerge *what, const RsModel *m, const gchar *prefix,
                              GPtrArray *written, GError **error)
{
    g_autoptr(RsResults) results = analyze(what, m);
    const RsExport export = {.model = m, .results = results};
    for (guint i = 0; i < G_N_ELEMENTS(targets); i++) {
        if (!wants(what->formats, targets[i].name))
            continue;
        if (what->progress)
            what->progress(0.85 + 0.07 * i, "writing", what->data);
        g_autofree gchar *path = g_strconcat(prefix, targets[i].suffix, NULL);
        if (!targets[i].write(&export, path, error))
            return FALSE;
        g_ptr_array_add(written, g_steal_pointer(&path));
    }
    return TRUE;
}

RsModel *rs_merge(const RsMerge *what, gchar ***ret_written, GError **error)
{
    const gchar *paths[] = {what->path, NULL};
    if (!check_formats(what->formats, error))
        return NULL;
    g_autoptr(RsRunFiles) files = rs_run_files_find(paths, error);
    if (!files)
        return NULL;
    if (files->captures->len + files->traces->len == 0) {
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: holds no captures (.rsc) and no traces: there is nothing to merge",
                    what->path);
        return NULL;
    }
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    recover_all(files, notes);
    g_autoptr(RsModel) m = rs_run_open_as(paths, what->options, what->progress, what->data, error);
    if (!m)
        return NULL;
    add_notes(m, notes);
    g_autofree gchar *prefix =
        what->prefix ? g_strdup(what->prefix) : default_prefix(what->path, files->traces->len > 0);
    g_autoptr(GPtrArray) written = g_ptr_array_new_with_free_func(g_free);
    if (!write_targets(what, m, prefix, written, error))
        return NULL;
    g_ptr_array_add(written, NULL);
    if (ret_written)
        *ret_written = (gchar **)g_ptr_array_free(g_steal_pointer(&written), FALSE);
    return g_steal_pointer(&m);
}
