/* SPDX-License-Identifier: Apache-2.0 */
/* chrome-tracks.c - pids and tids, what metadata calls them, and whose ranks they are. */
#include "chrome-internal.h"

#include "../trace-ranks.h"

#define WALL_END (G_GINT64_CONSTANT(1) << 62) /* the year 2116: what is later is no time */

/* ---- ids ---- */

guint64 rs_chrome_hash(guint64 seed, const gchar *p, gsize n)
{
    const guint64 k = G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    guint64 h = (seed ^ n) * k, w;
    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&w, p, 8);
        h = (h ^ w) * k;
        h ^= h >> 29;
    }
    w = 0;
    if (n)
        memcpy(&w, p, n);
    h = (h ^ w) * k;
    return h ^ h >> 32;
}

static guint hash_id(gconstpointer key)
{
    const RsChromeId *i = key;
    return (guint)(((i->value + i->is_text) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15)) >> 32);
}

static gboolean equal_ids(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(RsChromeId)) == 0;
}

static guint hash_track(gconstpointer key)
{
    const RsChromeTrackKey *k = key;
    return hash_id(&k->pid) * 31 + hash_id(&k->tid);
}

static gboolean equal_tracks(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(RsChromeTrackKey)) == 0;
}

static RsChromeId id_of(RsChrome *c, const RsJsonSpan *s)
{
    RsChromeId id = {0};
    gint64 negative;
    if (s->type == RS_JSON_NONE)
        return id;
    if (s->type == RS_JSON_NUMBER && rs_json_u64(s, &id.value))
        return id;
    if (s->type == RS_JSON_NUMBER && rs_json_i64(s, &negative))
        id.value = (guint64)negative;
    else
        id = (RsChromeId){rs_chrome_string(c, s), 1};
    return id;
}

void rs_chrome_tracks_init(RsChrome *c)
{
    c->track_ids = g_hash_table_new_full(hash_track, equal_tracks, g_free, NULL);
    c->pid_ids = g_hash_table_new_full(hash_id, equal_ids, g_free, NULL);
    c->tracks = g_array_new(FALSE, TRUE, sizeof(RsChromeTrack));
    c->pids = g_array_new(FALSE, TRUE, sizeof(RsChromePid));
    c->last_track = RS_NONE;
}

void rs_chrome_tracks_release(RsChrome *c)
{
    g_hash_table_unref(c->track_ids);
    g_hash_table_unref(c->pid_ids);
    g_array_unref(c->tracks);
    g_array_unref(c->pids);
}

static guint32 pid_index(RsChrome *c, RsChromeId id)
{
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(c->pid_ids, &id));
    if (known)
        return known - 1;
    RsChromePid p = {.id = id, .process = RS_NONE};
    g_array_append_val(c->pids, p);
    g_hash_table_insert(c->pid_ids, g_memdup2(&id, sizeof id), GUINT_TO_POINTER(c->pids->len));
    return c->pids->len - 1;
}

RsChromePid *rs_chrome_pid(RsChrome *c, const RsJsonSpan *s)
{
    guint32 i = pid_index(c, id_of(c, s)); /* may move the array */
    return &g_array_index(c->pids, RsChromePid, i);
}

guint32 rs_chrome_track(RsChrome *c, const RsChromeRecord *r)
{
    RsChromeTrackKey key = {id_of(c, &r->pid), id_of(c, &r->tid)};
    if (c->last_track != RS_NONE &&
        equal_tracks(&key, &g_array_index(c->tracks, RsChromeTrack, c->last_track).key))
        return c->last_track;
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(c->track_ids, &key));
    if (!known) {
        RsChromeTrack t = {.key = key, .pid = pid_index(c, key.pid), .track = RS_NONE};
        g_array_append_val(c->tracks, t);
        known = c->tracks->len;
        g_hash_table_insert(c->track_ids, g_memdup2(&key, sizeof key), GUINT_TO_POINTER(known));
    }
    return c->last_track = known - 1;
}

guint32 rs_chrome_builder_track(RsChrome *c, guint32 track)
{
    RsChromeTrack *t = &g_array_index(c->tracks, RsChromeTrack, track);
    if (t->track == RS_NONE)
        t->track =
            rs_builder_add_track(c->b, 0, "", t->key.tid.is_text ? 0 : t->key.tid.value, FALSE);
    return t->track;
}

/* ---- metadata ---- */

static gboolean names_a_device(const gchar *name)
{
    return strstr(name, "/device:GPU") || strstr(name, "/device:gpu") ||
           g_str_has_prefix(name, "CUDA functions") || strstr(name, "stream:");
}

void rs_chrome_metadata(RsChrome *c, const RsChromeRecord *r)
{
    guint n = rs_chrome_scan_args(c, r);
    const RsJsonSpan *name = rs_chrome_arg(c, n, "name"), *labels = rs_chrome_arg(c, n, "labels");
    const RsJsonSpan *epoch = rs_chrome_arg(c, n, "start_time_since_epoch_in_micros"); /* Horovod */
    guint32 rest;
    if (epoch)
        rs_json_ns(epoch, 3, &c->base_time_ns, &rest);
    if (RS_JSON_IS(&r->name, "process_name") && name) {
        RsStr s = rs_chrome_string(c, name);
        RsChromePid *p = rs_chrome_pid(c, &r->pid);
        p->name = s;
        p->device = names_a_device(rs_builder_text(c->b, s));
    } else if (RS_JSON_IS(&r->name, "process_labels") && labels) {
        RsStr s = rs_chrome_string(c, labels);
        rs_chrome_pid(c, &r->pid)->labels = s;
    } else if (RS_JSON_IS(&r->name, "thread_name") && name) {
        RsStr s = rs_chrome_string(c, name);
        guint32 track = rs_chrome_track(c, r); /* may move the array */
        g_array_index(c->tracks, RsChromeTrack, track).name = s;
    }
}

/* ---- whose they are ---- */

static gchar *dup_id(const RsChrome *c, RsChromeId id)
{
    return id.is_text ? g_strdup(rs_builder_text(c->b, (RsStr)id.value))
                      : g_strdup_printf("%" G_GINT64_FORMAT, (gint64)id.value);
}

static gchar *dup_track_name(const RsChrome *c, const RsChromeTrack *t)
{
    const RsChromePid *p = &g_array_index(c->pids, RsChromePid, t->pid);
    g_autofree gchar *tid = dup_id(c, t->key.tid);
    if (t->device && !t->key.pid.is_text && !t->key.tid.is_text)
        return g_strdup_printf("GPU %" G_GUINT64_FORMAT " stream %s", t->key.pid.value, tid);
    if (t->name)
        return g_strdup(rs_builder_text(c->b, t->name));
    if (c->pids->len > 1 && p->device)
        return g_strdup_printf("%s %s", rs_builder_text(c->b, p->name), tid);
    if (t->key.tid.is_text)
        return g_steal_pointer(&tid);
    if (equal_ids(&t->key.tid, &t->key.pid))
        return g_strdup("main");
    return g_strdup_printf("thread %s", tid);
}

/* The process whose host tracks have most events names the rank's pid and program. */
static const RsChromePid *find_main_pid(const RsChrome *c)
{
    const RsChromePid *best = NULL;
    for (guint i = 0; i < c->pids->len; i++) {
        const RsChromePid *p = &g_array_index(c->pids, RsChromePid, i);
        if (!p->id.is_text && (!best || p->events > best->events))
            best = p;
    }
    return best;
}

guint32 rs_chrome_add_process(RsChrome *c, gint32 rank, const RsChromePid *p)
{
    gint64 pid = p && !p->id.is_text ? (gint64)p->id.value : 0;
    guint32 process =
        rs_builder_add_process(c->b, rank, c->host->len ? c->host->str : RS_HOST_UNKNOWN, pid);
    RsProcess *q = rs_builder_process(c->b, process);
    gint64 wall;
    gboolean has_wall =
        !__builtin_add_overflow(c->base_ns, c->base_time_ns, &wall) && wall > 0 && wall < WALL_END;
    struct rs_anchor a = {.realtime_ns = (guint64)wall};
    rs_builder_set_text(&q->path, c->path);
    rs_builder_set_text(&q->domain, c->path); /* files of one host may still differ in their base */
    if (p && p->name)
        rs_builder_set_text(&q->program, rs_builder_text(c->b, p->name));
    q->unit = RS_TIME_MONOTONIC;
    q->ending = c->is_stuck ? RS_ENDING_EXITED : RS_ENDING_CLEAN;
    if (has_wall)
        g_array_append_val(q->anchors, a);
    q->world_size = MAX(c->world_size, c->max_member + 1);
    if (rank < 0 || q->world_size <= rank)
        q->world_size = 0;
    return process;
}

/* Ranks by the processes' names, where each that has events has one of its own. */
static gboolean ranks_by_names(const RsChrome *c, gint32 *ranks)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    guint n = 0;
    for (guint i = 0; i < c->pids->len; i++) {
        const RsChromePid *p = &g_array_index(c->pids, RsChromePid, i);
        ranks[i] = p->name ? rs_trace_rank_of_text(rs_builder_text(c->b, p->name)) : -1;
        if (ranks[i] >= 0 && !g_hash_table_add(seen, GINT_TO_POINTER(ranks[i])))
            return FALSE;
        n += ranks[i] >= 0;
    }
    return n > 1 || (n == 1 && c->pids->len == 1);
}

/* One rank is the whole file, unless its processes say that each is one. */
static void make_processes(RsChrome *c)
{
    g_autofree gint32 *ranks = g_new(gint32, c->pids->len + 1);
    gint32 own = c->options->rank_given ? c->options->rank : c->rank >= 0 ? c->rank : c->own_member;
    gboolean by_names = own < 0 && !c->is_kineto && ranks_by_names(c, ranks);
    if (own < 0 && !by_names)
        own = c->options->rank;
    gboolean one = !by_names && (own >= 0 || c->is_kineto || c->pids->len < 2);
    guint32 process = one ? rs_chrome_add_process(c, own, find_main_pid(c)) : RS_NONE;
    for (guint i = 0; i < c->pids->len; i++) {
        RsChromePid *p = &g_array_index(c->pids, RsChromePid, i);
        p->process = process;
    }
    for (guint i = 0; !one && i < c->tracks->len; i++) {
        const RsChromeTrack *t = &g_array_index(c->tracks, RsChromeTrack, i);
        RsChromePid *p = &g_array_index(c->pids, RsChromePid, t->pid);
        if (t->track != RS_NONE && p->process == RS_NONE)
            p->process = rs_chrome_add_process(c, by_names ? ranks[t->pid] : -1, p);
    }
}

void rs_chrome_place_tracks(RsChrome *c)
{
    make_processes(c);
    for (guint i = 0; i < c->tracks->len; i++) {
        const RsChromeTrack *t = &g_array_index(c->tracks, RsChromeTrack, i);
        if (t->track == RS_NONE)
            continue;
        g_autofree gchar *name = dup_track_name(c, t);
        rs_builder_set_track(c->b, t->track, g_array_index(c->pids, RsChromePid, t->pid).process,
                             name, t->device);
    }
}
