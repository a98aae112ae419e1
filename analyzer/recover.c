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
#define LAST_SLOTS     1024u      /* of each thread, for a look at what it is in */
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

/* A regular file of this user, -1 where it is anything else. */
static int open_own_file(const gchar *path, gsize *ret_bytes)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        st.st_size <= RING_BYTES_MAX) {
        *ret_bytes = (gsize)st.st_size;
        return fd;
    }
    close(fd);
    return -1;
}

/* Returns how many bytes there were. */
static gsize read_at(int fd, gsize offset, void *ret, gsize bytes)
{
    gsize got = 0;
    for (gssize n = 1; n > 0 && got<bytes; got += n> 0 ? (gsize)n : 0)
        n = pread(fd, (guint8 *)ret + got, bytes - got, (off_t)(offset + got));
    return got;
}

static GBytes *read_own_file(const gchar *path)
{
    gsize size = 0;
    int fd = open_own_file(path, &size);
    if (fd < 0)
        return NULL;
    guint8 *data = g_malloc(size + 1);
    gsize got = read_at(fd, 0, data, size);
    close(fd);
    return g_bytes_new_take(data, got);
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

/* Switches that the capture lacks, or as many as are still known. */
static void append_switches(Writer *w, const struct rs_ring_process *p, gboolean lacking)
{
    struct rs_switch switches[RS_RING_SWITCHES];
    guint32 n = lacking ? p->switch_count - p->switches_written : p->switch_count;
    n = MIN(n, RS_RING_SWITCHES);
    for (guint32 i = 0; i < n; i++)
        switches[i] = p->switches[(p->switch_count - n + i) % RS_RING_SWITCHES];
    if (n == 0)
        return;
    w->last_tick = MAX(w->last_tick, switches[n - 1].tick);
    append_block(w, RS_BLOCK_SWITCH, 0, switches[0].tick, switches[n - 1].tick, 0, switches,
                 n * sizeof *switches);
}

/* What is wanted of a ring: slots [from, head.head), copied. */
typedef struct {
    struct rs_ring_thread head;
    guint64 from;
    struct rs_event *slots;
} Ring;

static const struct rs_event *slot_at(const Ring *r, guint64 i)
{
    return &r->slots[i - r->from];
}

/* Slots [from, to) of a ring as one block. */
static void append_slots(Writer *w, const Ring *r, guint64 from, guint64 to)
{
    guint64 first = G_MAXUINT64, last = 0;
    for (guint64 i = from; i < to; i++) {
        const struct rs_event *e = slot_at(r, i);
        if (e->op >= RS_OP_EXT)
            continue;
        first = MIN(first, e->start);
        last = MAX(last, e->end);
        w->events++;
    }
    w->last_tick = MAX(w->last_tick, last);
    append_block(w, RS_BLOCK_EVENTS, r->head.thread, first == G_MAXUINT64 ? 0 : first, last,
                 r->head.dropped, slot_at(r, from), (gsize)(to - from) * SLOT);
}

/* An event and its extension slots stay in one block. */
static void append_events(Writer *w, const Ring *r)
{
    for (guint64 from = r->from; from < r->head.head;) {
        guint64 to = MIN(from + CHUNK_SLOTS, r->head.head);
        while (to < r->head.head && slot_at(r, to)->op >= RS_OP_EXT)
            to++;
        append_slots(w, r, from, to);
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

/* It died after the block was in the capture, before the ring's tail said so. */
static gboolean block_arrived(const struct rs_ring_process *p)
{
    return p->writing.capture_bytes != 0 && p->capture_bytes >= p->writing.capture_bytes;
}

/* What the process left out of its capture, and what it would have, unless it stands there. */
static struct rs_ring_skip left_out(const struct rs_ring_process *p, const Ring *r)
{
    struct rs_ring_skip s = r->head.skip[r->head.skip_now & 1];
    if (block_arrived(p) && p->writing.thread == r->head.thread && p->writing.tail >= s.tail)
        s.count = 0;
    for (guint64 i = r->from; i < r->head.head; i++) {
        const struct rs_event *e = slot_at(r, i);
        if (e->op >= RS_OP_EXT || e->op == RS_OP_HOLE)
            continue;
        s.first_tick = s.count ? MIN(s.first_tick, e->start) : e->start;
        s.last_tick = s.count ? MAX(s.last_tick, e->end) : e->end;
        s.count++;
    }
    return s;
}

/* Returns how many events are in it. */
static guint64 append_left_out(Writer *w, const struct rs_ring_process *p, const Ring *r)
{
    struct rs_ring_skip s = left_out(p, r);
    if (s.count == 0)
        return 0;
    struct rs_event e = {.op = RS_OP_HOLE, .flags = RS_EVENT_LIMIT, .peer = -1, .count = s.count};
    e.start = s.first_tick;
    e.end = MAX(s.first_tick, s.last_tick);
    w->last_tick = MAX(w->last_tick, e.end);
    append_block(w, RS_BLOCK_EVENTS, r->head.thread, e.start, e.end, r->head.dropped, &e, sizeof e);
    return s.count;
}

static gboolean ring_is_sound(const struct rs_ring_thread *t, gsize bytes)
{
    return t->magic == RS_RING_MAGIC && t->version == RS_RING_VERSION && t->slot_count > 0 &&
           (t->slot_count & (t->slot_count - 1)) == 0 && t->tail <= t->head &&
           t->head - t->tail <= t->slot_count && bytes >= RS_RING_SLOTS_OFFSET &&
           t->slot_count <= (bytes - RS_RING_SLOTS_OFFSET) / SLOT;
}

/* The first slot that the capture lacks. */
static guint64 first_unwritten(const struct rs_ring_process *p, const struct rs_ring_thread *t)
{
    guint64 left_out = MAX(t->tail, t->skip[t->skip_now & 1].tail);
    if (block_arrived(p) && p->writing.thread == t->thread)
        return CLAMP(p->writing.tail, left_out, t->head);
    return MIN(left_out, t->head);
}

/* The ring is written on while it is read: its newest slots are far from what is overwritten. */
static guint64 first_of_last(const struct rs_ring_thread *t)
{
    return t->head > LAST_SLOTS ? t->head - LAST_SLOTS : 0;
}

static void copy_slots(Ring *r, int fd)
{
    const struct rs_ring_thread *t = &r->head;
    guint64 n = t->head - r->from, at = r->from & (t->slot_count - 1);
    guint64 before_wrap = MIN(n, t->slot_count - at);
    r->slots = g_new0(struct rs_event, n + 1);
    read_at(fd, RS_RING_SLOTS_OFFSET + at * SLOT, r->slots, before_wrap * SLOT);
    read_at(fd, RS_RING_SLOTS_OFFSET, r->slots + before_wrap, (n - before_wrap) * SLOT);
}

/* With `p` what the capture of that process lacks, else the last events. FALSE: no ring. The slots
 * are the caller's. */
static gboolean read_ring(const gchar *path, const struct rs_ring_process *p, Ring *ret)
{
    gsize bytes;
    int fd = open_own_file(path, &bytes);
    if (fd < 0)
        return FALSE;
    struct rs_ring_thread *t = &ret->head;
    gboolean good = read_at(fd, 0, t, sizeof *t) == sizeof *t && ring_is_sound(t, bytes);
    if (good) {
        ret->from = p ? first_unwritten(p, t) : first_of_last(t);
        copy_slots(ret, fd);
    }
    while (good && !p && ret->from < t->head && ret->slots->op >= RS_OP_EXT) {
        memmove(ret->slots, ret->slots + 1, (gsize)(t->head - ret->from - 1) * SLOT);
        ret->from++;
    }
    close(fd);
    return good;
}

static gboolean append_thread(Writer *w, const struct rs_ring_process *p, const gchar *path,
                              struct rs_ring_thread *ret)
{
    Ring r;
    if (!read_ring(path, p, &r))
        return FALSE;
    if (p && p->full_tick)
        w->dropped += append_left_out(w, p, &r);
    else
        append_events(w, &r);
    append_hole(w, &r.head);
    w->dropped += r.head.dropped;
    if (r.head.open.op)
        w->last_tick = MAX(w->last_tick, r.head.open.start);
    *ret = r.head;
    g_free(r.slots);
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
static guint32 end_reason(const RsRecovery *r, const struct rs_ring_process *p)
{
    if (r->state == RS_RINGS_LIVE)
        return RS_END_RUNNING;
    return p->end_reason >= RS_END_EXIT && p->end_reason <= RS_END_ABORT ? p->end_reason
                                                                         : RS_END_KILLED;
}

static void append_end(Writer *w, guint32 reason, guint32 flags, guint64 events)
{
    struct rs_end end = {.reason = reason, .flags = flags, .tick = w->last_tick};
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

/* `lacking`: what the capture of that process lacks, else the last events. */
static void collect_threads(RsRecovery *r, Writer *w, const struct rs_ring_process *p,
                            gboolean lacking)
{
    g_autoptr(GArray) threads = g_array_new(FALSE, FALSE, sizeof(struct rs_ring_thread));
    guint64 events = 0;
    guint32 flags = 0;
    g_autoptr(GArray) numbers = find_numbers(r->prefix, p->thread_count);
    for (guint i = 0; i < numbers->len; i++) {
        g_autofree gchar *path = ring_path(r->prefix, g_array_index(numbers, guint, i));
        struct rs_ring_thread t;
        if (!append_thread(w, lacking ? p : NULL, path, &t))
            continue;
        g_array_append_val(threads, t);
        events += t.events;
        flags |= t.open.op ? RS_END_IN_CALL : 0;
        g_ptr_array_add(r->files, g_steal_pointer(&path));
    }
    append_opens(w, threads);
    w->dropped += lacking ? p->left_out : 0;
    append_end(w, end_reason(r, p), flags, events + w->events);
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

/* Finds the control file; state NONE where there is none. */
static RsRecovery *find_rings(GHashTable *meta, GBytes **ret_bytes, struct rs_ring_process *ret)
{
    RsRecovery *r = g_new0(RsRecovery, 1);
    r->files = g_ptr_array_new_with_free_func(g_free);
    r->prefix = g_strdup(g_hash_table_lookup(meta, "ring.prefix"));
    if (!r->prefix || r->prefix[0] != '/')
        return r;
    g_autofree gchar *control = ring_path(r->prefix, 0);
    if (!read_control(meta, control, ret_bytes, ret))
        return r;
    r->state = rs_process_lives(ret->pid, ret->pid_start) ? RS_RINGS_LIVE : RS_RINGS_ORPHANED;
    g_ptr_array_add(r->files, g_steal_pointer(&control));
    return r;
}

static void collect(RsRecovery *r, const struct rs_ring_process *p, GBytes *control,
                    gboolean lacking)
{
    r->capture_bytes = p->capture_bytes;
    r->replaced_bytes = p->replace_bytes;
    r->blocks = g_byte_array_new();
    Writer w = {.out = r->blocks, .sequence = p->next_sequence};
    if (block_arrived(p))
        w.sequence = MAX(w.sequence, p->writing.next_sequence);
    const guint8 *defs = (const guint8 *)g_bytes_get_data(control, NULL) + RS_RING_DEFS_OFFSET;
    guint64 written = lacking ? p->defs_written : 0;
    append_defs(&w, defs + written, p->defs_used - written);
    append_anchors(&w, p);
    append_switches(&w, p, lacking);
    w.last_tick = MAX(w.last_tick, p->alive_tick);
    collect_threads(r, &w, p, lacking);
}

RsRecovery *rs_recover_look(GHashTable *meta)
{
    g_autoptr(GBytes) control = NULL;
    struct rs_ring_process p;
    RsRecovery *r = find_rings(meta, &control, &p);
    if (r->state == RS_RINGS_ORPHANED)
        collect(r, &p, control, TRUE);
    return r;
}

RsRecovery *rs_recover_look_now(GHashTable *meta)
{
    g_autoptr(GBytes) control = NULL;
    struct rs_ring_process p;
    RsRecovery *r = find_rings(meta, &control, &p);
    if (r->state != RS_RINGS_NONE)
        collect(r, &p, control, FALSE);
    return r;
}

void rs_recovery_free(RsRecovery *r)
{
    if (!r)
        return;
    if (r->blocks)
        g_byte_array_unref(r->blocks);
    g_ptr_array_unref(r->files);
    g_free(r->prefix);
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
    if (fstat(fd, &st) != 0)
        return FALSE;
    guint64 whole = r->replaced_bytes && (guint64)st.st_size == r->replaced_bytes
                        ? r->replaced_bytes
                        : r->capture_bytes;
    if ((guint64)st.st_size < whole || ftruncate(fd, (off_t)whole) != 0)
        return FALSE;
    if (write_all(fd, r->blocks->data, r->blocks->len, whole) && fdatasync(fd) == 0)
        return TRUE;
    int saved = errno;
    if (ftruncate(fd, (off_t)whole) != 0)
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
        if (done) {
            g_autofree gchar *unfinished = g_strconcat(capture, ".new", NULL);
            g_unlink(unfinished);
            remove_rings(r);
        }
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
