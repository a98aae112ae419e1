/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks spend their time on, against sums done by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyses/analyses.h"
#include "analyses/timeline.h"
#include "scene.h"

#define US 1000

static void assert_parts(const RsBreakdown *b, gint64 compute, gint64 exposed, gint64 hidden,
                         gint64 wait, gint64 io, gint64 idle)
{
    assert_non_null(b);
    assert_int_equal(b->compute_ns, compute * US);
    assert_int_equal(b->comm_exposed_ns, exposed * US);
    assert_int_equal(b->comm_hidden_ns, hidden * US);
    assert_int_equal(b->wait_ns, wait * US);
    assert_int_equal(b->io_ns, io * US);
    assert_int_equal(b->idle_ns, idle * US);
}

/* Rank 0 comes at 100, rank 1 at 130; both leave at 190 and 180; rank 0 reads for 7. */
static void breakdown_of_host_ranks_splits_wait_from_transfer(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    scene_call(&s, 0, "MPI_Init", RS_CLASS_ENV, 0, 11);
    scene_io(&s, 0, 40, 47);
    scene_collective(&s, 0, RS_COLL_ALLREDUCE, 0, 100, 0, 100, 190);
    scene_collective(&s, 1, RS_COLL_ALLREDUCE, 0, 100, 0, 130, 180);
    scene_call(&s, 0, "MPI_Finalize", RS_CLASS_ENV, 250, 263);
    scene_call(&s, 1, "MPI_Finalize", RS_CLASS_ENV, 251, 259);
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    /* compute 11..40, 47..100, 190..250 */
    assert_parts(scene_breakdown(r, 0, RS_NONE), 29 + 53 + 60, 60, 0, 30, 7, 11 + 13);
    /* compute 0..130, 180..251; after 259 nothing is recorded */
    assert_parts(scene_breakdown(r, 1, RS_NONE), 130 + 71, 50, 0, 0, 0, 8 + 4);
    assert_int_equal(scene_breakdown(r, 0, RS_NONE)->wall_ns, 263 * US);
}

/* What MPI does with files is I/O; one-sided calls, and the waits that go with them, communicate.
 */
static void breakdown_of_files_and_windows_is_io_and_communication(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    for (guint rank = 0; rank < 2; rank++) {
        scene_call(&s, rank, "MPI_Init", RS_CLASS_ENV, 0, 10);
        scene_call(&s, rank, "MPI_File_write_at_all", RS_CLASS_FILE, 20, 50);
        scene_call(&s, rank, "MPI_Put", RS_CLASS_RMA, 60, 61);
        scene_call(&s, rank, "MPI_Win_unlock", RS_CLASS_SYNC, 70, 84);
        scene_call(&s, rank, "MPI_Finalize", RS_CLASS_ENV, 90, 100);
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_parts(scene_breakdown(r, 0, RS_NONE), 10 + 10 + 9 + 6, 15, 0, 0, 30, 20);
}

/* The situation of cases/ranks/exposed-comm: communication 50..150 and 60..120 on two streams,
 * kernels 0..100 and 130..140: 40 exposed, 60 hidden; adding up kernels would give 160. */
static void breakdown_of_device_ranks_takes_unions(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    for (guint rank = 0; rank < 2; rank++) {
        scene_kernel(&s, rank, 0, 100);
        scene_kernel(&s, rank, 130, 140);
        scene_nccl(&s, rank, RS_COLL_ALLREDUCE, 0, 1024, 10, 50, 150);
        scene_nccl(&s, rank, RS_COLL_ALLREDUCE, 1, 1024, 20, 60, 120);
        scene_kernel(&s, rank, 170, 175);
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    for (guint rank = 0; rank < 2; rank++)
        assert_parts(scene_breakdown(r, rank, RS_NONE), 115, 40, 60, 0, 0, 20);
}

/* A worker communicates while the main thread computes; in "synchronize" the main thread waits. */
static void
breakdown_of_background_communication_is_hidden_until_the_main_thread_waits(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    for (guint i = 0; i < 3; i++)
        for (guint rank = 0; rank < 2; rank++) {
            gdouble t = 1000 * i;
            scene_range(&s, rank, "step", 0, t, t + 900);
            scene_range(&s, rank, "backward", 1, t + 100, t + 500);
            scene_range(&s, rank, "synchronize", 1, t + 500, t + 700);
            /* rank 1 is ready 50 later; the reduction ends at 640 */
            scene_negotiate(&s, rank, "w", t + 300 + 50 * rank, t + 380);
            scene_collective(&s, rank, RS_COLL_ALLREDUCE, i, 64, 1, t + 400, t + 640);
        }
    g_autoptr(RsModel) m = scene_finish(&s);
    assert_int_equal(m->steps->len, 3);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    for (guint32 step = 0; step < 3; step++) {
        const RsBreakdown *b = scene_breakdown(r, 0, step);
        assert_int_equal(b->wall_ns, 900 * US);
        assert_int_equal(b->comm_exposed_ns + b->wait_ns, 140 * US);
        assert_int_equal(b->comm_hidden_ns, 100 * US);
        assert_int_equal(b->compute_ns, 760 * US);
    }
    assert_null(scene_reason(r, "exposed communication"));
}

static void breakdown_of_unmarked_background_communication_says_that_it_is_blind(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    for (guint rank = 0; rank < 2; rank++) {
        scene_collective(&s, rank, RS_COLL_ALLREDUCE, 0, 64, 1, 10 + rank, 40);
        scene_call(&s, rank, "MPI_Finalize", RS_CLASS_ENV, 90, 100);
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_non_null(scene_reason(r, "exposed communication"));
    assert_parts(scene_breakdown(r, 1, RS_NONE), 90, 0, 29, 0, 0, 10);
}

/* 64 random runs: parts add up to the wall time exactly, none is negative. */
static void breakdown_of_any_run_adds_up(void **state)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(20261201);
    for (guint round = 0; round < 64; round++) {
        Scene s;
        scene_init(&s, 3, 2);
        for (guint i = 0; i < 40; i++) {
            guint rank = (guint)g_rand_int_range(rand, 0, 3);
            gdouble from = g_rand_double_range(rand, 0, 900), to = from + i * 1.7;
            switch (i % 6) {
            case 0:
                scene_io(&s, rank, from, to);
                break;
            case 1:
                scene_message(&s, rank, (rank + 1) % 3, 100 + i, from, from + 3, to + 4);
                break;
            case 2:
                scene_collective(&s, rank, RS_COLL_ALLREDUCE, i / 18, 9, i % 4 == 0, from, to);
                break;
            case 3:
                scene_call(&s, rank, "MPI_Wait", RS_CLASS_COMPLETE, from, to);
                break;
            case 4:
                if (round % 2)
                    scene_kernel(&s, rank, from, to);
                break;
            default:
                scene_range(&s, rank, "step", 0, from, to);
            }
        }
        g_autoptr(RsModel) m = scene_finish(&s);
        g_autoptr(RsResults) r = rs_analyze(m, NULL);
        for (guint i = 0; i < r->breakdown->len; i++) {
            const RsBreakdown *b = &g_array_index(r->breakdown, RsBreakdown, i);
            assert_true(b->compute_ns >= 0 && b->comm_exposed_ns >= 0 && b->wait_ns >= 0);
            assert_true(b->io_ns >= 0 && b->idle_ns >= 0 && b->comm_hidden_ns <= b->compute_ns);
            const RsSpan *span = NULL;
            if (b->step != RS_NONE)
                span =
                    &g_array_index(m->step_spans, RsSpan,
                                   g_array_index(m->steps, RsStep, b->step).first_span + b->rank);
            gint64 wall = span ? span->end_ns - span->start_ns : m->duration_ns;
            assert_int_equal(
                b->compute_ns + b->comm_exposed_ns + b->wait_ns + b->io_ns + b->idle_ns, wall);
        }
    }
}

static void own_time_stops_while_a_rank_is_held_up(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    scene_collective(&s, 0, RS_COLL_ALLREDUCE, 0, 100, 0, 100, 190);
    scene_collective(&s, 1, RS_COLL_ALLREDUCE, 0, 100, 0, 130, 190);
    scene_call(&s, 0, "MPI_Finalize", RS_CLASS_ENV, 300, 310);
    scene_call(&s, 1, "MPI_Finalize", RS_CLASS_ENV, 300, 310);
    g_autoptr(RsModel) m = scene_finish(&s);
    RsTimeline *t = rs_timelines_new(m);
    assert_int_equal(rs_timeline_own_ns(&t[0], 50 * US), 50 * US);
    assert_int_equal(rs_timeline_own_ns(&t[0], 150 * US), 100 * US);
    assert_int_equal(rs_timeline_own_ns(&t[0], 200 * US), 110 * US);
    assert_int_equal(rs_timeline_own_ns(&t[0], 310 * US), 210 * US);
    assert_int_equal(rs_timeline_own_ns(&t[1], 310 * US), 240 * US);
    assert_int_equal(rs_timeline_part_at(&t[0], 120 * US), RS_PART_WAIT);
    assert_int_equal(rs_timeline_part_at(&t[0], 140 * US), RS_PART_EXPOSED);
    rs_timelines_free(t, m->ranks->len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(breakdown_of_host_ranks_splits_wait_from_transfer),
        cmocka_unit_test(breakdown_of_files_and_windows_is_io_and_communication),
        cmocka_unit_test(breakdown_of_device_ranks_takes_unions),
        cmocka_unit_test(
            breakdown_of_background_communication_is_hidden_until_the_main_thread_waits),
        cmocka_unit_test(breakdown_of_unmarked_background_communication_says_that_it_is_blind),
        cmocka_unit_test(breakdown_of_any_run_adds_up),
        cmocka_unit_test(own_time_stops_while_a_rank_is_held_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
