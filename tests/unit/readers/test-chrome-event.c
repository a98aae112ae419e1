/* SPDX-License-Identifier: Apache-2.0 */
/* What the records of Chrome traces mean: phases, nesting, exact times, ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "traces.h"

static void ends_may_stand_before_their_beginnings(void **state)
{
    g_autoptr(RsModel) m = tr_open("event/e-before-b.json");
    assert_int_equal(m->events.n, 1);
    assert_int_equal(tr_duration(m, "a"), 4000);
    assert_int_equal(m->warnings->len, 0);
}

static void slices_without_an_end_are_open(void **state)
{
    g_autoptr(RsModel) m = tr_open("event/b-without-e.json");
    assert_true(m->events.flags[tr_find(m, "step")] & RS_FLAG_OPEN);
    assert_true(m->events.flags[tr_find(m, "allreduce")] & RS_FLAG_OPEN);
    assert_false(m->events.flags[tr_find(m, "x")] & RS_FLAG_OPEN);
    assert_int_equal(tr_duration(m, "step"), 3000);
    assert_non_null(tr_warning(m, "2 without an end"));
}

static void order_of_the_file_breaks_ties(void **state)
{
    g_autoptr(RsModel) m = tr_open("event/same-ts-order.json");
    guint32 parent = tr_find(m, "parent"), child = tr_find(m, "child"), p2 = tr_find(m, "p2");
    assert_true(parent < child);
    assert_int_equal(m->events.aux[parent], 0);
    assert_int_equal(m->events.aux[child], 1);
    assert_int_equal(m->events.aux[p2], 0);
}

static void slices_that_partly_overlap_are_both_kept(void **state)
{
    g_autoptr(RsModel) m = tr_open("event/overlapping-x.json");
    assert_int_equal(tr_duration(m, "A"), 3776);
    assert_int_equal(tr_duration(m, "B"), 2000);
}

static void asynchronous_slices_are_matched_by_name_inside_the_id(void **state)
{
    g_autoptr(RsModel) m = tr_open("event/async-overlap.json");
    assert_int_equal(tr_start(m, "t0"), 0);
    assert_int_equal(tr_duration(m, "t0"), 3000);
    assert_int_equal(tr_start(m, "t1"), 1000);
    assert_int_equal(tr_duration(m, "t1"), 3000);
    assert_int_equal(rs_model_sig(m, tr_find(m, "t0"))->kind, RS_KIND_SPAN);
}

static void durations_that_cannot_be_are_zero_and_counted(void **state)
{
    g_autoptr(RsModel) m = tr_open("event/negative-dur.json");
    assert_int_equal(m->events.n, 3);
    assert_int_equal(tr_duration(m, "a"), 0);
    assert_int_equal(tr_duration(m, "b"), 0);
    assert_int_equal(tr_duration(m, "nodur"), 0);
    assert_non_null(tr_warning(m, "1 with a negative duration"));
}

static void device_events_at_time_zero_are_left_out(void **state)
{
    g_autoptr(RsModel) m = tr_open("event/ts-zero-gpu.json");
    assert_int_equal(tr_count(m, "k0"), 0);
    assert_int_equal(m->duration_ns, 110000);
    assert_non_null(tr_warning(m, "1 at time 0"));
    guint32 k1 = tr_find(m, "k1");
    assert_int_equal(m->events.link[k1], RS_NONE);
}

static void thread_ids_keep_all_their_bits(void **state)
{
    g_autoptr(RsModel) m = tr_open("event/tid64.json");
    assert_int_equal(m->tracks->len, 3);
    guint64 tids[3];
    for (guint i = 0; i < 3; i++)
        tids[i] = g_array_index(m->tracks, RsTrack, i).tid;
    assert_int_equal(tids[0], 140589156634432);
    assert_int_equal(tids[1], 140588800255680);
    assert_int_equal(tids[2], 140589156634433);
}

static void times_are_exact_to_the_nanosecond(void **state)
{
    g_autoptr(RsModel) m = tr_open("event/ts-ns-precision.json");
    assert_int_equal(tr_start(m, "a"), 0);
    assert_int_equal(tr_start(m, "b"), 1);
    assert_int_equal(tr_start(m, "c"), 2);
    assert_int_equal(tr_duration(m, "c"), 1);
    assert_int_equal(m->base_realtime_ns, 1712195495406752876);
}

static void arrows_are_checked(void **state)
{
    g_autoptr(RsModel) m = tr_open("event/flow-oddities.json");
    const RsWarning *w = tr_warning(m, "of its events");
    assert_non_null(w);
    assert_non_null(strstr(w->text, "1 arrows without a start"));
    assert_non_null(strstr(w->text, "1 arrows that go back in time"));
}

static void names_are_whole_in_any_script(void **state)
{
    g_autoptr(RsModel) m = tr_open("event/unicode-names.json");
    assert_int_equal(m->events.n, 3);
    g_autoptr(RsModel) html = tr_open("event/html-in-names.json");
    assert_int_equal(tr_count(html, "<script>alert(1)</script>"), 1);
    assert_int_equal(tr_count(html, "\033[31mred"), 1);
}

/* ---- numbers of all forms ---- */

static gint64 duration_of(const gchar *number)
{
    g_autofree gchar *text =
        g_strdup_printf("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":7,\"dur\":%s}]", number);
    g_autoptr(RsModel) m = tr_read(text, -1);
    return tr_duration(m, "a");
}

static void durations_of_all_forms_are_exact(void **state)
{
    assert_int_equal(duration_of("1"), 1000);
    assert_int_equal(duration_of("1.5"), 1500);
    assert_int_equal(duration_of("0.001"), 1);
    assert_int_equal(duration_of("0.0019"), 1);
    assert_int_equal(duration_of("12.345678"), 12345);
    assert_int_equal(duration_of("1e3"), 1000000);
    assert_int_equal(duration_of("1.25E+2"), 125000);
    assert_int_equal(duration_of("125000e-3"), 125000);
    assert_int_equal(duration_of("\"2.5\""), 2500);
    assert_int_equal(duration_of("123456789012.345"), 123456789012345);
    assert_int_equal(duration_of("1e-30"), 0);
    assert_int_equal(duration_of("null"), 0);
}

static void fractions_of_nanoseconds_add_up(void **state)
{
    g_autoptr(RsModel) m = tr_read("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1.0005,\"dur\":1.0005},"
                                   "{\"ph\":\"X\",\"name\":\"b\",\"ts\":2.001,\"dur\":1}]",
                                   -1);
    assert_int_equal(tr_start(m, "a") + tr_duration(m, "a"), tr_start(m, "b"));
}

static void times_that_can_only_be_nanoseconds_are_taken_for_them(void **state)
{
    g_autoptr(RsModel) m =
        tr_read("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1712195495406752876,\"dur\":5},"
                "{\"ph\":\"X\",\"name\":\"b\",\"ts\":1712195495406752976,\"dur\":5}]",
                -1);
    assert_int_equal(tr_start(m, "b"), 100);
    assert_non_null(tr_warning(m, "read as nanoseconds"));
}

static void numbers_beyond_range_are_counted(void **state)
{
    g_autoptr(RsModel) m = tr_read("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":5},"
                                   "{\"ph\":\"X\",\"name\":\"b\",\"ts\":1e40,\"dur\":5},"
                                   "{\"ph\":\"X\",\"name\":\"c\",\"ts\":-9e15,\"dur\":5},"
                                   "{\"ph\":\"X\",\"name\":\"d\",\"dur\":5}]",
                                   -1);
    assert_int_equal(m->events.n, 1);
    assert_non_null(tr_warning(m, "2 out of the range of times"));
    assert_non_null(tr_warning(m, "1 without a time"));
}

static void number_and_text_ids_are_apart(void **state)
{
    g_autoptr(RsModel) m =
        tr_read("[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":7,\"ts\":1,\"dur\":1},"
                "{\"ph\":\"X\",\"name\":\"b\",\"pid\":1,\"tid\":\"7\",\"ts\":1,\"dur\":1},"
                "{\"ph\":\"b\",\"name\":\"s\",\"cat\":\"c\",\"id\":1,\"pid\":1,\"ts\":1},"
                "{\"ph\":\"b\",\"name\":\"s\",\"cat\":\"c\",\"id\":\"1\",\"pid\":1,\"ts\":2},"
                "{\"ph\":\"e\",\"name\":\"s\",\"cat\":\"c\",\"id\":1,\"pid\":1,\"ts\":9}]",
                -1);
    assert_int_not_equal(rs_model_track_of(m, tr_find(m, "a")),
                         rs_model_track_of(m, tr_find(m, "b")));
    guint open = 0;
    for (guint32 i = 0; i < m->events.n; i++)
        if (g_str_equal(rs_model_str(m, rs_model_sig(m, i)->name), "s"))
            open += (m->events.flags[i] & RS_FLAG_OPEN) ? 1 : 0;
    assert_int_equal(open, 1);
}

static void ends_without_beginnings_are_counted(void **state)
{
    g_autoptr(RsModel) m =
        tr_read("[{\"ph\":\"B\",\"name\":\"a\",\"ts\":0},"
                "{\"ph\":\"E\",\"name\":\"gamma\",\"ts\":5},"
                "{\"ph\":\"E\",\"name\":\"a\",\"ts\":14},{\"ph\":\"E\",\"ts\":15}]",
                -1);
    assert_int_equal(m->events.n, 1);
    assert_int_equal(tr_duration(m, "a"), 14000);
    assert_non_null(tr_warning(m, "2 ends without a beginning"));
}

static void all_phases_have_a_place_or_are_counted(void **state)
{
    g_autoptr(RsModel) m =
        tr_read("[{\"ph\":\"i\",\"name\":\"mark\",\"ts\":1,\"s\":\"g\"},"
                "{\"ph\":\"C\",\"name\":\"mem\",\"ts\":2,\"args\":{\"used\":5,\"free\":2.5}},"
                "{\"ph\":\"C\",\"name\":\"n\",\"ts\":2,\"args\":{\"value\":5}},"
                "{\"ph\":\"S\",\"name\":\"old\",\"id\":1,\"ts\":2},"
                "{\"ph\":\"F\",\"name\":\"old\",\"id\":1,\"ts\":4},"
                "{\"ph\":\"N\",\"name\":\"thing\",\"id\":1,\"ts\":2},"
                "{\"ph\":\"D\",\"name\":\"thing\",\"id\":1,\"ts\":4},"
                "{\"ph\":\"O\",\"name\":\"thing\",\"id\":1,\"ts\":3},"
                "{\"ph\":\"v\",\"name\":\"dump\",\"id\":1,\"ts\":3},"
                "{\"ph\":\"?\",\"name\":\"what\",\"ts\":3},{\"name\":\"nothing\"}]",
                -1);
    assert_int_equal(rs_model_sig(m, tr_find(m, "mark"))->kind, RS_KIND_MARK);
    assert_int_equal(rs_model_sig(m, tr_find(m, "mem used"))->kind, RS_KIND_COUNTER);
    assert_int_equal(tr_count(m, "mem free"), 1);
    assert_int_equal(tr_count(m, "n"), 1);
    assert_int_equal(tr_duration(m, "old"), 2000);
    assert_int_equal(tr_duration(m, "thing"), 2000);
    const RsWarning *w = tr_warning(m, "of its events");
    assert_non_null(strstr(w->text, "2 that are no part of a timeline"));
    assert_non_null(strstr(w->text, "1 of unknown phases"));
    assert_non_null(strstr(w->text, "1 that are no events"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_may_stand_before_their_beginnings),
        cmocka_unit_test(slices_without_an_end_are_open),
        cmocka_unit_test(order_of_the_file_breaks_ties),
        cmocka_unit_test(slices_that_partly_overlap_are_both_kept),
        cmocka_unit_test(asynchronous_slices_are_matched_by_name_inside_the_id),
        cmocka_unit_test(durations_that_cannot_be_are_zero_and_counted),
        cmocka_unit_test(device_events_at_time_zero_are_left_out),
        cmocka_unit_test(thread_ids_keep_all_their_bits),
        cmocka_unit_test(times_are_exact_to_the_nanosecond),
        cmocka_unit_test(arrows_are_checked),
        cmocka_unit_test(names_are_whole_in_any_script),
        cmocka_unit_test(durations_of_all_forms_are_exact),
        cmocka_unit_test(fractions_of_nanoseconds_add_up),
        cmocka_unit_test(times_that_can_only_be_nanoseconds_are_taken_for_them),
        cmocka_unit_test(numbers_beyond_range_are_counted),
        cmocka_unit_test(number_and_text_ids_are_apart),
        cmocka_unit_test(ends_without_beginnings_are_counted),
        cmocka_unit_test(all_phases_have_a_place_or_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
