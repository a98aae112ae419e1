/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - turns rings and definitions into blocks of the capture file.
 *
 * Order within a drain: heads of all rings are read first, then definitions are written, then the
 * events up to those heads; so an event's definitions always stand before it. The control file says
 * after every block how far the capture is whole, so that recovery cuts off a torn one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "crc32c.h"
#include "state.h"

#define SEGMENT     ((uint64_t)8 << 20)
#define CHUNK_SLOTS ((uint64_t)1 << 13)

#define REPEATED_SHARE 4 /* a capture holds at least so many times what it repeats */

static char path[RS_RING_PATH_MAX];

const char *rs_writer_path(void)
{
    return path;
}

bool rs_writer_claim(unsigned seconds)
{
    struct timespec end;
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    while (rs_state.writing && seconds && error == 0) {
        error = rs_lock_wait(&rs_state.writer_free, &end);
    }
    if (rs_state.writing)
        return false;
    rs_state.writing = true;
    return true;
}

void rs_writer_release(void)
{
    rs_state.writing = false;
    pthread_cond_broadcast(&rs_state.writer_free);
}

/* ---- the file ---- */

static int make_folder(const char *dir)
{
    char part[RS_RING_PATH_MAX];
    snprintf(part, sizeof(part), "%s", dir);
    for (char *p = part + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        mkdir(part, 0700);
        *p = '/';
    }
    return mkdir(part, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

static void give_up(const char *why, int error)
{
    if (!rs_state.off_capture[0])
        snprintf(rs_state.off_capture, sizeof(rs_state.off_capture), "%s: %s", why,
                 strerrordesc_np(error)); /* strerror may allocate */
    rs_life_stop();
    /* No capture, or none that could take the news. A folder's trouble is one of all ranks here. */
    if (rs_state.started)
        rs_say("recording stopped: %s", rs_state.off_capture);
    else if (rs_env.local_rank <= 0)
        rs_say("nothing is recorded: %s", rs_state.off_capture);
}

void rs_writer_take_file(int fd)
{
    struct stat st;
    rs_state.fd = fd;
    if (fstat(fd, &st) == 0) {
        rs_state.fd_device = st.st_dev;
        rs_state.fd_inode = st.st_ino;
        rs_state.fd_has_name = st.st_nlink > 0;
    }
}

int rs_writer_move_up(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

bool rs_writer_open(void)
{
    int error = make_folder(rs_env.dir);
    int fd = -1;
    for (int n = 0; n < 1000 && fd < 0 && error == 0; n++) {
        char again[16] = "";
        if (n)
            snprintf(again, sizeof(again), "-%d", n);
        if ((size_t)snprintf(path, sizeof(path), "%s/%s-%d%s.rsc", rs_env.dir, rs_env.host,
                             rs_state.pid, again) >= sizeof(path))
            error = -ENAMETOOLONG;
        else
            fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_APPEND, 0600);
        if (fd < 0 && errno != EEXIST)
            error = -errno;
    }
    if (fd < 0) {
        path[0] = 0;
        give_up(rs_env.dir, error ? -error : EEXIST);
        return false;
    }
    rs_writer_take_file(rs_writer_move_up(fd));
    snprintf(rs_state.control->capture, RS_RING_PATH_MAX, "%s", path);
    if (rs_env.verbose > 0)
        rs_say("recording to %s", path);
    if (rs_env.verbose > 0 && rs_env.local_rank <= 0)
        rs_env_say_notes();
    return true;
}

/* Nobody would ever read it, while it took the disk's room. */
static bool is_removed(const struct stat *st)
{
    if (st->st_nlink > 0 || !rs_state.fd_has_name)
        return false;
    rs_state.gone = true;
    give_up(path, ENOENT);
    return true;
}

/* Programs close all descriptors, and may then have another file under our number. */
bool rs_writer_has_file(void)
{
    struct stat st;
    if (fstat(rs_state.fd, &st) == 0 && st.st_dev == rs_state.fd_device &&
        st.st_ino == rs_state.fd_inode)
        return !is_removed(&st);
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_APPEND);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return false; /* until the program gives a number back, rings fill */
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_dev != rs_state.fd_device ||
        st.st_ino != rs_state.fd_inode) {
        give_up(path, fd < 0 ? errno : ESTALE);
        if (fd >= 0)
            close(fd);
        return false;
    }
    rs_state.fd = rs_writer_move_up(fd);
    return true;
}

/* ---- blocks ---- */

static bool write_all(int fd, struct iovec *v, int n)
{
    while (n > 0) {
        ssize_t done = writev(fd, v, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        while (n > 0 && (size_t)done >= v->iov_len) {
            done -= (ssize_t)v->iov_len;
            v++;
            n--;
        }
        if (n > 0) {
            v->iov_base = (char *)v->iov_base + done;
            v->iov_len -= (size_t)done;
        }
    }
    return true;
}

bool rs_writer_write(int fd, struct iovec *v, int n)
{
    struct rs_held held = rs_lock_open();
    bool whole = write_all(fd, v, n);
    int error = errno;
    rs_lock_shut(&held);
    errno = error;
    return whole;
}

/* What was written of the block is cut off, so that the file stays whole. A full disk may have room
 * again: until then rings fill, and what they can't take is counted. */
static void refused(int error)
{
    rs_memory_no_signal(error);
    if (ftruncate(rs_state.fd, (off_t)rs_state.control->capture_bytes) != 0)
        error = errno;
    if (error == ENOSPC || error == EDQUOT)
        rs_meta_set_locked("off.capture", "the disk was full for a time: events were lost");
    else
        give_up(path, error);
}

void rs_writer_seal(struct rs_block *head, uint32_t sequence)
{
    head->magic = RS_BLOCK_MAGIC;
    head->major = RS_FORMAT_MAJOR;
    head->minor = RS_FORMAT_MINOR;
    head->sequence = sequence;
    head->header_crc = rs_crc32c(0, head, offsetof(struct rs_block, header_crc));
}

/* The payload in two pieces, as a ring that wraps gives it. */
static bool put(struct rs_block *head, const void *first, size_t first_bytes, const void *second,
                size_t second_bytes)
{
    static const char zeros[8];
    size_t bytes = first_bytes + second_bytes;
    if (rs_state.off_capture[0] || !rs_writer_has_file())
        return false;
    head->payload_bytes = (uint32_t)bytes;
    head->payload_crc = rs_crc32c(rs_crc32c(0, first, first_bytes), second, second_bytes);
    rs_writer_seal(head, rs_state.control->next_sequence);
    struct iovec v[4] = {{head, sizeof(*head)},
                         {(void *)(uintptr_t)first, first_bytes},
                         {(void *)(uintptr_t)second, second_bytes},
                         {(void *)(uintptr_t)zeros, -bytes & 7}};
    if (!rs_writer_write(rs_state.fd, v, 4)) {
        refused(errno);
        return false;
    }
    uint64_t whole = sizeof(*head) + bytes + (-bytes & 7);
    __atomic_store_n(&rs_state.control->capture_bytes, rs_state.control->capture_bytes + whole,
                     __ATOMIC_RELEASE);
    rs_state.control->next_sequence++;
    rs_state.segment_bytes += whole;
    rs_state.bytes += whole;
    return true;
}

static void put_meta(void)
{
    const char *text;
    struct rs_block head = {.kind = RS_BLOCK_META};
    if (!rs_state.meta_dirty)
        return;
    rs_state.meta_dirty = false; /* what changes from now on isn't in it */
    size_t n = rs_meta_payload(&text);
    if (!put(&head, text, n, NULL, 0))
        rs_state.meta_dirty = true;
}

static bool put_defs(uint64_t from, uint64_t to, uint32_t flags)
{
    const char *area = (const char *)rs_state.control + RS_RING_DEFS_OFFSET;
    while (from < to) {
        uint64_t end = from;
        while (end < to) {
            struct rs_def d;
            memcpy(&d, area + end, sizeof(d));
            if (end + d.bytes - from > RS_BLOCK_PAYLOAD_MAX / 4 && end > from)
                break;
            end += d.bytes;
        }
        struct rs_block head = {.kind = RS_BLOCK_DEFS, .flags = flags};
        if (!put(&head, area + from, end - from, NULL, 0))
            return false;
        from = end;
    }
    return true;
}

/* After so many bytes definitions are repeated: what is repeated stays the small part. */
static uint64_t segment(void)
{
    uint64_t share = REPEATED_SHARE * rs_state.control->defs_written;
    return share > SEGMENT ? share : SEGMENT;
}

/* Whether all definitions stand in the file: events may follow. */
static bool put_new_defs(void)
{
    struct rs_ring_process *c = rs_state.control;
    uint64_t to = c->defs_used;
    if (rs_state.segment_bytes >= segment() && c->defs_written) {
        put_defs(0, c->defs_written, RS_BLOCK_REPEATED);
        rs_state.segment_bytes = 0;
    }
    if (c->defs_written < to && put_defs(c->defs_written, to, 0))
        c->defs_written = to;
    return c->defs_written == to;
}

static void put_clock(void)
{
    const void *records;
    struct rs_block head = {.kind = RS_BLOCK_CLOCK};
    size_t n = rs_clock_payload(&records, &head.first_tick, &head.last_tick);
    if (n && put(&head, records, n, NULL, 0))
        rs_clock_forget(n);
}

static void put_switches(void)
{
    const void *records;
    struct rs_block head = {.kind = RS_BLOCK_SWITCH};
    size_t n = rs_window_payload(&records, &head.first_tick, &head.last_tick);
    if (n && put(&head, records, n, NULL, 0))
        rs_window_wrote(n);
}

/* ---- events ---- */

static const struct rs_event *slot(const struct rs_thread *t, uint64_t i)
{
    return &t->slots[i & t->mask];
}

/* Ends of a chunk fall between records: an event and its extension slots stay in one block. */
static uint64_t chunk_end(const struct rs_thread *t, uint64_t from, uint64_t head)
{
    uint64_t most = rs_keep_chunk(CHUNK_SLOTS);
    uint64_t to = head - from > most ? from + most : head;
    while (to < head && slot(t, to)->op >= RS_OP_EXT)
        to++;
    return to;
}

static void announce(const struct rs_thread *t, uint64_t tail, uint64_t bytes)
{
    struct rs_ring_process *c = rs_state.control;
    __atomic_store_n(&c->writing.capture_bytes, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    c->writing.tail = tail;
    c->writing.thread = t->number;
    c->writing.next_sequence = c->next_sequence + 1;
    __atomic_store_n(&c->writing.capture_bytes, c->capture_bytes + bytes, __ATOMIC_RELEASE);
}

static bool put_events(struct rs_thread *t, uint64_t from, uint64_t to)
{
    struct rs_block head = {.kind = RS_BLOCK_EVENTS, .thread = t->number};
    uint64_t events = 0;
    head.first_tick = UINT64_MAX;
    head.dropped = __atomic_load_n(&t->ring->dropped, __ATOMIC_RELAXED);
    for (uint64_t i = from; i < to; i++) {
        const struct rs_event *e = slot(t, i);
        if (e->op >= RS_OP_EXT)
            continue;
        events++;
        head.events += e->op != RS_OP_HOLE;
        head.first_tick = e->start < head.first_tick ? e->start : head.first_tick;
        head.last_tick = e->end > head.last_tick ? e->end : head.last_tick;
    }
    uint64_t until_wrap = t->mask + 1 - (from & t->mask), n = to - from;
    uint64_t first = n < until_wrap ? n : until_wrap;
    announce(t, to, sizeof(head) + n * sizeof(struct rs_event));
    if (!put(&head, slot(t, from), first * sizeof(struct rs_event), t->slots,
             (n - first) * sizeof(struct rs_event)))
        return false;
    t->ring->events += events;
    __atomic_store_n(&t->ring->tail, to, __ATOMIC_RELEASE);
    return true;
}

/* Whether all of it is in the file. */
static bool drain_thread(struct rs_thread *t, uint64_t head)
{
    uint64_t from = t->ring->tail, to;
    for (; from < head && !rs_limit_is_reached(); from = to) {
        to = rs_limit_cut(t, from, chunk_end(t, from, head));
        if (to > from && !put_events(t, from, to))
            return false;
        rs_keep_step();
    }
    if (from < head)
        rs_limit_skip(t, head);
    return true;
}

bool rs_writer_put_hole(struct rs_thread *t)
{
    struct rs_event hole;
    uint64_t tail;
    if (!rs_limit_hole(t, &hole, &tail))
        return true;
    struct rs_block head = {.kind = RS_BLOCK_EVENTS, .thread = t->number};
    head.first_tick = hole.start;
    head.last_tick = hole.end;
    head.dropped = __atomic_load_n(&t->ring->dropped, __ATOMIC_RELAXED);
    announce(t, tail, sizeof(head) + sizeof(hole));
    if (!put(&head, &hole, sizeof(hole), NULL, 0))
        return false;
    rs_limit_forget_hole(t);
    return true;
}

bool rs_writer_drain(void)
{
    if (!rs_state.control || rs_state.fd < 0 || rs_state.off_capture[0])
        return false;
    for (struct rs_thread_entry *e = rs_state.threads; e; e = e->next)
        e->head_seen = __atomic_load_n(&e->thread.ring->head, __ATOMIC_ACQUIRE);
    put_meta();
    if (!rs_limit_is_reached() && !put_new_defs())
        return false;
    put_clock();
    put_switches();
    bool whole = true;
    for (struct rs_thread_entry *e = rs_state.threads; e; e = e->next)
        whole = drain_thread(&e->thread, e->head_seen) && whole;
    rs_keep_step(); /* also where nothing came */
    return whole;
}

/* ---- the end ---- */

/* What a full capture still takes: what was left out, and what that and its OPEN blocks name. */
static bool put_left_out(void)
{
    if (!rs_limit_is_reached())
        return true;
    put_meta();
    bool whole = put_new_defs();
    for (struct rs_thread_entry *e = rs_state.threads; e; e = e->next)
        whole = rs_writer_put_hole(&e->thread) && whole;
    return whole;
}

static void put_cost(const struct rs_end *end)
{
    char text[RS_COST_BYTES];
    struct rs_block head = {.kind = RS_BLOCK_META};
    size_t n = rs_cost_payload(text, end->events, end->dropped);
    put(&head, text, n, NULL, 0);
}

static void put_open(const struct rs_thread_entry *e, uint64_t now)
{
    const struct rs_open o = e->thread.ring->open; /* its thread goes on, the checksum must hold */
    struct rs_block head = {.kind = RS_BLOCK_OPEN, .thread = e->thread.number};
    if (!o.op && !o.range_depth)
        return;
    head.first_tick = o.start;
    head.last_tick = now;
    put(&head, &o, sizeof(o), NULL, 0);
}

void rs_writer_end(enum rs_end_reason reason)
{
    if (!rs_state.control || rs_state.fd < 0 || rs_state.ended)
        return;
    rs_clock_anchor_locked();
    rs_cost_calibrate();
    /* A capture that lacks events, for want of room, has no end: what is missing stays in the
     * rings, for `merge` to save. */
    if (!rs_writer_drain() || !put_left_out())
        return;
    rs_keep_abandon();
    struct rs_end end = {.reason = reason, .flags = rs_state.end_flags, .tick = rs_tick()};
    end.events = rs_state.events;
    end.dropped = rs_state.dropped + rs_state.skipped;
    for (struct rs_thread_entry *e = rs_state.threads; e; e = e->next) {
        put_open(e, end.tick);
        end.flags |= e->thread.ring->open.op ? RS_END_IN_CALL : 0;
        end.events += e->thread.ring->events;
        end.dropped += e->thread.ring->dropped;
    }
    put_cost(&end);
    struct rs_block head = {.kind = RS_BLOCK_END, .first_tick = end.tick, .last_tick = end.tick};
    head.dropped = end.dropped;
    rs_state.ended = put(&head, &end, sizeof(end), NULL, 0);
}

/* The parent's file: its descriptor is closed here, nothing is written to it. */
void rs_writer_forget(void)
{
    struct stat st;
    rs_keep_abandon();
    if (rs_state.fd >= 0 && fstat(rs_state.fd, &st) == 0 && st.st_ino == rs_state.fd_inode &&
        st.st_dev == rs_state.fd_device)
        close(rs_state.fd);
    rs_state.fd = -1;
    rs_state.ended = false;
    rs_state.segment_bytes = rs_state.events = rs_state.dropped = rs_state.skipped = 0;
    rs_state.bytes = rs_state.drain_ns = 0;
    rs_state.off_capture[0] = 0;
    rs_state.gone = false;
    path[0] = 0;
}
