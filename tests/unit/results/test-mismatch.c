/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that meet with different calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "scene.h"

/* 4 ranks; number `odd` of 6 allreduces of 4 + its number floats has 9 on rank 2. */
static RsModel *counts(guint odd)
{
    Scene s;
    scene_init(&s, 4, 2);
    for (guint i = 0; i < 6; i++)
        for (guint r = 0; r < 4; r++)
            scene_collective(&s, r, RS_COLL_ALLREDUCE, i, r == 2 && i == odd ? 9 : 4 + i, 0,
                             1000 * i + 100 + r, 1000 * i + 300);
    return scene_finish(&s);
}

static void odd_rank_out_is_named(void **state)
{
    g_autoptr(RsModel) m = counts(3);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = g_ptr_array_index(r->findings, 0);
    assert_string_equal(f->kind, "mismatched-collective");
    assert_string_equal(f->severity, "high");
    assert_int_equal(f->ranks->len, 1);
    assert_int_equal(g_array_index(f->ranks, gint32, 0), 2);
    assert_string_equal(f->title,
                        "rank 2 called MPI_Op of 9 float where 3 others called MPI_Op of 7 "
                        "float, number 3 on world");
    assert_null(scene_finding(r, "mismatched-collective", 1));
}

static void ranks_that_agree_are_no_finding(void **state)
{
    g_autoptr(RsModel) m = counts(99);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_null(scene_finding(r, "mismatched-collective", 0));
    assert_null(scene_finding(r, "order-divergence", 0));
}

/* Rank 1 makes its broadcast before its allreduce, and so once more later. */
static void other_order_is_named_as_such(void **state)
{
    Scene s;
    scene_init(&s, 4, 2);
    for (guint i = 0; i < 6; i++)
        for (guint r = 0; r < 4; r++) {
            gboolean broadcast = (i % 2 == 1) != (r == 1 && i >= 2);
            scene_collective(&s, r, broadcast ? RS_COLL_BROADCAST : RS_COLL_ALLREDUCE, i, 16, 0,
                             1000 * i + 100 + r, 1000 * i + 300);
        }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = g_ptr_array_index(r->findings, 0);
    assert_string_equal(f->kind, "order-divergence");
    assert_int_equal(f->ranks->len, 1);
    assert_int_equal(g_array_index(f->ranks, gint32, 0), 1);
    assert_non_null(strstr(f->title, "as number 2 and 3 on world"));
    assert_null(scene_finding(r, "mismatched-collective", 0));
    assert_null(scene_finding(r, "order-divergence", 1));
}

/* What a call is in when its process dies does not tell its reduction. */
static void open_call_without_its_reduction_fits(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    for (guint r = 0; r < 2; r++) {
        RsSig sig = rs_builder_sig_init(s.b, RS_KIND_CALL, "MPI_Allreduce");
        sig.api = RS_API_MPI;
        sig.klass = RS_CLASS_COLL;
        sig.coll = RS_COLL_ALLREDUCE;
        sig.comm = s.world;
        sig.count = 4;
        sig.redop = r ? 0 : rs_builder_string(s.b, "MPI_SUM");
        rs_builder_event(s.b, s.main[r], rs_builder_sig(s.b, &sig), 100, 900,
                         RS_FLAG_SEQ | (r ? RS_FLAG_OPEN : 0), 0, 0);
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    assert_int_equal(m->instances->len, 1);
    assert_false(g_array_index(m->instances, RsInstance, 0).mismatched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_rank_out_is_named),
        cmocka_unit_test(ranks_that_agree_are_no_finding),
        cmocka_unit_test(other_order_is_named_as_such),
        cmocka_unit_test(open_call_without_its_reduction_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
