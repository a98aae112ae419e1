/* SPDX-License-Identifier: Apache-2.0 */
#include "capture-internal.h"

#include <string.h>

#include "plural.h"

gboolean rs_capture_is_named(const gchar *path)
{
    return g_str_has_suffix(path, ".rsc");
}

/* ---- META ---- */

static void read_meta(GHashTable *meta, const guint8 *payload, gsize bytes)
{
    const gchar *p = (const gchar *)payload, *end = p + bytes;
    while (p < end) {
        gsize key = strnlen(p, (gsize)(end - p));
        const gchar *value = p + key + 1;
        if (value >= end)
            return;
        gsize n = strnlen(value, (gsize)(end - value));
        if (key > 0)
            g_hash_table_replace(meta, g_utf8_make_valid(p, (gssize)key),
                                 g_utf8_make_valid(value, (gssize)n));
        p = value + n + 1;
    }
}

static void collect_meta(GHashTable *meta, RsBlocks *blocks)
{
    for (guint i = 0; i < blocks->index->len; i++) {
        const RsBlockAt *at = &g_array_index(blocks->index, RsBlockAt, i);
        const guint8 *payload =
            at->head.kind == RS_BLOCK_META ? rs_blocks_payload(blocks, i) : NULL;
        if (payload)
            read_meta(meta, payload, at->head.payload_bytes);
    }
}

static GHashTable *new_meta(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

GHashTable *rs_capture_meta(RsBlocks *blocks)
{
    GHashTable *meta = new_meta();
    collect_meta(meta, blocks);
    return meta;
}

static gint64 meta_number(GHashTable *meta, const gchar *key, gint64 fallback)
{
    const gchar *text = g_hash_table_lookup(meta, key);
    gint64 value;
    return text && g_ascii_string_to_signed(text, 10, G_MININT32, G_MAXINT64, &value, NULL)
               ? value
               : fallback;
}

static const gchar *meta_text(GHashTable *meta, const gchar *key, const gchar *fallback)
{
    const gchar *text = g_hash_table_lookup(meta, key);
    return text && text[0] ? text : fallback;
}

static gint32 small(gint64 v, gint32 fallback)
{
    return v >= 0 && v <= G_MAXINT32 ? (gint32)v : fallback;
}

static gdouble fastest_nic(GHashTable *meta)
{
    GHashTableIter it;
    gpointer key, value;
    gdouble best = 0;
    g_hash_table_iter_init(&it, meta);
    while (g_hash_table_iter_next(&it, &key, &value)) {
        if (!g_str_has_prefix(key, "nic.") || !g_str_has_suffix(key, ".mbps"))
            continue;
        gdouble mbps = g_ascii_strtod(value, NULL);
        if (mbps > best && mbps < 1e9)
            best = mbps;
    }
    return best;
}

static void apply_meta(RsCapture *c, GHashTable *meta)
{
    RsProcess *p = c->p;
    p->rank = small(meta_number(meta, "rank", -1), -1);
    p->world_size = small(meta_number(meta, "world_size", 0), 0);
    p->pid = meta_number(meta, "pid", 0);
    rs_builder_set_text(&p->host, meta_text(meta, "host", meta_text(meta, "machine", "?")));
    rs_builder_set_text(&p->domain, meta_text(meta, "domain", p->host));
    rs_builder_set_text(&p->program, meta_text(meta, "program", ""));
    rs_builder_set_text(&p->path, c->path);
    const gchar *source = meta_text(meta, "clock.source", "tsc");
    p->unit = g_str_equal(source, "monotonic") ? RS_TIME_MONOTONIC : RS_TIME_TICKS;
    p->tick_hz = g_ascii_strtod(meta_text(meta, "clock.hz", "0"), NULL);
    p->nic_mbps = fastest_nic(meta);
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, meta);
    while (g_hash_table_iter_next(&it, &key, &value))
        rs_builder_meta(c->b, c->process, key, value);
}

/* ---- blocks ---- */

static void read_clock(RsCapture *c, const guint8 *payload, gsize bytes)
{
    for (gsize at = 0; at + sizeof(guint32) <= bytes;) {
        guint32 kind;
        memcpy(&kind, payload + at, sizeof kind);
        if (kind == RS_CLOCK_ANCHOR && bytes - at >= sizeof(struct rs_anchor)) {
            struct rs_anchor a;
            memcpy(&a, payload + at, sizeof a);
            g_array_append_val(c->p->anchors, a);
            at += sizeof a;
        } else if (kind == RS_CLOCK_PROBE && bytes - at >= sizeof(struct rs_clock_probe)) {
            struct rs_clock_probe probe;
            memcpy(&probe, payload + at, sizeof probe);
            g_array_append_val(c->p->probes, probe);
            at += sizeof probe;
        } else {
            return; /* of a newer minor version: lengths unknown from here on */
        }
    }
}

/* What all the rest refers to. */
static void read_definition_block(RsCapture *c, const RsBlockAt *at, const guint8 *payload)
{
    switch (at->head.kind) {
    case RS_BLOCK_DEFS:
        rs_capture_read_defs(c, payload, at->head.payload_bytes, at->offset + sizeof at->head);
        break;
    case RS_BLOCK_CLOCK:
        read_clock(c, payload, at->head.payload_bytes);
        break;
    case RS_BLOCK_SWITCH:
        rs_capture_read_switches(c, payload, at->head.payload_bytes);
        break;
    default:
        break;
    }
}

static void read_event_block(RsCapture *c, const RsBlockAt *at, const guint8 *payload)
{
    switch (at->head.kind) {
    case RS_BLOCK_META:
    case RS_BLOCK_DEFS:
    case RS_BLOCK_CLOCK:
    case RS_BLOCK_SWITCH:
        break;
    case RS_BLOCK_EVENTS:
        rs_capture_read_events(c, &at->head, payload);
        break;
    case RS_BLOCK_OPEN:
        rs_capture_read_open(c, &at->head, payload);
        break;
    case RS_BLOCK_END:
        if (at->head.payload_bytes >= sizeof c->end) {
            memcpy(&c->end, payload, sizeof c->end);
            c->has_end = TRUE;
            c->last_tick = MAX(c->last_tick, c->end.tick);
        }
        break;
    default:
        c->unknown_blocks++;
    }
}

typedef void (*BlockReader)(RsCapture *c, const RsBlockAt *at, const guint8 *payload);

static void for_each_block(RsCapture *c, RsBlocks *const *parts, guint n_parts, gboolean events,
                           RsProgress progress, gpointer data)
{
    BlockReader read = events ? read_event_block : read_definition_block;
    for (guint p = 0; p < n_parts; p++) {
        RsBlocks *blocks = parts[p];
        for (guint i = 0; i < blocks->index->len; i++) {
            const RsBlockAt *at = &g_array_index(blocks->index, RsBlockAt, i);
            gboolean is_events = at->head.kind == RS_BLOCK_EVENTS;
            if (!events && is_events)
                continue;
            const guint8 *payload = rs_blocks_payload(blocks, i);
            if (payload)
                read(c, at, payload);
            else if (events)
                rs_builder_warn(c->b, c->path, at->offset, "can't be read any more");
            if (progress && events && i % 16 == 0)
                progress((gdouble)at->offset / (gdouble)MAX(blocks->bytes, 1), c->path, data);
        }
    }
}

/* ---- losses ---- */

static void warn_losses(RsCapture *c, const RsBlocks *blocks)
{
    for (guint i = 0; i < blocks->losses->len; i++) {
        const RsBlockLoss *l = &g_array_index(blocks->losses, RsBlockLoss, i);
        rs_builder_warn(c->b, c->path, l->offset, "%s (%" G_GUINT64_FORMAT " byte%s)", l->what,
                        l->bytes, rs_plural(l->bytes));
    }
    if (blocks->lost_blocks)
        rs_builder_warn(c->b, c->path, 0, "%" G_GUINT64_FORMAT " block%s missing",
                        blocks->lost_blocks, rs_plural(blocks->lost_blocks));
    if (blocks->newer)
        rs_builder_warn(c->b, c->path, 0, "%u block%s of format %u skipped: use a newer ringscope",
                        blocks->newer, rs_plural(blocks->newer), blocks->newer_major);
}

static void warn_counts(RsCapture *c)
{
    const struct {
        guint64 n;
        const gchar *noun, *what;
    } counts[] = {
        {c->unknown_blocks, "block",
         "of a kind unknown to this version skipped: use a newer ringscope"},
        {c->unknown_defs, "definition",
         "of a kind unknown to this version skipped: use a newer ringscope"},
        {c->unknown_ops, "event",
         "of a kind unknown to this version skipped: use a newer ringscope"},
        {c->stray_slots, "extension slot", "without an event skipped"},
        {c->bad_times, "event", "with an end before the start taken as instants"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(counts); i++)
        if (counts[i].n)
            rs_builder_warn(c->b, c->path, 0, "%" G_GUINT64_FORMAT " %s%s %s", counts[i].n,
                            counts[i].noun, rs_plural(counts[i].n), counts[i].what);
}

static RsEnding ending_of(const RsCapture *c)
{
    switch (c->has_end ? c->end.reason : 0) {
    case 0:
        return RS_ENDING_UNKNOWN;
    case RS_END_KILLED:
        return RS_ENDING_KILLED;
    case RS_END_ABORT:
        return RS_ENDING_ABORTED;
    case RS_END_RUNNING:
        return RS_ENDING_RUNNING;
    case RS_END_EXIT:
    case RS_END_QUICK_EXIT:
        return c->end.flags ? RS_ENDING_EXITED : RS_ENDING_CLEAN;
    default:
        return RS_ENDING_CLEAN;
    }
}

static const gchar *end_note(const RsCapture *c, gboolean damaged)
{
    switch (ending_of(c)) {
    case RS_ENDING_UNKNOWN:
        return "the capture has no end: its process still runs, was killed, or the file was cut";
    case RS_ENDING_KILLED:
        return "its process was killed";
    case RS_ENDING_ABORTED:
        return "its process aborted";
    case RS_ENDING_RUNNING:
        return "its process still runs";
    case RS_ENDING_EXITED:
        return c->end.flags & RS_END_IN_CALL ? "its process exited inside a call"
                                             : "its process exited without MPI_Finalize";
    default:
        break;
    }
    return damaged ? "parts of the capture are damaged" : NULL;
}

static void settle(RsCapture *c, RsBlocks *const *parts, guint n_parts)
{
    gboolean damaged = FALSE;
    for (guint i = 0; i < n_parts; i++) {
        warn_losses(c, parts[i]);
        damaged = damaged || parts[i]->losses->len || parts[i]->lost_blocks;
    }
    warn_counts(c);
    guint64 dropped = 0;
    GHashTableIter it;
    gpointer value;
    g_hash_table_iter_init(&it, c->threads);
    while (g_hash_table_iter_next(&it, NULL, &value))
        dropped += ((RsCaptureThread *)value)->dropped;
    dropped = MAX(dropped, c->holes) + c->left_out;
    c->p->dropped = MAX(dropped, c->has_end ? c->end.dropped : 0);
    c->p->ending = ending_of(c);
    if (c->p->ending > RS_ENDING_CLEAN)
        rs_capture_mark_end(c, c->end.tick);
    const gchar *note = end_note(c, damaged);
    if (note)
        rs_builder_set_text(&c->p->note, note);
}

/* ---- the whole ---- */

static gboolean holds_something(RsBlocks *const *parts, guint n_parts, GError **error)
{
    const RsBlocks *file = parts[0];
    for (guint i = 0; i < n_parts; i++)
        if (parts[i]->index->len > 0)
            return TRUE;
    if (file->newer)
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: capture format %u is newer than this version reads (%d): use a newer "
                    "ringscope",
                    file->path, file->newer_major, RS_FORMAT_MAJOR);
    else if (file->bytes == 0)
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: is empty: its process recorded nothing, or its disk was full", file->path);
    else
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: not a Ringscope capture, or damaged throughout (no whole block in it)",
                    file->path);
    return FALSE;
}

gboolean rs_capture_read(RsBuilder *b, RsBlocks *const *parts, guint n_parts, RsProgress progress,
                         gpointer data, guint32 *ret_process, GError **error)
{
    if (!holds_something(parts, n_parts, error))
        return FALSE;
    RsCapture *c = g_new0(RsCapture, 1);
    c->b = b;
    c->path = parts[0]->path;
    c->process = rs_builder_add_process(b, -1, "?", 0);
    c->p = rs_builder_process(b, c->process);
    rs_capture_init_tables(c);
    c->switches = g_array_new(FALSE, FALSE, sizeof(struct rs_switch));
    g_autoptr(GHashTable) meta = new_meta();
    for (guint i = 0; i < n_parts; i++)
        collect_meta(meta, parts[i]);
    apply_meta(c, meta);
    for_each_block(c, parts, n_parts, FALSE, NULL, NULL);
    for_each_block(c, parts, n_parts, TRUE, progress, data);
    rs_capture_place_activities(c);
    rs_capture_add_open(c);
    settle(c, parts, n_parts);
    rs_capture_add_off(c);
    if (ret_process)
        *ret_process = c->process;
    rs_capture_devices_free(c->devices);
    rs_capture_clear_tables(c);
    g_array_unref(c->switches);
    g_free(c);
    return TRUE;
}
