/* SPDX-License-Identifier: Apache-2.0 */
#include "run-files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "readers/readers.h"

gssize rs_run_file_read_head(const gchar *path, gchar head[RS_RUN_FILE_HEAD], GError **error)
{
    struct stat st;
    gssize n = -1;
    memset(head, 0, RS_RUN_FILE_HEAD);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    gboolean regular = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (regular)
        n = pread(fd, head, RS_RUN_FILE_HEAD, 0);
    if (n < 0)
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: %s", path,
                    fd >= 0 && !regular ? "not a regular file" : g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return n;
}

gboolean rs_run_file_head_is_sqlite(const gchar head[RS_RUN_FILE_HEAD])
{
    return memcmp(head, "SQLite format 3", RS_RUN_FILE_HEAD) == 0;
}

typedef enum { CONTENT_CAPTURE, CONTENT_SQLITE, CONTENT_EMPTY, CONTENT_OTHER } Content;

static gboolean sniff(const gchar *path, Content *ret, GError **error)
{
    gchar head[RS_RUN_FILE_HEAD];
    gssize n = rs_run_file_read_head(path, head, error);
    if (n < 0)
        return FALSE;
    static const guint32 magic = RS_BLOCK_MAGIC;
    if (rs_run_file_head_is_sqlite(head))
        *ret = CONTENT_SQLITE;
    else if (memcmp(head, &magic, sizeof magic) == 0 || rs_capture_is_named(path))
        *ret = CONTENT_CAPTURE;
    else if (n == 0)
        *ret = CONTENT_EMPTY;
    else
        *ret = CONTENT_OTHER;
    return TRUE;
}

/* Named twice, by whatever path, read once. */
static void add_to(RsRunFiles *o, GPtrArray *list, const RsReader *reader, const gchar *path,
                   gboolean named)
{
    GStatBuf st;
    gboolean there = g_stat(path, &st) == 0;
    g_autofree gchar *key = there ? g_strdup_printf("%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
                                                    (guint64)st.st_dev, (guint64)st.st_ino)
                                  : g_strdup(path);
    RsRunFile *f = g_hash_table_lookup(o->seen, key);
    if (f) {
        f->named = f->named || named;
        return;
    }
    f = g_new0(RsRunFile, 1);
    g_hash_table_insert(o->seen, g_steal_pointer(&key), f);
    f->path = g_strdup(path);
    f->named = named;
    f->bytes = there ? (guint64)st.st_size : 0;
    f->reader = reader;
    g_ptr_array_add(list, f);
}

static void add_capture(RsRunFiles *o, const gchar *path, gboolean named)
{
    add_to(o, o->captures, NULL, path, named);
}

/* NULL where no reader knows the file, or, with `error`, where it can't be read. */
static const RsReader *find_reader(const gchar *path, GError **error)
{
    g_autoptr(RsInput) input = rs_input_open(path, error);
    const RsReader *reader = input ? rs_reader_find(input) : NULL;
    const gchar *nothing = input && !reader ? rs_input_nothing(input) : NULL;
    if (nothing)
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: %s", path, nothing);
    return reader;
}

static gboolean add_trace(RsRunFiles *o, const gchar *path, GError **error)
{
    g_autoptr(GError) cause = NULL;
    const RsReader *reader = find_reader(path, &cause);
    if (reader)
        add_to(o, o->traces, reader, path, TRUE);
    else if (cause)
        g_propagate_error(error, g_steal_pointer(&cause));
    else
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: neither a Ringscope capture nor an SQLite file, nor a trace of another "
                    "tool that can be read; name a run folder, captures (.rsc), a .sqlite file or "
                    "traces",
                    path);
    return reader != NULL;
}

static gboolean add_sqlite(RsRunFiles *o, const gchar *path, GError **error)
{
    if (o->sqlite) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "%s: one .sqlite file is a run of its own: name it alone", path);
        return FALSE;
    }
    o->sqlite = g_strdup(path);
    return TRUE;
}

static gboolean add_file(RsRunFiles *o, const gchar *path, GError **error)
{
    Content content;
    if (!sniff(path, &content, error))
        return FALSE;
    switch (content) {
    case CONTENT_CAPTURE:
        add_capture(o, path, TRUE);
        return TRUE;
    case CONTENT_SQLITE:
        return add_sqlite(o, path, error);
    case CONTENT_EMPTY:
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: is empty; name a run folder, captures (.rsc), a .sqlite file or traces",
                    path);
        return FALSE;
    default:
        return add_trace(o, path, error);
    }
}

static gint compare_names(gconstpointer a, gconstpointer c)
{
    return strverscmp(*(const gchar *const *)a, *(const gchar *const *)c); /* rank2 before rank10 */
}

/* Names in a folder, sorted; NULL where it can't be read. */
static GPtrArray *list_folder(const gchar *path, GError **error)
{
    DIR *dir = opendir(path);
    if (!dir) {
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: can't be listed: %s", path,
                    g_strerror(errno));
        return NULL;
    }
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (const struct dirent *d; (d = readdir(dir));)
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            g_ptr_array_add(names, g_build_filename(path, d->d_name, NULL));
    closedir(dir);
    g_ptr_array_sort(names, compare_names);
    return names;
}

static guint add_captures_of(RsRunFiles *o, const GPtrArray *names)
{
    guint n = 0;
    for (guint i = 0; i < names->len; i++) {
        const gchar *path = g_ptr_array_index(names, i);
        if (!rs_capture_is_named(path) || g_file_test(path, G_FILE_TEST_IS_DIR))
            continue;
        add_capture(o, path, FALSE);
        n++;
    }
    return n;
}

/* Folders collected from several hosts lie in one: look one level down as well. */
static guint add_captures_below(RsRunFiles *o, const GPtrArray *names)
{
    guint n = 0;
    for (guint i = 0; i < names->len; i++) {
        const gchar *path = g_ptr_array_index(names, i);
        if (!g_file_test(path, G_FILE_TEST_IS_DIR) || g_file_test(path, G_FILE_TEST_IS_SYMLINK))
            continue;
        g_autoptr(GPtrArray) below = list_folder(path, NULL);
        if (below)
            n += add_captures_of(o, below);
    }
    return n;
}

/* Of a folder without captures: what other tools left there. */
static guint add_traces_of(RsRunFiles *o, const GPtrArray *names, gboolean below)
{
    guint n = 0;
    for (guint i = 0; i < names->len; i++) {
        const gchar *path = g_ptr_array_index(names, i);
        g_autofree gchar *name = g_path_get_basename(path);
        g_autoptr(GError) cause = NULL;
        if (name[0] == '.')
            continue;
        if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
            g_autoptr(GPtrArray) list =
                below || g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : list_folder(path, NULL);
            n += list ? add_traces_of(o, list, TRUE) : 0;
            continue;
        }
        const RsReader *reader = find_reader(path, &cause);
        if (reader)
            add_to(o, o->traces, reader, path, FALSE);
        else
            rs_left_out_add(o->others, path, cause ? rs_left_out_reason(cause, path) : "no trace");
        n += reader != NULL;
    }
    return n;
}

static gboolean add_folder(RsRunFiles *o, const gchar *path, GError **error)
{
    g_autoptr(GPtrArray) names = list_folder(path, error);
    if (!names)
        return FALSE;
    o->from_folder = TRUE;
    if (add_captures_of(o, names) + add_captures_below(o, names) > 0)
        return TRUE;
    g_autofree gchar *merged = g_build_filename(path, "run.sqlite", NULL);
    if (g_file_test(merged, G_FILE_TEST_IS_REGULAR))
        return add_sqlite(o, merged, error);
    if (add_traces_of(o, names, FALSE) > 0)
        return TRUE;
    g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                "%s: %s: no captures (.rsc) and no run.sqlite, nor traces of other tools; was the "
                "program traced (LD_PRELOAD), and is this its RINGSCOPE_DIR?",
                path, names->len ? "no run folder" : "empty folder");
    return FALSE;
}

static gboolean add_path(RsRunFiles *o, const gchar *path, GError **error)
{
    GStatBuf st;
    if (!*path) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "a run's name is empty: name a run folder, captures (.rsc) or a .sqlite file");
        return FALSE;
    }
    if (g_stat(path, &st) != 0) {
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: %s", path,
                    errno == ENOENT ? "no such file or folder" : g_strerror(errno));
        return FALSE;
    }
    return S_ISDIR(st.st_mode) ? add_folder(o, path, error) : add_file(o, path, error);
}

static void free_file(gpointer data)
{
    RsRunFile *f = data;
    g_free(f->path);
    g_free(f);
}

void rs_run_files_free(RsRunFiles *files)
{
    if (!files)
        return;
    g_ptr_array_unref(files->captures);
    g_ptr_array_unref(files->traces);
    g_ptr_array_unref(files->others);
    g_hash_table_unref(files->seen);
    g_free(files->sqlite);
    g_free(files);
}

RsRunFiles *rs_run_files_find(const gchar *const *paths, GError **error)
{
    g_autoptr(RsRunFiles) files = g_new0(RsRunFiles, 1);
    files->captures = g_ptr_array_new_with_free_func(free_file);
    files->traces = g_ptr_array_new_with_free_func(free_file);
    files->others = rs_left_out_new();
    files->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (!paths[0]) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "no run given: name a run folder, captures (.rsc) or a .sqlite file");
        return NULL;
    }
    for (guint i = 0; paths[i]; i++)
        if (!add_path(files, paths[i], error))
            return NULL;
    if (files->traces->len && (files->sqlite || files->captures->len)) {
        const RsRunFile *f = g_ptr_array_index(files->traces, 0);
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "%s: a trace of another tool is not one run with what Ringscope recorded: name "
                    "one of them",
                    f->path);
        return NULL;
    }
    if (files->sqlite && files->captures->len) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "%s: an .sqlite file and captures are not one run: name one of them",
                    files->sqlite);
        return NULL;
    }
    return g_steal_pointer(&files);
}
