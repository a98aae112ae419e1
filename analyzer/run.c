/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include "capture.h"
#include "recover.h"

#define PEEK_BYTES (1u << 20) /* run ids stand in the first blocks */

G_DEFINE_QUARK(rs - error - quark, rs_error)

typedef struct {
    gchar *path;
    gchar *run_id;
    guint64 bytes;
    gboolean named; /* by the user, not found in a folder */
} Capture;

typedef struct {
    GPtrArray *captures; /* Capture */
    gchar *sqlite;       /* the one SQLite file, NULL none */
    gboolean from_folder;
    RsBuilder *b;
    RsProgress progress;
    gpointer data;
    guint64 bytes, bytes_done;
    guint64 current_bytes;
} Opening;

static void free_capture(gpointer data)
{
    Capture *c = data;
    g_free(c->path);
    g_free(c->run_id);
    g_free(c);
}

static void opening_clear(Opening *o)
{
    g_ptr_array_unref(o->captures);
    g_free(o->sqlite);
    g_clear_pointer(&o->b, rs_builder_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Opening, opening_clear)

/* ---- what the paths are ---- */

typedef enum {
    CONTENT_CAPTURE,
    CONTENT_SQLITE,
    CONTENT_JSON,
    CONTENT_EMPTY,
    CONTENT_OTHER
} Content;

static gboolean sniff(const gchar *path, Content *ret, GError **error)
{
    gchar head[16] = {0};
    FILE *f = g_fopen(path, "rbe");
    if (!f) {
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: %s", path, g_strerror(errno));
        return FALSE;
    }
    gsize n = fread(head, 1, sizeof head, f);
    fclose(f);
    static const guint32 magic = RS_BLOCK_MAGIC;
    if (memcmp(head, "SQLite format 3", 16) == 0)
        *ret = CONTENT_SQLITE;
    else if (memcmp(head, &magic, sizeof magic) == 0 || rs_capture_is_named(path))
        *ret = CONTENT_CAPTURE;
    else if (n == 0)
        *ret = CONTENT_EMPTY;
    else
        *ret = head[0] == '{' || head[0] == '[' ? CONTENT_JSON : CONTENT_OTHER;
    return TRUE;
}

static void add_capture(Opening *o, const gchar *path, gboolean named)
{
    Capture *c = g_new0(Capture, 1);
    GStatBuf st;
    c->path = g_strdup(path);
    c->named = named;
    c->bytes = g_stat(path, &st) == 0 ? (guint64)st.st_size : 0;
    o->bytes += c->bytes;
    g_ptr_array_add(o->captures, c);
}

static gboolean add_sqlite(Opening *o, const gchar *path, GError **error)
{
    if (o->sqlite) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "%s: one .sqlite file is a run of its own: name it alone", path);
        return FALSE;
    }
    o->sqlite = g_strdup(path);
    return TRUE;
}

static gboolean add_file(Opening *o, const gchar *path, GError **error)
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
    case CONTENT_JSON:
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: a JSON file; of a run, name its folder, its captures (.rsc) or its "
                    ".sqlite file",
                    path);
        return FALSE;
    case CONTENT_EMPTY:
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: is empty", path);
        return FALSE;
    default:
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: neither a Ringscope capture nor an SQLite file; name a run folder, "
                    "captures (.rsc) or a .sqlite file",
                    path);
        return FALSE;
    }
}

static gint compare_names(gconstpointer a, gconstpointer c)
{
    return strcmp(*(const gchar *const *)a, *(const gchar *const *)c);
}

/* Names in a folder, sorted; NULL where it can't be read. */
static GPtrArray *list_folder(const gchar *path, GError **error)
{
    g_autoptr(GError) cause = NULL;
    GDir *dir = g_dir_open(path, 0, &cause);
    if (!dir) {
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: %s", path, cause->message);
        return NULL;
    }
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    const gchar *name;
    while ((name = g_dir_read_name(dir)))
        g_ptr_array_add(names, g_build_filename(path, name, NULL));
    g_dir_close(dir);
    g_ptr_array_sort(names, compare_names);
    return names;
}

static guint add_captures_of(Opening *o, const GPtrArray *names)
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
static guint add_captures_below(Opening *o, const GPtrArray *names)
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

static gboolean add_folder(Opening *o, const gchar *path, GError **error)
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
    g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                "%s: %s: no captures (.rsc) and no run.sqlite; was the program traced "
                "(LD_PRELOAD), and is this its RINGSCOPE_DIR?",
                path, names->len ? "no run folder" : "empty folder");
    return FALSE;
}

static gboolean add_path(Opening *o, const gchar *path, GError **error)
{
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: no such file or folder", path);
        return FALSE;
    }
    return g_file_test(path, G_FILE_TEST_IS_DIR) ? add_folder(o, path, error)
                                                 : add_file(o, path, error);
}

/* ---- runs that share a folder ---- */

static void peek_run_ids(Opening *o)
{
    for (guint i = 0; i < o->captures->len; i++) {
        Capture *c = g_ptr_array_index(o->captures, i);
        g_autoptr(RsBlocks) blocks = rs_blocks_open(c->path, PEEK_BYTES, NULL);
        g_autoptr(GHashTable) meta = blocks ? rs_capture_meta(blocks) : NULL;
        const gchar *id = meta ? g_hash_table_lookup(meta, "run_id") : NULL;
        c->run_id = g_strdup(id ? id : "");
    }
}

/* The run whose last capture was written last. */
static gchar *newest_run(const Opening *o)
{
    gint64 newest = G_MININT64;
    const gchar *id = NULL;
    for (guint i = 0; i < o->captures->len; i++) {
        const Capture *c = g_ptr_array_index(o->captures, i);
        GStatBuf st;
        gint64 when = g_stat(c->path, &st) == 0 ? (gint64)st.st_mtime : 0;
        if (c->run_id[0] && when > newest) {
            newest = when;
            id = c->run_id;
        }
    }
    return g_strdup(id);
}

static void leave_out_other_runs(Opening *o)
{
    g_autofree gchar *id = newest_run(o);
    guint others = 0;
    const gchar *example = NULL;
    for (guint i = o->captures->len; id && i-- > 0;) {
        Capture *c = g_ptr_array_index(o->captures, i);
        if (!c->run_id[0] || g_str_equal(c->run_id, id))
            continue;
        others++;
        example = c->path;
        if (c->named)
            continue; /* the user knows better */
        rs_builder_warn(o->b, c->path, 0, "of another run (%s, not %s): left out", c->run_id, id);
        o->bytes -= c->bytes;
        g_ptr_array_remove_index(o->captures, i);
        example = NULL;
    }
    if (others && example)
        rs_builder_warn(o->b, example, 0, "captures of different runs are read as one");
}

/* ---- reading ---- */

static void pass_progress(gdouble share, const gchar *what, gpointer data)
{
    Opening *o = data;
    gdouble done = (gdouble)o->bytes_done + share * (gdouble)o->current_bytes;
    o->progress(done / (gdouble)MAX(o->bytes, 1) * 0.8, what, o->data);
}

static void note_state(Opening *o, guint32 process, const RsRecovery *r)
{
    RsProcess *p = rs_builder_process(o->b, process);
    if (r->state == RS_RINGS_LIVE) {
        rs_builder_set_text(&p->note, "its process still runs: read as far as it is written");
        p->ended = FALSE;
    } else if (r->state == RS_RINGS_ORPHANED) {
        rs_builder_warn(o->b, p->path, 0,
                        "its process was killed: %" G_GUINT64_FORMAT
                        " events were still in its rings and are read from there",
                        r->events);
    }
}

static gboolean read_capture(Opening *o, const Capture *c, GError **error)
{
    g_autoptr(RsBlocks) blocks = rs_blocks_open(c->path, G_MAXUINT64, error);
    if (!blocks)
        return FALSE;
    g_autoptr(GHashTable) meta = rs_capture_meta(blocks);
    g_autoptr(RsRecovery) recovery = rs_recover_look(meta);
    RsBlocks *parts[2] = {blocks, NULL};
    g_autoptr(RsBlocks) tail = NULL;
    if (recovery->state == RS_RINGS_ORPHANED) {
        g_autoptr(GBytes) bytes = g_bytes_new(recovery->blocks->data, recovery->blocks->len);
        parts[1] = tail = rs_blocks_open_bytes(c->path, bytes);
        rs_blocks_free(blocks);
        parts[0] = blocks = rs_blocks_open(c->path, recovery->capture_bytes, error);
        if (!blocks)
            return FALSE;
    }
    guint32 process;
    o->current_bytes = c->bytes;
    if (!rs_capture_read(o->b, parts, tail ? 2 : 1, o->progress ? pass_progress : NULL, o, &process,
                         error))
        return FALSE;
    note_state(o, process, recovery);
    return TRUE;
}

/* One capture that holds nothing does not spoil the others. */
static gboolean read_captures(Opening *o, GError **error)
{
    guint good = 0;
    g_autoptr(GError) first = NULL;
    for (guint i = 0; i < o->captures->len; i++) {
        const Capture *c = g_ptr_array_index(o->captures, i);
        g_autoptr(GError) cause = NULL;
        if (read_capture(o, c, &cause)) {
            good++;
        } else {
            /* the message names the path */
            rs_builder_warn(o->b, "", 0, "%s: left out", cause->message);
            if (!first)
                first = g_steal_pointer(&cause);
        }
        o->bytes_done += c->bytes;
    }
    if (good == 0)
        g_propagate_error(error, g_steal_pointer(&first));
    return good > 0;
}

static RsModel *open_captures(Opening *o, GError **error)
{
    o->b = rs_builder_new();
    if (o->captures->len > 1) {
        peek_run_ids(o);
        leave_out_other_runs(o);
    }
    gboolean alone = o->captures->len == 1 && !o->from_folder;
    if (!read_captures(o, error))
        return NULL;
    if (o->progress)
        o->progress(0.8, "matching", o->data);
    return rs_builder_finish(g_steal_pointer(&o->b), alone ? RS_FINISH_NO_MISSING : RS_FINISH_ALL);
}

static RsModel *open_sqlite(Opening *o, GError **error)
{
    g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                "%s: an SQLite file; this version reads captures only", o->sqlite);
    return NULL;
}

RsModel *rs_run_open(const gchar *const *paths, RsProgress progress, gpointer data, GError **error)
{
    g_auto(Opening) o = {.progress = progress, .data = data};
    o.captures = g_ptr_array_new_with_free_func(free_capture);
    if (!paths[0]) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "no run given: name a run folder, captures (.rsc) or a .sqlite file");
        return NULL;
    }
    for (guint i = 0; paths[i]; i++)
        if (!add_path(&o, paths[i], error))
            return NULL;
    if (o.sqlite && o.captures->len) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "%s: an .sqlite file and captures are not one run: name one of them", o.sqlite);
        return NULL;
    }
    return o.sqlite ? open_sqlite(&o, error) : open_captures(&o, error);
}
