/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth of links, and which of them is called slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "analyses/analyses.h"
#include "scene.h"
#include "synthetic-run.h"

static const RsLinkMetric *link_of(const RsResults *r, guint src, guint dst)
{
    for (guint i = 0; i < r->links->len; i++) {
        const RsLinkMetric *l = &g_array_index(r->links, RsLinkMetric, i);
        if (l->src_host == src && l->dst_host == dst)
            return l;
    }
    return NULL;
}

static void assert_near(gdouble value, gdouble expected)
{
    if (isnan(value) || fabs(value - expected) > fabs(expected) * 1e-9)
        fail_msg("%.17g is not %.17g", value, expected);
}

/* Ranks 0, 1 on host0 send to 2, 3 on host1: 100000 bytes each in 0..400 and 200..1000: 200000
 * bytes in 1000 us, not two links of 250 and 125 MB/s. A receiver that comes late shortens nothing.
 */
static void concurrent_transfers_share_a_link(void **state)
{
    Scene s;
    scene_init(&s, 4, 2);
    for (guint i = 0; i < 6; i++) {
        gdouble t = 5000 * i;
        scene_message(&s, 0, 2, 100000, t + 100, t + 50, t + 500);
        scene_message(&s, 1, 3, 100000, t + 10, t + 300, t + 1100);
        scene_message(&s, 0, 1, 77, t + 2000, t + 2000, t + 2600); /* inside a host: no link */
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_int_equal(r->links->len, 1);
    const RsLinkMetric *l = link_of(r, 0, 1);
    assert_int_equal(l->messages, 12);
    assert_int_equal(l->busy_ns, 6 * 1000000);
    assert_near(l->bandwidth, 200e6);
    assert_near(l->best_bandwidth, 200e6);
}

static void slow_link_among_peers_is_named_with_its_cost(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.n_ranks = 6;
    spec.n_hosts = 3;
    spec.slow_src = 1;
    spec.slow_dst = 2;
    spec.slow_bytes_per_s = 25e6;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = scene_finding(r, "slow-link", 0);
    assert_non_null(f);
    assert_null(scene_finding(r, "slow-link", 1));
    assert_null(scene_finding(r, "straggler", 0));
    assert_string_equal(g_ptr_array_index(f->hosts, 0), "host1");
    assert_string_equal(g_ptr_array_index(f->hosts, 1), "host2");
    assert_non_null(strstr(f->title, "200 Mbit/s"));
    spec.slow_src = spec.slow_dst = -1;
    g_autoptr(RsModel) healthy = rs_synthetic_run(&spec);
    gdouble truth = (gdouble)(m->duration_ns - healthy->duration_ns) / 1e9;
    assert_true(fabs(f->cost_s - truth) < 0.1 * truth);
}

static void paths_within_five_percent_are_no_finding(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.n_ranks = 6;
    spec.n_hosts = 3;
    spec.slow_src = 1;
    spec.slow_dst = 2;
    spec.slow_bytes_per_s = 0.95e9;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_true(link_of(r, 1, 2)->bandwidth < link_of(r, 0, 1)->bandwidth);
    assert_null(scene_finding(r, "slow-link", 0));
}

static void late_rank_does_not_make_a_link_slow(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.n_ranks = 6;
    spec.n_hosts = 3;
    spec.slow_rank = 3; /* the last of host1: it sends to host2 */
    spec.late_ns = 30000000;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_null(scene_finding(r, "slow-link", 0));
    assert_true(link_of(r, 1, 2)->bandwidth > 0.9e9);
}

static void single_pair_is_judged_by_its_cards_or_by_what_a_cluster_has(void **state)
{
    struct {
        gdouble bytes_per_s, nic_mbps;
        gboolean slow;
        const char *words;
    } cases[] = {
        {25e6, 0, TRUE, "no other host pair"},
        {100e6, 0, FALSE, NULL}, /* 800 Mbit/s: a busy machine, perhaps */
        {1e9, 0, FALSE, NULL},
        {100e6, 25000, TRUE, "nominal"},
        {1e9, 25000, FALSE, NULL},
        {110e6, 1000, FALSE, NULL}, /* gigabit Ethernet, as fast as it gets */
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        RsSyntheticRun spec = rs_synthetic_healthy;
        spec.slow_src = 0;
        spec.slow_dst = 1;
        spec.slow_bytes_per_s = cases[i].bytes_per_s;
        g_autoptr(RsModel) m = rs_synthetic_run(&spec);
        for (guint h = 0; h < 2; h++)
            g_array_index(m->hosts, RsHost, h).nic_mbps = cases[i].nic_mbps;
        g_autoptr(RsResults) r = rs_analyze(m, NULL);
        const RsFinding *f = scene_finding(r, "slow-link", 0);
        assert_int_equal(f != NULL, cases[i].slow);
        if (!f)
            continue;
        assert_true(f->confidence > 0.5 && f->confidence < 0.9);
        gboolean told = FALSE;
        for (guint k = 0; k < f->evidence->len; k++)
            told = told || strstr(g_ptr_array_index(f->evidence, k), cases[i].words);
        assert_true(told);
    }
}

/* 3 hosts; 0 -> 1 has small messages alone, slow by latency. */
static void small_messages_do_not_make_a_link_slow(void **state)
{
    Scene s;
    scene_init(&s, 3, 3);
    for (guint i = 0; i < 20; i++) {
        gdouble t = 3000 * i;
        scene_message(&s, 0, 1, 900 + i, t + 10, t + 5, t + 60);
        scene_message(&s, 1, 2, 200000, t + 100, t + 105, t + 305);
        scene_message(&s, 2, 0, 200000, t + 400, t + 395, t + 610);
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_null(scene_finding(r, "slow-link", 0));
    assert_true(isnan(link_of(r, 0, 1)->bandwidth));
    assert_int_equal(link_of(r, 0, 1)->messages, 20);
}

/* The same transfers on another thread while the main one computes cost next to nothing. */
static void hidden_transfers_cost_nothing(void **state)
{
    for (guint hidden = 0; hidden < 2; hidden++) {
        Scene s;
        scene_init(&s, 2, 2);
        for (guint i = 0; i < 12; i++) {
            gdouble t = 10000 * i;
            for (guint rank = 0; rank < 2; rank++) {
                scene_range(&s, rank, "step", 0, t, t + 9000);
                scene_range(&s, rank, "backward", 1, t + 1, t + (hidden ? 8000 : 1000));
                scene_range(&s, rank, "synchronize", 1, t + (hidden ? 8000 : 1000), t + 8900);
            }
            guint32 main[2] = {s.main[0], s.main[1]};
            for (guint rank = 0; rank < 2; rank++) {
                if (s.other[rank] == RS_NONE)
                    s.other[rank] = rs_builder_add_track(s.b, s.process[rank], "worker", 9, FALSE);
                s.main[rank] = s.other[rank];
            }
            scene_message(&s, 0, 1, 100000, t + 1000, t + 1003, t + 7000);
            memcpy(s.main, main, sizeof main);
        }
        g_autoptr(RsModel) m = scene_finish(&s);
        g_autoptr(RsResults) r = rs_analyze(m, NULL);
        const RsFinding *f = scene_finding(r, "slow-link", 0);
        assert_int_equal(f != NULL, !hidden);
        if (f) /* 12 transfers of 5997 us at 1/75 of 10 Gbit/s */
            assert_near(f->cost_s, 12 * 5.997e-3 * (1 - (100000 / 5.997e-3) / 1.25e9));
    }
}

/* One after the other, 100000 bytes in 6000 us there and in 2000 us back: each direction would save
 * what it lacks itself of 10 Gbit/s. */
static void each_direction_costs_what_it_lacks(void **state)
{
    Scene s;
    scene_init(&s, 2, 2);
    for (guint i = 0; i < 12; i++) {
        gdouble t = 10000 * i;
        scene_message(&s, 0, 1, 100000, t + 1000, t + 1000, t + 7000);
        scene_message(&s, 1, 0, 100000, t + 7000, t + 7000, t + 9000);
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = scene_finding(r, "slow-link", 0);
    assert_non_null(f);
    assert_non_null(strstr(f->title, "host0 - host1"));
    gdouble at_reference = 100000 / 1.25e9;
    assert_true(fabs(f->cost_s - 12 * (6e-3 + 2e-3 - 2 * at_reference)) < 1e-7);
}

/* Another thread talks and nothing tells when the main one waits for it: what shows as hidden may
 * be exposed, so the time that shows as lost is no bound for the cost. */
static void transfers_of_a_blind_rank_keep_their_cost(void **state)
{
    Scene s;
    scene_init(&s, 2, 2);
    for (guint rank = 0; rank < 2; rank++) {
        scene_call(&s, rank, "MPI_Init", RS_CLASS_ENV, 1, 12 + rank);
        s.main[rank] = rs_builder_add_track(s.b, s.process[rank], "worker", 9, FALSE);
    }
    for (guint i = 0; i < 12; i++)
        scene_message(&s, 0, 1, 100000 + i, 10000 * i + 1000, 10000 * i + 1003, 10000 * i + 7000);
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = scene_finding(r, "slow-link", 0);
    assert_non_null(f);
    assert_true(fabs(f->cost_s - 12 * 5.997e-3) < 0.02 * 12 * 5.997e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concurrent_transfers_share_a_link),
        cmocka_unit_test(slow_link_among_peers_is_named_with_its_cost),
        cmocka_unit_test(paths_within_five_percent_are_no_finding),
        cmocka_unit_test(late_rank_does_not_make_a_link_slow),
        cmocka_unit_test(single_pair_is_judged_by_its_cards_or_by_what_a_cluster_has),
        cmocka_unit_test(small_messages_do_not_make_a_link_slow),
        cmocka_unit_test(hidden_transfers_cost_nothing),
        cmocka_unit_test(each_direction_costs_what_it_lacks),
        cmocka_unit_test(transfers_of_a_blind_rank_keep_their_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
