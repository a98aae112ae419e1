/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - the whole blocks of a capture, in order, and what lies damaged between them.
 *
 * Model: opening reads the capture once from end to end, checks every checksum and keeps an index
 * of what is whole; payloads are read again by index. Where something is not a block, reading goes
 * on at the next block that is, and the gap is a loss with its offset.
 * Memory: the index (72 bytes a block) and one payload of at most RS_BLOCK_PAYLOAD_MAX.
 * A file that still grows is read up to the length it had when opened.
 */
#ifndef RS_ANALYZER_BLOCKS_H
#define RS_ANALYZER_BLOCKS_H

#include <glib.h>

#include "rsc.h"

G_BEGIN_DECLS

typedef struct {
    struct rs_block head;
    guint64 offset;
} RsBlockAt;

typedef struct {
    guint64 offset, bytes;
    const gchar *what; /* static text: "not a block", ... */
} RsBlockLoss;

typedef struct {
    gchar *path;
    guint64 bytes;       /* length when opened */
    GArray *index;       /* RsBlockAt: whole blocks of a known major version */
    GArray *losses;      /* RsBlockLoss, by offset */
    guint64 lost_blocks; /* gaps in the blocks' numbers */
    guint newer;         /* whole blocks of a newer major version */
    guint8 newer_major;
    /* private */
    int fd;
    GBytes *memory;
    guint8 *buffer;
    guint64 buffer_offset, buffer_bytes;
} RsBlocks;

/* Opens a regular file, up to byte `limit` (G_MAXUINT64: all of it). Error: can't be opened or
 * read. A file without one whole block is no error here: its index is empty. */
RsBlocks *rs_blocks_open(const gchar *path, guint64 limit, GError **error);
/* The same of bytes in memory; `path` names them in messages. */
RsBlocks *rs_blocks_open_bytes(const gchar *path, GBytes *bytes);
void rs_blocks_free(RsBlocks *blocks);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RsBlocks, rs_blocks_free)

/* The payload of index entry `i`, valid until the next call; NULL where it can't be read any more.
 */
const guint8 *rs_blocks_payload(RsBlocks *blocks, guint i);

/* Fills in magic, versions and both checksums. Shared by whoever writes blocks. */
void rs_block_seal(struct rs_block *head, const void *payload);
/* True where the 64 bytes are the head of a block, of whatever version. */
gboolean rs_block_head_is_whole(const struct rs_block *head);

G_END_DECLS
#endif
