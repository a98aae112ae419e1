/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lod.h"
#include "model-builder.h"

#define WIDTH  400
#define HEIGHT 24
#define PAPER  0xfefefeu

typedef struct {
    RsBuilder *b;
    guint32 track;
    RsModel *model;
    RsRows rows;
    RsAxis axis;
    guint32 pixels[WIDTH * HEIGHT];
    RsCanvas canvas;
} Scene;

static void begin(Scene *s)
{
    s->b = rs_builder_new();
    s->track =
        rs_builder_add_track(s->b, rs_builder_add_process(s->b, 0, "h", 1), "main", 1, FALSE);
}

static void slice(Scene *s, RsKind kind, gint64 start, gint64 end)
{
    RsSig sig = rs_builder_sig_init(s->b, kind, "x");
    rs_builder_event(s->b, s->track, rs_builder_sig(s->b, &sig), start, end, 0, 0, 0);
}

static void paint_at(Scene *s, gint x0, gint y, gint height)
{
    for (guint i = 0; i < WIDTH * HEIGHT; i++)
        s->pixels[i] = PAPER;
    s->canvas = (RsCanvas){s->pixels, WIDTH, WIDTH, HEIGHT};
    for (guint32 row = 0; row < s->rows.rows->len; row++)
        rs_lod_paint_row(&s->canvas, &s->rows, row, &s->axis, x0, y, height);
}

/* All of [0, to) on the canvas' width, one row at lines 4 to 15. */
static void finish(Scene *s, gint64 to)
{
    s->model = rs_builder_finish(s->b, RS_FINISH_ALL);
    rs_rows_init(&s->rows, s->model);
    rs_axis_init(&s->axis, 0, to, WIDTH);
    s->axis.from_ns = 0;
    s->axis.ns_per_px = (gdouble)to / WIDTH;
    paint_at(s, 0, 4, 12);
}

static void end(Scene *s)
{
    rs_rows_release(&s->rows);
    rs_model_free(s->model);
}

static guint32 at(const Scene *s, gint x, gint y)
{
    return s->pixels[y * WIDTH + x];
}

static guint painted_in(const Scene *s, gint x)
{
    guint n = 0;
    for (gint y = 0; y < HEIGHT; y++)
        n += at(s, x, y) != PAPER;
    return n;
}

static void a_wide_slice_is_a_box_in_its_colour(void **state)
{
    Scene s;
    begin(&s);
    slice(&s, RS_KIND_IO, 0, 1000);
    slice(&s, RS_KIND_IO, 10000, 20000);
    finish(&s, 40000); /* 100 ns a pixel */
    assert_int_equal(at(&s, 100, 4), rs_meaning_rgb(RS_MEANS_IO));
    assert_int_equal(at(&s, 198, 14), rs_meaning_rgb(RS_MEANS_IO));
    assert_int_equal(at(&s, 99, 8), PAPER);
    assert_int_equal(at(&s, 200, 8), PAPER);
    assert_int_equal(at(&s, 150, 3), PAPER);
    assert_int_equal(at(&s, 150, 15), PAPER);
    end(&s);
}

static void a_rare_slice_is_seen_however_short(void **state)
{
    Scene s;
    begin(&s);
    slice(&s, RS_KIND_IO, 0, 1);
    slice(&s, RS_KIND_IO, 500000000, 500000001);
    slice(&s, RS_KIND_MARK, 800000000, 800000000);
    finish(&s, 1000000000);
    assert_int_equal(painted_in(&s, 200), 11);
    assert_int_equal(painted_in(&s, 320), 11);
    assert_int_equal(painted_in(&s, 201), 0);
    end(&s);
}

static void among_many_short_ones_a_long_and_a_strange_one_are_seen(void **state)
{
    Scene s;
    begin(&s);
    for (gint64 i = 0; i < 200000; i++) {
        if (i == 100000)
            slice(&s, RS_KIND_HOLE, i * 1000, i * 1000 + 1);
        else if (i < 150000 || i >= 153000)
            slice(&s, RS_KIND_IO, i * 1000, i * 1000 + 300 + i % 400);
    }
    slice(&s, RS_KIND_HOLE, 150000000, 152999999);
    finish(&s, 200000000); /* 500 slices a pixel */
    guint32 hole = rs_meaning_rgb(RS_MEANS_HOLE);
    assert_int_equal(at(&s, 302, 8), hole);
    gboolean strange = FALSE;
    for (gint y = 4; y < 15; y++) /* an own pixel, not a share of one */
        strange = strange || at(&s, 200, y) != at(&s, 199, y);
    assert_true(strange);
    for (gint x = 0; x < WIDTH - 1; x++) /* the long one's gap to its neighbour is at 305 */
        assert_int_equal(painted_in(&s, x), x == 305 ? 0 : 11);
    end(&s);
}

static void fuller_columns_are_stronger(void **state)
{
    Scene s;
    begin(&s);
    for (gint64 i = 0; i < 4000; i++) /* 10 a pixel: a tenth full, then nine tenths */
        slice(&s, RS_KIND_HOLE, i * 1000, i * 1000 + (i < 2000 ? 100 : 900));
    finish(&s, 4000000);
    guint32 weak = at(&s, 50, 8) >> 8 & 255, strong = at(&s, 350, 8) >> 8 & 255;
    assert_true(weak > strong + 80);
    end(&s);
}

static void nothing_is_painted_outside(void **state)
{
    Scene s;
    begin(&s);
    for (gint64 i = 0; i < 3000; i++)
        slice(&s, RS_KIND_IO, i * 1000, i * 1000 + (i % 50 == 0 ? 999 : 400));
    finish(&s, 3000000);
    s.axis.width_px = 150;
    rs_axis_show(&s.axis, 1000000, 1500000);
    paint_at(&s, 100, -6, 100); /* cut above, below and on both sides */
    for (gint x = 0; x < WIDTH; x++)
        assert_int_equal(painted_in(&s, x) > 0, x >= 100 && x < 250);
    paint_at(&s, 100, HEIGHT, 12);
    paint_at(&s, WIDTH + 10, 0, 12);
    paint_at(&s, 0, -12, 12);
    for (gint x = 0; x < WIDTH; x++)
        assert_int_equal(painted_in(&s, x), 0);
    end(&s);
}

static void a_slice_across_the_view_fills_it(void **state)
{
    Scene s;
    begin(&s);
    slice(&s, RS_KIND_IO, 0, 9000000000000);
    finish(&s, 9000000000000);
    rs_axis_show(&s.axis, 4e12, 4e12 + 50);
    paint_at(&s, 0, 4, 12);
    for (gint x = 0; x < WIDTH; x++)
        assert_int_equal(at(&s, x, 9), rs_meaning_rgb(RS_MEANS_IO));
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wide_slice_is_a_box_in_its_colour),
        cmocka_unit_test(a_rare_slice_is_seen_however_short),
        cmocka_unit_test(among_many_short_ones_a_long_and_a_strange_one_are_seen),
        cmocka_unit_test(fuller_columns_are_stronger),
        cmocka_unit_test(nothing_is_painted_outside),
        cmocka_unit_test(a_slice_across_the_view_fills_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
