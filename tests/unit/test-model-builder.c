/* SPDX-License-Identifier: Apache-2.0 */
/* Ordering, ranks, communicators, matching and steps, on runs whose truth is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "key-hash.h"
#include "synthetic-run.h"

static void synthetic_run_has_every_collective_on_all_ranks(void **state)
{
    g_autoptr(RsModel) m = rs_synthetic_run(&rs_synthetic_healthy);
    assert_int_equal(m->instances->len, 40);
    assert_int_equal(m->warnings->len, 0);
    guint warmups = 0;
    for (guint i = 0; i < m->instances->len; i++) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        assert_true(inst->complete && inst->timed && !inst->mismatched);
        assert_int_equal(inst->n_present, 4);
        assert_true(inst->first_arrival_ns <= inst->last_arrival_ns);
        assert_true(inst->last_end_ns > inst->last_arrival_ns);
        assert_int_equal(inst->step, i / 2);
        warmups += inst->warmup;
    }
    assert_int_equal(warmups, 2);
    assert_false(m->incomplete);
}

static void slow_rank_arrives_last_everywhere(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.slow_rank = 2;
    spec.late_ns = 5000000;
    spec.message_bytes = 0;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    guint last = 0;
    for (guint i = 0; i < m->instances->len; i += 2)
        last += g_array_index(m->instances, RsInstance, i).last_rank == 2;
    assert_int_equal(last, 20);
}

static void messages_pair_through_reused_requests(void **state)
{
    g_autoptr(RsModel) m = rs_synthetic_run(&rs_synthetic_healthy);
    assert_int_equal(m->messages->len, 80);
    for (guint i = 0; i < m->messages->len; i++) {
        const RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        assert_true(msg->send != RS_NONE && msg->recv != RS_NONE && msg->timed);
        assert_int_equal((msg->src + 1) % 4, msg->dst);
        assert_int_equal(msg->bytes, 1 << 20);
        assert_in_range(msg->end_ns - msg->both_ns, 1048576 - 1, 1048576 + 40000);
        assert_true(msg->step < 20);
    }
}

static void nccl_members_are_device_intervals(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.nccl = TRUE;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    assert_int_equal(m->instances->len, 40);
    const RsInstance *inst = &g_array_index(m->instances, RsInstance, 7);
    assert_true(inst->timed && inst->complete);
    for (guint i = 0; i < 4; i++) {
        guint32 e = g_array_index(m->member_events, guint32, inst->first_member + i);
        assert_int_equal(rs_model_sig(m, e)->kind, RS_KIND_DEVICE);
        guint32 call = m->events.link[e];
        assert_int_equal(rs_model_sig(m, call)->kind, RS_KIND_CALL);
        assert_int_equal(m->events.seq[call], m->events.seq[e]);
        assert_int_equal(rs_model_rank_of(m, call), i);
    }
}

static void missing_rank_is_named(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.missing_rank = 1;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    assert_int_equal(m->ranks->len, 4);
    assert_true(rs_model_rank(m, 1)->missing);
    assert_false(rs_model_rank(m, 0)->missing);
    assert_true(m->incomplete);
    assert_int_equal(m->warnings->len, 1);
    const RsWarning *w = g_ptr_array_index(m->warnings, 0);
    assert_string_equal(w->text, "no capture of 1 of 4 ranks: 1");
    const RsInstance *inst = &g_array_index(m->instances, RsInstance, 0);
    assert_false(inst->complete);
    assert_int_equal(inst->n_present, 3);
}

static void steps_without_marks_are_found_by_repetition(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.mark_steps = FALSE;
    spec.collectives_per_step = 3;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    assert_string_equal(m->step_source, "repetition");
    assert_int_equal(m->steps->len, 19); /* the last has no next to end it */
    const RsInstance *inst = &g_array_index(m->instances, RsInstance, 10);
    assert_int_equal(inst->step, 3);
}

static void rendezvous_counts_each_occurrence(void **state)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.negotiate = TRUE;
    spec.slow_rank = 3;
    spec.late_ns = 4000000;
    spec.message_bytes = 0;
    g_autoptr(RsModel) m = rs_synthetic_run(&spec);
    assert_int_equal(m->rendezvous->len, 20);
    for (guint i = 0; i < 20; i++) {
        const RsRendezvous *v = &g_array_index(m->rendezvous, RsRendezvous, i);
        assert_int_equal(v->occurrence, i);
        assert_int_equal(v->n_present, 4);
        assert_int_equal(v->last_rank, 3);
        assert_int_equal(v->step, i);
        assert_string_equal(rs_model_str(m, v->name), "grad");
    }
}

static void events_of_a_track_hold_the_longer_first(void **state)
{
    RsBuilder *b = rs_builder_new();
    guint32 p = rs_builder_add_process(b, 0, "h", 1);
    guint32 t = rs_builder_add_track(b, p, "main", 1, FALSE);
    RsSig inner = rs_builder_sig_init(b, RS_KIND_RANGE, "inner");
    RsSig outer = rs_builder_sig_init(b, RS_KIND_RANGE, "outer");
    guint32 i = rs_builder_sig(b, &inner), o = rs_builder_sig(b, &outer);
    rs_builder_event(b, t, i, 500, 700, 0, 1, 0);
    rs_builder_event(b, t, o, 500, 900, 0, 0, 0);
    rs_builder_event(b, t, o, 400, 450, 0, 0, 0);
    g_autoptr(RsModel) m = rs_builder_finish(b, RS_FINISH_ALL);
    assert_int_equal(m->events.n, 3);
    assert_int_equal(m->events.start_ns[0], 0);
    assert_int_equal(m->events.end_ns[1], 500);
    assert_int_equal(m->events.end_ns[2], 300);
    assert_int_equal(m->duration_ns, 500);
}

static void processes_of_one_rank_become_its_tracks(void **state)
{
    RsBuilder *b = rs_builder_new();
    RsSig sig = rs_builder_sig_init(b, RS_KIND_RANGE, "r");
    guint32 s = rs_builder_sig(b, &sig);
    for (guint i = 0; i < 2; i++) {
        guint32 p = rs_builder_add_process(b, 0, "h", 100 + i);
        guint32 t = rs_builder_add_track(b, p, "main", 1, FALSE);
        for (guint k = 0; k <= i; k++)
            rs_builder_event(b, t, s, 10 * k, 10 * k + 5, 0, 0, 0);
    }
    g_autoptr(RsModel) m = rs_builder_finish(b, RS_FINISH_ALL);
    assert_int_equal(m->ranks->len, 1);
    assert_int_equal(rs_model_rank(m, 0)->pid, 101); /* the one with more events */
    assert_int_equal(rs_model_rank(m, 0)->n_tracks, 2);
    const RsTrack *second = &g_array_index(m->tracks, RsTrack, 1);
    assert_string_equal(rs_model_str(m, second->name), "pid 100: main");
    assert_int_equal(second->n, 1);
    assert_int_equal(m->warnings->len, 1);
    assert_null(strstr(((RsWarning *)g_ptr_array_index(m->warnings, 0))->text, "mpirun"));
}

/* MPICH's programs under Open MPI's mpirun, or the other way round. */
static void ranks_alone_in_their_worlds_hint_at_the_wrong_mpirun(void **state)
{
    RsBuilder *b = rs_builder_new();
    RsSig sig = rs_builder_sig_init(b, RS_KIND_RANGE, "r");
    guint32 s = rs_builder_sig(b, &sig);
    for (guint i = 0; i < 2; i++) {
        guint32 p = rs_builder_add_process(b, 0, "h", 100 + i);
        rs_builder_process(b, p)->world_size = 1;
        rs_builder_event(b, rs_builder_add_track(b, p, "main", 1, FALSE), s, 10, 15, 0, 0, 0);
    }
    g_autoptr(RsModel) m = rs_builder_finish(b, RS_FINISH_ALL);
    assert_int_equal(m->warnings->len, 1);
    const RsWarning *w = g_ptr_array_index(m->warnings, 0);
    assert_non_null(strstr(w->text, "rank 0 of 1: perhaps the mpirun of another MPI"));
}

/* One capture says that the communicator has two members, a damaged one names four. */
static void communicator_of_two_sizes_has_no_more_members_than_the_first(void **state)
{
    RsBuilder *b = rs_builder_new();
    const gint32 four[] = {0, 1, 2, 3};
    guint32 comm = rs_builder_comm(b, 0x66, 0, RS_COMM_MPI, 2, "MPI_COMM_WORLD");
    rs_builder_comm_members(b, comm, four, 4);
    RsSig sig = rs_builder_sig_init(b, RS_KIND_CALL, "MPI_Allreduce");
    sig.api = RS_API_MPI;
    sig.klass = RS_CLASS_COLL;
    sig.coll = RS_COLL_ALLREDUCE;
    sig.comm = comm;
    guint32 id = rs_builder_sig(b, &sig);
    for (gint32 rank = 0; rank < 2; rank++) { /* of two clocks: their collectives are looked at */
        guint32 p = rs_builder_add_process(b, rank, rank ? "b" : "a", 70 + rank);
        rs_builder_process(b, p)->unit = RS_TIME_MONOTONIC;
        guint32 t = rs_builder_add_track(b, p, "main", 7, FALSE);
        for (guint32 i = 0; i < 5; i++)
            rs_builder_event(b, t, id, 1000 * i + 10 * rank, 1000 * i + 90, RS_FLAG_SEQ, 0, i);
    }
    g_autoptr(RsModel) m = rs_builder_finish(b, RS_FINISH_ALL);
    assert_int_equal(g_array_index(m->comms, RsComm, comm).n_members, 2);
    assert_int_equal(m->instances->len, 5);
    assert_true(g_array_index(m->instances, RsInstance, 3).complete);
}

/* Else tables of them are lists: a run of 100,000 communicators would take minutes. */
static void hash_of_packed_keys_knows_both_halves(void **state)
{
    guint places[2] = {0, 0};
    gboolean seen[2][4096] = {{FALSE}};
    for (guint64 i = 0; i < 4096; i++) {
        guint64 keys[2] = {i, i << 32};
        for (guint k = 0; k < 2; k++) {
            gboolean *place = &seen[k][rs_key_hash(&keys[k]) % 4096];
            places[k] += !*place;
            *place = TRUE;
        }
    }
    assert_true(places[0] > 2048 && places[1] > 2048);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synthetic_run_has_every_collective_on_all_ranks),
        cmocka_unit_test(slow_rank_arrives_last_everywhere),
        cmocka_unit_test(messages_pair_through_reused_requests),
        cmocka_unit_test(nccl_members_are_device_intervals),
        cmocka_unit_test(missing_rank_is_named),
        cmocka_unit_test(steps_without_marks_are_found_by_repetition),
        cmocka_unit_test(rendezvous_counts_each_occurrence),
        cmocka_unit_test(events_of_a_track_hold_the_longer_first),
        cmocka_unit_test(processes_of_one_rank_become_its_tracks),
        cmocka_unit_test(ranks_alone_in_their_worlds_hint_at_the_wrong_mpirun),
        cmocka_unit_test(hash_of_packed_keys_knows_both_halves),
        cmocka_unit_test(communicator_of_two_sizes_has_no_more_members_than_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
