/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "results/scene.h"
#include "rows.h"
#include "synthetic-run.h"

typedef struct {
    RsModel *model;
    RsRows rows;
} Fixture;

static int make(void **state)
{
    Fixture *f = g_new0(Fixture, 1);
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.n_steps = 60;
    spec.negotiate = TRUE;
    spec.nccl = TRUE;
    spec.slow_rank = 2;
    spec.late_ns = 4000000;
    f->model = rs_synthetic_run(&spec);
    rs_rows_init(&f->rows, f->model);
    *state = f;
    return 0;
}

static int unmake(void **state)
{
    Fixture *f = *state;
    rs_rows_release(&f->rows);
    rs_model_free(f->model);
    g_free(f);
    return 0;
}

static void every_event_has_one_slot_on_its_own_track(void **state)
{
    Fixture *f = *state;
    assert_int_equal(f->rows.n_slots, f->model->events.n);
    for (guint32 e = 0; e < f->model->events.n; e++) {
        guint32 slot = f->rows.slot_of[e];
        assert_int_equal(f->rows.event[slot], e);
        const RsRow *row = rs_rows_row(&f->rows, rs_rows_row_of(&f->rows, slot));
        assert_in_range(slot, row->first, row->first + row->n - 1);
        assert_int_equal(row->track, rs_model_track_of(f->model, e));
        assert_int_equal(row->span, rs_model_sig(f->model, e)->kind == RS_KIND_SPAN);
    }
}

/* Steps are what the analyzer takes for steps, not what is called "step". */
static void steps_of_any_name_are_drawn_as_steps(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    for (guint i = 0; i < 4; i++)
        for (guint r = 0; r < 2; r++) {
            g_autofree gchar *name = g_strdup_printf("ProfilerStep#%u", i);
            scene_range(&s, r, name, 0, 100 * i + 1, 100 * i + 90);
            scene_range(&s, r, "step", 1, 100 * i + 2, 100 * i + 80);
        }
    g_autoptr(RsModel) m = scene_finish(&s);
    assert_int_equal(m->steps->len, 4);
    for (guint32 e = 0; e < m->events.n; e++) {
        const gchar *name = rs_model_str(m, rs_model_sig(m, e)->name);
        if (rs_model_sig(m, e)->kind == RS_KIND_RANGE)
            assert_int_equal(rs_meaning_of(m, e),
                             g_str_equal(name, "step") ? RS_MEANS_RANGE : RS_MEANS_STEP);
    }
}

static void slots_of_a_row_are_sorted_and_disjoint(void **state)
{
    Fixture *f = *state;
    for (guint32 i = 0; i < f->rows.rows->len; i++) {
        const RsRow *row = rs_rows_row(&f->rows, i);
        assert_true(row->n > 0);
        for (guint32 s = row->first + 1; s < row->first + row->n; s++)
            assert_true(f->rows.start_ns[s] >= f->rows.end_ns[s - 1]);
    }
}

static void a_range_stands_above_what_is_inside(void **state)
{
    Fixture *f = *state;
    guint seen = 0;
    for (guint32 e = 0; e < f->model->events.n; e++) {
        const gchar *name = rs_model_str(f->model, rs_model_sig(f->model, e)->name);
        guint32 row = rs_rows_row_of(&f->rows, f->rows.slot_of[e]);
        guint32 first = f->rows.track_rows[rs_model_track_of(f->model, e)];
        if (g_str_equal(name, "step"))
            assert_int_equal(row, first);
        if (g_str_equal(name, "forward"))
            assert_int_equal(row, first + 1);
        seen += g_str_equal(name, "forward");
    }
    assert_int_equal(seen, 60 * 4);
}

static guint32 slow_seek(const RsRows *r, const RsRow *row, guint32 from, gint64 t)
{
    while (from < row->first + row->n && r->start_ns[from] < t)
        from++;
    return from;
}

static guint32 slow_visible(const RsRows *r, const RsRow *row, gint64 t)
{
    guint32 s = row->first;
    while (s < row->first + row->n &&
           !(r->end_ns[s] > t || (r->end_ns[s] == t && r->start_ns[s] == t)))
        s++;
    return s;
}

static void searches_agree_with_looking_at_all(void **state)
{
    Fixture *f = *state;
    const RsRows *r = &f->rows;
    for (guint32 i = 0; i < r->rows->len; i++) {
        const RsRow *row = rs_rows_row(r, i);
        for (guint32 k = 0; k < row->n; k += 3) {
            guint32 s = row->first + k;
            gint64 times[] = {r->start_ns[s],           r->start_ns[s] + 1,     r->end_ns[s],
                              r->end_ns[s] - 1,         r->end_ns[s] + 1000000, -5,
                              f->model->duration_ns + 9};
            for (guint t = 0; t < G_N_ELEMENTS(times); t++) {
                guint32 from = row->first + k / 2;
                assert_int_equal(rs_rows_seek(r, row, from, times[t]),
                                 slow_seek(r, row, from, times[t]));
                assert_int_equal(rs_rows_first_visible(r, row, times[t]),
                                 slow_visible(r, row, times[t]));
            }
        }
    }
}

static void slow_sum(const RsRows *r, guint32 first, guint32 last, gint64 sums[RS_MEANS_COUNT])
{
    for (guint i = 0; i < RS_MEANS_COUNT; i++)
        sums[i] = 0;
    for (guint32 s = first; s < last; s++) {
        gint64 wait = r->split_ns[s] - r->start_ns[s], rest = r->end_ns[s] - r->split_ns[s];
        sums[RS_MEANS_WAIT] += wait;
        sums[r->meaning[s]] += wait + rest ? rest : 1;
    }
}

static void sums_of_any_stretch_are_exact(void **state)
{
    Fixture *f = *state;
    guint32 random = 7;
    for (guint32 i = 0; i < f->rows.rows->len; i++) {
        const RsRow *row = rs_rows_row(&f->rows, i);
        for (guint t = 0; t < 60; t++) {
            random = random * 1664525u + 1013904223u;
            guint32 a = (random >> 8) % (row->n + 1), b = a + (random >> 3) % (row->n - a + 1);
            gint64 fast[RS_MEANS_COUNT], slow[RS_MEANS_COUNT];
            rs_rows_sum(&f->rows, row, row->first + a, row->first + b, fast);
            slow_sum(&f->rows, row->first + a, row->first + b, slow);
            assert_memory_equal(fast, slow, sizeof fast);
        }
    }
}

static void device_work_waits_until_the_last_arrives(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.nccl = TRUE;
    spec.message_bytes = 0;
    spec.slow_rank = 2;
    spec.late_ns = 4000000;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    RsRows r;
    guint waited = 0;
    rs_rows_init(&r, m);
    for (guint32 s = 0; s < r.n_slots; s++) {
        guint32 e = r.event[s], instance = r.instance_of[e];
        assert_in_range(r.split_ns[s], r.start_ns[s], r.end_ns[s]);
        if (instance == RS_NONE || rs_model_sig(m, e)->kind != RS_KIND_DEVICE)
            continue;
        const RsInstance *in = &g_array_index(m->instances, RsInstance, instance);
        assert_int_equal(r.split_ns[s], in->last_arrival_ns);
        waited += r.split_ns[s] - r.start_ns[s] > 1000000;
    }
    assert_int_equal(waited, 20 * 3); /* the others, at the first collective of each step */
    rs_rows_release(&r);
}

/* Rank 1 never comes, so all of rank 0's last call is waiting. */
static void a_call_that_nobody_joined_waits_to_its_end(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    scene_open_collective(&s, 0, RS_COLL_BARRIER, 0, 100, 900);
    scene_end(&s, 0, RS_ENDING_KILLED, 900);
    scene_end(&s, 1, RS_ENDING_KILLED, 1500);
    g_autoptr(RsModel) m = scene_finish(&s);
    RsRows r;
    rs_rows_init(&r, m);
    guint32 slot = r.slot_of[rs_model_rank(m, 0)->open_event];
    assert_int_equal(r.start_ns[slot], 100000);
    assert_int_equal(r.split_ns[slot], 900000);
    assert_int_equal(r.end_ns[slot], 900000); /* not to the end of the run */
    rs_rows_release(&r);
}

static void a_model_without_events_has_no_rows(void **state)
{
    RsBuilder *b = rs_builder_new();
    rs_builder_add_track(b, rs_builder_add_process(b, 0, "h", 1), "main", 1, FALSE);
    g_autoptr(RsModel) m = rs_builder_finish(b, RS_FINISH_ALL);
    RsRows rows;
    rs_rows_init(&rows, m);
    assert_int_equal(rows.n_slots, 0);
    rs_rows_release(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_has_one_slot_on_its_own_track),
        cmocka_unit_test(steps_of_any_name_are_drawn_as_steps),
        cmocka_unit_test(slots_of_a_row_are_sorted_and_disjoint),
        cmocka_unit_test(a_range_stands_above_what_is_inside),
        cmocka_unit_test(searches_agree_with_looking_at_all),
        cmocka_unit_test(sums_of_any_stretch_are_exact),
        cmocka_unit_test(device_work_waits_until_the_last_arrives),
        cmocka_unit_test(a_call_that_nobody_joined_waits_to_its_end),
        cmocka_unit_test(a_model_without_events_has_no_rows),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
