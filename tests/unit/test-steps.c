/* SPDX-License-Identifier: Apache-2.0 */
/* Steps by marks, by ranges, by repetition, and none; what belongs to which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model-builder.h"

typedef struct {
    RsBuilder *b;
    guint32 track[2];
    guint32 comm;
    guint32 seq[2];
} Maker;

static Maker make(void)
{
    Maker k = {.b = rs_builder_new()};
    const gint32 world[] = {0, 1};
    k.comm = rs_builder_comm(k.b, 0x5, 0, RS_COMM_MPI, 2, "world");
    rs_builder_comm_members(k.b, k.comm, world, 2);
    for (gint32 rank = 0; rank < 2; rank++) {
        guint32 p = rs_builder_add_process(k.b, rank, "h", 10 + rank);
        k.track[rank] = rs_builder_add_track(k.b, p, "main", 1, FALSE);
    }
    return k;
}

static void put(Maker *k, guint rank, RsKind kind, const gchar *name, gint64 start, gint64 end,
                guint16 flags)
{
    RsSig s = rs_builder_sig_init(k->b, kind, name);
    rs_builder_event(k->b, k->track[rank], rs_builder_sig(k->b, &s), start, end, flags, 0, 0);
}

static void allreduce(Maker *k, guint64 bytes, gint64 at)
{
    RsSig s = rs_builder_sig_init(k->b, RS_KIND_CALL, "MPI_Allreduce");
    s.api = RS_API_MPI;
    s.klass = RS_CLASS_COLL;
    s.coll = RS_COLL_ALLREDUCE;
    s.comm = k->comm;
    s.bytes = s.count = bytes;
    for (guint rank = 0; rank < 2; rank++)
        rs_builder_event(k->b, k->track[rank], rs_builder_sig(k->b, &s), at + 10 * rank, at + 50,
                         RS_FLAG_SEQ, 0, k->seq[rank]++);
}

static RsStep *step(const RsModel *m, guint i)
{
    return &g_array_index(m->steps, RsStep, i);
}

static RsSpan *span(const RsModel *m, guint i, guint rank)
{
    return &g_array_index(m->step_spans, RsSpan, step(m, i)->first_span + rank);
}

static void profiler_steps_carry_their_number(void **state)
{
    Maker k = make();
    for (guint i = 0; i < 4; i++) {
        g_autofree gchar *name = g_strdup_printf("ProfilerStep#%u", 7 + i);
        for (guint rank = 0; rank < 2; rank++)
            if (rank == 0 || i > 0) /* rank 1 began recording one step later */
                put(&k, rank, RS_KIND_RANGE, name, 1000 * i + 5 * rank, 1000 * i + 900, 0);
    }
    g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
    assert_string_equal(m->step_source, "ranges");
    assert_int_equal(m->steps->len, 4);
    for (guint i = 0; i < 4; i++) {
        assert_int_equal(step(m, i)->number, 7 + i);
        assert_int_equal(step(m, i)->complete, i > 0);
    }
    assert_int_equal(span(m, 0, 1)->start_ns, span(m, 0, 1)->end_ns);
    assert_int_equal(span(m, 2, 1)->start_ns, 2005);
}

static void names_without_a_number_count_by_occurrence(void **state)
{
    static const gchar *const names[] = {"step", "Iteration", "iter 5"};
    for (guint n = 0; n < G_N_ELEMENTS(names); n++) {
        Maker k = make();
        for (guint i = 0; i < 3; i++)
            for (guint rank = 0; rank < 2; rank++)
                put(&k, rank, RS_KIND_RANGE, names[n], 100 * i, 100 * i + 80 + rank, 0);
        put(&k, 0, RS_KIND_RANGE, "stepping stone", 500, 600, 0);
        g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
        assert_int_equal(m->steps->len, 3);
        for (guint i = 0; i < 3; i++) {
            assert_int_equal(step(m, i)->number, i);
            assert_true(step(m, i)->complete);
            assert_int_equal(step(m, i)->end_ns, 100 * i + 81);
        }
    }
}

static void numbers_that_begin_again_each_epoch_are_not_trusted(void **state)
{
    Maker k = make();
    for (guint i = 0; i < 6; i++) {
        g_autofree gchar *name = g_strdup_printf("step %u", i % 3);
        put(&k, 0, RS_KIND_RANGE, name, 100 * i, 100 * i + 80, 0);
    }
    g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
    assert_int_equal(m->steps->len, 6);
    assert_int_equal(step(m, 5)->number, 5);
    assert_int_equal(step(m, 5)->start_ns, 500);
}

static void step_within_a_step_is_not_one_and_an_open_one_is_not_complete(void **state)
{
    Maker k = make();
    for (guint i = 0; i < 3; i++) {
        for (guint rank = 0; rank < 2; rank++) {
            guint16 flags = i == 2 && rank == 1 ? RS_FLAG_OPEN : 0;
            put(&k, rank, RS_KIND_RANGE, "step", 1000 * i, 1000 * i + 900, flags);
            put(&k, rank, RS_KIND_RANGE, "step", 1000 * i + 100, 1000 * i + 300, 0);
        }
    }
    g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
    assert_int_equal(m->steps->len, 3);
    assert_true(step(m, 1)->complete);
    assert_false(step(m, 2)->complete);
}

static void marks_come_before_ranges_and_last_until_the_next(void **state)
{
    Maker k = make();
    for (guint i = 0; i < 4; i++) {
        for (guint rank = 0; rank < 2; rank++) {
            put(&k, rank, RS_KIND_MARK, "step", 1000 * i, 1000 * i, 0);
            put(&k, rank, RS_KIND_RANGE, "iteration", 1000 * i + 200, 1000 * i + 400, 0);
        }
    }
    g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
    assert_string_equal(m->step_source, "marks");
    assert_int_equal(m->steps->len, 3);
    assert_int_equal(step(m, 1)->start_ns, 1000);
    assert_int_equal(step(m, 1)->end_ns, 2000);
}

static void instances_belong_to_the_step_around_them(void **state)
{
    Maker k = make();
    allreduce(&k, 5, 0); /* before any step */
    for (guint i = 0; i < 3; i++) {
        for (guint rank = 0; rank < 2; rank++)
            put(&k, rank, RS_KIND_RANGE, "step", 1000 * (i + 1), 1000 * (i + 1) + 500, 0);
        allreduce(&k, 64, 1000 * (i + 1) + 100);
        allreduce(&k, 8, 1000 * (i + 1) + 700); /* between two */
    }
    g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
    for (guint i = 0; i < m->instances->len; i++) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        assert_int_equal(inst->step, i % 2 ? i / 2 : RS_NONE);
    }
}

/* A prologue, then the same five collectives again and again; the middle ones come twice alike. */
static void repetition_finds_the_shortest_rhythm_after_a_prologue(void **state)
{
    static const guint64 sizes[] = {100, 200, 200, 100, 300};
    Maker k = make();
    allreduce(&k, 1, 0);
    allreduce(&k, 300, 100);
    allreduce(&k, 200, 200);
    for (guint i = 0; i < 12 * G_N_ELEMENTS(sizes); i++)
        allreduce(&k, sizes[i % G_N_ELEMENTS(sizes)], 1000 + 100 * i);
    g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
    assert_string_equal(m->step_source, "repetition");
    assert_int_equal(m->steps->len, 11);
    for (guint i = 0; i < 11; i++) {
        assert_true(step(m, i)->complete);
        assert_int_equal(span(m, i, 0)->end_ns - span(m, i, 0)->start_ns, 500);
        assert_int_equal(span(m, i, 1)->start_ns, span(m, i, 0)->start_ns + 10);
    }
}

static void no_rhythm_is_no_steps(void **state)
{
    Maker k = make();
    guint32 random = 99;
    for (guint i = 0; i < 60; i++) {
        random = random * 1664525u + 1013904223u;
        allreduce(&k, 1 + (random >> 20) % 50, 100 * i);
    }
    g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
    assert_string_equal(m->step_source, "none");
    assert_int_equal(m->steps->len, 0);
    assert_int_equal(g_array_index(m->instances, RsInstance, 5).step, RS_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiler_steps_carry_their_number),
        cmocka_unit_test(names_without_a_number_count_by_occurrence),
        cmocka_unit_test(numbers_that_begin_again_each_epoch_are_not_trusted),
        cmocka_unit_test(step_within_a_step_is_not_one_and_an_open_one_is_not_complete),
        cmocka_unit_test(marks_come_before_ranges_and_last_until_the_next),
        cmocka_unit_test(instances_belong_to_the_step_around_them),
        cmocka_unit_test(repetition_finds_the_shortest_rhythm_after_a_prologue),
        cmocka_unit_test(no_rhythm_is_no_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
