/* SPDX-License-Identifier: Apache-2.0 */
#include <glib/gstdio.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "details.h"
#include "picture.h"
#include "report/report.h"
#include "synthetic-run.h"

static RsScene *scene_new(guint ranks)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.n_ranks = ranks;
    spec.slow_rank = 1;
    spec.late_ns = 6000000;
    RsScene *s = rs_scene_new(rs_synthetic_run(&spec), "synthetic");
    rs_scene_resize(s, 1000, 600);
    return s;
}

static const gchar *name_of(const RsScene *s, guint32 event)
{
    return rs_model_str(s->model, rs_model_sig(s->model, event)->name);
}

static const gchar *detail(GPtrArray *all, const gchar *key)
{
    for (guint i = 0; i < all->len; i++) {
        const RsDetail *d = g_ptr_array_index(all, i);
        if (g_str_equal(d->key, key))
            return d->value;
    }
    return NULL;
}

static void find_goes_through_all_matches_in_time_and_around(void **state)
{
    g_autoptr(RsScene) s = scene_new(4);
    gint64 before = -1;
    guint32 first = rs_scene_find(s, "ALLreduce", FALSE), e = first;
    guint n = 0;
    do {
        assert_string_equal(name_of(s, e), "MPI_Allreduce");
        assert_true(s->model->events.start_ns[e] >= before);
        before = s->model->events.start_ns[e];
        rs_scene_select(s, e);
        e = rs_scene_find(s, "ALLreduce", FALSE);
        n++;
    } while (e != first && n < 10000);
    assert_int_equal(n, 20 * 2 * 4);
    assert_int_equal(rs_scene_find(s, "no such name", FALSE), RS_NONE);
    assert_int_equal(rs_scene_find(s, "", FALSE), RS_NONE);
    guint32 last = s->selected;
    rs_scene_select(s, first);
    assert_int_equal(rs_scene_find(s, "allreduce", TRUE), last);
}

static void find_in_view_prefers_what_begins_there(void **state)
{
    g_autoptr(RsScene) s = scene_new(4);
    guint32 first = rs_scene_find_in_view(s, "allreduce");
    assert_int_equal(first, rs_scene_find(s, "allreduce", FALSE));
    gint64 middle = s->model->duration_ns / 2;
    rs_axis_show(&s->axis, (gdouble)middle, (gdouble)s->model->duration_ns);
    guint32 later = rs_scene_find_in_view(s, "allreduce");
    assert_true(s->model->events.start_ns[later] >= middle);
    for (guint32 e = 0; e < s->model->events.n; e++)
        if (s->model->events.start_ns[e] >= middle && strcmp(name_of(s, e), "MPI_Allreduce") == 0)
            assert_true(s->model->events.start_ns[later] <= s->model->events.start_ns[e]);
    rs_axis_show(&s->axis, 0, 1000); /* none begins there: the first of all */
    assert_int_equal(rs_scene_find_in_view(s, "allreduce"), first);
    assert_int_equal(rs_scene_find_in_view(s, "no such name"), RS_NONE);
}

static void reveal_brings_an_event_into_view(void **state)
{
    g_autoptr(RsScene) s = scene_new(64);
    guint32 events[] = {0, s->model->events.n / 2, s->model->events.n - 1};
    for (guint i = 0; i < G_N_ELEMENTS(events); i++) {
        rs_axis_show(&s->axis, 0, 1000);
        rs_scene_scroll_to(s, 0);
        rs_scene_reveal(s, events[i]);
        gdouble x, y, w, h;
        assert_true(rs_scene_event_box(s, events[i], &x, &y, &w, &h));
        assert_true(x >= RS_SCENE_GUTTER_PX && x + w <= s->width + 1 && w >= 3);
        assert_true(y >= RS_SCENE_RULER_PX && y + h <= s->height);
        assert_int_equal(rs_scene_event_at(s, x + w / 2, y + h / 2), events[i]);
    }
}

static void a_finding_marks_its_rank_and_shows_its_time(void **state)
{
    g_autoptr(RsScene) s = scene_new(4);
    assert_true(s->results->findings->len > 0);
    const RsFinding *f = g_ptr_array_index(s->results->findings, 0);
    assert_string_equal(f->kind, "straggler");
    rs_axis_show(&s->axis, 0, 1000);
    rs_scene_show_finding(s, 0);
    for (guint32 i = 0; i < 4; i++)
        assert_int_equal(s->rank_marked[i], i == 1);
    assert_true(s->axis.from_ns <= f->t_start_s * 1e9 + 1);
    assert_true(rs_axis_to_ns(&s->axis) >= f->t_end_s * 1e9 - 1);
    guint32 number = g_array_index(f->steps, guint32, 0);
    rs_scene_next_step(s);
    const RsStep *step = &g_array_index(s->model->steps, RsStep, number);
    assert_int_equal(step->number, number);
    assert_true(rs_axis_px(&s->axis, step->start_ns) > 0);
    assert_true(rs_axis_px(&s->axis, step->end_ns) < s->axis.width_px);
    for (guint i = 0; i < f->steps->len; i++)
        rs_scene_next_step(s);
    assert_int_equal(s->finding_step, -1); /* around */
    rs_scene_show_finding(s, 99);
    assert_int_equal(s->finding, -1);
    assert_false(s->rank_marked[1]);
}

static void details_of_a_collective_say_who_was_last(void **state)
{
    g_autoptr(RsScene) s = scene_new(4);
    for (guint i = 0; i < 6; i++) /* of all four ranks */
        rs_scene_select(s, rs_scene_find(s, "MPI_Allreduce", FALSE));
    g_autoptr(GPtrArray) all = rs_details_of_event(s, s->selected);
    assert_string_equal(detail(all, "name"), "MPI_Allreduce");
    assert_string_equal(detail(all, "communicator"), "MPI_COMM_WORLD (4 ranks)");
    assert_non_null(detail(all, "last to arrive"));
    assert_non_null(detail(all, "busbw (transfer)"));
    assert_non_null(detail(all, "duration"));
    g_autofree gchar *tip = rs_details_dup_tooltip(s, s->selected);
    assert_true(g_str_has_prefix(tip, "MPI_Allreduce\nrank: rank "));
}

static void a_call_to_a_device_knows_its_collective(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.nccl = TRUE;
    g_autoptr(RsScene) s = rs_scene_new(rs_synthetic_run(&spec), "x");
    guint calls = 0;
    for (guint32 e = 0; e < s->model->events.n; e++) {
        const RsSig *sig = rs_model_sig(s->model, e);
        if (sig->kind != RS_KIND_CALL || sig->api != RS_API_NCCL)
            continue;
        g_autoptr(GPtrArray) all = rs_details_of_event(s, e);
        assert_non_null(detail(all, "sequence"));
        assert_non_null(detail(all, "last to arrive"));
        calls++;
    }
    assert_int_equal(calls, 20 * 2 * 4);
}

static void a_message_is_known_to_all_its_events(void **state)
{
    g_autoptr(RsScene) s = scene_new(4);
    static const gchar *const names[] = {"MPI_Send", "MPI_Irecv", "MPI_Wait"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        guint first, last;
        guint32 e = rs_scene_find(s, names[i], FALSE);
        rs_scene_messages_of(s, e, &first, &last);
        assert_int_equal(last - first, 1);
        g_autoptr(GPtrArray) all = rs_details_of_event(s, e);
        assert_non_null(strstr(detail(all, "message"), "1 MiB"));
    }
}

/* One capture of two: its send goes to a rank of which the model knows nothing. */
static void a_message_to_a_rank_without_capture_is_told(void **state)
{
    RsBuilder *b = rs_builder_new();
    const gint32 world[] = {0, 1};
    guint32 comm = rs_builder_comm(b, 0x51, 0, RS_COMM_MPI, 2, "MPI_COMM_WORLD");
    rs_builder_comm_members(b, comm, world, 2);
    guint32 p = rs_builder_add_process(b, 0, "host0", 11);
    rs_builder_process(b, p)->world_size = 2;
    RsSig sig = rs_builder_sig_init(b, RS_KIND_CALL, "MPI_Send");
    sig.api = RS_API_MPI;
    sig.klass = RS_CLASS_SEND;
    sig.comm = comm;
    sig.peer = 1;
    sig.count = sig.bytes = 4097;
    rs_builder_event(b, rs_builder_add_track(b, p, "main", 11, FALSE), rs_builder_sig(b, &sig), 0,
                     900, 0, 0, 0);
    g_autoptr(RsScene) s = rs_scene_new(rs_builder_finish(b, RS_FINISH_NO_MISSING), "x");
    g_autoptr(GPtrArray) all = rs_details_of_event(s, 0);
    assert_string_equal(detail(all, "message"),
                        "rank 0 (host0) \u2192 a rank without capture, 4.0 KiB");
}

static void a_name_with_escapes_is_harmless(void **state)
{
    RsBuilder *b = rs_builder_new();
    guint32 t = rs_builder_add_track(b, rs_builder_add_process(b, 0, "h\x1b[2J", 1), "m", 1, FALSE);
    RsSig sig = rs_builder_sig_init(b, RS_KIND_RANGE, "<b>\x1b[31mred\n\xff</b>");
    rs_builder_event(b, t, rs_builder_sig(b, &sig), 0, 1000, 0, 0, 0);
    g_autoptr(RsScene) s = rs_scene_new(rs_builder_finish(b, RS_FINISH_ALL), "x");
    g_autoptr(GPtrArray) all = rs_details_of_event(s, 0);
    for (guint i = 0; i < all->len; i++) {
        const gchar *value = ((const RsDetail *)g_ptr_array_index(all, i))->value;
        assert_true(g_utf8_validate(value, -1, NULL));
        assert_null(strpbrk(value, "\x1b\n"));
    }
}

static void status_counts_the_ranks_that_are_there(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.missing_rank = 2;
    g_autoptr(RsScene) s = rs_scene_new(rs_synthetic_run(&spec), "x");
    g_autofree gchar *text = rs_scene_dup_status(s);
    assert_true(g_str_has_prefix(text, "3 of 4 ranks on 2 hosts, "));
    assert_non_null(strstr(text, "incomplete"));
    g_autoptr(GPtrArray) warnings = rs_details_warnings(s);
    assert_true(g_str_has_prefix(g_ptr_array_index(warnings, 0), "rank 2"));
}

static void status_counts_no_hosts_that_nobody_knows(void **state)
{
    RsBuilder *b = rs_builder_new();
    guint32 t =
        rs_builder_add_track(b, rs_builder_add_process(b, 0, RS_HOST_UNKNOWN, 1), "m", 1, FALSE);
    RsSig sig = rs_builder_sig_init(b, RS_KIND_RANGE, "alone");
    rs_builder_event(b, t, rs_builder_sig(b, &sig), 0, 1000, 0, 0, 0);
    g_autoptr(RsScene) s = rs_scene_new(rs_builder_finish(b, RS_FINISH_ALL), "x");
    g_autofree gchar *text = rs_scene_dup_status(s);
    assert_true(g_str_has_prefix(text, "1 of 1 rank, "));
}

static void one_of_a_kind_is_no_plural(void **state)
{
    RsBuilder *b = rs_builder_new();
    guint32 t = rs_builder_add_track(b, rs_builder_add_process(b, 0, "h", 1), "m", 1, FALSE);
    RsSig sig = rs_builder_sig_init(b, RS_KIND_RANGE, "alone");
    rs_builder_event(b, t, rs_builder_sig(b, &sig), 0, 1000, 0, 0, 0);
    g_autoptr(RsScene) s = rs_scene_new(rs_builder_finish(b, RS_FINISH_ALL), "x");
    g_autofree gchar *text = rs_scene_dup_status(s);
    assert_non_null(strstr(text, "1 of 1 rank on 1 host, "));
    assert_non_null(strstr(text, ", 1 event "));
    assert_non_null(strstr(text, "one clock for all ranks")); /* as the report has it */
    RsReport report = {.model = s->model, .results = s->results, .name = "x"};
    g_autofree gchar *said = rs_report_text(&report);
    assert_non_null(strstr(said, "1 rank on 1 host (h), 0.000 s, 0 steps (none found)"));
    assert_non_null(strstr(said, "1 event, 0 lost"));
    assert_non_null(strstr(said, "one clock for all ranks"));
    assert_non_null(strstr(said, "useful time is the compute above"));
    s->model->dropped = 1;
    s->model->incomplete = TRUE;
    g_autofree gchar *lost = rs_report_text(&report);
    assert_non_null(strstr(lost, "1 event lost"));
}

static void a_picture_that_does_not_fit_leaves_nothing(void **state)
{
    g_autoptr(GError) error = NULL;
    struct rlimit before, small;
    g_autoptr(RsScene) s = scene_new(4);
    g_autofree gchar *folder = g_dir_make_tmp("viewer-XXXXXX", NULL);
    g_autofree gchar *path = g_build_filename(folder, "run.png", NULL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){1000, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN); /* as the programs do */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    gboolean written = rs_picture_write(s, path, 900, 600, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_false(written);
    assert_non_null(strstr(error->message, path));
    assert_int_equal(g_rmdir(folder), 0); /* nothing is in it */
}

static void a_picture_of_thousands_of_ranks_is_written(void **state)
{
    g_autoptr(GError) error = NULL;
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.n_ranks = 4096;
    spec.n_hosts = 512;
    spec.n_steps = 1;
    g_autoptr(RsScene) s = rs_scene_new(rs_synthetic_run(&spec), "4096 ranks");
    g_autofree gchar *folder = g_dir_make_tmp("viewer-XXXXXX", NULL);
    g_autofree gchar *path = g_build_filename(folder, "run.png", NULL);
    assert_true(rs_picture_write(s, path, 900, 600, &error));
    g_autofree gchar *bytes = NULL;
    gsize n = 0;
    assert_true(g_file_get_contents(path, &bytes, &n, NULL));
    assert_true(n > 5000 && memcmp(bytes, "\x89PNG", 4) == 0);
    g_unlink(path);
    g_rmdir(folder);
    assert_false(rs_picture_write(s, path, 900, 600, &error));
    assert_non_null(strstr(error->message, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_goes_through_all_matches_in_time_and_around),
        cmocka_unit_test(find_in_view_prefers_what_begins_there),
        cmocka_unit_test(reveal_brings_an_event_into_view),
        cmocka_unit_test(a_finding_marks_its_rank_and_shows_its_time),
        cmocka_unit_test(details_of_a_collective_say_who_was_last),
        cmocka_unit_test(a_call_to_a_device_knows_its_collective),
        cmocka_unit_test(a_message_is_known_to_all_its_events),
        cmocka_unit_test(a_message_to_a_rank_without_capture_is_told),
        cmocka_unit_test(a_name_with_escapes_is_harmless),
        cmocka_unit_test(status_counts_the_ranks_that_are_there),
        cmocka_unit_test(status_counts_no_hosts_that_nobody_knows),
        cmocka_unit_test(one_of_a_kind_is_no_plural),
        cmocka_unit_test(a_picture_that_does_not_fit_leaves_nothing),
        cmocka_unit_test(a_picture_of_thousands_of_ranks_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
