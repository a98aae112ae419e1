/* SPDX-License-Identifier: Apache-2.0 */
#include "recover.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "ring.h"
#include "run.h"

#define SLOT           sizeof(struct rs_event)
#define CHUNK_SLOTS    (1u << 14) /* slots in one recovered block */
#define RINGS_MAX      4096       /* threads of one process */
#define RING_BYTES_MAX ((gint64)1 << 30)

/* ---- is it alive ---- */

/* Field 22 of /proc/<pid>/stat; the name in field 2 may hold blanks and brackets. A process that
 * has ended and waits for its parent (state Z or X) has no start time any more. */
static gboolean parse_start_time(const gchar *stat, guint64 *ret)
{
    const gchar *p = strrchr(stat, ')');
    if (p && p[1] == ' ' && strchr("ZX", p[2]))
        return FALSE;
    for (guint field = 2; p && field < 22; field++) {
        p = strchr(p + 1, ' ');
        if (!p)
            return FALSE;
    }
    if (!p)
        return FALSE;
    *ret = g_ascii_strtoull(p + 1, NULL, 10);
    return TRUE;
}

gboolean rs_process_lives(gint64 pid, guint64 start)
{
    g_autofree gchar *path = g_strdup_printf("/proc/%" G_GINT64_FORMAT "/stat", pid);
    g_autofree gchar *stat = NULL;
    guint64 now;
    if (pid <= 0 || !g_file_get_contents(path, &stat, NULL, NULL) || !parse_start_time(stat, &now))
        return FALSE;
    return start == 0 || now == start;
}

/* ---- files ---- */

/* A whole regular file of this user; NULL where it is anything else. */
static GBytes *read_own_file(const gchar *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    GBytes *bytes = NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        st.st_size <= RING_BYTES_MAX) {
        guint8 *data = g_malloc((gsize)st.st_size + 1);
        gsize got = 0;
        for (gssize n = 1; n > 0 && got<(gsize)st.st_size; got += n> 0 ? (gsize)n : 0)
            n = read(fd, data + got, (gsize)st.st_size - got);
        bytes = g_bytes_new_take(data, got);
    }
    close(fd);
    return bytes;
}

static gchar *ring_path(const gchar *prefix, guint number)
{
    return g_strdup_printf("%s.%u", prefix, number);
}

/* ---- blocks of what was found ---- */

typedef struct {
    GByteArray *out;
    guint32 sequence;
    guint64 last_tick, events, dropped;
} Writer;

static void append_block(Writer *w, guint16 kind, guint32 thread, guint64 first, guint64 last,
                         guint64 dropped, const void *payload, gsize bytes)
{
    static const guint8 zeros[8];
    struct rs_block head;
    memset(&head, 0, sizeof head);
    head.kind = kind;
    head.payload_bytes = (guint32)bytes;
    head.sequence = w->sequence++;
    head.thread = thread;
    head.flags = RS_BLOCK_RECOVERED;
    head.first_tick = first;
    head.last_tick = last;
    head.dropped = dropped;
    rs_block_seal(&head, payload);
    g_byte_array_append(w->out, (const guint8 *)&head, sizeof head);
    g_byte_array_append(w->out, payload, (guint)bytes);
    g_byte_array_append(w->out, zeros, (guint)(-bytes & 7));
}

/* Definitions the capture lacks, split between records. */
static void append_defs(Writer *w, const guint8 *defs, guint64 bytes)
{
    guint64 from = 0, to = 0;
    while (to < bytes) {
        struct rs_def d;
        if (bytes - to < sizeof d)
            break;
        memcpy(&d, defs + to, sizeof d);
        if (d.bytes < sizeof d || d.bytes > bytes - to || d.bytes > RS_BLOCK_PAYLOAD_MAX)
            break;
        if (to + d.bytes - from > RS_BLOCK_PAYLOAD_MAX) {
            append_block(w, RS_BLOCK_DEFS, 0, 0, 0, 0, defs + from, to - from);
            from = to;
        }
        to += d.bytes;
    }
    if (to > from)
        append_block(w, RS_BLOCK_DEFS, 0, 0, 0, 0, defs + from, to - from);
}

static void append_anchors(Writer *w, const struct rs_ring_process *p)
{
    struct rs_anchor anchors[2];
    guint n = 0;
    if (p->first_anchor.kind == RS_CLOCK_ANCHOR)
        anchors[n++] = p->first_anchor;
    if (p->last_anchor.kind == RS_CLOCK_ANCHOR)
        anchors[n++] = p->last_anchor;
    if (n == 0)
        return;
    w->last_tick = MAX(w->last_tick, anchors[n - 1].tick);
    append_block(w, RS_BLOCK_CLOCK, 0, anchors[0].tick, anchors[n - 1].tick, 0, anchors,
                 n * sizeof *anchors);
}

static struct rs_event slot_at(const guint8 *slots, guint64 mask, guint64 i)
{
    struct rs_event e;
    memcpy(&e, slots + (i & mask) * SLOT, SLOT);
    return e;
}

/* Slots [from, to) of a ring as one block. */
static void append_slots(Writer *w, const struct rs_ring_thread *t, const guint8 *slots,
                         guint64 from, guint64 to)
{
    g_autoptr(GByteArray) payload = g_byte_array_sized_new((guint)((to - from) * SLOT));
    guint64 first = G_MAXUINT64, last = 0;
    for (guint64 i = from; i < to; i++) {
        struct rs_event e = slot_at(slots, t->slot_count - 1, i);
        g_byte_array_append(payload, (const guint8 *)&e, SLOT);
        if (e.op >= RS_OP_EXT)
            continue;
        first = MIN(first, e.start);
        last = MAX(last, e.end);
        w->events++;
    }
    w->last_tick = MAX(w->last_tick, last);
    append_block(w, RS_BLOCK_EVENTS, t->thread, first == G_MAXUINT64 ? 0 : first, last, t->dropped,
                 payload->data, payload->len);
}

/* An event and its extension slots stay in one block. */
static void append_events(Writer *w, const struct rs_ring_thread *t, const guint8 *slots)
{
    for (guint64 from = t->tail; from < t->head;) {
        guint64 to = MIN(from + CHUNK_SLOTS, t->head);
        while (to < t->head && slot_at(slots, t->slot_count - 1, to).op >= RS_OP_EXT)
            to++;
        append_slots(w, t, slots, from, to);
        from = to;
    }
}

static void append_hole(Writer *w, const struct rs_ring_thread *t)
{
    if (t->hole_first == 0 || t->hole_count == 0)
        return;
    struct rs_event e = {.op = RS_OP_HOLE, .peer = -1, .count = t->hole_count};
    e.start = t->hole_first;
    e.end = MAX(w->last_tick, t->hole_first);
    append_block(w, RS_BLOCK_EVENTS, t->thread, e.start, e.end, t->dropped, &e, sizeof e);
}

static gboolean ring_is_sound(const struct rs_ring_thread *t, gsize bytes)
{
    return t->magic == RS_RING_MAGIC && t->version == RS_RING_VERSION && t->slot_count > 0 &&
           (t->slot_count & (t->slot_count - 1)) == 0 && t->tail <= t->head &&
           t->head - t->tail <= t->slot_count && bytes >= RS_RING_SLOTS_OFFSET &&
           t->slot_count <= (bytes - RS_RING_SLOTS_OFFSET) / SLOT;
}

/* It died after the block was in the capture, before the ring's tail said so. */
static gboolean block_arrived(const struct rs_ring_process *p)
{
    return p->writing.capture_bytes != 0 && p->capture_bytes >= p->writing.capture_bytes;
}

static void skip_arrived(const struct rs_ring_process *p, struct rs_ring_thread *t)
{
    if (block_arrived(p) && p->writing.thread == t->thread)
        t->tail = CLAMP(p->writing.tail, t->tail, t->head);
}

static gboolean append_thread(Writer *w, const struct rs_ring_process *p, const gchar *path,
                              struct rs_ring_thread *ret)
{
    g_autoptr(GBytes) bytes = read_own_file(path);
    gsize n = 0;
    const guint8 *data = bytes ? g_bytes_get_data(bytes, &n) : NULL;
    if (n < sizeof *ret)
        return FALSE;
    memcpy(ret, data, sizeof *ret);
    if (!ring_is_sound(ret, n))
        return FALSE;
    skip_arrived(p, ret);
    append_events(w, ret, data + RS_RING_SLOTS_OFFSET);
    append_hole(w, ret);
    w->dropped += ret->dropped;
    if (ret->open.op)
        w->last_tick = MAX(w->last_tick, ret->open.start);
    return TRUE;
}

/* After all events: the moment up to which every thread is known to have been in its call. */
static void append_opens(Writer *w, const GArray *threads)
{
    for (guint i = 0; i < threads->len; i++) {
        const struct rs_ring_thread *t = &g_array_index(threads, struct rs_ring_thread, i);
        if (t->open.op || t->open.range_depth)
            append_block(w, RS_BLOCK_OPEN, t->thread, t->open.start, w->last_tick, t->dropped,
                         &t->open, sizeof t->open);
    }
}

/* A process that ended by itself left rings where its capture had no room for all events. */
static guint32 end_reason(const struct rs_ring_process *p)
{
    return p->end_reason >= RS_END_EXIT && p->end_reason <= RS_END_ABORT ? p->end_reason
                                                                         : RS_END_KILLED;
}

static void append_end(Writer *w, const struct rs_ring_process *p, guint64 events)
{
    struct rs_end end = {.reason = end_reason(p), .tick = w->last_tick};
    end.events = events;
    end.dropped = w->dropped;
    append_block(w, RS_BLOCK_END, 0, w->last_tick, w->last_tick, w->dropped, &end, sizeof end);
}

static gint compare_numbers(gconstpointer a, gconstpointer c)
{
    guint x = *(const guint *)a, y = *(const guint *)c;
    return (x > y) - (x < y);
}

/* Of the rings that still stand there: threads come and go, and numbers are not used again. */
static GArray *find_numbers(const gchar *prefix, guint most)
{
    GArray *numbers = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autofree gchar *folder = g_path_get_dirname(prefix);
    g_autofree gchar *base = g_path_get_basename(prefix);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const gchar *name; dir && (name = g_dir_read_name(dir));) {
        guint64 number;
        const gchar *dot = name + strlen(base);
        if (g_str_has_prefix(name, base) && *dot == '.' && numbers->len < RINGS_MAX &&
            g_ascii_string_to_unsigned(dot + 1, 10, 1, most, &number, NULL)) {
            guint n = (guint)number;
            g_array_append_val(numbers, n);
        }
    }
    g_array_sort(numbers, compare_numbers);
    return numbers;
}

static void collect_threads(RsRecovery *r, Writer *w, const gchar *prefix,
                            const struct rs_ring_process *p)
{
    g_autoptr(GArray) threads = g_array_new(FALSE, FALSE, sizeof(struct rs_ring_thread));
    guint64 events = 0;
    g_autoptr(GArray) numbers = find_numbers(prefix, p->thread_count);
    for (guint i = 0; i < numbers->len; i++) {
        g_autofree gchar *path = ring_path(prefix, g_array_index(numbers, guint, i));
        struct rs_ring_thread t;
        if (!append_thread(w, p, path, &t))
            continue;
        g_array_append_val(threads, t);
        events += t.events;
        g_ptr_array_add(r->files, g_steal_pointer(&path));
    }
    append_opens(w, threads);
    append_end(w, p, events + w->events);
    r->events = w->events;
}

/* ---- looking ---- */

static gint64 number(GHashTable *meta, const gchar *key)
{
    const gchar *text = g_hash_table_lookup(meta, key);
    return text ? g_ascii_strtoll(text, NULL, 10) : 0;
}

static gboolean read_control(GHashTable *meta, const gchar *path, GBytes **ret_bytes,
                             struct rs_ring_process *ret)
{
    g_autoptr(GBytes) bytes = read_own_file(path);
    gsize n = 0;
    const guint8 *data = bytes ? g_bytes_get_data(bytes, &n) : NULL;
    if (n < RS_RING_DEFS_OFFSET)
        return FALSE;
    memcpy(ret, data, sizeof *ret);
    if (ret->magic != RS_RING_MAGIC || ret->version != RS_RING_VERSION ||
        ret->pid != number(meta, "pid") || (gint64)ret->pid_start != number(meta, "pid.start") ||
        ret->defs_written > ret->defs_used)
        return FALSE;
    /* What the file had no room for was in the process's own memory. */
    ret->defs_used = MIN(ret->defs_used, n - RS_RING_DEFS_OFFSET);
    ret->defs_written = MIN(ret->defs_written, ret->defs_used);
    *ret_bytes = g_steal_pointer(&bytes);
    return TRUE;
}

RsRecovery *rs_recover_look(GHashTable *meta)
{
    RsRecovery *r = g_new0(RsRecovery, 1);
    r->files = g_ptr_array_new_with_free_func(g_free);
    const gchar *prefix = g_hash_table_lookup(meta, "ring.prefix");
    if (!prefix || prefix[0] != '/')
        return r;
    g_autofree gchar *control = ring_path(prefix, 0);
    g_autoptr(GBytes) bytes = NULL;
    struct rs_ring_process p;
    if (!read_control(meta, control, &bytes, &p))
        return r;
    if (rs_process_lives(p.pid, p.pid_start)) {
        r->state = RS_RINGS_LIVE;
        return r;
    }
    r->state = RS_RINGS_ORPHANED;
    r->capture_bytes = p.capture_bytes;
    r->blocks = g_byte_array_new();
    g_ptr_array_add(r->files, g_steal_pointer(&control));
    Writer w = {.out = r->blocks, .sequence = p.next_sequence};
    if (block_arrived(&p))
        w.sequence = MAX(w.sequence, p.writing.next_sequence);
    const guint8 *defs = (const guint8 *)g_bytes_get_data(bytes, NULL) + RS_RING_DEFS_OFFSET;
    append_defs(&w, defs + p.defs_written, p.defs_used - p.defs_written);
    append_anchors(&w, &p);
    w.last_tick = MAX(w.last_tick, p.alive_tick);
    collect_threads(r, &w, prefix, &p);
    return r;
}

void rs_recovery_free(RsRecovery *r)
{
    if (!r)
        return;
    if (r->blocks)
        g_byte_array_unref(r->blocks);
    g_ptr_array_unref(r->files);
    g_free(r);
}

gboolean rs_recovery_adds(const RsRecovery *r, const RsBlocks *capture)
{
    if (r->state != RS_RINGS_ORPHANED)
        return FALSE;
    for (guint i = 0; i < capture->index->len; i++)
        if (g_array_index(capture->index, RsBlockAt, i).head.kind == RS_BLOCK_END)
            return r->events > 0;
    return TRUE;
}

/* ---- appending ---- */

static gboolean write_all(int fd, const guint8 *data, gsize bytes, guint64 offset)
{
    while (bytes > 0) {
        gssize n = pwrite(fd, data, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return FALSE;
        data += n;
        bytes -= (gsize)n;
        offset += (guint64)n;
    }
    return TRUE;
}

/* A full disk leaves the capture as it was, and the rings where they are. */
static gboolean append_blocks(int fd, const RsRecovery *r)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || (guint64)st.st_size < r->capture_bytes)
        return FALSE;
    if (ftruncate(fd, (off_t)r->capture_bytes) != 0)
        return FALSE;
    if (write_all(fd, r->blocks->data, r->blocks->len, r->capture_bytes) && fdatasync(fd) == 0)
        return TRUE;
    int saved = errno;
    if (ftruncate(fd, (off_t)r->capture_bytes) != 0)
        saved = errno;
    errno = saved;
    return FALSE;
}

static void remove_rings(const RsRecovery *r)
{
    for (guint i = r->files->len; i-- > 0;) /* the control file last */
        g_unlink(g_ptr_array_index(r->files, i));
}

gboolean rs_recover_append(const gchar *capture, const RsRecovery *r, GError **error)
{
    if (r->state != RS_RINGS_ORPHANED)
        return TRUE;
    gboolean done = FALSE;
    errno = 0;
    int fd = open(capture, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && flock(fd, LOCK_EX) == 0) {
        /* whoever came first has removed the control file, with its events in the capture */
        done = !g_file_test(g_ptr_array_index(r->files, 0), G_FILE_TEST_EXISTS) ||
               append_blocks(fd, r);
        if (done)
            remove_rings(r);
    }
    if (!done)
        g_set_error(error, RS_ERROR, RS_ERROR_IO, "%s: can't append what its rings still hold: %s",
                    capture, errno ? g_strerror(errno) : "it is shorter than its process left it");
    if (fd >= 0)
        close(fd);
    return done;
}

gboolean rs_recover(const gchar *capture, guint64 *ret_events, GError **error)
{
    g_autoptr(RsBlocks) blocks = rs_blocks_open(capture, G_MAXUINT64, error);
    if (!blocks)
        return FALSE;
    g_autoptr(GHashTable) meta = rs_capture_meta(blocks);
    g_autoptr(RsRecovery) r = rs_recover_look(meta);
    if (ret_events)
        *ret_events = 0;
    if (r->state != RS_RINGS_ORPHANED)
        return TRUE;
    if (!rs_recovery_adds(r, blocks)) {
        remove_rings(r);
        return TRUE;
    }
    if (ret_events)
        *ret_events = r->events;
    return rs_recover_append(capture, r, error);
}
