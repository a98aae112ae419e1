/* SPDX-License-Identifier: Apache-2.0 */
/* Who is named when a run dies, and who is not. Times in seconds, to the scene in microseconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../near.h"
#include "analyses/analyses.h"
#include "scene.h"

#define S 1e6

/* Two steps with an allreduce on 4 ranks, up to 1 s. */
static void begin(Scene *s)
{
    scene_init(s, 4, 2);
    for (guint step = 0; step < 2; step++)
        for (guint r = 0; r < 4; r++)
            scene_collective(s, r, RS_COLL_ALLREDUCE, step, 64, 0,
                             (step + 0.3 + 0.01 * r) * 0.5 * S, (step + 1) * 0.5 * S);
}

static void kill_all_but(Scene *s, guint rank, gdouble at_s)
{
    for (guint r = 0; r < 4; r++)
        if (r != rank)
            scene_end(s, r, RS_ENDING_KILLED, at_s * S);
}

static RsResults *analyze(Scene *s, RsModel **ret)
{
    *ret = scene_finish(s);
    return rs_analyze(*ret, NULL);
}

static const RsFinding *assert_names(const RsResults *r, gint32 rank)
{
    const RsFinding *f = g_ptr_array_index(r->findings, 0); /* before all that costs time */
    assert_string_equal(f->kind, "missing-rank");
    assert_string_equal(f->severity, "high");
    assert_null(scene_finding(r, "missing-rank", 1));
    assert_null(scene_finding(r, "incomplete-data", 0));
    assert_int_equal(f->ranks->len, 1);
    assert_int_equal(g_array_index(f->ranks, gint32, 0), rank);
    return f;
}

static gboolean says(const RsFinding *f, const gchar *text)
{
    for (guint i = 0; i < f->evidence->len; i++)
        if (strstr(g_ptr_array_index(f->evidence, i), text))
            return TRUE;
    return FALSE;
}

/* Rank 2 is killed while it computes; the launcher ends the others 3 s later, within the time that
 * a death is known to: the barrier tells. */
static void killed_rank_that_others_wait_for_is_named(void **state)
{
    Scene s;
    begin(&s);
    for (guint r = 0; r < 4; r++)
        if (r != 2)
            scene_open_collective(&s, r, RS_COLL_BARRIER, 2, (1.1 + 0.1 * r) * S, 4 * S);
    kill_all_but(&s, 2, 4);
    scene_end(&s, 2, RS_ENDING_KILLED, 3.95 * S);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    const RsFinding *f = assert_names(r, 2);
    assert_near(f->cost_s, 4 - 1.1, 1e-6);
    assert_near(f->t_start_s, 1.1, 1e-6);
    assert_non_null(strstr(f->title, "was killed at 3.950 s outside of all recorded calls"));
    assert_non_null(strstr(f->title, "3 ranks waiting in MPI_Op"));
    assert_true(says(f, "rank 0 waited 2.900 s in MPI_Op, number 2 on world, then was killed"));
    assert_int_equal(scene_breakdown(r, 0, RS_NONE)->idle_ns, 0);
    assert_true(scene_breakdown(r, 0, RS_NONE)->wait_ns >= 2900000000);
    assert_true(scene_breakdown(r, 2, RS_NONE)->compute_ns >= 2900000000);
    rs_model_free(m);
}

/* 0 waits for 1, 1 for 3, and 3 for nobody. */
static void chain_of_receives_leads_to_its_end(void **state)
{
    Scene s;
    begin(&s);
    scene_open_receive(&s, 0, 1, 1.2 * S, 5 * S);
    scene_open_receive(&s, 1, 3, 1.4 * S, 5 * S);
    kill_all_but(&s, 4, 5);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    const RsFinding *f = assert_names(r, 3);
    assert_near(f->cost_s, 5 - 1.4, 1e-6); /* those behind wait for who waits */
    assert_true(says(f, "rank 1 waited 3.600 s in MPI_Recv from rank 3"));
    assert_false(says(f, "rank 0"));
    rs_model_free(m);
}

static void first_to_die_is_named_whatever_it_was_in(void **state)
{
    Scene s;
    begin(&s);
    for (guint r = 0; r < 4; r++)
        scene_open_collective(&s, r, RS_COLL_ALLREDUCE, 2, 1.2 * S, (r == 1 ? 2 : 5) * S);
    kill_all_but(&s, 1, 5);
    scene_end(&s, 1, RS_ENDING_KILLED, 2 * S);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    const RsFinding *f = assert_names(r, 1);
    assert_true(says(f, "rank 1 was killed 3.000 s before the next"));
    assert_non_null(strstr(f->title, "was killed at 2.000 s in MPI_Op, number 2 on world"));
    rs_model_free(m);
}

static void rank_that_left_early_is_named(void **state)
{
    Scene s;
    begin(&s);
    for (guint r = 0; r < 3; r++)
        scene_open_collective(&s, r, RS_COLL_ALLREDUCE, 2, 1.2 * S, 5 * S);
    kill_all_but(&s, 3, 5);
    scene_end(&s, 3, RS_ENDING_CLEAN, 1.1 * S);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    const RsFinding *f = assert_names(r, 3);
    assert_non_null(strstr(f->title, "ended at 1.100 s"));
    assert_non_null(strstr(f->remedy, "early return"));
    rs_model_free(m);
}

static void rank_that_aborts_is_named(void **state)
{
    Scene s;
    begin(&s);
    for (guint r = 0; r < 3; r++)
        scene_open_collective(&s, r, RS_COLL_ALLREDUCE, 2, 1.2 * S, 1.3 * S);
    kill_all_but(&s, 3, 1.3);
    scene_open_collective(&s, 3, RS_COLL_BARRIER, 2, 1.3 * S, 1.3 * S); /* stands for the call */
    scene_end(&s, 3, RS_ENDING_ABORTED, 1.3 * S);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    const RsFinding *f = assert_names(r, 3);
    assert_non_null(strstr(f->remedy, "MPI_Abort"));
    assert_false(says(f, "since"));
    rs_model_free(m);
}

/* A part of the run does not tell why it ended, and says so; nobody was killed in it. */
static void cut_run_tells_of_an_abort_without_a_cause(void **state)
{
    Scene s;
    begin(&s);
    scene_end(&s, 3, RS_ENDING_ABORTED, 1.3 * S);
    g_autoptr(RsModel) m = scene_finish(&s);
    const RsScope scope = {.to_s = 1.2};
    g_autoptr(RsResults) r = rs_analyze(m, &scope);
    assert_null(scene_finding(r, "missing-rank", 0));
    const RsFinding *f = scene_finding(r, "incomplete-data", 0);
    assert_non_null(f);
    assert_non_null(strstr(f->title, "1 of 4 ranks was killed or aborted at 1.300 s"));
    assert_true(says(f, "rank 3 called MPI_Abort at 1.300 s"));
    assert_true(says(f, "in the whole run alone"));
}

/* MPI ended rank 2 on an error; the launcher killed the others. */
static void rank_that_mpi_ended_is_named(void **state)
{
    Scene s;
    begin(&s);
    for (guint r = 0; r < 4; r++)
        scene_open_collective(&s, r, RS_COLL_ALLREDUCE, 2, 1.2 * S, 1.3 * S);
    kill_all_but(&s, 2, 1.3);
    scene_end(&s, 2, RS_ENDING_EXITED, 1.3 * S);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    const RsFinding *f = assert_names(r, 2);
    assert_non_null(strstr(f->title, "exited at 1.300 s inside MPI_Op"));
    assert_non_null(strstr(f->remedy, "one of its calls fails"));
    rs_model_free(m);
}

static void assert_nobody_named(const RsResults *r, guint killed)
{
    assert_null(scene_finding(r, "missing-rank", 0));
    const RsFinding *f = scene_finding(r, "incomplete-data", 0);
    assert_non_null(f);
    assert_ptr_equal(f, g_ptr_array_index(r->findings, 0));
    assert_int_equal(f->ranks->len, killed);
    assert_non_null(strstr(f->title, "were killed"));
}

/* All are in the same collective: whoever ended the run did. */
static void ranks_killed_together_are_nobody_s_fault(void **state)
{
    Scene s;
    begin(&s);
    for (guint r = 0; r < 4; r++)
        scene_open_collective(&s, r, RS_COLL_ALLREDUCE, 2, (1.2 + 0.01 * r) * S, 5 * S);
    kill_all_but(&s, 4, 5);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    assert_nobody_named(r, 4);
    assert_true(
        says(scene_finding(r, "incomplete-data", 0), "rank 3 was killed at 5.000 s in MPI_Op"));
    assert_true(scene_breakdown(r, 0, RS_NONE)->comm_exposed_ns >= 3700000000);
    rs_model_free(m);
}

/* Rank 1 looks again and again for whom nobody knows. */
static void rank_that_polls_is_not_named(void **state)
{
    Scene s;
    begin(&s);
    scene_open_receive(&s, 0, 1, 1.2 * S, 5 * S);
    scene_call(&s, 1, "MPI_Test", RS_CLASS_COMPLETE, 4.99 * S, 4.991 * S);
    kill_all_but(&s, 4, 5);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    assert_nobody_named(r, 4);
    rs_model_free(m);
}

/* Rank 1 came out of its wait, and crashed; the launcher ended all others in the same moment. */
static void rank_that_crashes_after_a_wait_is_named(void **state)
{
    Scene s;
    begin(&s);
    scene_call(&s, 1, "MPI_Waitall", RS_CLASS_COMPLETE, 1.2 * S, 1.21 * S);
    for (guint r = 0; r < 4; r++)
        if (r != 1)
            scene_open_collective(&s, r, RS_COLL_ALLREDUCE, 2, (1.21 + 0.001 * r) * S, 1.23 * S);
    kill_all_but(&s, 1, 1.23);
    scene_end(&s, 1, RS_ENDING_KILLED, 1.22 * S);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    const RsFinding *f = assert_names(r, 1);
    assert_near(f->confidence, 0.5, 1e-9); /* or all were cancelled */
    assert_true(says(f, "outside of all recorded calls; the last, MPI_Waitall, had ended at 1.21"));
    assert_non_null(strstr(f->remedy, "ended as a whole"));
    rs_model_free(m);
}

/* Rank 3 is still in a barrier that all have come to, while rank 0 already wants its next message:
 * so it goes all the time. */
static void rank_that_was_going_on_is_not_named(void **state)
{
    Scene s;
    begin(&s);
    for (guint r = 0; r < 3; r++)
        scene_collective(&s, r, RS_COLL_BARRIER, 2, 1, 0, 1.1 * S, 1.2 * S);
    scene_open_collective(&s, 3, RS_COLL_BARRIER, 2, 1.1 * S, 1.23 * S);
    scene_open_receive(&s, 0, 3, 1.21 * S, 1.23 * S);
    kill_all_but(&s, 4, 1.23);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    assert_nobody_named(r, 4);
    rs_model_free(m);
}

/* All are killed together, long after rank 2 stopped to come: it did not die then. */
static void rank_that_hung_wants_a_look_at_its_stack(void **state)
{
    Scene s;
    begin(&s);
    for (guint r = 0; r < 4; r++)
        if (r != 2)
            scene_open_collective(&s, r, RS_COLL_BARRIER, 2, (1.1 + 0.1 * r) * S, 4 * S);
    kill_all_but(&s, 4, 4);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    const RsFinding *f = assert_names(r, 2);
    assert_near(f->confidence, 0.9, 1e-9);
    assert_non_null(strstr(f->remedy, "py-spy"));
    assert_true(says(f, "outside of all recorded calls; the last, MPI_Op, had ended at 1.000 s"));
    rs_model_free(m);
}

/* 0 waits for 1, 1 for 2, 2 for 0: nobody is missing. 3 waits for one of them. */
static void ranks_that_wait_for_each_other_are_a_cycle(void **state)
{
    for (guint late = 0; late < 2;
         late++) { /* closed well before, or just before, the first death */
        Scene s;
        begin(&s);
        scene_open_receive(&s, 0, 1, 1.2 * S, 5 * S);
        scene_open_receive(&s, 1, 2, 1.3 * S, 5 * S);
        scene_open_receive(&s, 2, 0, (late ? 4.5 : 1.4) * S, 5 * S);
        scene_open_receive(&s, 3, 2, 1.1 * S, 5 * S);
        kill_all_but(&s, 4, 5);
        RsModel *m;
        g_autoptr(RsResults) r = analyze(&s, &m);
        const RsFinding *f = g_ptr_array_index(r->findings, 0);
        assert_null(scene_finding(r, "missing-rank", 0));
        if (late) {
            assert_nobody_named(r, 4);
            assert_null(scene_finding(r, "deadlock-cycle", 0));
        } else {
            assert_string_equal(f->kind, "deadlock-cycle");
            assert_int_equal(f->ranks->len, 3);
            for (gint i = 0; i < 3; i++)
                assert_int_equal(g_array_index(f->ranks, gint32, i), i);
            assert_near(f->cost_s, 5 - 1.4, 1e-6);
            assert_true(says(f, "rank 2 waited for rank 0 in MPI_Recv from rank 0, since 1.400 s"));
        }
        rs_model_free(m);
    }
}

/* What rank 2 did at the end was lost: that it is absent from the barrier says nothing. */
static void rank_with_a_cut_capture_is_not_named(void **state)
{
    Scene s;
    begin(&s);
    for (guint r = 0; r < 4; r++)
        if (r != 2)
            scene_open_collective(&s, r, RS_COLL_BARRIER, 2, 1.2 * S, 5 * S);
    kill_all_but(&s, 2, 5);
    scene_end(&s, 2, RS_ENDING_UNKNOWN, 1.1 * S);
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    assert_nobody_named(r, 3);
    rs_model_free(m);
}

/* Rank 1 is killed; two others get an error from the library that noticed, and exit. */
static void killed_rank_that_makes_others_exit_is_named(void **state)
{
    Scene s;
    begin(&s);
    scene_end(&s, 1, RS_ENDING_KILLED, 1.200 * S);
    scene_end(&s, 0, RS_ENDING_EXITED, 1.203 * S);
    scene_end(&s, 2, RS_ENDING_EXITED, 1.204 * S);
    scene_end(&s, 3, RS_ENDING_KILLED, 1.210 * S); /* by the launcher, then */
    RsModel *m;
    g_autoptr(RsResults) r = analyze(&s, &m);
    const RsFinding *f = assert_names(r, 1);
    assert_true(says(f, "2 other ranks exited by themselves, the first 0.003 s after"));
    assert_non_null(strstr(f->remedy, "out of memory"));
    rs_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_rank_that_makes_others_exit_is_named),
        cmocka_unit_test(killed_rank_that_others_wait_for_is_named),
        cmocka_unit_test(chain_of_receives_leads_to_its_end),
        cmocka_unit_test(first_to_die_is_named_whatever_it_was_in),
        cmocka_unit_test(rank_that_left_early_is_named),
        cmocka_unit_test(rank_that_aborts_is_named),
        cmocka_unit_test(cut_run_tells_of_an_abort_without_a_cause),
        cmocka_unit_test(rank_that_mpi_ended_is_named),
        cmocka_unit_test(ranks_killed_together_are_nobody_s_fault),
        cmocka_unit_test(rank_that_polls_is_not_named),
        cmocka_unit_test(rank_that_crashes_after_a_wait_is_named),
        cmocka_unit_test(rank_that_was_going_on_is_not_named),
        cmocka_unit_test(rank_that_hung_wants_a_look_at_its_stack),
        cmocka_unit_test(ranks_that_wait_for_each_other_are_a_cycle),
        cmocka_unit_test(rank_with_a_cut_capture_is_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
