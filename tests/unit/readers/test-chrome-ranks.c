/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of several ranks as one run: torch's and Horovod's, with the right conclusions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analysis.h"
#include "traces.h"

static const RsFinding *find(const RsResults *r, const gchar *kind)
{
    for (guint i = 0; i < r->findings->len; i++) {
        const RsFinding *f = g_ptr_array_index(r->findings, i);
        if (g_str_equal(f->kind, kind))
            return f;
    }
    return NULL;
}

static void assert_names_one(const RsFinding *f, gint32 rank)
{
    assert_non_null(f);
    assert_int_equal(f->ranks->len, 1);
    assert_int_equal(g_array_index(f->ranks, gint32, 0), rank);
}

static const RsInstance *instance(const RsModel *m, guint i)
{
    return &g_array_index(m->instances, RsInstance, i);
}

static void rank_with_the_short_collectives_is_the_straggler(void **state)
{
    static const gchar *const names[] = {"ranks/straggler-rank2",
                                         "ranks/straggler-with-clock-offset"};
    for (guint i = 0; i < 2; i++) {
        g_autoptr(RsModel) m = tr_open(names[i]);
        g_autoptr(RsResults) r = rs_analyze(m, NULL);
        assert_int_equal(m->instances->len, 10);
        assert_string_equal(m->clock_method, "collective ends");
        assert_names_one(find(r, "straggler"), 2);
    }
}

static void clocks_are_set_by_the_ends_of_collectives(void **state)
{
    g_autoptr(RsModel) m = tr_open("ranks/straggler-with-clock-offset");
    for (guint i = 0; i < m->instances->len; i++) {
        const guint32 *e = &g_array_index(m->member_events, guint32, instance(m, i)->first_member);
        for (guint k = 1; k < 4; k++)
            assert_in_range(m->events.end_ns[e[k]] - m->events.end_ns[e[0]] + 1000, 0, 2000);
    }
}

static void balanced_ranks_give_no_finding(void **state)
{
    g_autoptr(RsModel) m = tr_open("ranks/balanced");
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_int_equal(r->findings->len, 0);
    assert_int_equal(m->warnings->len, 0);
}

static void rank_that_never_came_is_named(void **state)
{
    g_autoptr(RsModel) m = tr_open("ranks/hang-rank3-skips");
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_names_one(find(r, "missing-rank"), 3);
}

static void file_that_is_missing_is_named(void **state)
{
    g_autoptr(RsModel) m = tr_open("ranks/missing-file");
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_int_equal(m->world_size, 4);
    assert_true(rs_model_rank(m, 2)->missing);
    assert_non_null(tr_warning(m, "no capture of 1 of 4 ranks: 2"));
    assert_names_one(find(r, "incomplete-data"), 2);
    assert_true(m->clock_trusted);
}

static void collectives_that_do_not_fit_are_told(void **state)
{
    g_autoptr(RsModel) m = tr_open("ranks/mismatched-collectives");
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    guint mismatched = 0;
    for (guint i = 0; i < m->instances->len; i++)
        mismatched += instance(m, i)->mismatched ? 1 : 0;
    assert_int_equal(mismatched, 3);
    assert_names_one(find(r, "mismatched-collective"), 1);
}

static void groups_are_known_by_name_and_members(void **state)
{
    g_autoptr(RsModel) m = tr_open("ranks/overlapping-communicators");
    assert_int_equal(m->comms->len, 4);
    for (guint i = 0; i < m->instances->len; i++) {
        const RsInstance *inst = instance(m, i);
        assert_int_equal(inst->n_present, g_array_index(m->comms, RsComm, inst->comm).size);
    }
}

static void ranks_without_metadata_go_by_their_files(void **state)
{
    g_autoptr(RsModel) m = tr_open("ranks/same-pid-no-rank");
    assert_int_equal(m->ranks->len, 4);
    for (guint i = 0; i < 4; i++) {
        assert_int_equal(rs_model_rank(m, i)->rank, i);
        assert_int_equal(rs_model_rank(m, i)->pid, 1);
    }
    assert_int_equal(m->instances->len, 1);
    assert_int_equal(instance(m, 0)->n_present, 4);
}

static void overlap_is_counted_once(void **state)
{
    g_autoptr(RsModel) m = tr_open("ranks/exposed-comm");
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    const RsBreakdown *b = &g_array_index(r->breakdown, RsBreakdown, 0);
    assert_int_equal(b->compute_ns, 110000);
    assert_int_equal(b->comm_exposed_ns + b->wait_ns, 40000);
    assert_int_equal(b->comm_hidden_ns, 60000);
}

static void kernels_that_communicate_are_known_by_old_and_new_names(void **state)
{
    g_autoptr(RsModel) m = tr_open("ranks/kernel-names");
    guint communication = 0, compute = 0;
    for (guint32 i = 0; i < m->events.n; i++) {
        const RsSig *s = rs_model_sig(m, i);
        communication += s->kind == RS_KIND_DEVICE && s->klass == RS_CLASS_COLL;
        compute += s->kind == RS_KIND_DEVICE && s->klass == RS_CLASS_OTHER;
    }
    assert_int_equal(communication, 7);
    assert_int_equal(compute, 2);
}

static void kernels_without_fields_go_by_their_names(void **state)
{
    static const gchar *const names[] = {
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
        "rcclGenericKernel<2,false>(ncclDevComm*)",
        "void vllm::cross_device_reduce_1stage<bf16,8>()",
    };
    static const gchar *const others[] = {"void uncclean_kernel()",
                                          "void at::native::reduce_kernel<512>()"};
    g_autoptr(GString) text = g_string_new("[");
    for (guint i = 0; i < 6; i++)
        g_string_append_printf(text,
                               "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,"
                               "\"tid\":7,\"ts\":%u,\"dur\":1}",
                               i ? "," : "", i < 4 ? names[i] : others[i - 4], i * 2 + 1);
    g_string_append(text, "]");
    g_autoptr(RsModel) m = tr_read(text->str, -1);
    for (guint i = 0; i < 6; i++)
        assert_int_equal(rs_model_sig(m, tr_find(m, i < 4 ? names[i] : others[i - 4]))->klass,
                         i < 4 ? RS_CLASS_COLL : RS_CLASS_OTHER);
    assert_int_equal(rs_model_sig(m, tr_find(m, names[0]))->coll, RS_COLL_ALLREDUCE);
}

static void sizes_are_those_of_nccl_tests(void **state)
{
    g_autoptr(RsModel) m = tr_open("ranks/bandwidth-semantics");
    assert_int_equal(rs_model_sig(m, tr_find(m, "allgather"))->bytes, 16000);
    assert_int_equal(rs_model_sig(m, tr_find(m, "reduce_scatter"))->bytes, 16000);
    assert_int_equal(rs_model_sig(m, tr_find(m, "broadcast"))->bytes, 4000);
    assert_int_equal(rs_model_sig(m, tr_find(m, "all_to_allv"))->bytes, 4000);
    assert_int_equal(rs_model_sig(m, tr_find(m, "barrier"))->bytes, 0);
}

static void horovod_names_the_rank_that_is_last_to_be_ready(void **state)
{
    g_autoptr(RsModel) m = tr_open("horovod/timeline-complete.json");
    g_autoptr(RsResults) r = rs_analyze(m, NULL);
    assert_int_equal(m->ranks->len, 4);
    assert_int_equal(m->rendezvous->len, 10);
    for (guint i = 0; i < 10; i++) {
        const RsRendezvous *v = &g_array_index(m->rendezvous, RsRendezvous, i);
        assert_int_equal(v->last_rank, 3);
        assert_int_equal(v->last_arrival_ns - v->first_arrival_ns, 20000000);
    }
    const RsFinding *f = find(r, "straggler");
    assert_names_one(f, 3);
    assert_true(f->cost_s > 0.099 && f->cost_s < 0.101); /* 5 times 20 ms, of two tensors each */
    assert_int_equal(m->base_realtime_ns, 1700000000001000000);
}

/* ---- files of a folder ---- */

static void put(const gchar *folder, const gchar *name, const gchar *text)
{
    g_autofree gchar *path = g_build_filename(folder, name, NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
}

static RsModel *open_folder(const gchar *folder, const RsRunOptions *options)
{
    const gchar *paths[] = {folder, NULL};
    g_autoptr(GError) error = NULL;
    RsModel *m = rs_run_open_as(paths, options, NULL, NULL, &error);
    if (!m)
        fail_msg("%s", error->message);
    return m;
}

#define SLICE "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2}]"

static void twelve_ranks_are_in_order(void **state)
{
    gchar *folder = tr_make_folder();
    for (guint i = 0; i < 12; i++) {
        g_autofree gchar *name = g_strdup_printf("trace_%u.json", i);
        put(folder, name, SLICE);
    }
    put(folder, "notes.txt", "not a trace");
    put(folder, "config.json", "{\"batch\": 32}");
    g_autoptr(RsModel) m = open_folder(folder, NULL);
    assert_int_equal(m->ranks->len, 12);
    assert_non_null(tr_warning(m, "no trace: left out"));
    assert_non_null(tr_warning(m, "JSON without trace events (no \"traceEvents\"): left out"));
    assert_non_null(tr_warning(m, "NO COMMUNICATION is recognised"));
    for (guint i = 0; i < 12; i++) {
        g_autofree gchar *name = g_strdup_printf("trace_%u.json", i);
        assert_true(g_str_has_suffix(rs_model_str(m, rs_model_rank(m, i)->path), name));
    }
    tr_remove(folder);
}

static void a_rank_twice_over_the_same_time_is_left_out(void **state)
{
    gchar *folder = tr_make_folder();
    put(folder, "rank0.json", SLICE);
    put(folder, "rank0-copy.json", SLICE);
    g_autoptr(RsModel) m = open_folder(folder, NULL);
    assert_int_equal(m->ranks->len, 1);
    assert_int_equal(m->events.n, 1);
    assert_non_null(tr_warning(m, "holds rank 0 over the same time as"));
    tr_remove(folder);
}

#define SLICE_AT(ts) "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"ts\":" ts ",\"dur\":2}]"

static void a_rank_in_pieces_is_one(void **state)
{
    gchar *folder = tr_make_folder();
    put(folder, "rank0-a.json", SLICE_AT("1"));
    put(folder, "rank0-b.json", SLICE_AT("1000"));
    put(folder, "rank0-c.json", SLICE_AT("2000"));
    put(folder, "rank0-d.json", SLICE_AT("1001"));
    g_autoptr(RsModel) m = open_folder(folder, NULL);
    assert_int_equal(m->events.n, 3);
    const RsWarning *w = tr_warning(m, "holds rank 0 over the same time as");
    assert_non_null(w);
    assert_true(g_str_has_suffix(w->path, "rank0-d.json"));
    assert_non_null(strstr(w->text, "rank0-b.json"));
    tr_remove(folder);
}

/* Were each compared with each, this would take minutes. */
static void many_processes_of_no_rank_are_not_compared(void **state)
{
    gchar *folder = tr_make_folder();
    GString *text = g_string_new("[");
    for (guint i = 0; i < 200000; i++)
        g_string_append_printf(
            text, "%s{\"ph\":\"X\",\"name\":\"a\",\"pid\":%u,\"ts\":1,\"dur\":2}", i ? "," : "", i);
    g_string_append_c(text, ']');
    put(folder, "first.json", text->str);
    put(folder, "second.json", text->str);
    g_string_free(text, TRUE);
    g_autoptr(RsModel) m = open_folder(folder, NULL);
    assert_int_equal(m->events.n, 400000);
    tr_remove(folder);
}

static void ranks_that_are_given_count(void **state)
{
    static const gint32 ranks[] = {5, 4};
    const RsRunOptions options = {ranks, 2};
    gchar *folder = tr_make_folder();
    put(folder, "rank0.json", SLICE);
    put(folder, "rank1.json", SLICE);
    g_autoptr(RsModel) m = open_folder(folder, &options);
    assert_true(g_str_has_suffix(rs_model_str(m, rs_model_rank(m, 4)->path), "rank1.json"));
    assert_true(g_str_has_suffix(rs_model_str(m, rs_model_rank(m, 5)->path), "rank0.json"));
    tr_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_with_the_short_collectives_is_the_straggler),
        cmocka_unit_test(clocks_are_set_by_the_ends_of_collectives),
        cmocka_unit_test(balanced_ranks_give_no_finding),
        cmocka_unit_test(rank_that_never_came_is_named),
        cmocka_unit_test(file_that_is_missing_is_named),
        cmocka_unit_test(collectives_that_do_not_fit_are_told),
        cmocka_unit_test(groups_are_known_by_name_and_members),
        cmocka_unit_test(ranks_without_metadata_go_by_their_files),
        cmocka_unit_test(overlap_is_counted_once),
        cmocka_unit_test(kernels_that_communicate_are_known_by_old_and_new_names),
        cmocka_unit_test(kernels_without_fields_go_by_their_names),
        cmocka_unit_test(sizes_are_those_of_nccl_tests),
        cmocka_unit_test(horovod_names_the_rank_that_is_last_to_be_ready),
        cmocka_unit_test(twelve_ranks_are_in_order),
        cmocka_unit_test(a_rank_twice_over_the_same_time_is_left_out),
        cmocka_unit_test(a_rank_in_pieces_is_one),
        cmocka_unit_test(many_processes_of_no_rank_are_not_compared),
        cmocka_unit_test(ranks_that_are_given_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
