/* SPDX-License-Identifier: Apache-2.0 */
/* Captures written by hand, read into models: sizes, requests, any-source, clocks, open calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <glib/gstdio.h>
#include <utime.h>

#include "capture-writer.h"
#include "run.h"

#define GHZ2 "2000000000"

static RsModel *open_folder(const gchar *folder)
{
    const gchar *paths[] = {folder, NULL};
    g_autoptr(GError) error = NULL;
    RsModel *m = rs_run_open(paths, NULL, NULL, &error);
    if (!m)
        fail_msg("%s", error->message);
    return m;
}

static gchar *open_and_fail(const gchar *path)
{
    const gchar *paths[] = {path, NULL};
    g_autoptr(GError) error = NULL;
    RsModel *m = rs_run_open(paths, NULL, NULL, &error);
    assert_null(m);
    assert_true(g_error_matches(error, RS_ERROR, RS_ERROR_UNREADABLE));
    return g_strdup(error->message);
}

static CwFile *begin(gint32 rank, gint32 size, const gchar *host)
{
    CwFile *f = cw_new();
    cw_process(f, rank, size, host, host, 500 + rank, GHZ2);
    cw_anchor(f, 1000000, 1000000, 1700000000000000000, 40);
    cw_block(f, RS_BLOCK_CLOCK, 0, 0);
    cw_standard_defs(f, rank, size);
    return f;
}

/* A call on the world from tick to tick. */
static struct rs_event call(guint16 op, guint64 start, guint64 end, guint64 count, guint32 seq)
{
    return (struct rs_event){.op = op,
                             .peer = -1,
                             .start = start,
                             .end = end,
                             .count = count,
                             .comm = 1,
                             .dtype = 1,
                             .seq = seq};
}

static struct rs_event message(guint16 op, guint64 start, guint64 end, gint32 peer, gint32 tag)
{
    struct rs_event e = call(op, start, end, 250, (guint32)tag);
    e.peer = peer;
    e.flags = RS_EVENT_EXT;
    return e;
}

static void finish(CwFile *f, const gchar *folder, gint32 rank)
{
    cw_end(f, RS_END_FINALIZE, 0, 0, 0);
    g_autofree gchar *name = g_strdup_printf("host-%d.rsc", 500 + rank);
    g_free(cw_save(f, folder, name));
    cw_free(f);
}

static const RsSig *find_sig(const RsModel *m, const gchar *name)
{
    for (guint i = 0; i < m->sigs->len; i++)
        if (g_str_equal(rs_model_str(m, g_array_index(m->sigs, RsSig, i).name), name))
            return &g_array_index(m->sigs, RsSig, i);
    fail_msg("no %s", name);
    return NULL;
}

static void capture_gives_ranks_hosts_and_names(void **state)
{
    for (gint32 rank = 0; rank < 2; rank++) {
        CwFile *f = begin(rank, 2, "alpha");
        cw_event(f, call(CW_ALLREDUCE, 3000000, 3200000, 1000, 0));
        cw_block(f, RS_BLOCK_EVENTS, 0, 0);
        finish(f, *state, rank);
    }
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->ranks->len, 2);
    assert_int_equal(m->world_size, 2);
    assert_false(m->incomplete);
    assert_int_equal(m->warnings->len, 0);
    g_autofree gchar *label = rs_model_dup_rank_label(m, 1);
    assert_string_equal(label, "rank 1 (alpha:501)");
    assert_true(g_array_index(m->hosts, RsHost, 0).nic_mbps == 10000);
    assert_string_equal(m->clock_method, "single domain");
    assert_string_equal(g_hash_table_lookup(m->meta, "1/program"), "train");
    assert_int_equal(m->instances->len, 1);
    assert_int_equal(m->duration_ns, 100000); /* 200000 ticks of 2 GHz */
    const RsSig *s = find_sig(m, "MPI_Allreduce");
    assert_int_equal(s->coll, RS_COLL_ALLREDUCE);
    assert_int_equal(s->bytes, 4000);
    /* 0 is tick 3000000: 1 ms after the anchor */
    assert_int_equal(m->base_realtime_ns, 1700000000001000000);
}

static void sizes_follow_the_definitions(void **state)
{
    CwFile *f = begin(0, 4, "alpha");
    struct rs_event e = call(CW_ALLGATHER, 100, 200, 10, 0);
    e.flags = RS_EVENT_EXT;
    cw_event(f, e);
    cw_second(f, -1, 0, 10, 1);
    e = call(CW_ALLGATHER, 300, 400, 0, 1); /* in place: what is sent does not count */
    e.flags = RS_EVENT_EXT | RS_EVENT_IN_PLACE;
    cw_event(f, e);
    cw_second(f, -1, 0, 30, 1);
    cw_event(f, call(CW_REDUCE_SCATTER, 500, 600, 7, 2));
    cw_event(f, call(CW_BCAST, 700, 800, 9, 3));
    cw_event(f, call(CW_BARRIER, 900, 1000, 0, 4));
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    finish(f, *state, 0);
    g_autoptr(RsModel) m = open_folder(*state);
    const guint64 want[] = {10 * 4 * 4, 30 * 4 * 4, 7 * 4 * 4, 9 * 4, 0};
    for (guint i = 0; i < G_N_ELEMENTS(want); i++)
        assert_int_equal(rs_model_sig(m, i)->bytes, want[i]);
}

static void any_source_is_resolved_by_status_and_completion(void **state)
{
    /* Ranks 1 and 2 send tag 5 to rank 0, which receives from anybody: first blocking, then not. */
    CwFile *f = begin(0, 3, "alpha");
    cw_event(f, message(CW_RECV, 1000, 9000, -2, -1));
    cw_status(f, 2, 5, 1000);
    cw_event(f, message(CW_IRECV, 10000, 10100, -2, 5));
    cw_request(f, 0xbeef);
    struct rs_event wait = message(CW_WAIT, 11000, 30000, -1, 0);
    wait.comm = 0;
    cw_event(f, wait);
    cw_done(f, 0xbeef, 1, 5);
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    finish(f, *state, 0);
    for (gint32 rank = 1; rank < 3; rank++) {
        f = begin(rank, 3, "alpha");
        struct rs_event e = message(CW_SEND, 2000 + 100 * (guint64)rank, 8000, 0, 5);
        e.flags = 0;
        cw_event(f, e);
        cw_block(f, RS_BLOCK_EVENTS, 0, 0);
        finish(f, *state, rank);
    }
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->messages->len, 2);
    for (guint i = 0; i < 2; i++) {
        const RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        assert_true(msg->timed);
        assert_int_equal(msg->dst, 0);
        assert_int_equal(msg->bytes, 1000);
        assert_int_equal(msg->src, i == 0 ? 2 : 1); /* by both_ns */
    }
    const RsMessage *later = &g_array_index(m->messages, RsMessage, 1);
    assert_string_equal(rs_model_str(m, rs_model_sig(m, later->recv)->name), "MPI_Irecv");
    assert_int_equal(later->both_ns, (10000 - 1000) / 2);
    assert_int_equal(later->end_ns, (30000 - 1000) / 2);
}

static void reused_request_value_is_a_new_request(void **state)
{
    /* One value for three receives of different tags; the first was freed unseen. */
    CwFile *f = begin(0, 2, "alpha");
    cw_event(f, message(CW_IRECV, 1000, 1100, 1, 1));
    cw_request(f, 0x10);
    for (guint i = 0; i < 2; i++) {
        cw_event(f, message(CW_IRECV, 2000 + 1000 * i, 2100 + 1000 * i, 1, 2 + (gint32)i));
        cw_request(f, 0x10);
        struct rs_event wait = message(CW_WAIT, 2200 + 1000 * i, 2300 + 1000 * i, -1, 0);
        wait.comm = 0;
        cw_event(f, wait);
        cw_done(f, 0x10, -3, 0);
    }
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    finish(f, *state, 0);
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->events.n, 5);
    assert_int_equal(m->events.link[0], RS_NONE);
    assert_int_equal(m->events.link[1], 2);
    assert_int_equal(m->events.link[3], 4);
}

static void sendrecv_is_two_messages(void **state)
{
    for (gint32 rank = 0; rank < 2; rank++) {
        CwFile *f = begin(rank, 2, "alpha");
        cw_event(f, message(CW_SENDRECV, 1000 + 500 * (guint64)rank, 5000, 1 - rank, 3 + rank));
        cw_second(f, 1 - rank, 4 - rank, 250, 1);
        cw_block(f, RS_BLOCK_EVENTS, 0, 0);
        finish(f, *state, rank);
    }
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->messages->len, 2);
    for (guint i = 0; i < 2; i++) {
        const RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        assert_true(msg->timed);
        assert_int_equal(msg->src + msg->dst, 1);
        assert_int_equal(msg->both_ns, 250);
        assert_int_equal(msg->bytes, 1000);
    }
}

static void same_key_messages_meet_in_order(void **state)
{
    CwFile *f = begin(0, 2, "alpha");
    for (guint i = 0; i < 3; i++) {
        struct rs_event e = message(CW_SEND, 1000 * (i + 1), 1000 * (i + 1) + 10, 1, 9);
        e.count = 100 + i;
        e.flags = 0;
        cw_event(f, e);
    }
    cw_event(f, (struct rs_event){.op = CW_SEND,
                                  .flags = RS_EVENT_NULL_PEER,
                                  .peer = -1,
                                  .start = 9000,
                                  .end = 9001,
                                  .comm = 1,
                                  .dtype = 1});
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    finish(f, *state, 0);
    f = begin(1, 2, "alpha");
    for (guint i = 0; i < 2; i++) { /* the third never comes */
        struct rs_event e = message(CW_RECV, 5000 + 100 * i, 5050 + 100 * i, 0, 9);
        e.flags = 0;
        cw_event(f, e);
    }
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    finish(f, *state, 1);
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->messages->len, 3);
    guint unmatched = 0;
    for (guint i = 0; i < 3; i++) {
        const RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        if (msg->recv == RS_NONE) {
            unmatched++;
            assert_int_equal(msg->bytes, 102 * 4);
            assert_false(msg->timed);
            continue;
        }
        guint k = m->events.start_ns[msg->send] == 0 ? 0 : 1;
        assert_int_equal(msg->bytes, (100 + k) * 4);
        assert_int_equal(m->events.start_ns[msg->recv], (4000 + 100 * k) / 2);
    }
    assert_int_equal(unmatched, 1);
}

static void threads_of_a_sender_send_in_order_of_time(void **state)
{
    /* Two threads of rank 0 send the same key by turns; blocks of one thread stand together. */
    CwFile *f = begin(0, 2, "alpha");
    for (guint thread = 0; thread < 2; thread++) {
        for (guint i = 0; i < 3; i++) {
            struct rs_event e = message(CW_SEND, 1000 * (2 * i + 2 - thread), 0, 1, 9);
            e.end = e.start + 10;
            e.count = 100 + 2 * i + 1 - thread; /* thread 1 sends first */
            e.flags = 0;
            cw_event(f, e);
        }
        cw_block(f, RS_BLOCK_EVENTS, thread, 0);
    }
    finish(f, *state, 0);
    f = begin(1, 2, "alpha");
    for (guint i = 0; i < 6; i++) {
        struct rs_event e = message(CW_RECV, 10000 + 100 * i, 10050 + 100 * i, 0, 9);
        e.flags = 0;
        cw_event(f, e);
    }
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    finish(f, *state, 1);
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->messages->len, 6);
    for (guint i = 0; i < 6; i++)
        assert_int_equal(g_array_index(m->messages, RsMessage, i).bytes, (100 + i) * 4);
}

static void collectives_of_two_communicators_do_not_mix_and_holes_keep_their_number(void **state)
{
    for (gint32 rank = 0; rank < 2; rank++) {
        CwFile *f = begin(rank, 2, "alpha");
        const gint32 swapped[] = {1, 0};
        cw_comm(f, 2, 0xdef, 1 - rank, 2, swapped, RS_COMM_MPI);
        cw_block(f, RS_BLOCK_DEFS, 0, 0);
        for (guint i = 0; i < 4; i++) {
            if (rank == 1 && i == 1) { /* rank 1 lost its second event of each */
                cw_event(
                    f, (struct rs_event){.op = RS_OP_HOLE, .start = 3000, .end = 3200, .count = 2});
                continue;
            }
            cw_event(f, call(CW_ALLREDUCE, 1000 + 2000 * i, 1100 + 2000 * i, 5, i));
            struct rs_event e = call(CW_ALLREDUCE, 1200 + 2000 * i, 1300 + 2000 * i, 6, i);
            e.comm = 2;
            cw_event(f, e);
        }
        cw_block(f, RS_BLOCK_EVENTS, 0, 0);
        finish(f, *state, rank);
    }
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->instances->len, 8);
    for (guint i = 0; i < 8; i++) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        assert_int_equal(inst->complete, inst->seq != 1);
        assert_false(inst->mismatched);
        assert_int_equal(g_array_index(m->sigs, RsSig, inst->sig).count, inst->comm == 0 ? 5 : 6);
        guint32 e = g_array_index(m->member_events, guint32, inst->first_member);
        if (inst->complete) /* member 0 of the second communicator is world rank 1 */
            assert_int_equal(rs_model_rank_of(m, e), inst->comm == 0 ? 0 : 1);
    }
    assert_int_equal(rs_model_rank(m, 1)->dropped, 2);
    assert_true(m->incomplete);
}

static void disagreeing_members_are_a_mismatch(void **state)
{
    for (gint32 rank = 0; rank < 2; rank++) {
        CwFile *f = begin(rank, 2, "alpha");
        cw_event(f, call(CW_ALLREDUCE, 1000, 1100, 10, 0));
        cw_event(f, call(CW_ALLREDUCE, 2000, 2100, 10 + (guint64)rank, 1));
        cw_event(f, call(rank ? CW_BARRIER : CW_ALLREDUCE, 3000, 3100, 10, 2));
        struct rs_event e = call(CW_ALLREDUCE, 4000, 4100, 40, 3);
        e.dtype = rank ? 2 : 1;
        cw_event(f, e);
        cw_block(f, RS_BLOCK_EVENTS, 0, 0);
        finish(f, *state, rank);
    }
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->instances->len, 4);
    for (guint i = 0; i < 4; i++)
        assert_int_equal(g_array_index(m->instances, RsInstance, i).mismatched, i > 0);
}

static void nonblocking_collective_ends_at_its_completion(void **state)
{
    for (gint32 rank = 0; rank < 2; rank++) {
        CwFile *f = begin(rank, 2, "alpha");
        struct rs_event e = call(CW_IALLREDUCE, 1000 + 200 * (guint64)rank, 1300, 10, 0);
        e.flags = RS_EVENT_EXT;
        cw_event(f, e);
        cw_request(f, 0x77);
        struct rs_event wait = message(CW_WAIT, 5000, 7000 + 400 * (guint64)rank, -1, 0);
        wait.comm = 0;
        cw_event(f, wait);
        cw_done(f, 0x77, -3, 0);
        e.seq = 1;
        e.start = 8000;
        e.end = 8100;
        cw_event(f, e); /* never waited for */
        cw_request(f, 0x78);
        cw_block(f, RS_BLOCK_EVENTS, 0, 0);
        finish(f, *state, rank);
    }
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->instances->len, 2);
    const RsInstance *inst = &g_array_index(m->instances, RsInstance, 0);
    assert_true(inst->complete && inst->timed);
    assert_int_equal(inst->last_arrival_ns - inst->first_arrival_ns, 100);
    assert_int_equal(inst->last_end_ns - inst->first_arrival_ns, (7400 - 1000) / 2);
    assert_int_equal(inst->last_rank, 1);
    assert_false(g_array_index(m->instances, RsInstance, 1).complete);
}

static void nccl_calls_without_device_intervals_are_not_timed(void **state)
{
    for (gint32 rank = 0; rank < 2; rank++) {
        CwFile *f = begin(rank, 2, "alpha");
        cw_comm(f, 2, 0x4e43, rank, 2, NULL, RS_COMM_NCCL); /* members unknown: each names itself */
        cw_block(f, RS_BLOCK_DEFS, 0, 0);
        for (guint i = 0; i < 2; i++) {
            struct rs_event e = call(CW_NCCL_ALLREDUCE, 1000 + 1000 * i, 1010 + 1000 * i, 64, i);
            e.comm = 2;
            cw_event(f, e);
            cw_block(f, RS_BLOCK_EVENTS, 0, 0);
            if (i == 0)
                continue;
            e.flags = RS_EVENT_DEVICE;
            e.start += 300;
            e.end += 900;
            cw_event(f, e);
            cw_block(f, RS_BLOCK_EVENTS, 1, 0);
        }
        finish(f, *state, rank);
    }
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->instances->len, 2);
    const RsInstance *call_only = &g_array_index(m->instances, RsInstance, 0);
    const RsInstance *device = &g_array_index(m->instances, RsInstance, 1);
    assert_true(call_only->complete && !call_only->timed);
    assert_true(device->complete && device->timed);
    assert_int_equal(device->last_end_ns - device->last_arrival_ns, (900 + 10 - 300) / 2);
    const RsTrack *t = &g_array_index(m->tracks, RsTrack, 1);
    assert_true(t->device);
}

static void open_call_of_a_killed_process_is_kept(void **state)
{
    CwFile *f = begin(0, 2, "alpha");
    cw_event(f, call(CW_ALLREDUCE, 1000, 1100, 10, 0));
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    struct rs_open o = {.op = CW_ALLREDUCE, .comm = 1, .seq = 1, .peer = -1, .start = 5000};
    o.count = 10;
    o.dtype = 1;
    o.range_depth = 1;
    o.range[0].start = 900;
    o.range[0].name = 1;
    cw_put(f, &o, sizeof o);
    cw_block(f, RS_BLOCK_OPEN, 0, RS_BLOCK_RECOVERED);
    cw_end(f, RS_END_KILLED, 9000, 1, 0);
    g_free(cw_save(f, *state, "host-500.rsc"));
    cw_free(f);
    g_autoptr(RsModel) m = open_folder(*state);
    const RsRank *r = rs_model_rank(m, 0);
    assert_int_equal(r->ending, RS_ENDING_KILLED);
    assert_true(m->incomplete);
    assert_string_equal(rs_model_str(m, r->note), "its process was killed");
    assert_int_not_equal(r->open_event, RS_NONE);
    assert_string_equal(rs_model_str(m, rs_model_sig(m, r->open_event)->name), "MPI_Allreduce");
    assert_int_equal(m->events.seq[r->open_event], 1);
    assert_int_equal(m->events.end_ns[r->open_event] - m->events.start_ns[r->open_event], 2000);
    assert_int_equal(m->events.flags[0] & RS_FLAG_OPEN, RS_FLAG_OPEN); /* the range around it */
    assert_int_equal(rs_model_sig(m, 0)->kind, RS_KIND_RANGE);
}

static void open_call_that_ended_after_all_is_no_longer_open(void **state)
{
    CwFile *f = begin(0, 2, "alpha");
    struct rs_open o = {.op = CW_ALLREDUCE, .comm = 1, .seq = 0, .peer = -1, .start = 1000};
    cw_put(f, &o, sizeof o);
    cw_block(f, RS_BLOCK_OPEN, 0, 0);
    cw_event(f, call(CW_ALLREDUCE, 1000, 1100, 10, 0));
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    finish(f, *state, 0);
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->events.n, 1);
    assert_int_equal(m->events.flags[0] & RS_FLAG_OPEN, 0);
}

static void definitions_repeated_later_serve_events_before(void **state)
{
    /* The first DEFS block was lost: the file begins with events, as a kept tail does. */
    CwFile *f = cw_new();
    cw_process(f, 0, 1, "alpha", "alpha", 500, GHZ2);
    cw_event(f, call(CW_ALLREDUCE, 1000, 1100, 10, 0));
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    cw_standard_defs(f, 0, 1);
    finish(f, *state, 0);
    g_autoptr(RsModel) m = open_folder(*state);
    assert_string_equal(rs_model_str(m, rs_model_sig(m, 0)->name), "MPI_Allreduce");
    assert_int_equal(rs_model_sig(m, 0)->bytes, 40);
}

static void unknown_kinds_are_skipped_and_counted(void **state)
{
    CwFile *f = begin(0, 1, "alpha");
    for (guint i = 0; i < 3; i++) {
        cw_put(f, "something new", 13);
        cw_block(f, 77, 0, 0);
    }
    cw_event(f, call(CW_ALLREDUCE, 1000, 1100, 10, 0));
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    finish(f, *state, 0);
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->events.n, 1);
    assert_int_equal(m->warnings->len, 1);
    const RsWarning *w = g_ptr_array_index(m->warnings, 0);
    assert_string_equal(
        w->text, "3 blocks of a kind unknown to this version skipped: use a newer ringscope");
}

static void newer_major_version_is_refused_in_one_line(void **state)
{
    /* A later format may have another head: only magic and version stay where they are. */
    guint8 bytes[256];
    memset(bytes, 0x5a, sizeof bytes);
    const guint8 head[] = {'R', 'S', 'C', 'B', 2, 0};
    memcpy(bytes, head, sizeof head);
    g_autofree gchar *path = g_build_filename(*state, "host-1.rsc", NULL);
    assert_true(g_file_set_contents(path, (const gchar *)bytes, sizeof bytes, NULL));
    g_autofree gchar *text = open_and_fail(path);
    g_autofree gchar *want = g_strdup_printf(
        "%s: capture format 2 is newer than this version reads (1): use a newer ringscope", path);
    assert_string_equal(text, want);
}

static void inputs_that_are_no_run_say_so(void **state)
{
    const gchar *folder = *state;
    g_autofree gchar *none = g_build_filename(folder, "nowhere", NULL);
    g_autofree gchar *a = open_and_fail(none);
    assert_non_null(strstr(a, "no such file or folder"));
    g_autofree gchar *b = open_and_fail(folder);
    assert_non_null(strstr(b, "empty folder: no captures (.rsc) and no run.sqlite, nor traces"));
    g_autofree gchar *text = g_build_filename(folder, "notes.txt", NULL);
    assert_true(g_file_set_contents(text, "hello\n", -1, NULL));
    g_autofree gchar *c = open_and_fail(text);
    assert_non_null(strstr(c, "neither a Ringscope capture nor an SQLite file"));
    g_autofree gchar *json = g_build_filename(folder, "t.json", NULL);
    assert_true(g_file_set_contents(json, "{}", -1, NULL));
    g_autofree gchar *d = open_and_fail(json);
    assert_non_null(strstr(d, "JSON without trace events"));
    g_autofree gchar *fake = g_build_filename(folder, "fake.rsc", NULL);
    assert_true(g_file_set_contents(fake, "not a capture at all", -1, NULL));
    g_autofree gchar *e = open_and_fail(fake);
    assert_non_null(strstr(e, "not a Ringscope capture, or damaged throughout"));
    g_autofree gchar *empty = g_build_filename(folder, "empty.rsc", NULL);
    assert_true(g_file_set_contents(empty, "", 0, NULL));
    g_autofree gchar *f = open_and_fail(empty);
    assert_non_null(strstr(f, "is empty"));
}

static void captures_of_another_run_are_left_out_by_name(void **state)
{
    for (gint32 rank = 0; rank < 2; rank++) {
        CwFile *f = begin(rank, 2, "alpha");
        if (rank == 1)
            cw_meta(f, "run_id", "r0", NULL);
        cw_event(f, call(CW_ALLREDUCE, 1000, 1100, 10, 0));
        cw_block(f, RS_BLOCK_EVENTS, 0, 0);
        finish(f, *state, rank);
    }
    g_autofree gchar *old = g_build_filename(*state, "host-501.rsc", NULL);
    struct utimbuf long_ago = {1000000, 1000000};
    assert_int_equal(g_utime(old, &long_ago), 0);
    g_autoptr(RsModel) m = open_folder(*state);
    assert_true(rs_model_rank(m, 1)->missing);
    assert_int_equal(m->warnings->len, 2);
    const RsWarning *w = g_ptr_array_index(m->warnings, 0);
    assert_string_equal(w->path, old);
    assert_string_equal(w->text, "of another run than r1, the newest there; to read it, name its "
                                 "captures: left out");
}

static void many_captures_left_out_are_a_line_for_each_reason(void **state)
{
    for (gint32 rank = 0; rank < 9; rank++) {
        g_autofree gchar *id = g_strdup_printf("r%d", rank < 4 ? 0 : rank);
        CwFile *f = begin(rank, 1, "alpha");
        cw_meta(f, "run_id", rank == 0 ? "new" : id, NULL);
        cw_event(f, call(CW_ALLREDUCE, 1000, 1100, 10, 0));
        cw_block(f, RS_BLOCK_EVENTS, 0, 0);
        finish(f, *state, rank);
        g_autofree gchar *path = g_strdup_printf("%s/host-%d.rsc", (gchar *)*state, 500 + rank);
        struct utimbuf long_ago = {1000000, 1000000};
        assert_true(rank == 0 || g_utime(path, &long_ago) == 0);
        g_autofree gchar *fake = g_strdup_printf("%s/fake-%d.rsc", (gchar *)*state, rank);
        assert_true(g_file_set_contents(fake, "none at all", rank, NULL));
    }
    g_autoptr(RsModel) m = open_folder(*state);
    assert_int_equal(m->warnings->len, 3);
    static const gchar *const texts[] = {
        "8 captures left out (host-501.rsc, host-502.rsc, host-503.rsc, ...): of another run than "
        "new, the newest there; to read it, name its captures",
        "fake-0.rsc: is empty: its process recorded nothing, or its disk was full: left out",
        "8 captures left out (fake-1.rsc, fake-2.rsc, fake-3.rsc, ...): not a Ringscope capture, "
        "or "
        "damaged throughout (no whole block in it)",
    };
    for (guint i = 0; i < 3; i++) {
        const RsWarning *w = g_ptr_array_index(m->warnings, i);
        g_autofree gchar *whole = g_strdup_printf(i == 1 ? "%s: %s" : "%s%s", w->path, w->text);
        g_autofree gchar *want =
            g_strdup_printf(i == 1 ? "%s/%s" : "%s%s", (gchar *)*state, texts[i]);
        assert_string_equal(whole, want);
    }
}

static void a_folder_named_twice_is_read_once(void **state)
{
    const gchar *folder = *state;
    CwFile *f = begin(0, 1, "alpha");
    cw_event(f, call(CW_ALLREDUCE, 1000, 1100, 10, 0));
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    finish(f, *state, 0);
    g_autofree gchar *slash = g_strconcat(folder, "/", NULL);
    g_autofree gchar *file = g_build_filename(folder, "host-500.rsc", NULL);
    const gchar *paths[] = {folder, slash, file, NULL};
    g_autoptr(RsModel) m = rs_run_open(paths, NULL, NULL, NULL);
    assert_int_equal(m->events.n, 1);
    assert_int_equal(m->warnings->len, 0);
}

/* Two hosts of different boot: their own counters, monotonic clocks and drift. Truth: host beta's
 * monotonic clock = true time * (1 + 30 ppm) + 4e12. */
static guint64 beta_ns(guint64 t)
{
    return 4000000000000u + t + t * 30 / 1000000;
}

static guint64 alpha_tick(guint64 t)
{
    return 2 * t + 111;
}

static guint64 beta_tick(guint64 t)
{
    return 3 * beta_ns(t) + 999;
}

typedef enum { NOBODY_ASKS, ALPHA_ASKS, BETA_ASKS } Probes;

static CwFile *begin_far(gint32 rank, Probes probes)
{
    CwFile *f = cw_new();
    gboolean beta = rank >= 2;
    const gchar *host = beta ? "beta" : "alpha";
    cw_process(f, rank, 4, host, host, 500 + rank, beta ? "3000000000" : GHZ2);
    for (guint64 t = 1000000000; t <= 61000000000; t += 60000000000)
        cw_anchor(f, beta ? beta_tick(t) : alpha_tick(t), beta ? beta_ns(t) : t,
                  1700000000000000000u + t, 40);
    for (guint i = 0; i < 2; i++) { /* 9 us there, 11 us back */
        guint64 t = 1100000000 + 59000000000u * i;
        if (probes == BETA_ASKS && rank == 2)
            cw_probe(f, 0, beta_tick(t), alpha_tick(t + 9000), alpha_tick(t + 9500),
                     beta_tick(t + 20500));
        if (probes == ALPHA_ASKS && rank == 0)
            cw_probe(f, 2, alpha_tick(t), beta_tick(t + 9000), beta_tick(t + 9500),
                     alpha_tick(t + 20500));
    }
    cw_block(f, RS_BLOCK_CLOCK, 0, 0);
    cw_standard_defs(f, rank, 4);
    return f;
}

static void write_far_run(const gchar *folder, Probes probes)
{
    for (gint32 rank = 0; rank < 4; rank++) {
        CwFile *f = begin_far(rank, probes);
        for (guint i = 0; i < 50; i++) {
            guint64 last = 2000000000 + (guint64)1000000000 * i,
                    own = last - (i + (guint)rank) % 4 * 700000;
            guint64 end = last + 40000 + 3000 * (guint64)rank;
            if (rank == 3 && i % 7 == 3)
                end += 4000000; /* a late leaver now and then */
            cw_event(f, call(CW_ALLREDUCE, rank >= 2 ? beta_tick(own) : alpha_tick(own),
                             rank >= 2 ? beta_tick(end) : alpha_tick(end), 10, i));
        }
        cw_block(f, RS_BLOCK_EVENTS, 0, 0);
        finish(f, folder, rank);
    }
}

static void check_far_run(const RsModel *m, gint64 allowed)
{
    assert_int_equal(m->instances->len, 50);
    gint64 base = 2000000000 - 3 * 700000;
    for (guint i = 0; i < 50; i++) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        for (guint r = 0; r < 4; r++) {
            guint32 e = g_array_index(m->member_events, guint32, inst->first_member + r);
            gint64 truth = 2000000000 + 1000000000ll * i - (i + r) % 4 * 700000 - base;
            gint64 off = m->events.start_ns[e] - truth;
            assert_in_range(off + allowed, 0, 2 * allowed);
        }
        assert_int_equal(inst->last_rank, (4 - i % 4) % 4);
    }
    const RsDomain *d = &g_array_index(m->domains, RsDomain, 1);
    assert_in_range((gint64)(d->drift_ppm * 1000) + 30000 + 500, 0, 1000); /* back to alpha's */
    assert_true(m->clock_trusted);
}

static void two_hosts_are_aligned_by_round_trips(void **state)
{
    for (Probes who = ALPHA_ASKS; who <= BETA_ASKS; who++) {
        write_far_run(*state, who);
        g_autoptr(RsModel) m = open_folder(*state);
        assert_string_equal(m->clock_method, "round trips");
        check_far_run(m, 1100); /* the ways differ by 2 us: half of that can't be told */
        assert_in_range(m->clock_uncertainty_ns, 10000, 11000);
    }
}

static void two_hosts_are_aligned_by_collective_ends_without_round_trips(void **state)
{
    write_far_run(*state, NOBODY_ASKS);
    g_autoptr(RsModel) m = open_folder(*state);
    assert_string_equal(m->clock_method, "collective ends");
    check_far_run(m, 10000);
    assert_in_range(m->clock_uncertainty_ns, 30000, 60000);
}

static void clocks_that_nothing_joins_are_not_trusted(void **state)
{
    for (gint32 rank = 0; rank < 2; rank++) {
        CwFile *f = begin(rank, 2, rank ? "beta" : "alpha");
        struct rs_range_event e = {.op = RS_OP_RANGE, .name = 1, .start = 5000, .end = 6000};
        cw_put(f, &e, sizeof e);
        cw_block(f, RS_BLOCK_EVENTS, 0, 0);
        finish(f, *state, rank);
    }
    g_autoptr(RsModel) m = open_folder(*state);
    assert_false(m->clock_trusted);
    assert_string_equal(m->clock_method, "none");
    assert_int_equal(m->warnings->len, 1);
    assert_true(m->clock_uncertainty_ns >= 1000000000);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, cw_setup, cw_teardown)
    const struct CMUnitTest tests[] = {
        TEST(capture_gives_ranks_hosts_and_names),
        TEST(sizes_follow_the_definitions),
        TEST(any_source_is_resolved_by_status_and_completion),
        TEST(reused_request_value_is_a_new_request),
        TEST(sendrecv_is_two_messages),
        TEST(same_key_messages_meet_in_order),
        TEST(threads_of_a_sender_send_in_order_of_time),
        TEST(collectives_of_two_communicators_do_not_mix_and_holes_keep_their_number),
        TEST(disagreeing_members_are_a_mismatch),
        TEST(nonblocking_collective_ends_at_its_completion),
        TEST(nccl_calls_without_device_intervals_are_not_timed),
        TEST(open_call_of_a_killed_process_is_kept),
        TEST(open_call_that_ended_after_all_is_no_longer_open),
        TEST(definitions_repeated_later_serve_events_before),
        TEST(unknown_kinds_are_skipped_and_counted),
        TEST(newer_major_version_is_refused_in_one_line),
        TEST(inputs_that_are_no_run_say_so),
        TEST(captures_of_another_run_are_left_out_by_name),
        TEST(many_captures_left_out_are_a_line_for_each_reason),
        TEST(a_folder_named_twice_is_read_once),
        TEST(two_hosts_are_aligned_by_round_trips),
        TEST(two_hosts_are_aligned_by_collective_ends_without_round_trips),
        TEST(clocks_that_nothing_joins_are_not_trusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
