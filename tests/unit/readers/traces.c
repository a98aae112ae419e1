/* SPDX-License-Identifier: Apache-2.0 */
#include "traces.h"

#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static RsModel *open_path(const gchar *path, gchar **ret_why)
{
    const gchar *paths[] = {path, NULL};
    g_autoptr(GError) error = NULL;
    RsModel *m = rs_run_open(paths, NULL, NULL, &error);
    *ret_why = error ? g_strdup(error->message) : NULL;
    return m;
}

static RsModel *must_open(const gchar *path)
{
    g_autofree gchar *why = NULL;
    RsModel *m = open_path(path, &why);
    if (!m)
        fail_msg("%s", why);
    return m;
}

static gchar *must_fail(const gchar *path)
{
    gchar *why;
    g_autoptr(RsModel) m = open_path(path, &why);
    assert_null(m);
    return why;
}

RsModel *tr_open(const gchar *name)
{
    g_autofree gchar *path = g_build_filename(RS_CASES, name, NULL);
    return must_open(path);
}

gchar *tr_fail(const gchar *name)
{
    g_autofree gchar *path = g_build_filename(RS_CASES, name, NULL);
    return must_fail(path);
}

gchar *tr_make_folder(void)
{
    gchar *folder = g_dir_make_tmp("ringscope-test-XXXXXX", NULL);
    assert_non_null(folder);
    return folder;
}

void tr_remove(gchar *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const gchar *name; dir && (name = g_dir_read_name(dir));) {
        gchar *path = g_build_filename(folder, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
            tr_remove(path);
        } else {
            g_unlink(path);
            g_free(path);
        }
    }
    g_rmdir(folder);
    g_free(folder);
}

static gchar *write_trace(const gchar *folder, const gchar *text, gssize n)
{
    gchar *path = g_build_filename(folder, "trace.json", NULL);
    assert_true(g_file_set_contents(path, text, n, NULL));
    return path;
}

RsModel *tr_read(const gchar *text, gssize n)
{
    gchar *folder = tr_make_folder();
    g_autofree gchar *path = write_trace(folder, text, n);
    RsModel *m = must_open(path);
    tr_remove(folder);
    return m;
}

gchar *tr_fail_to_read(const gchar *text, gssize n)
{
    gchar *folder = tr_make_folder();
    g_autofree gchar *path = write_trace(folder, text, n);
    gchar *why = must_fail(path);
    tr_remove(folder);
    return why;
}

guint tr_count(const RsModel *m, const gchar *name)
{
    guint n = 0;
    for (guint32 i = 0; i < m->events.n; i++)
        n += g_str_equal(rs_model_str(m, rs_model_sig(m, i)->name), name);
    return n;
}

guint32 tr_find(const RsModel *m, const gchar *name)
{
    if (tr_count(m, name) != 1)
        fail_msg("%u events are called %s", tr_count(m, name), name);
    guint32 i = 0;
    while (!g_str_equal(rs_model_str(m, rs_model_sig(m, i)->name), name))
        i++;
    return i;
}

gint64 tr_start(const RsModel *m, const gchar *name)
{
    return m->events.start_ns[tr_find(m, name)];
}

gint64 tr_duration(const RsModel *m, const gchar *name)
{
    guint32 i = tr_find(m, name);
    return m->events.end_ns[i] - m->events.start_ns[i];
}

const RsWarning *tr_warning(const RsModel *m, const gchar *text)
{
    for (guint i = 0; i < m->warnings->len; i++) {
        const RsWarning *w = g_ptr_array_index(m->warnings, i);
        if (strstr(w->text, text))
            return w;
    }
    return NULL;
}
