/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32c.h"
#include "run.h"

#define BUFFER_BYTES (RS_BLOCK_PAYLOAD_MAX + 2 * (gsize)sizeof(struct rs_block))

void rs_block_seal(struct rs_block *head, const void *payload)
{
    head->magic = RS_BLOCK_MAGIC;
    head->major = RS_FORMAT_MAJOR;
    head->minor = RS_FORMAT_MINOR;
    head->payload_crc = rs_crc32c(0, payload, head->payload_bytes);
    head->header_crc = rs_crc32c(0, head, offsetof(struct rs_block, header_crc));
}

gboolean rs_block_head_is_whole(const struct rs_block *head)
{
    return head->magic == RS_BLOCK_MAGIC && head->payload_bytes <= RS_BLOCK_PAYLOAD_MAX &&
           head->header_crc == rs_crc32c(0, head, offsetof(struct rs_block, header_crc));
}

static guint64 padded(guint32 bytes)
{
    return ((guint64)bytes + 7) & ~(guint64)7;
}

/* Reads up to `bytes` at `offset` into the buffer; returns how many are there. */
static gsize fill(RsBlocks *b, guint64 offset, gsize bytes)
{
    gsize got = 0;
    while (got < bytes) {
        gssize n = pread(b->fd, b->buffer + got, bytes - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (gsize)n;
    }
    b->buffer_offset = offset;
    b->buffer_bytes = got;
    return got;
}

/* `bytes` bytes at `offset`, NULL where there are fewer. Borrowed until the next call. */
static const guint8 *peek(RsBlocks *b, guint64 offset, gsize bytes)
{
    if (offset > b->bytes || bytes > b->bytes - offset)
        return NULL;
    if (b->memory)
        return (const guint8 *)g_bytes_get_data(b->memory, NULL) + offset;
    if (offset < b->buffer_offset || offset + bytes > b->buffer_offset + b->buffer_bytes) {
        gsize want = (gsize)MIN(MAX(bytes, 1u << 20), b->bytes - offset);
        if (fill(b, offset, MIN(want, BUFFER_BYTES)) < bytes)
            return NULL;
    }
    return b->buffer + (offset - b->buffer_offset);
}

static gboolean head_at(RsBlocks *b, guint64 offset, struct rs_block *ret_head)
{
    const guint8 *p = peek(b, offset, sizeof *ret_head);
    if (!p)
        return FALSE;
    memcpy(ret_head, p, sizeof *ret_head);
    return rs_block_head_is_whole(ret_head);
}

static gboolean payload_is_whole(RsBlocks *b, guint64 offset, const struct rs_block *head)
{
    const guint8 *p = peek(b, offset + sizeof *head, head->payload_bytes);
    return p && rs_crc32c(0, p, head->payload_bytes) == head->payload_crc;
}

/* What can be looked at from `offset` without reading again, at least a head's worth if possible.
 */
static gsize window_at(const RsBlocks *b, guint64 offset)
{
    guint64 end = b->buffer_offset + b->buffer_bytes;
    if (!b->memory && offset >= b->buffer_offset && offset + sizeof(struct rs_block) <= end)
        return (gsize)MIN(end, b->bytes) - offset;
    return (gsize)MIN(1u << 20, b->bytes - offset);
}

/* Where the next head of a block is, from `offset` on; the end where there is none. */
static guint64 find_head(RsBlocks *b, guint64 offset)
{
    static const guint32 magic = RS_BLOCK_MAGIC;
    struct rs_block head;
    while (offset + sizeof head <= b->bytes) {
        gsize window = window_at(b, offset);
        const guint8 *p = peek(b, offset, window);
        if (!p)
            break;
        const guint8 *hit = memmem(p, window, &magic, sizeof magic);
        if (!hit) {
            offset += window - (sizeof magic - 1);
            continue;
        }
        offset += (guint64)(hit - p);
        if (head_at(b, offset, &head))
            return offset;
        offset++;
    }
    return b->bytes;
}

static void add_loss(RsBlocks *b, guint64 from, guint64 to, const gchar *what)
{
    RsBlockLoss loss = {from, to - from, what};
    g_array_append_val(b->losses, loss);
}

static void add_block(RsBlocks *b, const struct rs_block *head, guint64 offset)
{
    if (head->major > RS_FORMAT_MAJOR) {
        b->newer++;
        b->newer_major = MAX(b->newer_major, head->major);
        return;
    }
    RsBlockAt at = {*head, offset};
    g_array_append_val(b->index, at);
}

/* A damaged block may have lost or gained bytes: what follows is looked for right behind its head.
 */
static guint64 skip_damage(RsBlocks *b, guint64 offset, gboolean head_whole,
                           const struct rs_block *head)
{
    guint64 next = find_head(b, offset + (head_whole ? sizeof *head : 1));
    gboolean cut = next == b->bytes &&
                   (b->bytes - offset < sizeof *head ||
                    (head_whole && offset + sizeof *head + head->payload_bytes > b->bytes));
    add_loss(b, offset, next, cut ? "the capture ends inside a block" : "damaged, skipped");
    return next;
}

static void count_gaps(RsBlocks *b)
{
    for (guint i = 1; i < b->index->len; i++) {
        guint32 before = g_array_index(b->index, RsBlockAt, i - 1).head.sequence;
        guint32 now = g_array_index(b->index, RsBlockAt, i).head.sequence;
        if (now > before + 1)
            b->lost_blocks += now - before - 1;
    }
}

/* A block's head of a newer format need not end in our checksum. */
static void look_for_newer(RsBlocks *b)
{
    const guint8 *p = peek(b, 0, sizeof(struct rs_block));
    struct rs_block head;
    if (!p || b->index->len || b->newer)
        return;
    memcpy(&head, p, sizeof head);
    if (head.magic == RS_BLOCK_MAGIC && head.major > RS_FORMAT_MAJOR) {
        b->newer = 1;
        b->newer_major = head.major;
    }
}

static void make_index(RsBlocks *b)
{
    guint64 offset = 0;
    while (offset < b->bytes) {
        struct rs_block head;
        gboolean whole = head_at(b, offset, &head);
        if (whole && payload_is_whole(b, offset, &head)) {
            add_block(b, &head, offset);
            offset += sizeof head + padded(head.payload_bytes);
        } else {
            offset = skip_damage(b, offset, whole, &head);
        }
    }
    count_gaps(b);
    look_for_newer(b);
}

static RsBlocks *new_blocks(const gchar *path)
{
    RsBlocks *b = g_new0(RsBlocks, 1);
    b->path = g_strdup(path);
    b->fd = -1;
    b->index = g_array_new(FALSE, FALSE, sizeof(RsBlockAt));
    b->losses = g_array_new(FALSE, FALSE, sizeof(RsBlockLoss));
    return b;
}

static gboolean open_file(RsBlocks *b, guint64 limit, GError **error)
{
    struct stat st;
    b->fd = open(b->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (b->fd < 0 || fstat(b->fd, &st) != 0) {
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: %s", b->path, g_strerror(errno));
        return FALSE;
    }
    if (!S_ISREG(st.st_mode)) {
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: not a regular file", b->path);
        return FALSE;
    }
    b->bytes = MIN((guint64)st.st_size, limit);
    b->buffer = g_malloc((gsize)MIN(BUFFER_BYTES, b->bytes + 1));
    return TRUE;
}

RsBlocks *rs_blocks_open(const gchar *path, guint64 limit, GError **error)
{
    g_autoptr(RsBlocks) b = new_blocks(path);
    if (!open_file(b, limit, error))
        return NULL;
    make_index(b);
    return g_steal_pointer(&b);
}

RsBlocks *rs_blocks_open_bytes(const gchar *path, GBytes *bytes)
{
    RsBlocks *b = new_blocks(path);
    b->memory = g_bytes_ref(bytes);
    b->bytes = g_bytes_get_size(bytes);
    make_index(b);
    return b;
}

void rs_blocks_free(RsBlocks *b)
{
    if (!b)
        return;
    if (b->fd >= 0)
        close(b->fd);
    g_clear_pointer(&b->memory, g_bytes_unref);
    g_free(b->buffer);
    g_free(b->path);
    g_array_unref(b->index);
    g_array_unref(b->losses);
    g_free(b);
}

const guint8 *rs_blocks_payload(RsBlocks *b, guint i)
{
    const RsBlockAt *at = &g_array_index(b->index, RsBlockAt, i);
    if (at->head.payload_bytes == 0)
        return (const guint8 *)"";
    return peek(b, at->offset + sizeof at->head, at->head.payload_bytes);
}
