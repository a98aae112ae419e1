/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <glib/gstdio.h>
#include <string.h>

#include "capture.h"
#include "export/sqlite-read.h"
#include "left-out.h"
#include "plural.h"
#include "recover.h"
#include "run-reading.h"
#include "run-traces.h"

#define PEEK_BYTES (1u << 20) /* run ids stand in the first blocks */
#define END_BYTES                                                                                  \
    (sizeof(struct rs_block) + sizeof(struct rs_end)) /* END is a capture's last block */

G_DEFINE_QUARK(rs - error - quark, rs_error)

typedef struct {
    const RsRunFile *file;
    gchar *run_id; /* "" unknown */
} Capture;

typedef struct {
    const RsRunFiles *files;
    GArray *captures;  /* Capture: of the files, those that are of the run */
    GPtrArray *chosen; /* their files */
    RsRunReading reading;
    gboolean now; /* what it is in now, not all it did */
} Opening;

static void clear_capture(gpointer data)
{
    g_free(((Capture *)data)->run_id);
}

static void opening_clear(Opening *o)
{
    rs_run_reading_clear(&o->reading);
    g_array_unref(o->captures);
    g_ptr_array_unref(o->chosen);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Opening, opening_clear)

/* ---- runs that share a folder ---- */

static gchar *peek_run_id(const gchar *path)
{
    g_autoptr(RsBlocks) blocks = rs_blocks_open(path, PEEK_BYTES, NULL);
    g_autoptr(GHashTable) meta = blocks ? rs_capture_meta(blocks) : NULL;
    const gchar *id = meta ? g_hash_table_lookup(meta, "run_id") : NULL;
    return g_strdup(id ? id : "");
}

/* The run whose last capture was written last; NULL where none says its run. */
static gchar *newest_run(const Opening *o)
{
    gint64 newest = G_MININT64;
    const gchar *id = NULL;
    for (guint i = 0; i < o->captures->len; i++) {
        const Capture *c = &g_array_index(o->captures, Capture, i);
        GStatBuf st;
        gint64 when = g_stat(c->file->path, &st) == 0 ? (gint64)st.st_mtime : 0;
        if (c->run_id[0] && when > newest) {
            newest = when;
            id = c->run_id;
        }
    }
    return g_strdup(id);
}

/* In a folder the newest run counts; what a user named, the user means. */
static void leave_out_other_runs(Opening *o)
{
    g_autofree gchar *id = newest_run(o);
    g_autofree gchar *why = g_strdup_printf(
        "of another run than %s, the newest there; to read it, name its captures", id ? id : "");
    const gchar *mixed = NULL;
    for (guint i = 0; id && i < o->captures->len; i++) {
        const Capture *c = &g_array_index(o->captures, Capture, i);
        if (!c->run_id[0] || g_str_equal(c->run_id, id))
            continue;
        if (c->file->named) {
            mixed = c->file->path;
            continue;
        }
        rs_left_out_add(o->reading.left_out, c->file->path, why);
        g_array_remove_index(o->captures, i--);
    }
    if (mixed)
        rs_builder_warn(o->reading.b, mixed, 0, "captures of different runs are read as one");
}

static void choose_captures(Opening *o)
{
    gboolean several = o->files->captures->len > 1;
    for (guint i = 0; i < o->files->captures->len; i++) {
        const RsRunFile *f = g_ptr_array_index(o->files->captures, i);
        Capture c = {f, several ? peek_run_id(f->path) : g_strdup("")};
        g_array_append_val(o->captures, c);
    }
    leave_out_other_runs(o);
    for (guint i = 0; i < o->captures->len; i++)
        g_ptr_array_add(o->chosen, (gpointer)g_array_index(o->captures, Capture, i).file);
}

/* ---- reading ---- */

static void note_state(Opening *o, guint32 process, const RsRecovery *r, gboolean from_rings)
{
    RsProcess *p = rs_builder_process(o->reading.b, process);
    if (r->state == RS_RINGS_LIVE && p->ending == RS_ENDING_UNKNOWN)
        rs_builder_set_text(&p->note, "its process still runs: read as far as it is written");
    if (from_rings && r->events > 0)
        rs_builder_warn(o->reading.b, p->path, 0,
                        "%" G_GUINT64_FORMAT
                        " event%s read from memory, where its process left them "
                        "as it %s: merge saves them",
                        r->events, rs_plural(r->events),
                        p->ending == RS_ENDING_KILLED ? "was killed" : "found no room in the file");
}

static gboolean read_capture(Opening *o, const gchar *path, GError **error)
{
    g_autoptr(RsBlocks) blocks = rs_blocks_open(path, G_MAXUINT64, error);
    if (!blocks)
        return FALSE;
    g_autoptr(GHashTable) meta = rs_capture_meta(blocks);
    g_autoptr(RsRecovery) recovery = rs_recover_look(meta);
    g_autoptr(RsBlocks) tail = NULL;
    if (rs_recovery_adds(recovery, blocks)) {
        g_autoptr(GBytes) bytes = g_bytes_new(recovery->blocks->data, recovery->blocks->len);
        tail = rs_blocks_open_bytes(path, bytes);
        rs_blocks_free(blocks);
        blocks = rs_blocks_open(path, recovery->capture_bytes, error);
        if (!blocks)
            return FALSE;
    }
    RsBlocks *parts[2] = {blocks, tail};
    guint32 process;
    if (!rs_capture_read(o->reading.b, parts, tail ? 2 : 1, rs_run_reading_progress(&o->reading),
                         &o->reading, &process, error))
        return FALSE;
    note_state(o, process, recovery, tail != NULL);
    return TRUE;
}

/* ---- looking ---- */

/* What a process says of itself in the first blocks of its capture; their events are left out. */
static RsBlocks *open_beginning(const gchar *path, GError **error)
{
    RsBlocks *blocks = rs_blocks_open(path, PEEK_BYTES, error);
    for (guint i = blocks ? blocks->index->len : 0; i-- > 0;) {
        guint16 kind = g_array_index(blocks->index, RsBlockAt, i).head.kind;
        if (kind != RS_BLOCK_META && kind != RS_BLOCK_CLOCK)
            g_array_remove_index(blocks->index, i);
    }
    if (blocks)
        g_array_set_size(blocks->losses, 0); /* where it was cut */
    return blocks;
}

/* The block that closes a capture, NULL where there is none. */
static RsBlocks *open_end(const gchar *path)
{
    guint8 data[END_BYTES];
    FILE *f = g_fopen(path, "rbe");
    gboolean good =
        f && fseek(f, -(long)sizeof data, SEEK_END) == 0 && fread(data, sizeof data, 1, f) == 1;
    if (f)
        fclose(f);
    if (!good)
        return NULL;
    g_autoptr(GBytes) bytes = g_bytes_new(data, sizeof data);
    RsBlocks *blocks = rs_blocks_open_bytes(path, bytes);
    if (blocks->index->len == 1 && blocks->losses->len == 0)
        return blocks;
    rs_blocks_free(blocks);
    return NULL;
}

static gboolean is_closed(RsBlocks *end)
{
    struct rs_end e;
    if (!end || g_array_index(end->index, RsBlockAt, 0).head.kind != RS_BLOCK_END)
        return FALSE;
    memcpy(&e, rs_blocks_payload(end, 0), sizeof e);
    return e.reason != RS_END_KILLED && e.reason != RS_END_ABORT && !e.flags; /* else in a call */
}

static gboolean look_at_capture(Opening *o, const gchar *path, GError **error)
{
    g_autoptr(RsBlocks) beginning = open_beginning(path, error);
    if (!beginning)
        return FALSE;
    g_autoptr(GHashTable) meta = rs_capture_meta(beginning);
    g_autoptr(RsRecovery) recovery = rs_recover_look_now(meta);
    g_autoptr(RsBlocks) rest = NULL;
    if (recovery->state != RS_RINGS_NONE) {
        g_autoptr(GBytes) bytes = g_bytes_new(recovery->blocks->data, recovery->blocks->len);
        rest = rs_blocks_open_bytes(path, bytes);
    } else {
        rest = open_end(path);
        if (!is_closed(rest))
            return read_capture(o, path, error);
    }
    RsBlocks *parts[2] = {beginning, rest};
    return rs_capture_read(o->reading.b, parts, 2, NULL, NULL, NULL, error);
}

/* ---- all of them ---- */

static gboolean read_one(gpointer opening, guint i, GError **error)
{
    Opening *o = opening;
    const gchar *path = ((const RsRunFile *)g_ptr_array_index(o->chosen, i))->path;
    return o->now ? look_at_capture(o, path, error) : read_capture(o, path, error);
}

static RsModel *open_captures(const RsRunFiles *files, gboolean now, RsProgress progress,
                              gpointer data, GError **error)
{
    g_auto(Opening) o = {.files = files, .now = now};
    o.captures = g_array_new(FALSE, FALSE, sizeof(Capture));
    g_array_set_clear_func(o.captures, clear_capture);
    o.chosen = g_ptr_array_new();
    rs_run_reading_init(&o.reading, progress, data);
    choose_captures(&o);
    if (!rs_run_reading_all(&o.reading, o.chosen, read_one, &o, error))
        return NULL;
    rs_left_out_warn(o.reading.left_out, o.reading.b, "captures");
    return rs_run_reading_finish(&o.reading, files->captures->len == 1 && !files->from_folder);
}

RsModel *rs_run_open_as(const gchar *const *paths, const RsRunOptions *options, RsProgress progress,
                        gpointer data, GError **error)
{
    g_autoptr(RsRunFiles) files = rs_run_files_find(paths, error);
    if (!files || !rs_run_traces_check(files, options, error))
        return NULL;
    if (files->sqlite)
        return rs_sqlite_read(files->sqlite, progress, data, error);
    if (files->traces->len)
        return rs_run_traces_open(files, options, progress, data, error);
    return open_captures(files, FALSE, progress, data, error);
}

RsModel *rs_run_open(const gchar *const *paths, RsProgress progress, gpointer data, GError **error)
{
    return rs_run_open_as(paths, NULL, progress, data, error);
}

RsModel *rs_run_look(const gchar *const *paths, RsProgress progress, gpointer data, GError **error)
{
    g_autoptr(RsRunFiles) files = rs_run_files_find(paths, error);
    if (!files)
        return NULL;
    if (files->sqlite)
        return rs_sqlite_read(files->sqlite, progress, data, error);
    if (files->traces->len)
        return rs_run_traces_open(files, NULL, progress, data, error);
    return open_captures(files, TRUE, progress, data, error);
}
