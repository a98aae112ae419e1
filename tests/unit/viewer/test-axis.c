/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "axis.h"

#define DAY_NS (86400 * G_GINT64_CONSTANT(1000000000))

static gboolean near(gdouble a, gdouble b, gdouble tolerance)
{
    return fabs(a - b) <= tolerance;
}

static void assert_within(const RsAxis *a)
{
    gdouble margin = (gdouble)(a->last_ns - a->first_ns) * 0.0101 + 1;
    assert_true(a->from_ns >= (gdouble)a->first_ns - margin);
    assert_true(rs_axis_to_ns(a) <= (gdouble)a->last_ns + margin);
    assert_true(a->ns_per_px > 0);
}

static void init_shows_everything(void **state)
{
    const gint64 ends[][2] = {{0, 1}, {0, 12345}, {-500, 99}, {7, 30 * DAY_NS}, {5, 5}, {9, 2}};
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
        RsAxis a;
        rs_axis_init(&a, ends[i][0], ends[i][1], 977);
        assert_true(rs_axis_px(&a, ends[i][0]) >= 0);
        assert_true(rs_axis_px(&a, MAX(ends[i][1], ends[i][0])) <= 977);
        assert_within(&a);
    }
}

static void zoom_keeps_the_time_at_the_pointer(void **state)
{
    static const gdouble factors[] = {1.25, 2, 1.01, 0.9, 1.7, 0.8};
    RsAxis a;
    rs_axis_init(&a, 0, 987654321, 1000);
    rs_axis_zoom(&a, 40, 480);
    for (guint i = 0; i < 300; i++) {
        gdouble px = (i * 379) % 1000, before = rs_axis_time(&a, px), scale = a.ns_per_px;
        gdouble from = a.from_ns;
        rs_axis_zoom(&a, factors[i % G_N_ELEMENTS(factors)], px);
        assert_within(&a);
        gboolean bound =
            near(a.from_ns, -9876543.21, 1) || near(rs_axis_to_ns(&a), 997530864.21, 1);
        if (!bound)
            assert_true(near(rs_axis_time(&a, px), before, 1e-6 * scale * 1000));
        rs_axis_zoom(&a, scale > 0 ? a.ns_per_px / scale : 1, px); /* and back */
        if (!bound)
            assert_true(near(a.from_ns, from, 1e-6 * scale * 1000));
    }
}

static void zoom_beyond_the_bounds_stops_there(void **state)
{
    RsAxis a;
    rs_axis_init(&a, 0, DAY_NS, 800);
    RsAxis all = a;
    rs_axis_zoom(&a, 0.001, 17);
    assert_true(near(a.from_ns, all.from_ns, 1) && near(a.ns_per_px, all.ns_per_px, 1e-3));
    for (guint i = 0; i < 200; i++)
        rs_axis_zoom(&a, 3, 400);
    assert_true(a.ns_per_px > 0.001 && a.ns_per_px < 1);
    assert_true(near(rs_axis_time(&a, 400), (gdouble)DAY_NS / 2, 1));
    RsAxis same = a;
    rs_axis_zoom(&a, 0, 10);
    rs_axis_zoom(&a, NAN, 10);
    assert_true(a.from_ns == same.from_ns && a.ns_per_px == same.ns_per_px);
}

static void pan_moves_by_pixels_and_stops_at_the_ends(void **state)
{
    RsAxis a;
    rs_axis_init(&a, 0, 1000000, 500);
    rs_axis_zoom(&a, 10, 250);
    gdouble from = a.from_ns;
    rs_axis_pan(&a, 30);
    assert_true(near(a.from_ns, from + 30 * a.ns_per_px, 1e-6));
    rs_axis_pan(&a, -1e9);
    assert_within(&a);
    assert_true(rs_axis_px(&a, 0) > 0);
    rs_axis_pan(&a, 1e9);
    assert_within(&a);
    assert_true(rs_axis_px(&a, 1000000) < 500);
}

static void resize_keeps_what_is_shown(void **state)
{
    RsAxis a;
    rs_axis_init(&a, 0, 1000000, 500);
    rs_axis_show(&a, 1000, 31000);
    rs_axis_resize(&a, 1733);
    assert_true(near(a.from_ns, 1000, 1e-6) && near(rs_axis_to_ns(&a), 31000, 1e-6));
    rs_axis_resize(&a, 0);
    assert_int_equal(a.width_px, 1);
}

static void show_of_a_point_centres_it(void **state)
{
    RsAxis a;
    rs_axis_init(&a, 0, 1000000, 500);
    rs_axis_show(&a, 777, 777);
    assert_true(near(rs_axis_px(&a, 777), 250, 1e-3));
}

static gboolean one_two_five(gint64 tick)
{
    while (tick % 10 == 0)
        tick /= 10;
    return tick == 1 || tick == 2 || tick == 5;
}

static void ticks_are_round_and_apart(void **state)
{
    RsAxis a;
    rs_axis_init(&a, 0, 40 * DAY_NS, 1111);
    for (guint i = 0; i < 120; i++) {
        gint64 tick = rs_axis_tick_ns(&a, 90);
        assert_true(one_two_five(tick));
        assert_true((gdouble)tick / a.ns_per_px >= 90 || tick == 1);
        assert_true(tick == 1 || (gdouble)tick / a.ns_per_px < 90 * 2.51);
        rs_axis_zoom(&a, 1.37, 500);
    }
}

static void assert_text(gchar *text, const gchar *expected)
{
    assert_string_equal(text, expected);
    g_free(text);
}

static void texts_carry_the_unit_that_fits(void **state)
{
    RsAxis a;
    rs_axis_init(&a, 0, 2000000000, 1000);
    assert_text(rs_axis_dup_tick(&a, 500000000, 500000000), "0.5 s");
    rs_axis_init(&a, 0, 90000000, 1000);
    assert_text(rs_axis_dup_tick(&a, 12500000, 500000), "12.5 ms");
    assert_text(rs_axis_dup_tick(&a, 0, 10000000), "0 ms");
    assert_text(rs_axis_dup_duration(17), "17 ns");
    assert_text(rs_axis_dup_duration(1234567), "1.235 ms");
    assert_text(rs_axis_dup_duration(-25300), "-25.30 \u00b5s");
    assert_text(rs_axis_dup_duration(123400000000), "123.4 s");
    assert_text(rs_axis_dup_bytes(1023), "1023 B");
    assert_text(rs_axis_dup_bytes(1 << 20), "1 MiB");
    assert_text(rs_axis_dup_bytes(1536), "1.5 KiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_shows_everything),
        cmocka_unit_test(zoom_keeps_the_time_at_the_pointer),
        cmocka_unit_test(zoom_beyond_the_bounds_stops_there),
        cmocka_unit_test(pan_moves_by_pixels_and_stops_at_the_ends),
        cmocka_unit_test(resize_keeps_what_is_shown),
        cmocka_unit_test(show_of_a_point_centres_it),
        cmocka_unit_test(ticks_are_round_and_apart),
        cmocka_unit_test(texts_carry_the_unit_that_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
