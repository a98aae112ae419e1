/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pick.h"
#include "synthetic-run.h"

#define WIDTH 1000

typedef struct {
    RsModel *model;
    RsRows rows;
    RsLayout layout;
    RsAxis axis;
} Scene;

static void scene_init(Scene *s, guint ranks)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.n_ranks = ranks;
    spec.n_hosts = MAX(ranks / 8, 2);
    spec.n_steps = ranks > 100 ? 2 : 8;
    spec.negotiate = TRUE;
    s->model = rs_synthetic_run(&spec);
    rs_rows_init(&s->rows, s->model);
    rs_layout_init(&s->layout, &s->rows);
    rs_axis_init(&s->axis, 0, s->model->duration_ns, WIDTH);
}

static void scene_release(Scene *s)
{
    rs_layout_release(&s->layout);
    rs_rows_release(&s->rows);
    rs_model_free(s->model);
}

static gint y_of(const Scene *s, guint32 slot)
{
    gint y, height;
    assert_true(rs_layout_row_box(&s->layout, rs_rows_row_of(&s->rows, slot), &y, &height));
    return y + height / 2;
}

static guint32 pick_at(const Scene *s, guint32 slot, gdouble time_ns)
{
    gdouble x = (time_ns - s->axis.from_ns) / s->axis.ns_per_px;
    return rs_pick_event(&s->layout, &s->axis, x, y_of(s, slot));
}

static void a_slice_is_found_at_its_middle_when_zoomed_to(void **state)
{
    Scene s;
    scene_init(&s, 4);
    for (guint32 slot = 0; slot < s.rows.n_slots; slot++) {
        gdouble from = (gdouble)s.rows.start_ns[slot], to = (gdouble)s.rows.end_ns[slot];
        rs_axis_show(&s.axis, from - (to - from), to + (to - from));
        assert_int_equal(pick_at(&s, slot, (from + to) / 2), s.rows.event[slot]);
    }
    scene_release(&s);
}

static void the_start_belongs_to_a_slice_and_the_end_does_not(void **state)
{
    Scene s;
    scene_init(&s, 4);
    guint compared = 0;
    for (guint32 slot = 0; slot < s.rows.n_slots; slot++) {
        gint64 from = s.rows.start_ns[slot], to = s.rows.end_ns[slot];
        if (to - from < 1000)
            continue;
        rs_axis_show(&s.axis, (gdouble)from - 100, (gdouble)from + 100);
        assert_int_equal(pick_at(&s, slot, (gdouble)from + 0.001), s.rows.event[slot]);
        rs_axis_show(&s.axis, (gdouble)to - 100, (gdouble)to + 100);
        assert_int_equal(pick_at(&s, slot, (gdouble)to - 0.6), s.rows.event[slot]);
        assert_int_not_equal(pick_at(&s, slot, (gdouble)to + 3 * s.axis.ns_per_px),
                             s.rows.event[slot]);
        compared++;
    }
    assert_true(compared > 100);
    scene_release(&s);
}

static void thinner_than_a_pixel_something_is_found_and_it_is_near(void **state)
{
    Scene s;
    scene_init(&s, 4);
    for (guint32 slot = 0; slot < s.rows.n_slots; slot++) {
        gdouble at = (gdouble)s.rows.start_ns[slot];
        guint32 found = pick_at(&s, slot, at);
        assert_int_not_equal(found, RS_NONE);
        guint32 other = s.rows.slot_of[found];
        assert_int_equal(rs_rows_row_of(&s.rows, other), rs_rows_row_of(&s.rows, slot));
        assert_true((gdouble)s.rows.start_ns[other] <= at + 3 * s.axis.ns_per_px);
        assert_true((gdouble)s.rows.end_ns[other] >= at - 3 * s.axis.ns_per_px);
        assert_true(s.rows.end_ns[other] - s.rows.start_ns[other] >=
                        s.rows.end_ns[slot] - s.rows.start_ns[slot] ||
                    (gdouble)(s.rows.end_ns[other] - s.rows.start_ns[other]) >= s.axis.ns_per_px);
    }
    scene_release(&s);
}

static void outside_of_the_picture_nothing_is_found(void **state)
{
    Scene s;
    scene_init(&s, 4);
    gint y = y_of(&s, 3);
    assert_int_equal(rs_pick_event(&s.layout, &s.axis, -1, y), RS_NONE);
    assert_int_equal(rs_pick_event(&s.layout, &s.axis, WIDTH, y), RS_NONE);
    assert_int_equal(rs_pick_event(&s.layout, &s.axis, 400, -5), RS_NONE);
    assert_int_equal(rs_pick_event(&s.layout, &s.axis, 400, s.layout.height + 5), RS_NONE);
    assert_int_equal(rs_pick_event(&s.layout, &s.axis, 0, y), RS_NONE); /* before the run */
    scene_release(&s);
}

static void of_thousands_of_ranks_the_right_one_is_found(void **state)
{
    Scene s;
    scene_init(&s, 4096);
    assert_int_equal(s.model->ranks->len, 4096);
    for (guint32 slot = 5; slot < s.rows.n_slots; slot += 1009) {
        guint32 found = pick_at(&s, slot, (gdouble)s.rows.start_ns[slot]);
        assert_int_not_equal(found, RS_NONE);
        assert_int_equal(rs_model_rank_of(s.model, found),
                         rs_model_rank_of(s.model, s.rows.event[slot]));
    }
    scene_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slice_is_found_at_its_middle_when_zoomed_to),
        cmocka_unit_test(the_start_belongs_to_a_slice_and_the_end_does_not),
        cmocka_unit_test(thinner_than_a_pixel_something_is_found_and_it_is_near),
        cmocka_unit_test(outside_of_the_picture_nothing_is_found),
        cmocka_unit_test(of_thousands_of_ranks_the_right_one_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
