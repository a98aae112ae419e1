/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: one process with many devices, device intervals of messages, communicators split at run
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture-writer.h"
#include "capture.h"
#include "model-builder.h"

typedef struct {
    RsBuilder *b;
    guint32 comm;
    guint32 process[2], host_track[2], device_track[2];
} Maker;

static Maker make(gint32 size)
{
    Maker k = {.b = rs_builder_new()};
    k.comm = rs_builder_comm(k.b, 0x4e43434c, 0, RS_COMM_NCCL, size, "nccl");
    for (gint32 rank = 0; rank < 2; rank++) {
        k.process[rank] = rs_builder_add_process(k.b, rank, rank ? "beta" : "alpha", 10 + rank);
        rs_builder_set_text(&rs_builder_process(k.b, k.process[rank])->domain, "one machine");
        k.host_track[rank] = rs_builder_add_track(k.b, k.process[rank], "main", 1, FALSE);
        k.device_track[rank] = rs_builder_add_track(k.b, k.process[rank], "device", 0, TRUE);
    }
    return k;
}

static RsSig nccl_sig(Maker *k, const gchar *name, guint8 klass, guint8 coll, gint32 peer,
                      guint16 member)
{
    RsSig s = rs_builder_sig_init(k->b, RS_KIND_CALL, name);
    s.api = RS_API_NCCL;
    s.op = (guint16)(1100 + klass);
    s.klass = klass;
    s.coll = coll;
    s.comm = k->comm;
    s.peer = peer;
    s.member = member;
    s.count = s.bytes = 4096;
    return s;
}

static guint32 put(Maker *k, guint rank, RsSig s, gboolean device, gint64 start, gint64 end,
                   gboolean numbered, guint32 seq)
{
    s.kind = device ? RS_KIND_DEVICE : RS_KIND_CALL;
    return rs_builder_event(k->b, device ? k->device_track[rank] : k->host_track[rank],
                            rs_builder_sig(k->b, &s), start, end, numbered ? RS_FLAG_SEQ : 0, 0,
                            seq);
}

/* Two processes with two devices each: members 0, 1 and 2, 3 of one communicator. */
static void one_process_with_two_devices_is_two_members(void **state)
{
    Maker k = make(4);
    for (guint member = 0; member < 4; member++)
        rs_builder_comm_join(k.b, k.comm, k.process[member / 2], (gint32)member);
    for (guint seq = 0; seq < 3; seq++) {
        for (guint member = 0; member < 4; member++) {
            RsSig s = nccl_sig(&k, "ncclAllReduce", RS_CLASS_COLL, RS_COLL_ALLREDUCE, -1,
                               (guint16)(member + 1));
            gint64 at = 10000 * seq + 10 * member;
            put(&k, member / 2, s, FALSE, at, at + 5, TRUE, seq);
            put(&k, member / 2, s, TRUE, at + 100 + 1000 * (member == 2), at + 2000, TRUE, seq);
        }
    }
    g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
    assert_int_equal(m->instances->len, 3);
    assert_int_equal(m->warnings->len, 0);
    for (guint i = 0; i < 3; i++) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        assert_true(inst->complete && inst->timed);
        assert_int_equal(inst->n_present, 4);
        assert_int_equal(inst->last_rank, 1);
        assert_int_equal(inst->last_arrival_ns, 10000 * i + 1120);
        for (guint member = 0; member < 4; member++) {
            guint32 e = g_array_index(m->member_events, guint32, inst->first_member + member);
            assert_int_equal(rs_model_sig(m, e)->member, member + 1);
            assert_int_equal(rs_model_sig(m, m->events.link[e])->member, member + 1);
        }
    }
}

/* As recorded: two definitions of one identity, ids of their own. */
static void capture_of_two_devices_names_both_members(void **state)
{
    g_autoptr(CwFile) f = cw_new();
    cw_process(f, 0, 1, "alpha", "alpha", 500, "1000000000");
    cw_standard_defs(f, 0, 1);
    for (gint32 member = 0; member < 2; member++)
        cw_comm(f, 5 + (guint32)member, 0x4e, member, 2, NULL, RS_COMM_NCCL);
    cw_block(f, RS_BLOCK_DEFS, 0, 0);
    for (guint i = 0; i < 6; i++)
        cw_event(f, (struct rs_event){.op = CW_NCCL_ALLREDUCE,
                                      .peer = -1,
                                      .start = 100 * i,
                                      .end = 100 * i + 20,
                                      .count = 8,
                                      .comm = 5 + i % 2,
                                      .dtype = 1,
                                      .seq = i / 2});
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    g_autoptr(GBytes) bytes = g_bytes_new(f->bytes->data, f->bytes->len);
    g_autoptr(RsBlocks) blocks = rs_blocks_open_bytes("x.rsc", bytes);
    RsBuilder *b = rs_builder_new();
    assert_true(rs_capture_read(b, &blocks, 1, NULL, NULL, NULL, NULL));
    g_autoptr(RsModel) m = rs_builder_finish(b, RS_FINISH_ALL);
    assert_int_equal(m->instances->len, 3);
    for (guint i = 0; i < 3; i++) {
        const RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        assert_true(inst->complete);
        assert_int_equal(inst->n_present, 2);
        assert_int_equal(inst->last_arrival_ns - inst->first_arrival_ns, 100);
    }
}

static void device_intervals_time_messages_and_calls_alone_do_not(void **state)
{
    Maker k = make(2);
    for (gint32 rank = 0; rank < 2; rank++)
        rs_builder_comm_join(k.b, k.comm, k.process[rank], rank);
    RsSig send = nccl_sig(&k, "ncclSend", RS_CLASS_SEND, RS_COLL_NONE, 1, 0);
    RsSig recv = nccl_sig(&k, "ncclRecv", RS_CLASS_RECV, RS_COLL_NONE, 0, 0);
    for (guint i = 0; i < 2; i++) {
        put(&k, 0, send, FALSE, 1000 * i, 1000 * i + 3, FALSE, 0);
        put(&k, 1, recv, FALSE, 1000 * i + 1, 1000 * i + 4, FALSE, 0);
        if (i == 1)
            continue; /* the second pair left no device interval */
        put(&k, 0, send, TRUE, 200, 800, FALSE, 0);
        put(&k, 1, recv, TRUE, 300, 850, FALSE, 0);
    }
    g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
    assert_int_equal(m->messages->len, 2);
    assert_int_equal(m->warnings->len, 0);
    const RsMessage *first = &g_array_index(m->messages, RsMessage, 0);
    assert_true(first->timed);
    assert_int_equal(first->both_ns, 300);
    assert_int_equal(first->end_ns, 850);
    assert_int_equal(rs_model_sig(m, first->send)->kind, RS_KIND_CALL);
    assert_false(g_array_index(m->messages, RsMessage, 1).timed);
}

static void a_rank_without_its_device_interval_leaves_the_instance_untimed(void **state)
{
    Maker k = make(2);
    RsSig s = nccl_sig(&k, "ncclAllReduce", RS_CLASS_COLL, RS_COLL_ALLREDUCE, -1, 0);
    for (gint32 rank = 0; rank < 2; rank++) {
        rs_builder_comm_join(k.b, k.comm, k.process[rank], rank);
        put(&k, (guint)rank, s, FALSE, 10 * rank, 10 * rank + 5, TRUE, 0);
    }
    put(&k, 0, s, TRUE, 100, 200, TRUE, 0);
    g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
    const RsInstance *inst = &g_array_index(m->instances, RsInstance, 0);
    assert_true(inst->complete);
    assert_false(inst->timed);
}

static void a_number_used_twice_is_left_out_and_said(void **state)
{
    Maker k = make(2);
    RsSig s = nccl_sig(&k, "ncclAllReduce", RS_CLASS_COLL, RS_COLL_ALLREDUCE, -1, 0);
    for (gint32 rank = 0; rank < 2; rank++) {
        rs_builder_comm_join(k.b, k.comm, k.process[rank], rank);
        for (guint i = 0; i < 2; i++)
            put(&k, (guint)rank, s, FALSE, 100 * i + rank, 100 * i + 50, TRUE, 0);
    }
    g_autoptr(RsModel) m = rs_builder_finish(k.b, RS_FINISH_ALL);
    assert_int_equal(m->instances->len, 1);
    assert_int_equal(g_array_index(m->instances, RsInstance, 0).last_arrival_ns, 1);
    assert_int_equal(m->warnings->len, 1);
}

static void one_capture_of_many_pairs_nothing(void **state)
{
    RsBuilder *b = rs_builder_new();
    guint32 comm = rs_builder_comm(b, 1, 0, RS_COMM_NCCL, 4096, "nccl");
    guint32 p = rs_builder_add_process(b, 17, "h", 1);
    rs_builder_comm_join(b, comm, p, 17);
    guint32 t = rs_builder_add_track(b, p, "main", 1, FALSE);
    Maker k = {.b = b, .comm = comm, .host_track = {t}};
    for (guint i = 0; i < 5; i++)
        put(&k, 0, nccl_sig(&k, "ncclAllReduce", RS_CLASS_COLL, RS_COLL_ALLREDUCE, -1, 0), FALSE,
            100 * i, 100 * i + 50, TRUE, i);
    g_autoptr(RsModel) m = rs_builder_finish(b, RS_FINISH_NO_MISSING);
    assert_int_equal(m->instances->len, 0);
    assert_int_equal(m->events.n, 5);
    assert_int_equal(m->warnings->len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process_with_two_devices_is_two_members),
        cmocka_unit_test(capture_of_two_devices_names_both_members),
        cmocka_unit_test(device_intervals_time_messages_and_calls_alone_do_not),
        cmocka_unit_test(a_rank_without_its_device_interval_leaves_the_instance_untimed),
        cmocka_unit_test(a_number_used_twice_is_left_out_and_said),
        cmocka_unit_test(one_capture_of_many_pairs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
