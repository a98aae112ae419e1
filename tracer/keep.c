/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep.c - RINGSCOPE_KEEP=last: a capture at its limit is written again without its older half.
 *
 * The new file begins with META, all definitions, the clock and switch records and one hole for
 * each thread that lost events; then it is the old one's, byte for byte, from a block on that stood
 * there when half of the limit was left. It takes the capture's place by a rename, between two
 * blocks. It is made piece by piece, so that nobody waits long for the lock while the rings fill.
 * The sequence numbers go on; all blocks before the copied ones have the number before those.
 *
 * Deaths: until the rename the old file is the capture. The control file says how long the new one
 * is before it is renamed, and the file's own length tells recovery on which side the death was.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32c.h"
#include "state.h"

#define STEP_BLOCKS 4096
#define STEP_BYTES  ((uint64_t)4 << 20)

/* What a thread has lost. */
struct tally {
    uint64_t count, first_tick, last_tick;
    uint64_t dropped; /* by its ring */
};

#define TRIES 3 /* after each the capture grows by its limit */

static unsigned failures;  /* since it was written again */
static uint64_t threshold; /* the capture is written again at this length; 0 not known yet */
static uint64_t mark;      /* what stays begins there; 0 not reached */
static uint32_t mark_sequence;

/* The file in the making. */
static struct {
    int fd; /* -1 none */
    dev_t device;
    ino_t inode;
    uint64_t bytes;
    uint64_t from;         /* the old file has been gone through up to there */
    struct tally *tallies; /* by thread; NULL once their holes are written */
    uint32_t threads;
    uint64_t left_out;
    char path[RS_RING_PATH_MAX + 8];
} next = {.fd = -1};

uint64_t rs_keep_chunk(uint64_t slots)
{
    uint64_t part = rs_env.size_limit / 8 / sizeof(struct rs_event);
    return rs_env.keep_last && part && part < slots ? part : slots;
}

/* ---- the new file ---- */

/* A program that closes all descriptors may have another file under this number. */
static bool is_ours(void)
{
    struct stat st;
    return fstat(next.fd, &st) == 0 && st.st_dev == next.device && st.st_ino == next.inode;
}

static void forget_file(bool close_it)
{
    if (next.tallies)
        munmap(next.tallies, next.threads * sizeof(*next.tallies));
    next.tallies = NULL;
    if (close_it && next.fd >= 0 && is_ours())
        close(next.fd);
    next.fd = -1;
}

void rs_keep_abandon(void)
{
    if (next.fd >= 0 && rs_life_is_own())
        unlink(next.path);
    forget_file(true);
    threshold = mark = 0;
    failures = 0;
}

static void fail(int error)
{
    rs_memory_no_signal(error);
    unlink(next.path);
    forget_file(true);
    threshold = rs_state.control->capture_bytes + rs_env.size_limit;
    mark = 0;
    failures++;
    rs_meta_set_locked("off.keep",
                       "the capture could not be written again: it grew past its limit");
}

bool rs_keep_gave_up(void)
{
    return failures >= TRIES;
}

static bool put(struct rs_block *head, const void *payload, size_t bytes)
{
    static const char zeros[8];
    head->flags = RS_BLOCK_REPEATED;
    head->payload_bytes = (uint32_t)bytes;
    head->payload_crc = rs_crc32c(0, payload, bytes);
    rs_writer_seal(head, mark_sequence - 1);
    struct iovec v[3] = {{head, sizeof(*head)},
                         {(void *)(uintptr_t)payload, bytes},
                         {(void *)(uintptr_t)zeros, -bytes & 7}};
    next.bytes += sizeof(*head) + bytes + (-bytes & 7);
    return rs_writer_write(next.fd, v, 3);
}

static bool copy(uint64_t from, uint64_t bytes)
{
    off_t at = (off_t)from;
    while (bytes) {
        struct rs_held held = rs_lock_open();
        ssize_t n = sendfile(next.fd, rs_state.fd, &at, bytes);
        int error = n == 0 ? EIO : errno;
        rs_lock_shut(&held);
        if (n < 0 && error == EINTR)
            continue;
        if (n <= 0) {
            errno = error;
            return false;
        }
        bytes -= (uint64_t)n;
        next.bytes += (uint64_t)n;
    }
    return true;
}

static bool put_definitions(void)
{
    const char *area = (const char *)rs_state.control + RS_RING_DEFS_OFFSET;
    uint64_t to = rs_state.control->defs_written;
    for (uint64_t from = 0, end; from < to; from = end) {
        struct rs_def d;
        for (end = from; end < to; end += d.bytes) {
            memcpy(&d, area + end, sizeof(d));
            if (end + d.bytes - from > RS_BLOCK_PAYLOAD_MAX / 4 && end > from)
                break;
        }
        struct rs_block head = {.kind = RS_BLOCK_DEFS};
        if (!put(&head, area + from, end - from))
            return false;
    }
    return true;
}

static bool begin(void)
{
    char text[32];
    struct stat st;
    const char *facts;
    struct rs_block head = {.kind = RS_BLOCK_META};
    snprintf(next.path, sizeof(next.path), "%s.new", rs_writer_path());
    unlink(next.path);
    int fd = open(next.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) != 0)
        return false;
    next.fd = rs_writer_move_up(fd);
    next.device = st.st_dev;
    next.inode = st.st_ino;
    next.bytes = next.from = next.left_out = 0;
    next.threads = rs_state.thread_number + 1;
    void *p = mmap(NULL, next.threads * sizeof(*next.tallies), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    next.tallies = p;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)rs_env.size_limit);
    rs_meta_set_locked("limit.reached", text);
    size_t n = rs_meta_payload(&facts);
    return put(&head, facts, n) && put_definitions();
}

/* ---- what is left out ---- */

static void count(const struct rs_block *head)
{
    if (head->thread >= next.threads)
        return;
    struct tally *t = &next.tallies[head->thread];
    if (!t->count || head->first_tick < t->first_tick)
        t->first_tick = head->first_tick;
    t->last_tick = head->last_tick > t->last_tick ? head->last_tick : t->last_tick;
    t->count += head->events;
    t->dropped = head->dropped > t->dropped ? head->dropped : t->dropped;
}

/* The next block of the part that is left out. */
static bool go_through(void)
{
    struct rs_block head;
    if (pread(rs_state.fd, &head, sizeof(head), (off_t)next.from) != sizeof(head) ||
        head.magic != RS_BLOCK_MAGIC) {
        errno = EIO;
        return false;
    }
    uint64_t payload = head.payload_bytes + (-(uint64_t)head.payload_bytes & 7);
    if (head.kind == RS_BLOCK_EVENTS)
        count(&head);
    if (head.kind == RS_BLOCK_CLOCK || head.kind == RS_BLOCK_SWITCH) {
        struct iovec v = {&head, sizeof(head)};
        rs_writer_seal(&head, mark_sequence - 1);
        if (!rs_writer_write(next.fd, &v, 1) || !copy(next.from + sizeof(head), payload))
            return false;
        next.bytes += sizeof(head);
    }
    next.from += sizeof(head) + payload;
    return true;
}

static bool put_holes(void)
{
    for (uint32_t i = 0; i < next.threads; i++) {
        const struct tally *t = &next.tallies[i];
        struct rs_event hole = {.op = RS_OP_HOLE, .flags = RS_EVENT_LIMIT, .peer = -1};
        struct rs_block head = {.kind = RS_BLOCK_EVENTS, .thread = i, .events = t->count};
        hole.start = head.first_tick = t->first_tick;
        hole.end = head.last_tick = t->last_tick;
        hole.count = t->count;
        head.dropped = t->dropped;
        if (t->count && !put(&head, &hole, sizeof(hole)))
            return false;
        next.left_out += t->count;
    }
    munmap(next.tallies, next.threads * sizeof(*next.tallies));
    next.tallies = NULL;
    return true;
}

/* ---- the capture's place ---- */

static bool take_place(void)
{
    struct rs_ring_process *c = rs_state.control;
    __atomic_store_n(&c->writing.capture_bytes, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&c->replace_bytes, next.bytes, __ATOMIC_RELEASE);
    if (rename(next.path, rs_writer_path()) != 0) {
        int error = errno;
        __atomic_store_n(&c->replace_bytes, 0, __ATOMIC_RELEASE);
        errno = error;
        return false;
    }
    c->left_out = rs_state.skipped = next.left_out;
    __atomic_store_n(&c->capture_bytes, next.bytes, __ATOMIC_RELEASE);
    __atomic_store_n(&c->replace_bytes, 0, __ATOMIC_RELEASE);
    fcntl(next.fd, F_SETFL, O_APPEND);
    close(rs_state.fd);
    rs_writer_take_file(next.fd);
    forget_file(false);
    rs_state.bytes += next.bytes;
    rs_state.segment_bytes = 0;
    failures = 0;
    threshold = next.bytes + rs_env.size_limit / 4;
    if (threshold < rs_env.size_limit)
        threshold = rs_env.size_limit;
    mark = 0;
    return true;
}

static bool go_on(void)
{
    if (!is_ours() || !rs_writer_has_file()) {
        errno = EBADF;
        return false;
    }
    for (int i = 0; next.from < mark && i < STEP_BLOCKS; i++)
        if (!go_through())
            return false;
    if (next.from < mark)
        return true;
    if (next.tallies && !put_holes())
        return false;
    uint64_t left = rs_state.control->capture_bytes - next.from;
    uint64_t now = left < STEP_BYTES ? left : STEP_BYTES;
    if (!copy(next.from, now))
        return false;
    next.from += now;
    if (now < left)
        return true;
    errno = EFBIG; /* what must stay is nearly all: nothing would be won */
    return next.bytes < rs_state.control->capture_bytes && take_place();
}

void rs_keep_step(void)
{
    uint64_t limit = rs_env.size_limit, bytes = rs_state.control->capture_bytes;
    if (!limit || !rs_env.keep_last || rs_state.off_capture[0] || rs_state.fd < 0)
        return;
    if (!threshold)
        threshold = limit;
    if (!mark && bytes + limit / 2 >= threshold) {
        mark = bytes;
        mark_sequence = rs_state.control->next_sequence;
        if (threshold < bytes + limit / 4)
            threshold = bytes + limit / 4;
    }
    if (next.fd < 0 && bytes < threshold)
        return;
    if ((next.fd < 0 && !begin()) || !go_on())
        fail(errno);
}
