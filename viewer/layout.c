/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <string.h>

#define OPEN_LINES_MAX 160 /* with more rows than that, ranks start closed */
#define CLOSED_PAD_PX  2   /* above and below the thin rows */

static const RsModel *model_of(const RsLayout *l)
{
    return l->rows->model;
}

static gint by_host(gconstpointer a, gconstpointer b, gpointer data)
{
    const RsModel *m = data;
    guint32 i = *(const guint32 *)a, j = *(const guint32 *)b;
    const RsRank *x = rs_model_rank(m, i), *y = rs_model_rank(m, j);
    if (x->missing != y->missing)
        return x->missing ? 1 : -1;
    if (!x->missing && x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return i < j ? -1 : i > j;
}

static void sort_ranks(RsLayout *l)
{
    guint n = model_of(l)->ranks->len;
    for (guint32 i = 0; i < n; i++)
        l->order[i] = i;
    g_qsort_with_data(l->order, (gint)n, sizeof *l->order, by_host, (gpointer)model_of(l));
}

static guint32 add_line(RsLayout *l, RsLineKind kind, guint32 host, guint32 rank, gint height)
{
    RsLine line = {.kind = (guint8)kind,
                   .host = host,
                   .rank = rank,
                   .row = RS_NONE,
                   .y = l->height,
                   .height = height};
    g_array_append_val(l->lines, line);
    l->height += height;
    return l->lines->len - 1;
}

static void rank_rows(const RsLayout *l, guint32 rank, guint32 *first, guint32 *last)
{
    const RsRank *r = rs_model_rank(model_of(l), rank);
    *first = r->n_tracks ? l->rows->track_rows[r->first_track] : 0;
    *last = r->n_tracks ? l->rows->track_rows[r->first_track + r->n_tracks] : 0;
}

static gboolean has_steps(const RsRows *r, guint32 track)
{
    gint64 sums_ns[RS_MEANS_COUNT];
    for (guint32 i = r->track_rows[track]; i < r->track_rows[track + 1]; i++) {
        const RsRow *row = rs_rows_row(r, i);
        rs_rows_sum(r, row, row->first, row->first + row->n, sums_ns);
        if (sums_ns[RS_MEANS_STEP] > 0)
            return TRUE;
    }
    return FALSE;
}

static gint row_height(const RsLayout *l, guint32 track, const RsRow *row)
{
    guint32 spans = 0;
    for (guint32 i = l->rows->track_rows[track]; i < l->rows->track_rows[track + 1]; i++)
        spans += rs_rows_row(l->rows, i)->span;
    return !row->span                                      ? RS_LAYOUT_ROW_PX
           : l->spans_open || spans <= RS_LAYOUT_SPANS_MAX ? RS_LAYOUT_SPAN_PX
                                                           : RS_LAYOUT_THIN_PX;
}

/* Libraries of a process record a thread each on its own: one name for both. */
static gboolean same_thread(const RsLayout *l, guint32 track, guint32 other)
{
    if (other == RS_NONE)
        return FALSE;
    const RsTrack *a = &g_array_index(model_of(l)->tracks, RsTrack, track);
    const RsTrack *b = &g_array_index(model_of(l)->tracks, RsTrack, other);
    return a->tid == b->tid && a->name == b->name && a->device == b->device;
}

static void add_track(RsLayout *l, guint32 host, guint32 rank, guint32 track, guint32 before)
{
    guint32 first = l->rows->track_rows[track];
    for (guint32 row = first; row < l->rows->track_rows[track + 1]; row++) {
        gint height = row_height(l, track, rs_rows_row(l->rows, row));
        guint32 at = add_line(l, RS_LINE_ROW, host, rank, height);
        RsLine *line = &g_array_index(l->lines, RsLine, at);
        line->row = row;
        line->first = row == first && !same_thread(l, track, before);
        l->row_line[row] = at;
    }
}

static void add_rows(RsLayout *l, guint32 host, guint32 rank)
{
    const RsRank *r = rs_model_rank(model_of(l), rank);
    guint32 before = RS_NONE;
    for (guint pass = 0; pass < 2; pass++)
        for (guint32 t = r->first_track; t < r->first_track + r->n_tracks; t++)
            if (has_steps(l->rows, t) == (pass == 0)) {
                add_track(l, host, rank, t, before);
                before = t;
            }
    l->height += RS_LAYOUT_GAP_PX;
}

static void add_rank(RsLayout *l, guint32 host, guint32 rank)
{
    l->rank_line[rank] = add_line(l, host == RS_NONE ? RS_LINE_MISSING : RS_LINE_RANK, host, rank,
                                  RS_LAYOUT_RANK_PX);
    if (!l->rank_closed[rank] && host != RS_NONE)
        add_rows(l, host, rank);
}

static void lay(RsLayout *l)
{
    const RsModel *m = model_of(l);
    g_array_set_size(l->lines, 0);
    l->height = 0;
    memset(l->rank_line, 0xff, (m->ranks->len + 1) * sizeof *l->rank_line);
    memset(l->row_line, 0xff, (l->rows->rows->len + 1) * sizeof *l->row_line);
    for (guint32 i = 0; i < m->ranks->len; i++) {
        const RsRank *r = rs_model_rank(m, l->order[i]);
        guint32 host = r->missing ? RS_NONE : r->host;
        const RsLine *last = l->lines->len ? rs_layout_line(l, l->lines->len - 1) : NULL;
        if (!last || last->host != host)
            add_line(l, RS_LINE_HOST, host, RS_NONE, RS_LAYOUT_HOST_PX);
        if (host == RS_NONE || !l->host_closed[host])
            add_rank(l, host, l->order[i]);
    }
}

void rs_layout_init(RsLayout *l, const RsRows *rows)
{
    const RsModel *m = rows->model;
    *l = (RsLayout){.rows = rows, .lines = g_array_new(FALSE, TRUE, sizeof(RsLine))};
    l->host_closed = g_new0(guint8, m->hosts->len + 1);
    l->rank_closed = g_new0(guint8, m->ranks->len + 1);
    l->order = g_new0(guint32, m->ranks->len + 1);
    l->rank_line = g_new0(guint32, m->ranks->len + 1);
    l->row_line = g_new0(guint32, rows->rows->len + 1);
    sort_ranks(l);
    rs_layout_close_all(l, rows->rows->len + m->ranks->len > OPEN_LINES_MAX);
}

void rs_layout_release(RsLayout *l)
{
    g_clear_pointer(&l->lines, g_array_unref);
    g_free(l->host_closed);
    g_free(l->rank_closed);
    g_free(l->order);
    g_free(l->rank_line);
    g_free(l->row_line);
    *l = (RsLayout){0};
}

void rs_layout_toggle(RsLayout *l, guint32 at)
{
    if (at >= l->lines->len)
        return;
    RsLine line = *rs_layout_line(l, at);
    if (line.kind == RS_LINE_HOST && line.host != RS_NONE)
        l->host_closed[line.host] ^= 1;
    else if (line.kind == RS_LINE_RANK)
        l->rank_closed[line.rank] ^= 1;
    lay(l);
}

void rs_layout_close_all(RsLayout *l, gboolean closed)
{
    memset(l->rank_closed, closed ? 1 : 0, model_of(l)->ranks->len);
    memset(l->host_closed, 0, model_of(l)->hosts->len);
    lay(l);
}

void rs_layout_open_spans(RsLayout *l, gboolean open)
{
    l->spans_open = open;
    lay(l);
}

void rs_layout_open_rank(RsLayout *l, guint32 rank)
{
    const RsRank *r = rs_model_rank(model_of(l), rank);
    if (r->missing)
        return;
    l->rank_closed[rank] = 0;
    l->host_closed[r->host] = 0;
    lay(l);
}

guint32 rs_layout_line_at(const RsLayout *l, gint y)
{
    guint32 low = 0, high = l->lines->len;
    if (high == 0)
        return RS_NONE;
    while (high - low > 1) {
        guint32 middle = low + (high - low) / 2;
        if (rs_layout_line(l, middle)->y <= y)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Thin rows of a closed rank share its line; where they are more than its pixels, several share
 * one. */
static void thin_box(const RsLine *line, guint32 i, guint32 n, gint *y, gint *height)
{
    guint32 room = (guint32)(line->height - 2 * CLOSED_PAD_PX);
    guint32 top = i * room / n, bottom = (i + 1) * room / n;
    *y = line->y + CLOSED_PAD_PX + (gint)top;
    *height = MAX((gint)(bottom - top), 1);
}

gboolean rs_layout_row_box(const RsLayout *l, guint32 row, gint *y, gint *height)
{
    if (l->row_line[row] != RS_NONE) {
        const RsLine *line = rs_layout_line(l, l->row_line[row]);
        *y = line->y;
        *height = line->height;
        return TRUE;
    }
    guint32 track = rs_rows_row(l->rows, row)->track, first, last;
    guint32 rank = g_array_index(model_of(l)->tracks, RsTrack, track).rank;
    if (l->rank_line[rank] == RS_NONE)
        return FALSE;
    rank_rows(l, rank, &first, &last);
    thin_box(rs_layout_line(l, l->rank_line[rank]), row - first, last - first, y, height);
    return TRUE;
}

guint32 rs_layout_row_at(const RsLayout *l, gint y)
{
    guint32 at = rs_layout_line_at(l, y), first, last;
    if (at == RS_NONE)
        return RS_NONE;
    const RsLine *line = rs_layout_line(l, at);
    gint inside = y - line->y;
    if (inside < 0 || inside >= line->height)
        return RS_NONE;
    if (line->kind == RS_LINE_ROW)
        return line->row;
    if (line->kind != RS_LINE_RANK || !l->rank_closed[line->rank])
        return RS_NONE;
    rank_rows(l, line->rank, &first, &last);
    gint room = line->height - 2 * CLOSED_PAD_PX;
    inside = CLAMP(inside - CLOSED_PAD_PX, 0, room - 1);
    /* the last i whose top i * room / n is at most `inside` */
    guint32 n = last - first;
    return n ? first + MIN(((guint32)(inside + 1) * n - 1) / (guint32)room, n - 1) : RS_NONE;
}
