/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - the slices of a run as rows in which nothing overlaps, ready to be searched and summed.
 *
 * Model: a track has a row for its marks (where it has any), then, for each lane (export/lanes.h),
 * a row per depth of nesting. The slices of a row are the slots [first, first + n), ordered by
 * start and disjoint, so that starts and ends both rise and every question is a binary search.
 * Counters have no slot. Each slice is split: before `split_ns` its rank waits for others, after it
 * the work is done. Sums of time per meaning are kept every RS_ROWS_BLOCK slots: what any stretch
 * of a row holds costs the same however many slices it has. Memory: about 40 bytes a slice.
 * Read-only after init. Borrows the model.
 */
#ifndef RS_VIEWER_ROWS_H
#define RS_VIEWER_ROWS_H

#include "meaning.h"

G_BEGIN_DECLS

#define RS_ROWS_BLOCK 16u

typedef struct {
    guint32 first, n; /* slots */
    guint32 track;
    guint32 block; /* of its first slot, in sums_ns */
    gboolean marks, span;
} RsRow;

typedef struct {
    const RsModel *model;
    GArray *rows;        /* RsRow, by track */
    guint32 *track_rows; /* first row by track, and one more for the end */
    guint32 n_slots;
    guint32 *event; /* by slot */
    gint64 *start_ns, *end_ns, *split_ns;
    guint8 *meaning;      /* RsMeaning of what is not waiting */
    guint32 *slot_of;     /* by event; RS_NONE: not drawn */
    guint32 *instance_of; /* by event: RsInstance index, RS_NONE */
    gint64 *sums_ns;      /* RS_MEANS_COUNT for each block: of the row's slots before it */
} RsRows;

void rs_rows_init(RsRows *rows, const RsModel *model);
void rs_rows_release(RsRows *rows);

static inline const RsRow *rs_rows_row(const RsRows *rows, guint32 row)
{
    return &g_array_index(rows->rows, RsRow, row);
}
/* The row of a slot: binary search. */
guint32 rs_rows_row_of(const RsRows *rows, guint32 slot);
/* First slot of `row` at or after `from` that starts at or after `time_ns`; the row's end if none.
 * Cheap where the answer is near `from`. */
guint32 rs_rows_seek(const RsRows *rows, const RsRow *row, guint32 from, gint64 time_ns);
/* First slot of `row` that ends after `time_ns`, or is a point at or after it. */
guint32 rs_rows_first_visible(const RsRows *rows, const RsRow *row, gint64 time_ns);
/* Nanoseconds per meaning in slots [first, last) of `row`; a slice counts at least one. */
void rs_rows_sum(const RsRows *rows, const RsRow *row, guint32 first, guint32 last,
                 gint64 sums_ns[RS_MEANS_COUNT]);

G_END_DECLS
#endif
