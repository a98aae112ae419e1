/* SPDX-License-Identifier: Apache-2.0 */
#include "paint.h"

#include <math.h>

#include "escape.h"
#include "plural.h"

#define TICK_MIN_PX 90
#define STEP_MIN_PX 14 /* steps thinner than that are marked with their neighbours */

/* ---- gutter ---- */

static void paint_triangle(RsPen *pen, gdouble x, gdouble y, gboolean closed)
{
    rs_pen_ink(pen, RS_INK_SOFT);
    if (closed) {
        cairo_move_to(pen->cr, x - 2, y - 4);
        cairo_line_to(pen->cr, x + 3, y);
        cairo_line_to(pen->cr, x - 2, y + 4);
    } else {
        cairo_move_to(pen->cr, x - 4, y - 2);
        cairo_line_to(pen->cr, x + 4, y - 2);
        cairo_line_to(pen->cr, x, y + 3);
    }
    cairo_close_path(pen->cr);
    cairo_fill(pen->cr);
}

static guint ranks_on(const RsModel *m, guint32 host)
{
    guint n = 0;
    for (guint32 i = 0; i < m->ranks->len; i++) {
        const RsRank *r = rs_model_rank(m, i);
        n += host == RS_NONE ? r->missing : !r->missing && r->host == host;
    }
    return n;
}

static void paint_host(const RsScene *s, RsPen *pen, const RsLine *line, gdouble y)
{
    const RsModel *m = s->model;
    gdouble middle = y + line->height / 2.0;
    rs_pen_fill(pen, RS_PAPER_HEAD, 1, 0, y, RS_SCENE_GUTTER_PX, line->height);
    if (line->host != RS_NONE)
        paint_triangle(pen, 11, middle, s->layout.host_closed[line->host]);
    g_autofree gchar *name = line->host == RS_NONE
                                 ? g_strdup("not captured")
                                 : rs_escape_dup_text(rs_model_host_name(m, line->host));
    gdouble width =
        rs_pen_text(pen, RS_PEN_BOLD, RS_INK, 20, middle, RS_SCENE_GUTTER_PX - 84, name);
    guint n = ranks_on(m, line->host);
    g_autofree gchar *count = g_strdup_printf("%u rank%s", n, rs_plural(n));
    rs_pen_text(pen, RS_PEN_SMALL, RS_INK_SOFT, 28 + width, middle, 70, count);
}

static void paint_rank(const RsScene *s, RsPen *pen, const RsLine *line, gdouble y)
{
    const RsRank *r = rs_model_rank(s->model, line->rank);
    gboolean marked = s->rank_marked[line->rank];
    gdouble middle = y + line->height / 2.0;
    rs_pen_fill(pen, RS_PAPER_SIDE, 1, 0, y, RS_SCENE_GUTTER_PX, line->height);
    if (!r->missing)
        paint_triangle(pen, 21, middle, s->layout.rank_closed[line->rank]);
    g_autofree gchar *name = r->rank >= 0 ? g_strdup_printf("rank %d", r->rank)
                                          : rs_model_dup_rank_label(s->model, line->rank);
    gdouble width =
        rs_pen_text(pen, marked ? RS_PEN_BOLD : RS_PEN_PLAIN, marked ? RS_ACCENT : RS_INK, 30,
                    middle, RS_SCENE_GUTTER_PX - 40, name);
    g_autofree gchar *pid = g_strdup_printf("pid %" G_GINT64_FORMAT, r->pid);
    if (r->pid > 0 && width < 70)
        rs_pen_text(pen, RS_PEN_SMALL, RS_INK_FAINT, 38 + width, middle,
                    RS_SCENE_GUTTER_PX - 44 - width, pid);
}

static void paint_track_name(const RsScene *s, RsPen *pen, const RsLine *line, gdouble y)
{
    const RsRow *row = rs_rows_row(&s->rows, line->row);
    if (!line->first)
        return;
    const RsTrack *t = &g_array_index(s->model->tracks, RsTrack, row->track);
    g_autofree gchar *name = rs_escape_dup_text(rs_model_str(s->model, t->name));
    rs_pen_text(pen, RS_PEN_SMALL, RS_INK_SOFT, 38, y + line->height / 2.0, RS_SCENE_GUTTER_PX - 46,
                name);
}

static void paint_gutter(const RsScene *s, RsPen *pen)
{
    guint32 at = rs_layout_line_at(&s->layout, s->scroll_px);
    rs_pen_fill(pen, RS_PAPER, 1, 0, RS_SCENE_RULER_PX, RS_SCENE_GUTTER_PX, rs_scene_body_px(s));
    for (; at < s->layout.lines->len; at++) {
        const RsLine *line = rs_layout_line(&s->layout, at);
        gdouble y = line->y - s->scroll_px + RS_SCENE_RULER_PX;
        if (y >= s->height)
            break;
        if (line->kind == RS_LINE_HOST)
            paint_host(s, pen, line, y);
        else if (line->kind == RS_LINE_ROW)
            paint_track_name(s, pen, line, y);
        else
            paint_rank(s, pen, line, y);
        if (line->rank != RS_NONE && s->rank_marked[line->rank])
            rs_pen_fill(pen, RS_ACCENT, 1, 0, y, 3, line->height);
    }
    rs_pen_line(pen, RS_LINE_RGB, RS_SCENE_GUTTER_PX - 1, 0, RS_SCENE_GUTTER_PX - 1, s->height);
}

/* ---- ruler ---- */

static void paint_ticks(const RsScene *s, RsPen *pen)
{
    gint64 tick = rs_axis_tick_ns(&s->axis, TICK_MIN_PX);
    gint64 from = (gint64)ceil(MAX(s->axis.from_ns, 0) / (gdouble)tick) * tick;
    for (gint64 t = from; rs_axis_px(&s->axis, t) < s->axis.width_px; t += tick) {
        gdouble x = rs_axis_px(&s->axis, t) + RS_SCENE_GUTTER_PX;
        g_autofree gchar *text = rs_axis_dup_tick(&s->axis, t, tick);
        rs_pen_fill(pen, RS_INK, 0.06, floor(x), RS_SCENE_RULER_PX, 1, rs_scene_body_px(s));
        rs_pen_line(pen, RS_INK_FAINT, x, 16, x, 21);
        rs_pen_text(pen, RS_PEN_SMALL, RS_INK_SOFT, x + 4, 11, -1, text);
    }
}

/* One step, or thin ones that are marked together. */
typedef struct {
    guint count;
    gboolean thin;
    guint32 first, last; /* numbers */
    gdouble from_px, to_px;
} StepMark;

static gchar *dup_step_text(const StepMark *k, gboolean shorter)
{
    if (k->count > 1)
        return g_strdup_printf(shorter ? "%u\u2013%u" : "steps %u\u2013%u", k->first, k->last);
    return g_strdup_printf(shorter ? "%u" : "step %u", k->first);
}

/* The longest text that fits, if any; empties the mark. */
static void paint_step_mark(const RsScene *s, RsPen *pen, StepMark *k)
{
    gdouble x = MAX(k->from_px, 0), end = MIN(k->to_px, s->axis.width_px);
    if (k->count > 0 && end > x) {
        gdouble gap = end - x > 2 ? 1 : 0;
        rs_pen_fill(pen, RS_PAPER_HEAD, 1, x + RS_SCENE_GUTTER_PX, 24, end - x - gap, 14);
        for (gint shorter = 0; shorter < 2 && end - x >= STEP_MIN_PX; shorter++) {
            g_autofree gchar *text = dup_step_text(k, shorter);
            if (rs_pen_measure(pen, RS_PEN_SMALL, text) > end - x - 6)
                continue;
            rs_pen_text(pen, RS_PEN_SMALL, RS_INK_SOFT, x + RS_SCENE_GUTTER_PX + 4, 31, -1, text);
            break;
        }
    }
    k->count = 0;
}

static void add_step(const RsScene *s, RsPen *pen, StepMark *k, const RsStep *step)
{
    gdouble from = rs_axis_px(&s->axis, step->start_ns), to = rs_axis_px(&s->axis, step->end_ns);
    gboolean thin = to - from < STEP_MIN_PX;
    if (!thin || !k->thin || from - k->to_px >= STEP_MIN_PX) {
        k->to_px = MIN(k->to_px, from); /* some ranks begin a step while others end the last */
        paint_step_mark(s, pen, k);
    }
    if (k->count == 0) {
        k->thin = thin;
        k->first = step->number;
        k->from_px = from;
    }
    k->count++;
    k->last = step->number;
    k->to_px = to;
}

/* Steps follow each other: the first that may be in view is found by search. */
static void paint_steps(const RsScene *s, RsPen *pen)
{
    const GArray *steps = s->model->steps;
    guint low = 0, high = steps->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if ((gdouble)g_array_index(steps, RsStep, middle).end_ns < s->axis.from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    StepMark mark = {0};
    for (guint i = low; i < steps->len; i++) {
        const RsStep *step = &g_array_index(steps, RsStep, i);
        if ((gdouble)step->start_ns > rs_axis_to_ns(&s->axis))
            break;
        add_step(s, pen, &mark, step);
    }
    paint_step_mark(s, pen, &mark);
}

static void paint_ruler(const RsScene *s, RsPen *pen)
{
    rs_pen_fill(pen, RS_PAPER, 1, 0, 0, s->width, RS_SCENE_RULER_PX);
    g_autofree gchar *span = rs_axis_dup_duration((gint64)(s->axis.ns_per_px * s->axis.width_px));
    g_autofree gchar *shown = g_strdup_printf("%s in view", span);
    rs_pen_text(pen, RS_PEN_SMALL, RS_INK_SOFT, 12, 11, RS_SCENE_GUTTER_PX - 20, shown);
    cairo_save(pen->cr);
    cairo_rectangle(pen->cr, RS_SCENE_GUTTER_PX, 0, s->axis.width_px, s->height);
    cairo_clip(pen->cr);
    paint_steps(s, pen);
    paint_ticks(s, pen);
    cairo_restore(pen->cr);
    rs_pen_line(pen, RS_LINE_RGB, 0, RS_SCENE_RULER_PX - 1, s->width, RS_SCENE_RULER_PX - 1);
}

/* ---- over the slices ---- */

static void paint_finding(const RsScene *s, RsPen *pen)
{
    if (s->finding < 0)
        return;
    const RsFinding *f = g_ptr_array_index(s->results->findings, (guint)s->finding);
    gdouble from = rs_axis_px(&s->axis, (gint64)(f->t_start_s * 1e9));
    gdouble to = rs_axis_px(&s->axis, (gint64)(f->t_end_s * 1e9));
    from = CLAMP(from, 0, s->axis.width_px) + RS_SCENE_GUTTER_PX;
    to = CLAMP(to, 0, s->axis.width_px) + RS_SCENE_GUTTER_PX;
    if (to > from)
        rs_pen_fill(pen, RS_ACCENT, 1, from, RS_SCENE_RULER_PX - 3, to - from, 3);
}

static void paint_frame(const RsScene *s, RsPen *pen, guint32 event, guint32 rgb, gdouble line_px)
{
    gdouble x, y, width, height;
    if (event == RS_NONE || !rs_scene_event_box(s, event, &x, &y, &width, &height))
        return;
    gdouble from = MAX(x, RS_SCENE_GUTTER_PX - 4), to = MIN(x + width, s->width + 4);
    if (to > RS_SCENE_GUTTER_PX - 4 && from < s->width + 4)
        rs_pen_frame(pen, rgb, line_px, floor(from), floor(y), MAX(ceil(to - from), 2), height - 1);
}

static void paint_pointer(const RsScene *s, RsPen *pen)
{
    if (s->pointer_x < RS_SCENE_GUTTER_PX)
        return;
    gint64 tick = MAX(rs_axis_tick_ns(&s->axis, 1) / 2, 1); /* a digit more than a pixel tells */
    gint64 at = (gint64)rs_axis_time(&s->axis, s->pointer_x - RS_SCENE_GUTTER_PX);
    g_autofree gchar *text = rs_axis_dup_tick(&s->axis, at, tick);
    gdouble width = rs_pen_measure(pen, RS_PEN_SMALL, text) + 8;
    gdouble x = MIN(s->pointer_x, s->width - width);
    rs_pen_fill(pen, RS_INK, 0.35, s->pointer_x, RS_SCENE_RULER_PX, 1, rs_scene_body_px(s));
    rs_pen_fill(pen, RS_INK, 1, x, 2, width, 17);
    rs_pen_text(pen, RS_PEN_SMALL, RS_PAPER, x + 4, 11, -1, text);
}

static void paint_over(const RsScene *s, RsPen *pen)
{
    cairo_save(pen->cr);
    cairo_rectangle(pen->cr, RS_SCENE_GUTTER_PX, RS_SCENE_RULER_PX, s->axis.width_px,
                    rs_scene_body_px(s));
    cairo_clip(pen->cr);
    if (s->hover != s->selected)
        paint_frame(s, pen, s->hover, RS_INK_SOFT, 1);
    paint_frame(s, pen, s->selected, RS_ACCENT, 2);
    rs_paint_arrows(s, pen);
    cairo_restore(pen->cr);
}

gdouble rs_paint_legend(const RsScene *s, RsPen *pen, gdouble x, gdouble y)
{
    gint64 sums[RS_MEANS_COUNT], all[RS_MEANS_COUNT] = {0};
    for (guint i = 0; i < s->rows.rows->len; i++) {
        const RsRow *row = rs_rows_row(&s->rows, i);
        rs_rows_sum(&s->rows, row, row->first, row->first + row->n, sums);
        for (guint k = 0; k < RS_MEANS_COUNT; k++)
            all[k] += sums[k];
    }
    gdouble at = x;
    for (guint k = 0; k < RS_MEANS_COUNT; k++) {
        if (all[k] == 0)
            continue;
        rs_pen_fill(pen, rs_meaning_rgb((RsMeaning)k), 1, at, y - 5, 10, 10);
        at += 15 + rs_pen_text(pen, RS_PEN_SMALL, RS_INK_SOFT, at + 15, y, -1,
                               rs_meaning_name((RsMeaning)k));
        at += 14;
    }
    return at - x;
}

void rs_paint_scene(const RsScene *s, cairo_t *cr)
{
    RsPen pen;
    rs_pen_init(&pen, cr);
    rs_pen_fill(&pen, RS_PAPER, 1, 0, 0, s->width, s->height);
    rs_paint_slices(s, &pen);
    paint_gutter(s, &pen);
    paint_ruler(s, &pen);
    paint_over(s, &pen);
    paint_finding(s, &pen);
    paint_pointer(s, &pen);
    rs_pen_release(&pen);
}
