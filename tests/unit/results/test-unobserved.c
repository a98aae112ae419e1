/* SPDX-License-Identifier: Apache-2.0 */
/* What is concluded from the tracer's word that a library was used and not seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "analyses/analyses.h"
#include "scene.h"

#define KIND "unobserved-communication"

static void tell(Scene *s, guint rank, const gchar *key, const gchar *value)
{
    rs_builder_meta(s->b, s->process[rank], key, value);
}

static void communicate(Scene *s)
{
    for (guint r = 0; r < s->n_ranks; r++)
        scene_collective(s, r, RS_COLL_ALLREDUCE, 0, 64, 0, 10, 20);
}

static gboolean says(const RsFinding *f, const gchar *text)
{
    for (guint i = 0; i < f->evidence->len; i++)
        if (strstr(g_ptr_array_index(f->evidence, i), text))
            return TRUE;
    return strstr(f->title, text) || strstr(f->remedy, text);
}

static void used_library_is_one_finding_of_all_its_ranks(void **state)
{
    Scene s;
    scene_init(&s, 4, 2);
    for (guint r = 4; r-- > 1;)
        tell(&s, r, "unobserved.mpi", "used library: /opt/mpi/libmpi.so.40");
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = scene_finding(r, KIND, 0);
    assert_non_null(f);
    assert_null(scene_finding(r, KIND, 1));
    assert_int_equal(f->ranks->len, 3);
    for (gint32 i = 0; i < 3; i++)
        assert_int_equal(g_array_index(f->ranks, gint32, i), i + 1);
    assert_int_equal(f->hosts->len, 2);
    assert_string_equal(f->severity, "high");
    assert_true(f->confidence >= 1);
    assert_true(says(f, "3 processes communicated by MPI (libmpi.so.40)"));
    assert_true(says(f, "/opt/mpi/libmpi.so.40 is mapped"));
    assert_true(says(f, "RTLD_DEEPBIND"));
}

static void linked_in_and_off_parts_have_other_ways_out(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    tell(&s, 0, "unobserved.mpi", "used program: /home/train");
    tell(&s, 1, "unobserved.mpi", "used library: /opt/other/libmpi.so.12");
    tell(&s, 1, "off.mpi", "an MPI that nobody knows");
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    for (guint i = 0; i < 2; i++) {
        const RsFinding *f = scene_finding(r, KIND, i);
        assert_non_null(f);
        gint32 rank = g_array_index(f->ranks, gint32, 0);
        assert_true(says(f, rank ? "was off: an MPI that nobody knows" : "shared library instead"));
        assert_false(says(f, "RTLD_DEEPBIND"));
    }
}

static void mapped_library_counts_only_where_nothing_communicates(void **state)
{
    for (guint seen = 0; seen < 2; seen++) {
        Scene s;
        scene_init(&s, 2, 1);
        if (seen)
            communicate(&s);
        tell(&s, 0, "unobserved.nccl", "mapped library: /usr/lib/libnccl.so.2");
        tell(&s, 1, "unobserved.nccl", "said by some later version");
        g_autoptr(RsModel) m = scene_finish(&s);
        g_autoptr(RsResults) r = rs_analyze(m, NULL);
        const RsFinding *f = scene_finding(r, KIND, 0);
        assert_int_equal(f == NULL, seen);
        assert_true(seen || (f->ranks->len == 1 && strcmp(f->severity, "low") == 0));
        assert_null(scene_finding(r, KIND, 1));
    }
}

static void used_library_counts_beside_another_that_was_seen(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    communicate(&s);
    tell(&s, 1, "unobserved.nccl", "used library: /usr/lib/libnccl.so.2");
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_non_null(scene_finding(r, KIND, 0));
    RsScope scope = {.ranks = g_array_new(FALSE, FALSE, sizeof(gint32))};
    gint32 other = 0;
    g_array_append_val(scope.ranks, other);
    g_autoptr(RsResults) rest = rs_analyze(m, &scope);
    assert_null(scene_finding(rest, KIND, 0));
    g_array_unref(scope.ranks);
}

static void what_the_plug_in_told_makes_it_a_small_matter(void **state)
{
    Scene s;
    scene_init(&s, 2, 1);
    for (guint r = 0; r < 2; r++) {
        scene_nccl(&s, r, RS_COLL_ALLREDUCE, 0, 64, 10, 20, 30);
        tell(&s, r, "unobserved.nccl", "used library: /usr/lib/libnccl.so.2");
    }
    g_autoptr(RsModel) m = scene_finish(&s);
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsFinding *f = scene_finding(r, KIND, 0);
    assert_non_null(f);
    assert_string_equal(f->severity, "low");
    assert_true(says(f, "profiler plug-in told"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(used_library_is_one_finding_of_all_its_ranks),
        cmocka_unit_test(linked_in_and_off_parts_have_other_ways_out),
        cmocka_unit_test(mapped_library_counts_only_where_nothing_communicates),
        cmocka_unit_test(used_library_counts_beside_another_that_was_seen),
        cmocka_unit_test(what_the_plug_in_told_makes_it_a_small_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
