/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layout.h"
#include "model-builder.h"
#include "synthetic-run.h"

typedef struct {
    RsModel *model;
    RsRows rows;
    RsLayout layout;
} Scene;

static void scene_init(Scene *s, guint ranks, guint hosts, guint steps, gint32 missing)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.n_ranks = ranks;
    spec.n_hosts = hosts;
    spec.n_steps = steps;
    spec.nccl = TRUE;
    spec.missing_rank = missing;
    s->model = rs_synthetic_run(&spec);
    rs_rows_init(&s->rows, s->model);
    rs_layout_init(&s->layout, &s->rows);
}

static void scene_release(Scene *s)
{
    rs_layout_release(&s->layout);
    rs_rows_release(&s->rows);
    rs_model_free(s->model);
}

static void assert_lines_found_at_both_ends(const RsLayout *l)
{
    gint y = 0;
    for (guint32 i = 0; i < l->lines->len; i++) {
        const RsLine *line = rs_layout_line(l, i);
        assert_true(line->y >= y && line->y <= y + RS_LAYOUT_GAP_PX);
        assert_int_equal(rs_layout_line_at(l, line->y), i);
        assert_int_equal(rs_layout_line_at(l, line->y + line->height - 1), i);
        y = line->y + line->height;
    }
    assert_true(l->height >= y);
}

static void few_ranks_are_open_under_their_hosts(void **state)
{
    Scene s;
    scene_init(&s, 4, 2, 3, -1);
    const RsLayout *l = &s.layout;
    static const guint8 kinds[] = {RS_LINE_HOST, RS_LINE_RANK, RS_LINE_ROW};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        assert_int_equal(rs_layout_line(l, i)->kind, kinds[i]);
    assert_true(rs_layout_line(l, 2)->first);
    assert_int_equal(l->lines->len, 2 + 4 + s.rows.rows->len);
    assert_lines_found_at_both_ends(l);
    for (guint32 row = 0; row < s.rows.rows->len; row++) {
        gint y, height;
        assert_true(rs_layout_row_box(l, row, &y, &height));
        assert_int_equal(rs_layout_row_at(l, y), row);
        assert_int_equal(rs_layout_row_at(l, y + height - 1), row);
    }
    scene_release(&s);
}

static void add_range(RsBuilder *b, guint32 track, const gchar *name, gint64 start, gint64 end)
{
    RsSig sig = rs_builder_sig_init(b, RS_KIND_RANGE, name);
    rs_builder_event(b, track, rs_builder_sig(b, &sig), start, end, 0, 0, 0);
}

/* Also where it does something else before its first step. */
static void the_thread_with_the_steps_comes_first(void **state)
{
    RsBuilder *b = rs_builder_new();
    guint32 process = rs_builder_add_process(b, 0, "host", 1);
    guint32 other = rs_builder_add_track(b, process, "other", 1, FALSE);
    guint32 trainer = rs_builder_add_track(b, process, "trainer", 2, FALSE);
    add_range(b, other, "watch", 0, 1000);
    add_range(b, trainer, "setup", 0, 90);
    for (gint64 i = 1; i < 4; i++)
        add_range(b, trainer, "step", 100 * i, 100 * i + 90);
    Scene s = {.model = rs_builder_finish(b, RS_FINISH_ALL)};
    rs_rows_init(&s.rows, s.model);
    rs_layout_init(&s.layout, &s.rows);
    const RsLine *first = rs_layout_line(&s.layout, 2);
    assert_int_equal(first->kind, RS_LINE_ROW);
    guint32 track = rs_rows_row(&s.rows, first->row)->track;
    const RsTrack *t = &g_array_index(s.model->tracks, RsTrack, track);
    assert_string_equal(rs_model_str(s.model, t->name), "trainer");
    scene_release(&s);
}

static void thousands_of_ranks_start_closed_and_are_all_there(void **state)
{
    Scene s;
    scene_init(&s, 4096, 512, 1, -1);
    const RsLayout *l = &s.layout;
    assert_int_equal(l->lines->len, 512 + 4096);
    assert_lines_found_at_both_ends(l);
    assert_int_equal(rs_layout_line(l, 512 + 4096 - 1)->rank, 4095);
    gint y, height;
    for (guint32 row = 0; row < s.rows.rows->len; row++) {
        assert_true(rs_layout_row_box(l, row, &y, &height));
        assert_int_equal(rs_layout_row_at(l, y), row);
        assert_int_equal(rs_layout_row_at(l, y + height - 1), row);
    }
    rs_layout_close_all(&s.layout, FALSE);
    assert_true(l->height > 32767); /* more than an X11 window can be */
    assert_lines_found_at_both_ends(l);
    scene_release(&s);
}

static void toggle_closes_a_rank_then_a_host(void **state)
{
    Scene s;
    scene_init(&s, 4, 2, 3, -1);
    gint height = s.layout.height, y, row_height;
    rs_layout_toggle(&s.layout, 1); /* rank 0 */
    assert_true(s.layout.rank_closed[0] && s.layout.height < height);
    assert_true(rs_layout_row_box(&s.layout, 0, &y, &row_height));
    assert_true(y >= rs_layout_line(&s.layout, 1)->y && row_height < RS_LAYOUT_ROW_PX);
    rs_layout_toggle(&s.layout, 0); /* host0 */
    assert_false(rs_layout_row_box(&s.layout, 0, &y, &row_height));
    assert_int_equal(rs_layout_line(&s.layout, 1)->host, 1);
    assert_lines_found_at_both_ends(&s.layout);
    rs_layout_toggle(&s.layout, 100000);
    rs_layout_open_rank(&s.layout, 1);
    assert_true(rs_layout_row_box(&s.layout, 0, &y, &row_height));
    rs_layout_open_rank(&s.layout, 0);
    assert_int_equal(s.layout.height, height);
    scene_release(&s);
}

static void beyond_the_ends_nothing_is_picked(void **state)
{
    Scene s;
    scene_init(&s, 4, 2, 3, -1);
    assert_int_equal(rs_layout_line_at(&s.layout, -100), 0);
    assert_int_equal(rs_layout_line_at(&s.layout, 1 << 30), s.layout.lines->len - 1);
    assert_int_equal(rs_layout_row_at(&s.layout, -1), RS_NONE);
    assert_int_equal(rs_layout_row_at(&s.layout, s.layout.height), RS_NONE);
    assert_int_equal(rs_layout_row_at(&s.layout, 0), RS_NONE); /* a heading */
    scene_release(&s);
}

static void a_missing_rank_stands_at_the_end(void **state)
{
    Scene s;
    scene_init(&s, 4, 2, 3, 1);
    const RsLayout *l = &s.layout;
    const RsLine *last = rs_layout_line(l, l->lines->len - 1);
    assert_int_equal(last->kind, RS_LINE_MISSING);
    assert_int_equal(rs_model_rank(s.model, last->rank)->rank, 1);
    assert_int_equal(rs_layout_line(l, l->lines->len - 2)->kind, RS_LINE_HOST);
    assert_int_equal(rs_layout_line(l, l->lines->len - 2)->host, RS_NONE);
    guint lines = l->lines->len;
    rs_layout_toggle(&s.layout, lines - 1);
    rs_layout_toggle(&s.layout, lines - 2);
    rs_layout_open_rank(&s.layout, last->rank);
    assert_int_equal(l->lines->len, lines);
    scene_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_ranks_are_open_under_their_hosts),
        cmocka_unit_test(the_thread_with_the_steps_comes_first),
        cmocka_unit_test(thousands_of_ranks_start_closed_and_are_all_there),
        cmocka_unit_test(toggle_closes_a_rank_then_a_host),
        cmocka_unit_test(beyond_the_ends_nothing_is_picked),
        cmocka_unit_test(a_missing_rank_stands_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
