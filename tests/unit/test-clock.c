/* SPDX-License-Identifier: Apache-2.0 */
/* Lines through clocks whose offset and drift were planted; the truth is computed here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clock.h"

static guint32 random_state = 12345;

static gint64 draw(gint64 below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return below > 0 ? (gint64)(random_state >> 8) % below : 0;
}

/* A counter of 2.1 GHz that began at 7e12 when the monotonic clock stood at 5e9. */
static guint64 tick_at(gint64 ns)
{
    return 7000000000000u + (guint64)((__int128)(ns - 5000000000) * 21 / 10);
}

static void tick_map_of_two_anchors_is_exact_between_and_beyond(void **state)
{
    struct rs_anchor a[2] = {
        {RS_CLOCK_ANCHOR, 60, tick_at(5000000000), 5000000000, 0},
        {RS_CLOCK_ANCHOR, 40, tick_at(65000000000), 65000000000, 0},
    };
    RsTickMap map;
    rs_tick_map_init(&map, a, 2, 0, 0);
    const gint64 times[] = {5000000000,  5000000021,  31234567890,
                            65000000000, 70000000007, 4000000000};
    for (guint i = 0; i < G_N_ELEMENTS(times); i++)
        assert_in_range(rs_tick_map_ns(&map, tick_at(times[i])) - times[i] + 1, 0, 2);
    assert_in_range(map.uncertainty_ns, 14, 16); /* half of 60 ticks of 0.476 ns */
    rs_tick_map_clear(&map);
}

static void tick_map_follows_a_steered_clock(void **state)
{
    /* The kernel runs the monotonic clock 100 ppm fast in the second minute only. */
    struct rs_anchor a[3] = {
        {RS_CLOCK_ANCHOR, 50, 0, 1000, 0},
        {RS_CLOCK_ANCHOR, 50, 60000000000, 60000001000, 0},
        {RS_CLOCK_ANCHOR, 50, 120000000000, 120006001000, 0},
    };
    RsTickMap map;
    rs_tick_map_init(&map, a, 3, 1e9, 0);
    assert_int_equal(rs_tick_map_ns(&map, 30000000000), 30000001000);
    assert_int_equal(rs_tick_map_ns(&map, 90000000000), 90003001000);
    assert_int_equal(rs_tick_map_ns(&map, 180000000000), 180012001000);
    rs_tick_map_clear(&map);
}

static void tick_map_drops_a_blunt_anchor_and_keeps_order_in_a_crowd(void **state)
{
    /* 8 processes anchor within a microsecond, each off by up to 200 ns; one was scheduled away. */
    struct rs_anchor a[18];
    for (guint i = 0; i < 8; i++) {
        gint64 t = 1000000000 + 1000 * i, u = 9000000000 + 1000 * i;
        a[2 * i] = (struct rs_anchor){RS_CLOCK_ANCHOR, 100 + i, (guint64)t,
                                      (guint64)(t + 200 - 50 * i), 0};
        a[2 * i + 1] = (struct rs_anchor){RS_CLOCK_ANCHOR, 100 + i, (guint64)u,
                                          (guint64)(u + 200 - 50 * i), 0};
    }
    a[16] = (struct rs_anchor){RS_CLOCK_ANCHOR, 900000, 5000000000, 5000700000, 0};
    a[17] = (struct rs_anchor){RS_CLOCK_ANCHOR, 110, 7000000000, 7000000100, 0};
    RsTickMap map;
    rs_tick_map_init(&map, a, G_N_ELEMENTS(a), 1e9, 0);
    gint64 before = rs_tick_map_ns(&map, 0);
    for (guint64 tick = 100000; tick < 10000000000; tick += 7777777) {
        gint64 ns = rs_tick_map_ns(&map, tick);
        assert_true(ns > before);
        assert_in_range(ns - (gint64)tick + 300, 0, 600);
        before = ns;
    }
    rs_tick_map_clear(&map);
}

static void tick_map_takes_the_sharpest_of_neighbours(void **state)
{
    /* Truth: ns = tick. Those that took long are off by half of what they took. */
    struct rs_anchor a[] = {
        {RS_CLOCK_ANCHOR, 300, 1000000, 1000150, 0},
        {RS_CLOCK_ANCHOR, 30, 3000000, 3000000, 0},
        {RS_CLOCK_ANCHOR, 280, 4000000, 4000140, 0},
        {RS_CLOCK_ANCHOR, 30, 8000000000, 8000000000, 0},
        {RS_CLOCK_ANCHOR, 300, 8002000000, 8002000150, 0},
    };
    RsTickMap map;
    rs_tick_map_init(&map, a, G_N_ELEMENTS(a), 0, 0);
    for (guint i = 0; i < G_N_ELEMENTS(a); i++)
        assert_int_equal(rs_tick_map_ns(&map, a[i].tick), a[i].tick);
    assert_int_equal(map.uncertainty_ns, 15);
    rs_tick_map_clear(&map);
}

static void tick_map_without_anchors_counts_from_its_origin(void **state)
{
    RsTickMap map;
    rs_tick_map_init(&map, NULL, 0, 2e9, 500);
    assert_int_equal(rs_tick_map_ns(&map, 500), 0);
    assert_int_equal(rs_tick_map_ns(&map, 2500), 1000);
    rs_tick_map_clear(&map);
}

/* The other clock: ahead by `offset` at 0, gaining `ppm`. */
static gint64 other(gint64 own, gint64 offset, gdouble ppm)
{
    return own + offset + (gint64)((gdouble)own * ppm * 1e-6);
}

/* A trip that leaves at `own`, with unequal ways; served in 700 ns. */
static void add_trip(RsClockBounds *b, gint64 own, gint64 out_ns, gint64 back_ns, gint64 offset,
                     gdouble ppm)
{
    gint64 there = own + out_ns, leaves = there + 700;
    rs_clock_bounds_add(b, own, other(there, offset, ppm), other(leaves, offset, ppm),
                        leaves + back_ns);
}

/* The other clock is where the fit says, to its uncertainty, all along. */
static void check_fit(const RsClockFit *f, gint64 from, gint64 to, gint64 offset, gdouble ppm)
{
    for (guint i = 0; i <= 100; i++) {
        gint64 t = from + (to - from) / 100 * i;
        gint64 off = llabs(rs_clock_fit_apply(f, t) - other(t, offset, ppm));
        if (off > f->uncertainty_ns)
            print_error("off by %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " ns, %g ppm\n", off,
                        f->uncertainty_ns, ppm);
        assert_true(off <= f->uncertainty_ns);
    }
}

static void trips_recover_planted_offset_and_drift(void **state)
{
    const gint64 offset = -123456789012;
    const gdouble ppm = 38.5;
    g_autoptr(RsClockBounds) b = rs_clock_bounds_new();
    for (guint i = 0; i < 200; i++) {
        gint64 at = (i < 100 ? 1000000000 : 601000000000) + 50000 * (i % 100);
        add_trip(b, at, 15000 + draw(400000), 15000 + draw(400000), offset, ppm);
    }
    add_trip(b, 1000900000, 14000, 16000, offset, ppm); /* the short ones tell best */
    add_trip(b, 601001000000, 16500, 14500, offset, ppm);
    RsClockFit f;
    assert_true(rs_clock_bounds_fit(b, 0, 602000000000, &f));
    assert_in_range((gint64)(f.drift * 1e12) - 38500000 + 10000, 0, 20000);
    check_fit(&f, 0, 602000000000, offset, ppm);
    assert_true(f.uncertainty_ns < 16000); /* half the round trip */
}

/* Two exchanges of a few trips in a short run, ways as unequal as they come. */
static void trips_of_a_short_run_never_promise_too_much(void **state)
{
    guint64 widest = 0;
    for (guint round = 0; round < 2000; round++) {
        gint64 offset = 30 * draw(10000000) - 150000000, length = 1000000 * (1 + draw(400));
        gdouble ppm = (gdouble)draw(180) - 90;
        g_autoptr(RsClockBounds) b = rs_clock_bounds_new();
        for (guint i = 0; i < 8; i++)
            add_trip(b, 30000000 + (i < 4 ? 0 : length) + i % 4 * 40000, 2000 + draw(3000),
                     2000 + draw(20000), offset, ppm);
        RsClockFit f;
        assert_true(rs_clock_bounds_fit(b, 0, length + 60000000, &f));
        check_fit(&f, 0, length + 60000000, offset, ppm);
        widest = MAX(widest, (guint64)f.uncertainty_ns);
    }
    assert_in_range(widest, 3000, 40000);
}

static void trips_at_one_moment_tell_no_drift_and_grow_uncertain(void **state)
{
    g_autoptr(RsClockBounds) b = rs_clock_bounds_new();
    for (guint i = 0; i < 3; i++)
        add_trip(b, 1000000 * (i + 1), 10000 + 1000 * i, 10000, 5000000, 0);
    RsClockFit f;
    assert_true(rs_clock_bounds_fit(b, 0, 100000000000, &f));
    assert_in_range(f.uncertainty_ns, 10000000, 10020000); /* 100 ppm of 100 s, and the trip */
    check_fit(&f, 0, 100000000000, 5000000, 0);
}

/* Trips at the start only; then collectives and messages go on for ten minutes. */
static void what_came_first_tells_drift_where_no_trip_does(void **state)
{
    const gint64 offset = 77000000, end = 600000000000;
    const gdouble ppm = -63;
    g_autoptr(RsClockBounds) b = rs_clock_bounds_new();
    add_trip(b, 1000000, 9000, 14000, offset, ppm);
    for (gint64 t = 100000000; t < end; t += 50000000) {
        gint64 late = draw(30000000), ends = t + late + 100000 + draw(400000);
        rs_clock_bounds_add(b, t, other(ends, offset, ppm), other(t + late, offset, ppm), ends);
        rs_clock_bounds_add(b, RS_CLOCK_UNKNOWN, RS_CLOCK_UNKNOWN, other(ends, offset, ppm),
                            ends + 50000 + draw(20000000));
    }
    RsClockFit f;
    assert_true(rs_clock_bounds_agree(b));
    assert_true(rs_clock_bounds_fit(b, 0, end, &f));
    check_fit(&f, 0, end, offset, ppm);
    assert_true(f.uncertainty_ns < 10000000); /* 100 ppm of 600 s would be 60 ms */
}

static void trips_that_contradict_each_other_widen_the_fit(void **state)
{
    /* 3 ms apart within a second: no clock drifts so; it was set in between. */
    g_autoptr(RsClockBounds) b = rs_clock_bounds_new();
    RsClockFit f;
    assert_false(rs_clock_bounds_fit(b, 0, 1, &f));
    add_trip(b, 0, 10000, 10000, 0, 0);
    assert_true(rs_clock_bounds_agree(b));
    add_trip(b, 1000000000, 12000, 12000, 3000000, 0);
    assert_false(rs_clock_bounds_agree(b));
    assert_true(rs_clock_bounds_fit(b, 0, 1000000000, &f));
    assert_true(llabs(rs_clock_fit_apply(&f, 0)) <= f.uncertainty_ns);
    assert_true(llabs(rs_clock_fit_apply(&f, 1000000000) - 1003000000) <= f.uncertainty_ns);
    assert_in_range(f.uncertainty_ns, 1500000, 6000000);
}

static void bounds_of_one_side_tell_no_offset(void **state)
{
    g_autoptr(RsClockBounds) b = rs_clock_bounds_new();
    RsClockFit f;
    for (guint i = 0; i < 5000; i++)
        rs_clock_bounds_add(b, 1000 * i, 5000000 + 1000 * i, RS_CLOCK_UNKNOWN, RS_CLOCK_UNKNOWN);
    assert_true(rs_clock_bounds_agree(b));
    assert_false(rs_clock_bounds_fit(b, 0, 1000000, &f));
}

static void chain_of_fits_equals_one_after_the_other(void **state)
{
    RsClockFit a = {1000, 500000, 20e-6, 100}, c = {7000000, -90000000, -35e-6, 200};
    RsClockFit both = rs_clock_fit_chain(&c, &a);
    for (gint64 t = 0; t < 100000000000; t += 9999999999)
        assert_in_range(rs_clock_fit_apply(&both, t) -
                            rs_clock_fit_apply(&c, rs_clock_fit_apply(&a, t)) + 2,
                        0, 4);
    assert_int_equal(both.uncertainty_ns, 300);
}

/* Collectives every 30 ms for 30 s: both sides arrive, one of them last; ends trail by up to 80 us,
 * one in ten by milliseconds. */
static void plan_meetings(RsClockMeeting *m, guint n, gint64 offset, gdouble ppm)
{
    for (guint i = 0; i < n; i++) {
        gint64 at = 5000000000 + 30000000 * (gint64)i;
        gint64 late = draw(2000000), own = i % 2 ? at : at + late, their = i % 2 ? at + late : at;
        gint64 last = at + late;
        gint64 own_end = last + 20000 + draw(60000), their_end = last + 20000 + draw(60000);
        if (draw(10) == 0)
            their_end += 1000000 + draw(5000000);
        m[i] = (RsClockMeeting){own, own_end, other(their, offset, ppm),
                                other(their_end, offset, ppm)};
    }
}

static void meetings_recover_planted_offset_and_drift(void **state)
{
    static RsClockMeeting m[1000];
    const gint64 offset = 987654321000;
    const gdouble ppm = -21.0;
    plan_meetings(m, G_N_ELEMENTS(m), offset, ppm);
    RsClockFit f;
    assert_true(rs_clock_fit_meetings(m, G_N_ELEMENTS(m), &f));
    for (gint64 t = 5000000000; t < 35000000000; t += 1000000000) {
        gint64 off = llabs(rs_clock_fit_apply(&f, t) - other(t, offset, ppm));
        assert_true(off < 60000);
        assert_true(off <= f.uncertainty_ns);
    }
    assert_true(f.uncertainty_ns < 200000);
}

static void meetings_fewer_than_three_tell_nothing(void **state)
{
    RsClockMeeting m[3];
    plan_meetings(m, 3, 1000000, 0);
    RsClockFit f;
    assert_false(rs_clock_fit_meetings(m, 2, &f));
    assert_true(rs_clock_fit_meetings(m, 3, &f));
    assert_true(llabs(f.offset_ns - 1000000) <= f.uncertainty_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tick_map_of_two_anchors_is_exact_between_and_beyond),
        cmocka_unit_test(tick_map_follows_a_steered_clock),
        cmocka_unit_test(tick_map_drops_a_blunt_anchor_and_keeps_order_in_a_crowd),
        cmocka_unit_test(tick_map_takes_the_sharpest_of_neighbours),
        cmocka_unit_test(tick_map_without_anchors_counts_from_its_origin),
        cmocka_unit_test(trips_recover_planted_offset_and_drift),
        cmocka_unit_test(trips_at_one_moment_tell_no_drift_and_grow_uncertain),
        cmocka_unit_test(trips_of_a_short_run_never_promise_too_much),
        cmocka_unit_test(what_came_first_tells_drift_where_no_trip_does),
        cmocka_unit_test(bounds_of_one_side_tell_no_offset),
        cmocka_unit_test(trips_that_contradict_each_other_widen_the_fit),
        cmocka_unit_test(chain_of_fits_equals_one_after_the_other),
        cmocka_unit_test(meetings_recover_planted_offset_and_drift),
        cmocka_unit_test(meetings_fewer_than_three_tell_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
