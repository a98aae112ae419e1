/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz-capture.c - any bytes as a capture: read, matched, freed, without a crash or an endless
 * loop.
 *
 * Each input is read twice: as it is, and with the checksums of its blocks put right, so that what
 * lies behind them is reached. Links to libFuzzer, or to replay.c, which runs the corpus.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const guint8 *data, gsize n)
{
    g_autoptr(GBytes) bytes = g_bytes_new(data, n);
    g_autoptr(RsBlocks) blocks = rs_blocks_open_bytes("fuzz.rsc", bytes);
    g_autoptr(RsBuilder) b = rs_builder_new();
    if (!rs_capture_read(b, &blocks, 1, NULL, NULL, NULL, NULL))
        return;
    /* twice: two processes that claim the same rank and communicators */
    rs_capture_read(b, &blocks, 1, NULL, NULL, NULL, NULL);
    rs_model_free(rs_builder_finish(g_steal_pointer(&b), RS_FINISH_ALL));
}

static void put_right(guint8 *data, gsize n)
{
    for (gsize at = 0; at + sizeof(struct rs_block) <= n;) {
        struct rs_block head;
        memcpy(&head, data + at, sizeof head);
        gsize rest = n - at - sizeof head;
        head.payload_bytes = (guint32)MIN(head.payload_bytes, rest);
        rs_block_seal(&head, data + at + sizeof head);
        memcpy(data + at, &head, sizeof head);
        at += sizeof head + ((head.payload_bytes + 7) & ~7u);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size);
    guint8 *copy = g_malloc(size + 1);
    memcpy(copy, data, size);
    put_right(copy, size);
    read_all(copy, size);
    g_free(copy);
    return 0;
}
