/* SPDX-License-Identifier: Apache-2.0 */
/* Who is named late, who is not, and what it costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "../near.h"
#include "analyses/analyses.h"
#include "scene.h"
#include "synthetic-run.h"

/* Steps of compute and one allreduce; ends when the last has come, plus 60 us. */
typedef struct {
    guint n_ranks, n_steps;
    gdouble compute_us, jitter_us; /* jitter: 0..jitter, drawn for each rank and step */
    gdouble late_us[SCENE_RANKS_MAX];
    guint every[SCENE_RANKS_MAX], phase[SCENE_RANKS_MAX]; /* late in steps i % every == phase */
    gboolean negotiate; /* a tensor agreed on; the collective itself starts together */
    gboolean unmarked;
    guint seed;
} Program;

static gdouble work_of(const Program *p, GRand *rand, guint rank, guint step)
{
    guint every = MAX(p->every[rank], 1);
    gdouble late = step % every == p->phase[rank] ? p->late_us[rank] : 0;
    return p->compute_us + late + (p->jitter_us ? g_rand_double_range(rand, 0, p->jitter_us) : 0);
}

static void one_step(Scene *s, const Program *p, GRand *rand, guint step, gdouble *now)
{
    gdouble ready[SCENE_RANKS_MAX], last = 0;
    for (guint r = 0; r < p->n_ranks; r++) {
        ready[r] = *now + work_of(p, rand, r, step);
        last = MAX(last, ready[r]);
    }
    gdouble end = last + 60;
    for (guint r = 0; r < p->n_ranks; r++) {
        if (!p->unmarked)
            scene_range(s, r, "step", 0, *now, end + 1);
        scene_range(s, r, "backward", 1, *now, ready[r]);
        if (p->negotiate) {
            scene_range(s, r, "synchronize", 1, ready[r], end + 0.5);
            scene_negotiate(s, r, "gradient.w", ready[r], last + 5);
            scene_collective(s, r, RS_COLL_ALLREDUCE, step, 4096, 1, last + 6, end);
        } else {
            scene_collective(s, r, RS_COLL_ALLREDUCE, step, 4096, 0, ready[r], end);
        }
    }
    *now = end + 1;
}

static RsModel *run_program(const Program *p)
{
    Scene s;
    gdouble now = 1;
    g_autoptr(GRand) rand = g_rand_new_with_seed(p->seed + 7);
    scene_init(&s, p->n_ranks, 2);
    for (guint i = 0; i < p->n_steps; i++)
        one_step(&s, p, rand, i, &now);
    return scene_finish(&s);
}

static const RsFinding *assert_only(const RsResults *r, gint32 rank)
{
    const RsFinding *f = scene_finding(r, "straggler", 0);
    assert_non_null(f);
    assert_null(scene_finding(r, "straggler", 1));
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

/* The situation of cases/ranks/straggler-rank2: 10 steps, 4 ranks, rank 2 is 400 us late. */
static void late_rank_is_named_with_its_cost(void **state)
{
    Program p = {.n_ranks = 4, .n_steps = 10, .compute_us = 100, .jitter_us = 9};
    p.late_us[2] = 400;
    g_autoptr(RsModel) m = run_program(&p);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = assert_only(r, 2);
    assert_true(f->cost_s > 10 * 391e-6 && f->cost_s < 10 * 409e-6);
    assert_true(f->confidence == 1);
    assert_string_equal(f->severity, "high");
    assert_string_equal(g_ptr_array_index(f->hosts, 0), "host1");
    assert_true(f->steps->len >= 9);
    assert_true(says(f, "its own time in \"backward\" is"));
    assert_true(says(f, "ms a step"));
}

/* cases/ranks/balanced: 9 us of jitter are nobody's fault, whatever the draw. */
static void balanced_ranks_are_not_named(void **state)
{
    for (guint seed = 0; seed < 400; seed++) {
        Program p = {.n_ranks = 2 + seed % 7, .n_steps = 6 + seed % 31, .compute_us = 100};
        p.jitter_us = 9;
        p.seed = seed;
        p.negotiate = seed % 3 == 0;
        p.unmarked = seed % 5 == 0;
        g_autoptr(RsModel) m = run_program(&p);
        g_autoptr(RsResults) r = rs_analyze(m, NULL);
        assert_null(scene_finding(r, "straggler", 0));
    }
}

static void two_stragglers_are_both_named(void **state)
{
    Program p = {.n_ranks = 6, .n_steps = 40, .compute_us = 1000, .jitter_us = 30};
    p.late_us[1] = p.late_us[4] = 500; /* who of them is last, the jitter decides */
    g_autoptr(RsModel) m = run_program(&p);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *a = scene_finding(r, "straggler", 0), *b = scene_finding(r, "straggler", 1);
    assert_true(a && b);
    gint32 x = g_array_index(a->ranks, gint32, 0), y = g_array_index(b->ranks, gint32, 0);
    assert_int_equal(MIN(x, y), 1);
    assert_int_equal(MAX(x, y), 4);
    /* 40 steps of about 500 us once, not twice */
    assert_true(a->cost_s + b->cost_s < 40 * 540e-6);
    assert_true(a->cost_s + b->cost_s > 40 * 470e-6);
}

static void late_rank_shows_in_agreements_where_collectives_start_together(void **state)
{
    Program p = {.n_ranks = 4, .n_steps = 30, .compute_us = 2000, .jitter_us = 100};
    p.late_us[3] = 700;
    p.negotiate = TRUE;
    g_autoptr(RsModel) m = run_program(&p);
    assert_int_equal(m->rendezvous->len, 30);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = assert_only(r, 3);
    assert_true(fabs(f->cost_s - 30 * 700e-6) < 30 * 110e-6);
    assert_int_equal(f->communicators->len, 0);
}

static void late_one_of_two_is_named(void **state)
{
    Program p = {.n_ranks = 2, .n_steps = 12, .compute_us = 300, .jitter_us = 30};
    p.late_us[1] = 200;
    g_autoptr(RsModel) m = run_program(&p);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_only(r, 1);
}

static void late_rank_is_named_in_a_run_without_steps(void **state)
{
    Program p = {.n_ranks = 3, .n_steps = 12, .compute_us = 300, .jitter_us = 9, .unmarked = TRUE};
    p.late_us[0] = 150;
    g_autoptr(RsModel) m = run_program(&p);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_only(r, 0);
}

/* Sizes that never repeat make no steps: a phase's time is that of one occurrence. */
static void phase_of_a_run_without_steps_is_told_each_time(void **state)
{
    Scene s;
    scene_init(&s, 3, 1);
    for (guint i = 0; i < 12; i++)
        for (guint r = 0; r < 3; r++) {
            gdouble now = 1000 * i + 1, came = now + (r == 1 ? 400 : 100);
            scene_range(&s, r, "load", 0, now, came);
            scene_collective(&s, r, RS_COLL_ALLREDUCE, i, 100 + i * i, 0, came, now + 450);
        }
    g_autoptr(RsModel) m = scene_finish(&s);
    assert_int_equal(m->steps->len, 0);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_true(says(assert_only(r, 1), "\"load\" is 0.400 ms each time, 0.100 ms on the median"));
}

static void rank_late_in_one_step_of_ten_is_not_a_straggler(void **state)
{
    Program p = {.n_ranks = 4, .n_steps = 40, .compute_us = 1000, .jitter_us = 40};
    p.late_us[2] = 3000;
    p.every[2] = 10;
    p.phase[2] = 5;
    g_autoptr(RsModel) m = run_program(&p);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_null(scene_finding(r, "straggler", 0));
}

/* cases/ranks/overlapping-communicators: two groups of one name; each is judged by itself. */
static void groups_of_one_name_are_kept_apart(void **state)
{
    Scene s;
    scene_init(&s, 4, 1);
    guint32 world = s.world, group[2];
    for (gint32 g = 0; g < 2; g++) {
        const gint32 members[] = {2 * g, 2 * g + 1};
        group[g] = rs_builder_comm(s.b, 0xabc + (guint64)g, 0x1234, RS_COMM_MPI, 2, "1");
        rs_builder_comm_members(s.b, group[g], members, 2);
    }
    g_autoptr(GRand) rand = g_rand_new_with_seed(9);
    for (guint i = 0; i < 20; i++)
        for (guint r = 0; r < 4; r++) { /* group 1 runs 5 ms behind group 0, and rank 3 is late */
            gdouble at = 1000 * i + (r < 2 ? 100 : 5100) + g_rand_double_range(rand, 0, 5);
            s.world = group[r / 2];
            scene_collective(&s, r, RS_COLL_ALLREDUCE, i, 100, 0, at + (r == 3 ? 200 : 0),
                             1000 * i + (r < 2 ? 150 : 5350));
        }
    s.world = world;
    g_autoptr(RsModel) m = scene_finish(&s);
    assert_int_equal(m->instances->len, 40);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = assert_only(r, 3);
    assert_int_equal(f->communicators->len, 1);
    assert_int_equal(g_array_index(f->communicators, guint64, 0), 0xabd);
    assert_true(fabs(f->cost_s - 20 * 200e-6) < 20 * 10e-6);
}

/* Rank 1 holds up rank 0, rank 3 rank 2, both by 200 us at the same time: 200 us a round is all
 * that could be saved, and every text says so. */
static void costs_that_overlap_are_told_as_they_count(void **state)
{
    Scene s;
    scene_init(&s, 4, 1);
    guint32 world = s.world, group[2];
    for (gint32 g = 0; g < 2; g++) {
        const gint32 members[] = {2 * g, 2 * g + 1};
        group[g] = rs_builder_comm(s.b, 0xd00 + (guint64)g, 0x1234, RS_COMM_MPI, 2, "pair");
        rs_builder_comm_members(s.b, group[g], members, 2);
    }
    for (guint i = 0; i < 20; i++)
        for (guint r = 0; r < 4; r++) {
            gdouble at = 1000 * i + 100 + (i * 7 + r * 3) % 5;
            s.world = group[r / 2];
            scene_collective(&s, r, RS_COLL_ALLREDUCE, i, 100, 0, at + (r % 2 ? 200 : 0),
                             1000 * i + 330);
        }
    s.world = world;
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    gdouble sum = 0;
    for (guint i = 0; i < 2; i++) {
        const RsFinding *f = scene_finding(r, "straggler", i);
        assert_non_null(f);
        g_autofree gchar *told = g_strdup_printf(" and costs %.3f s (", f->cost_s);
        assert_non_null(strstr(f->title, told));
        assert_non_null(strstr(g_ptr_array_index(f->evidence, f->evidence->len - 1), "alone"));
        sum += f->cost_s;
    }
    assert_true(sum > 20 * 195e-6 && sum < 20 * 235e-6);
}

static void too_few_steps_abstain_and_say_so(void **state)
{
    Program p = {.n_ranks = 4, .n_steps = 4, .compute_us = 100, .jitter_us = 9};
    p.late_us[2] = 400;
    g_autoptr(RsModel) m = run_program(&p);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_null(scene_finding(r, "straggler", 0));
    assert_non_null(scene_reason(r, "straggler"));
}

/* Rank 1 always comes last, because it receives over a slow path; its own work is like others'. */
static void lateness_by_a_slow_message_is_not_the_receivers_fault(void **state)
{
    Scene s;
    scene_init(&s, 3, 3);
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    gdouble now = 1;
    for (guint i = 0; i < 20; i++) {
        gdouble ready[3], last = now + 100 + 20 + 800;
        for (guint r = 0; r < 3; r++)
            ready[r] = now + 100 + g_rand_double_range(rand, 0, 9);
        scene_message(&s, 0, 1, 100000, ready[0], ready[1], last);
        for (guint r = 0; r < 3; r++) {
            scene_collective(&s, r, RS_COLL_ALLREDUCE, i, 512, 0, r == 2 ? ready[2] : last + 1 + r,
                             last + 40);
            scene_range(&s, r, "step", 0, now, last + 41);
        }
        now = last + 42;
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_null(scene_finding(r, "straggler", 0));
}

/* The one that waits for a late sender arrives last; the sender is to blame. */
static void late_sender_is_named_not_the_one_it_held_up(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.slow_rank = 2;
    spec.late_ns = 5000000;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    guint last = 0;
    for (guint i = 0; i < m->instances->len; i += 2)
        last += g_array_index(m->instances, RsInstance, i).last_rank == 3;
    assert_true(last > 15);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = assert_only(r, 2);
    g_autoptr(RsModel) healthy = rs_synthetic_run(&rs_synthetic_healthy);
    gdouble truth = (gdouble)(m->duration_ns - healthy->duration_ns) / 1e9;
    assert_true(fabs(f->cost_s - truth) < 0.1 * truth);
}

/* Rank 2 sends to both neighbours before each allreduce: with it come all but rank 0. */
static void late_rank_is_named_where_most_others_are_held_up_by_it(void **state)
{
    Scene s;
    scene_init(&s, 4, 1);
    for (guint i = 0; i < 20; i++) {
        gdouble now = 1 + 600 * i, came[] = {now + 100, now + 521, now + 523, now + 511};
        scene_message(&s, 2, 3, 1000, now + 500, now + 100, now + 510);
        scene_message(&s, 2, 1, 1000, now + 511, now + 100, now + 520);
        for (guint r = 0; r < 4; r++) {
            scene_collective(&s, r, RS_COLL_ALLREDUCE, i, 512, 0, came[r], now + 560);
            scene_range(&s, r, "step", 0, now, now + 561);
        }
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = assert_only(r, 2);
    assert_true(fabs(f->cost_s - 20 * 400e-6) < 20 * 25e-6);
}

/* Rank 1 can't send before rank 2 comes for it, and so comes last. */
static void late_receiver_is_named_not_the_sender_it_held_up(void **state)
{
    Scene s;
    scene_init(&s, 4, 1);
    for (guint i = 0; i < 20; i++) {
        gdouble now = 1 + 600 * i, came[] = {now + 100, now + 525, now + 511, now + 101};
        scene_message(&s, 1, 2, 1000, now + 100, now + 500, now + 510);
        for (guint r = 0; r < 4; r++) {
            scene_collective(&s, r, RS_COLL_ALLREDUCE, i, 512, 0, came[r], now + 560);
            scene_range(&s, r, "step", 0, now, now + 561);
        }
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = assert_only(r, 2);
    assert_true(fabs(f->cost_s - 20 * 400e-6) < 20 * 30e-6);
}

/* Ranks exchange in pairs before each allreduce, with jitter alone. */
static void balanced_ranks_that_hold_each_other_up_are_not_named(void **state)
{
    for (guint seed = 0; seed < 100; seed++) {
        Scene s;
        guint n = 4 + 2 * (seed % 5);
        g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
        scene_init(&s, n, 2);
        for (guint i = 0; i < 30; i++) {
            gdouble now = 1 + 200 * i;
            for (guint r = 0; r < n; r += 2) {
                gdouble send = now + 100 + g_rand_double_range(rand, 0, 9);
                gdouble recv = now + 100 + g_rand_double_range(rand, 0, 9);
                gdouble end = MAX(send, recv) + 2;
                scene_message(&s, r, r + 1, 1000, send, recv, end);
                for (guint k = 0; k < 2; k++) {
                    gdouble at = end + g_rand_double_range(rand, 0, 3);
                    scene_collective(&s, r + k, RS_COLL_ALLREDUCE, i, 512, 0, at, now + 150);
                    scene_range(&s, r + k, "step", 0, now, now + 151);
                }
            }
        }
        g_autoptr(RsModel) m = scene_finish(&s);
        g_autoptr(RsResults) r = rs_analyze(m, NULL);
        assert_null(scene_finding(r, "straggler", 0));
    }
}

/* Rank 2 is 200 us late in each step, and 5 ms in the first: that counts as an ordinary one, also
 * where rank 1 is late for another collective of every second step. */
static void first_step_costs_a_typical_one_of_the_rank(void **state)
{
    Scene s;
    scene_init(&s, 4, 1);
    gdouble now = 1;
    for (guint i = 0; i < 20; i++) {
        gdouble early = now + 100 + (i % 2 ? 50 : 0), late = early + 100 + (i ? 200 : 5000);
        for (guint r = 0; r < 4; r++) {
            scene_collective(&s, r, RS_COLL_ALLREDUCE, 2 * i, 512, 0, r == 1 ? early : now + 100,
                             early + 10);
            scene_collective(&s, r, RS_COLL_ALLREDUCE, 2 * i + 1, 512, 0,
                             r == 2 ? late : early + 100, late + 10);
            scene_range(&s, r, "step", 0, now, late + 11);
        }
        now = late + 12;
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = assert_only(r, 2);
    assert_near(f->cost_s, 20 * 200e-6, 1e-6);
}

/* Rank 0 computes longer between start and wait; the others' waits may as well be the transfer. */
static void lateness_behind_nonblocking_collectives_is_not_judged(void **state)
{
    Scene s;
    scene_init(&s, 3, 1);
    for (guint i = 0; i < 20; i++)
        for (guint r = 0; r < 3; r++) {
            gdouble now = 1 + 100 * i;
            scene_nonblocking(&s, r, i, now, now + 1);
            scene_call(&s, r, "MPI_Wait", RS_CLASS_COMPLETE, now + (r ? 20 : 80), now + 90);
        }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_null(scene_finding(r, "straggler", 0));
    gboolean told = FALSE;
    for (guint i = 0; i < r->not_applicable->len; i++) {
        const RsNotApplicable *n = g_ptr_array_index(r->not_applicable, i);
        told = told || strstr(n->reason, "20 nonblocking collectives: a rank counts as come when");
    }
    assert_true(told);
}

static void missing_rank_forbids_to_say_that_nobody_is_late(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.missing_rank = 1;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = scene_finding(r, "incomplete-data", 0);
    assert_non_null(f);
    assert_int_equal(g_array_index(f->ranks, gint32, 0), 1);
    gboolean named = FALSE;
    for (guint i = 0; i < r->not_applicable->len; i++) {
        const RsNotApplicable *n = g_ptr_array_index(r->not_applicable, i);
        named = named || (strcmp(n->analysis, "straggler") == 0 && strstr(n->reason, "rank 1"));
    }
    assert_true(named);
}

/* Clocks sure to half of the lateness leave half of the confidence; to more than it, no finding. */
static void clock_uncertainty_takes_confidence(void **state)
{
    Program p = {.n_ranks = 4, .n_steps = 20, .compute_us = 1000, .jitter_us = 9};
    p.late_us[2] = 400;
    for (guint i = 0; i < 2; i++) {
        g_autoptr(RsModel) m = run_program(&p);
        RsDomain second = g_array_index(m->domains, RsDomain, 0);
        second.uncertainty_ns = i ? 300000 : 100000;
        g_array_append_val(m->domains, second);
        rs_model_rank(m, 2)->domain = rs_model_rank(m, 3)->domain = 1;
        g_autoptr(RsResults) r = rs_analyze(m, NULL);
        if (i == 0) {
            const RsFinding *f = assert_only(r, 2);
            assert_true(f->confidence > 0.7 && f->confidence < 0.8);
        } else {
            assert_null(scene_finding(r, "straggler", 0));
        }
    }
}

static void results_are_the_same_however_the_run_is_cut(void **state)
{
    for (guint i = 0; i < 6; i++) {
        RsSyntheticRun spec = rs_synthetic_healthy;
        spec.seed = 40 + i;
        spec.n_ranks = 6;
        spec.n_hosts = 3;
        spec.slow_rank = (gint32)i % 3;
        spec.late_ns = 4000000;
        spec.nccl = i % 2;
        spec.negotiate = i % 3 == 0;
        spec.slow_src = 0;
        spec.slow_dst = 1;
        spec.slow_bytes_per_s = 2e8;
        g_autoptr(RsModel) m = rs_synthetic_run(&spec);
        g_autoptr(RsResults) whole = rs_analyze(m, NULL);
        assert_true(whole->findings->len > 0);
        for (guint pieces = 2; pieces < 12; pieces++) {
            g_autoptr(RsResults) r = rs_analyze_pieces(m, NULL, pieces);
            assert_true(scene_same_results(whole, r));
        }
    }
}

static void scope_keeps_to_steps_and_ranks(void **state)
{
    Program p = {.n_ranks = 4, .n_steps = 24, .compute_us = 500, .jitter_us = 9};
    p.late_us[1] = 300;
    g_autoptr(RsModel) m = run_program(&p);
    RsScope scope = {.ranks = g_array_new(FALSE, FALSE, sizeof(gint32)),
                     .steps = g_array_new(FALSE, FALSE, sizeof(guint32))};
    const gint32 ranks[] = {0, 1};
    const guint32 steps[] = {4, 5, 6, 7, 8, 9, 10, 11};
    g_array_append_vals(scope.ranks, ranks, 2);
    g_array_append_vals(scope.steps, steps, 8);
    g_autoptr(RsResults) r = rs_analyze(m, &scope);
    const RsFinding *f = assert_only(r, 1);
    assert_true(f->cost_s > 8 * 290e-6 && f->cost_s < 8 * 310e-6);
    assert_true(says(f, "seen in 8 of 8 steps, from step 4 to step 11"));
    assert_null(scene_breakdown(r, 2, RS_NONE));
    assert_null(scene_breakdown(r, 0, 3));
    assert_non_null(scene_breakdown(r, 0, 4));
    gint32 only_healthy = 3;
    g_array_set_size(scope.ranks, 0);
    g_array_append_val(scope.ranks, only_healthy);
    g_autoptr(RsResults) other = rs_analyze(m, &scope);
    assert_null(scene_finding(other, "straggler", 0));
    g_array_unref(scope.ranks);
    g_array_unref(scope.steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_rank_is_named_with_its_cost),
        cmocka_unit_test(balanced_ranks_are_not_named),
        cmocka_unit_test(two_stragglers_are_both_named),
        cmocka_unit_test(late_rank_shows_in_agreements_where_collectives_start_together),
        cmocka_unit_test(late_one_of_two_is_named),
        cmocka_unit_test(late_rank_is_named_in_a_run_without_steps),
        cmocka_unit_test(phase_of_a_run_without_steps_is_told_each_time),
        cmocka_unit_test(rank_late_in_one_step_of_ten_is_not_a_straggler),
        cmocka_unit_test(groups_of_one_name_are_kept_apart),
        cmocka_unit_test(costs_that_overlap_are_told_as_they_count),
        cmocka_unit_test(too_few_steps_abstain_and_say_so),
        cmocka_unit_test(lateness_by_a_slow_message_is_not_the_receivers_fault),
        cmocka_unit_test(late_sender_is_named_not_the_one_it_held_up),
        cmocka_unit_test(late_rank_is_named_where_most_others_are_held_up_by_it),
        cmocka_unit_test(late_receiver_is_named_not_the_sender_it_held_up),
        cmocka_unit_test(balanced_ranks_that_hold_each_other_up_are_not_named),
        cmocka_unit_test(first_step_costs_a_typical_one_of_the_rank),
        cmocka_unit_test(lateness_behind_nonblocking_collectives_is_not_judged),
        cmocka_unit_test(missing_rank_forbids_to_say_that_nobody_is_late),
        cmocka_unit_test(clock_uncertainty_takes_confidence),
        cmocka_unit_test(results_are_the_same_however_the_run_is_cut),
        cmocka_unit_test(scope_keeps_to_steps_and_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
