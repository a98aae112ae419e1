/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfers.h - messages between hosts as busy time of links, shared by links.c and slow-link.c.
 *
 * A transfer runs from the moment both sides had arrived to the receiver's completion: a late
 * sender or receiver does not make a link slow. Concurrent transfers of one ordered host pair share
 * the link, so time is counted once for all of them: a spell is a stretch of time in which at least
 * one transfer is under way. What a spell gave is at most what the link gives: ends that are busy
 * or start slowly take from it. So a link's bandwidth is the upper quartile of its spells, weighted
 * by their bytes; a single burst out of a buffer does not carry it.
 * Small messages tell latency, not bandwidth: only those from a size upward count that holds at
 * least half of the link's bytes, and is at least 32 KiB.
 */
#ifndef RS_ANALYSES_TRANSFERS_H
#define RS_ANALYSES_TRANSFERS_H

#include "analysis.h"

G_BEGIN_DECLS

typedef struct {
    guint32 src_host, dst_host, src, dst; /* RsHost and RsRank indices */
    guint32 step, message;
    guint64 bytes;
    gint64 from_ns, to_ns;
} RsTransfer;

typedef struct {
    gint64 from_ns, to_ns;
    guint64 bytes;
} RsSpell;

#define RS_BIG_FLOOR_BYTES (32u << 10)
#define RS_BIG_MIN_COUNT   5

/* Appends the window's transfers between different hosts to RsTransfer `array`. */
void rs_transfers_collect(GArray *array, const RsWindow *window);
/* Sorts by link, time and message: the same order however they were collected. */
void rs_transfers_sort(GArray *array);
/* End of the run of transfers of one link that begins at `from`. */
guint rs_transfers_link_end(const GArray *array, guint from);

/* Spells of those transfers of [t, t + n) that are `big_from` bytes or more; n sorted by time.
 * Returned: RsSpell, unref it. */
GArray *rs_transfers_spells(const RsTransfer *t, guint n, guint64 big_from);
gint64 rs_spells_length_ns(const GArray *spells);

/* Fills in everything but the hosts. */
void rs_transfers_measure(const RsTransfer *t, guint n, RsLinkMetric *ret_metric);

G_END_DECLS
#endif
