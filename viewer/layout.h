/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - which line of the picture shows what: hosts, their ranks, the rows of their tracks.
 *
 * Model: lines from top to bottom, each with its y and height in pixels from the top of everything
 * (not of the window). A closed host hides its ranks; a closed rank is one line in which all its
 * rows are drawn thin. In an open one the thread that has the steps comes first. Ranks without a
 * capture stand at the end under a heading of their own. Whoever stands at a y is found by binary
 * search.
 */
#ifndef RS_VIEWER_LAYOUT_H
#define RS_VIEWER_LAYOUT_H

#include "rows.h"

G_BEGIN_DECLS

#define RS_LAYOUT_HOST_PX   20
#define RS_LAYOUT_RANK_PX   18
#define RS_LAYOUT_ROW_PX    15
#define RS_LAYOUT_SPAN_PX   13 /* of tensor phases: they are many ... */
#define RS_LAYOUT_THIN_PX   4  /* ... and where a track has more than RS_LAYOUT_SPANS_MAX rows of */
#define RS_LAYOUT_SPANS_MAX 2u /* them, thin ones, until they are opened */
#define RS_LAYOUT_GAP_PX    3  /* under the last row of a rank */

typedef enum { RS_LINE_HOST, RS_LINE_RANK, RS_LINE_ROW, RS_LINE_MISSING } RsLineKind;

typedef struct {
    guint8 kind;        /* RsLineKind */
    gboolean first;     /* first row of its track: carries its name */
    guint32 host, rank; /* RS_NONE: the heading of the missing */
    guint32 row;        /* of a row line */
    gint y, height;
} RsLine;

typedef struct {
    const RsRows *rows;
    GArray *lines; /* RsLine */
    gint height;   /* of all lines */
    guint8 *host_closed, *rank_closed;
    gboolean spans_open; /* tensor phases at full height */
    guint32 *order;      /* RsRank indices by (host, world rank), the missing last */
    guint32 *rank_line;  /* by RsRank index; RS_NONE where its host is closed */
    guint32 *row_line;   /* by row; RS_NONE where closed */
} RsLayout;

/* Opens all ranks where that is at most some screens, else closes them. */
void rs_layout_init(RsLayout *layout, const RsRows *rows);
void rs_layout_release(RsLayout *layout);
/* Opens or closes the host or rank of `line`; nothing for others. */
void rs_layout_toggle(RsLayout *layout, guint32 line);
void rs_layout_close_all(RsLayout *layout, gboolean closed);
void rs_layout_open_spans(RsLayout *layout, gboolean open);
/* Makes the rank's rows visible. */
void rs_layout_open_rank(RsLayout *layout, guint32 rank);

static inline const RsLine *rs_layout_line(const RsLayout *layout, guint32 line)
{
    return &g_array_index(layout->lines, RsLine, line);
}
/* The line at `y`; the nearest one beyond the ends; RS_NONE without lines. */
guint32 rs_layout_line_at(const RsLayout *layout, gint y);
/* Where slices of `row` are drawn now; FALSE where nowhere. */
gboolean rs_layout_row_box(const RsLayout *layout, guint32 row, gint *y, gint *height);
/* The row drawn at `y`, thin ones of closed ranks too; RS_NONE. */
guint32 rs_layout_row_at(const RsLayout *layout, gint y);

G_END_DECLS
#endif
