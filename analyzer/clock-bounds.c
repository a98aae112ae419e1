/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock-bounds.c - the straight lines between two clocks that no measurement contradicts.
 *
 * In the plane of (own time, their time - own time) a clock against another is a line, and what is
 * known of it are dots that it passes above or below. For one slope the lines that are left lie
 * between the highest of the lower dots and the lowest of the upper ones; only dots of the two
 * convex hulls ever decide. How far the outermost of these lines are apart is the uncertainty.
 */
#include <math.h>
#include <stdlib.h>

#include "clock.h"

/* Two quartz clocks, each off by the 50 ppm that their makers allow, steered or not. */
#define LIKELY_DRIFT 100e-6
/* More drift than any clock has: the measurements lie. */
#define DRIFT_MAX  1e-3
#define ROUNDS     100 /* of a search that leaves two thirds: to the end of a double's digits */
#define TIGHT_FROM 1024
#define ROUNDING   0.5 /* ns */

typedef struct {
    gdouble x, y; /* ns from the first dot */
} Dot;

struct _RsClockBounds {
    gint64 x0, y0;
    GArray *upper, *lower; /* Dot; y of the lower ones is negated: both are bounds from above */
    guint tight_at;        /* dots before the hull is taken again */
};

RsClockBounds *rs_clock_bounds_new(void)
{
    RsClockBounds *b = g_new0(RsClockBounds, 1);
    b->upper = g_array_new(FALSE, FALSE, sizeof(Dot));
    b->lower = g_array_new(FALSE, FALSE, sizeof(Dot));
    b->tight_at = TIGHT_FROM;
    return b;
}

RsClockBounds *rs_clock_bounds_dup(const RsClockBounds *b)
{
    RsClockBounds *copy = rs_clock_bounds_new();
    copy->x0 = b->x0;
    copy->y0 = b->y0;
    g_array_append_vals(copy->upper, b->upper->data, b->upper->len);
    g_array_append_vals(copy->lower, b->lower->data, b->lower->len);
    return copy;
}

void rs_clock_bounds_free(RsClockBounds *b)
{
    if (!b)
        return;
    g_array_unref(b->upper);
    g_array_unref(b->lower);
    g_free(b);
}

/* ---- hulls ---- */

static gint compare_dots(gconstpointer a, gconstpointer c)
{
    const Dot *p = a, *q = c;
    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    return p->y < q->y ? -1 : p->y > q->y;
}

/* Whether `b` is on the line from a to c or above it. */
static gboolean decides_nothing(const Dot *a, const Dot *b, const Dot *c)
{
    return (b->x - a->x) * (c->y - a->y) <= (b->y - a->y) * (c->x - a->x);
}

/* Leaves the lower hull (Andrew's monotone chain). */
static void tighten(GArray *dots)
{
    Dot *d = (Dot *)(void *)dots->data;
    guint kept = 0;
    g_array_sort(dots, compare_dots);
    for (guint i = 0; i < dots->len; i++) {
        if (kept && d[kept - 1].x == d[i].x)
            continue;
        while (kept > 1 && decides_nothing(&d[kept - 2], &d[kept - 1], &d[i]))
            kept--;
        d[kept++] = d[i];
    }
    g_array_set_size(dots, kept);
}

static void add(RsClockBounds *b, GArray *dots, gint64 own, gint64 difference, gint sign)
{
    if (b->upper->len + b->lower->len == 0) {
        b->x0 = own;
        b->y0 = difference;
    }
    Dot d = {(gdouble)(own - b->x0), sign * (gdouble)(difference - b->y0)};
    g_array_append_val(dots, d);
    if (dots->len < b->tight_at)
        return;
    tighten(dots);
    b->tight_at = MAX(b->tight_at, 2 * dots->len);
}

void rs_clock_bounds_add(RsClockBounds *b, gint64 own_before, gint64 their_after,
                         gint64 their_before, gint64 own_after)
{
    if (own_before != RS_CLOCK_UNKNOWN && their_after != RS_CLOCK_UNKNOWN)
        add(b, b->upper, own_before, their_after - own_before, 1);
    if (their_before != RS_CLOCK_UNKNOWN && own_after != RS_CLOCK_UNKNOWN)
        add(b, b->lower, own_after, their_before - own_after, -1);
}

/* ---- lines ---- */

/* How high a line of this slope may be at x = 0. */
static gdouble least(const GArray *dots, gdouble slope)
{
    const Dot *d = (const Dot *)(const void *)dots->data;
    gdouble low = INFINITY;
    for (guint i = 0; i < dots->len; i++)
        low = fmin(low, d[i].y - slope * d[i].x);
    return low;
}

/* Between the highest and the lowest line of this slope; negative where there is none. Concave. */
static gdouble room(const RsClockBounds *b, gdouble slope)
{
    return least(b->upper, slope) + least(b->lower, -slope);
}

typedef struct {
    gdouble from, to; /* slopes */
} Slopes;

static gdouble roomiest(const RsClockBounds *b, Slopes s)
{
    for (guint i = 0; i < ROUNDS; i++) {
        gdouble left = s.from + (s.to - s.from) / 3, right = s.to - (s.to - s.from) / 3;
        if (room(b, left) < room(b, right))
            s.from = left;
        else
            s.to = right;
    }
    return (s.from + s.to) / 2;
}

/* The last slope with room on the way from one that has it to `end`. */
static gdouble last_with_room(const RsClockBounds *b, gdouble with, gdouble end)
{
    if (room(b, end) >= -ROUNDING)
        return end;
    for (guint i = 0; i < ROUNDS; i++) {
        gdouble middle = (with + end) / 2;
        if (room(b, middle) >= -ROUNDING)
            with = middle;
        else
            end = middle;
    }
    return with;
}

/* The slopes with room among those up to `most`; FALSE where there is none. */
static gboolean possible_slopes(const RsClockBounds *b, gdouble most, Slopes *ret)
{
    gdouble best = roomiest(b, (Slopes){-most, most});
    if (room(b, best) < -ROUNDING)
        return FALSE;
    ret->from = last_with_room(b, best, -most);
    ret->to = last_with_room(b, best, most);
    return TRUE;
}

/* How high a line of any of the slopes may be at x. */
static gdouble highest(const GArray *dots, gdouble x, Slopes s)
{
    for (guint i = 0; i < ROUNDS; i++) {
        gdouble left = s.from + (s.to - s.from) / 3, right = s.to - (s.to - s.from) / 3;
        if (least(dots, left) + left * x < least(dots, right) + right * x)
            s.from = left;
        else
            s.to = right;
    }
    return least(dots, s.from) + s.from * x;
}

/* The middle of what is possible at x; *ret_half: how far it reaches either way. */
static gdouble middle_at(const RsClockBounds *b, gdouble x, Slopes s, gdouble *ret_half)
{
    gdouble high = highest(b->upper, x, s);
    gdouble low = -highest(b->lower, x, (Slopes){-s.to, -s.from});
    *ret_half = fmax(high - low, 0) / 2;
    return low + (high - low) / 2;
}

static void widen(GArray *dots, gdouble by)
{
    for (guint i = 0; i < dots->len; i++)
        g_array_index(dots, Dot, i).y += by;
}

static gboolean has_both(const RsClockBounds *b)
{
    return b->upper->len && b->lower->len;
}

gboolean rs_clock_bounds_agree(const RsClockBounds *b)
{
    Slopes unused;
    return !has_both(b) || possible_slopes(b, DRIFT_MAX, &unused);
}

/* Slopes that are likely, else those that a clock may have; bounds that contradict each other are
 * widened until they don't, and once more, as the truth need not be a line. Returns by how much. */
static gdouble settle(RsClockBounds *b, Slopes *ret)
{
    if (possible_slopes(b, LIKELY_DRIFT, ret) || possible_slopes(b, DRIFT_MAX, ret))
        return 0;
    gdouble lacks = -room(b, roomiest(b, (Slopes){-LIKELY_DRIFT, LIKELY_DRIFT}));
    widen(b->upper, lacks);
    widen(b->lower, lacks);
    if (!possible_slopes(b, LIKELY_DRIFT, ret))
        *ret = (Slopes){0, 0};
    return lacks;
}

gboolean rs_clock_bounds_fit(RsClockBounds *b, gint64 from, gint64 to, RsClockFit *ret_fit)
{
    if (!has_both(b))
        return FALSE;
    tighten(b->upper);
    tighten(b->lower);
    Slopes slopes;
    gdouble lacked = settle(b, &slopes), half_from, half_to;
    gdouble x = (gdouble)(from - b->x0), length = (gdouble)(to - from);
    gdouble first = middle_at(b, x, slopes, &half_from);
    gdouble last = middle_at(b, x + length, slopes, &half_to);
    *ret_fit = (RsClockFit){.at_ns = from, .offset_ns = b->y0 + (gint64)llround(first)};
    ret_fit->drift = to > from ? (last - first) / length : 0;
    ret_fit->uncertainty_ns = (gint64)ceil(fmax(half_from, half_to) + lacked);
    return TRUE;
}
