/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidths, wait and transfer of collectives against numbers done by hand; split anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "analyses/analyses.h"
#include "scene.h"
#include "stats.h"

static void assert_near(gdouble value, gdouble expected)
{
    if (isnan(value) || fabs(value - expected) > fabs(expected) * 1e-9)
        fail_msg("%.17g is not %.17g", value, expected);
}

/* All members from `from` to `to`, but the last one comes `late` later. */
static void everybody(Scene *s, enum rs_coll coll, guint32 seq, guint64 count, gdouble from,
                      gdouble late, gdouble to)
{
    for (guint rank = 0; rank < s->n_ranks; rank++)
        scene_collective(s, rank, coll, seq, count, 0, from + (rank + 1 == s->n_ranks ? late : 0),
                         to);
}

static const RsCollMetric *find(const RsResults *r, enum rs_coll coll, guint32 size_class)
{
    for (guint i = 0; i < r->collectives->len; i++) {
        const RsCollMetric *c = &g_array_index(r->collectives, RsCollMetric, i);
        if (c->coll == coll && c->size_class == size_class)
            return c;
    }
    return NULL;
}

/* The situation of cases/ranks/bandwidth-semantics: 4 ranks, 100 us. */
static void bandwidth_follows_nccl_tests(void **state)
{
    Scene s;
    scene_init(&s, 4, 1);
    for (guint i = 0; i < 2; i++) { /* the first is a warm-up, and another duration */
        gdouble t = 5000 * i, d = i ? 100 : 170;
        everybody(&s, RS_COLL_ALLREDUCE, 3 * i, 1000, t + 100, 0, t + 100 + d);
        everybody(&s, RS_COLL_ALLGATHER, 3 * i + 1, 1000, t + 1000, 0, t + 1000 + d);
        everybody(&s, RS_COLL_REDUCE_SCATTER, 3 * i + 2, 1000, t + 2000, 0, t + 2000 + d);
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsCollMetric *c = find(r, RS_COLL_ALLREDUCE, 11); /* 4000 bytes */
    assert_non_null(c);
    assert_int_equal(c->count, 2);
    assert_int_equal(c->sampled, 1);
    assert_near(c->algbw_call, 4000 / 100e-6);
    assert_near(c->busbw_call, 0.06e9);
    c = find(r, RS_COLL_ALLGATHER, 13); /* 16000 bytes */
    assert_near(c->busbw_transfer, 0.12e9);
    assert_near(find(r, RS_COLL_REDUCE_SCATTER, 13)->busbw_transfer, 0.12e9);
}

static void bandwidth_by_transfer_leaves_the_wait_out(void **state)
{
    Scene s;
    scene_init(&s, 4, 1);
    for (guint i = 0; i < 4; i++) /* 4 MB; the last comes 300 late; transfer 100 */
        everybody(&s, RS_COLL_ALLREDUCE, i, 1000000, 2000 * i + 50, 300, 2000 * i + 450);
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsCollMetric *c = find(r, RS_COLL_ALLREDUCE, 21);
    assert_int_equal(c->call_ns_median, 400000);
    assert_int_equal(c->transfer_ns_median, 100000);
    assert_int_equal(c->wait_ns_median, 225000); /* three of four wait 300 */
    assert_int_equal(c->wait_ns_sum, 4 * 900000);
    assert_near(c->algbw_call, 4e6 / 400e-6);
    assert_near(c->busbw_transfer, 1.5 * 4e6 / 100e-6);
}

static void nothing_moved_gives_no_bandwidth(void **state)
{
    Scene s;
    scene_init(&s, 3, 1);
    for (guint i = 0; i < 3; i++) {
        everybody(&s, RS_COLL_BARRIER, 3 * i, 0, 900 * i + 10, 0, 900 * i + 60);
        everybody(&s, RS_COLL_ALLREDUCE, 3 * i + 1, 0, 900 * i + 100, 0, 900 * i + 160);
        everybody(&s, RS_COLL_ALLREDUCE, 3 * i + 2, 500, 900 * i + 200, 0, 900 * i + 200);
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_int_equal(r->collectives->len, 3);
    for (guint i = 0; i < 3; i++) {
        const RsCollMetric *c = &g_array_index(r->collectives, RsCollMetric, i);
        assert_int_equal(c->count, 3);
        assert_true(isnan(c->algbw_call) && isnan(c->busbw_call));
        assert_true(isnan(c->algbw_transfer) && isnan(c->busbw_transfer));
    }
    assert_true(isnan(rs_busbw_factor(RS_COLL_ALLREDUCE, 1)));
}

static void nccl_without_device_intervals_is_not_timed(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    for (guint i = 0; i < 6; i++)
        for (guint rank = 0; rank < 2; rank++)
            scene_nccl(&s, rank, RS_COLL_ALLREDUCE, i, 256, 100 * i + 7 * rank, 0, 0);
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsCollMetric *c = find(r, RS_COLL_ALLREDUCE, 10);
    assert_int_equal(c->count, 6);
    assert_int_equal(c->timed, 0);
    assert_int_equal(c->call_ns_median, -1);
    assert_true(isnan(c->busbw_call) && isnan(c->busbw_transfer));
    assert_non_null(scene_reason(r, "NCCL wait, transfer and bandwidth"));
    assert_non_null(scene_reason(r, "straggler"));
}

static void medians_and_quantiles(void **state)
{
    gint64 odd[] = {900, 3, 40}, even[] = {8, 900, 2, 4};
    gdouble ten[] = {10, 1, 9, 2, 8, 3, 7, 4, 6, 5};
    assert_int_equal(rs_median_ns(odd, 3), 40);
    assert_int_equal(rs_median_ns(even, 4), 6);
    assert_int_equal(rs_median_ns(odd, 0), -1);
    assert_true(rs_quantile(ten, 10, 0.9) == 9 && rs_quantile(ten, 10, 0) == 1);
    assert_true(isnan(rs_median(ten, 0)));
    assert_int_equal(rs_size_class(1), 0);
    assert_int_equal(rs_size_class(4095), 11);
    assert_int_equal(rs_size_class(4096), 12);
    assert_int_equal(rs_size_class(0), RS_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bandwidth_follows_nccl_tests),
        cmocka_unit_test(bandwidth_by_transfer_leaves_the_wait_out),
        cmocka_unit_test(nothing_moved_gives_no_bandwidth),
        cmocka_unit_test(nccl_without_device_intervals_is_not_timed),
        cmocka_unit_test(medians_and_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
