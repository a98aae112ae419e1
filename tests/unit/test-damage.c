/* SPDX-License-Identifier: Apache-2.0 */
/* A small capture cut at every byte and with every byte flipped: never a crash, always an answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture-writer.h"
#include "capture.h"

/* Everything a capture can hold, once or twice. */
static GByteArray *make_capture(void)
{
    g_autoptr(CwFile) f = cw_new();
    cw_process(f, 0, 2, "alpha", "alpha", 500, "2000000000");
    cw_anchor(f, 1000, 500, 1700000000000000000, 40);
    cw_probe(f, 1, 2000, 3000, 3100, 4000);
    cw_block(f, RS_BLOCK_CLOCK, 0, 0);
    cw_standard_defs(f, 0, 2);
    for (guint i = 0; i < 3; i++) {
        struct rs_event e = {.op = CW_ALLREDUCE, .peer = -1, .comm = 1, .dtype = 1, .redop = 1};
        e.start = 10000 + 1000 * i;
        e.end = e.start + 300 + i;
        e.count = 64 << i;
        e.seq = i;
        cw_event(f, e);
        e.op = CW_IRECV;
        e.flags = RS_EVENT_EXT;
        e.peer = -2;
        e.seq = 4;
        cw_event(f, e);
        cw_request(f, 0x1000);
        e.op = CW_WAIT;
        e.comm = 0;
        e.start += 400;
        e.end += 500;
        cw_event(f, e);
        cw_done(f, 0x1000, 1, 4);
        struct rs_range_event r = {.op = RS_OP_RANGE, .name = 1 + i, .start = 9000, .end = 20000};
        cw_put(f, &r, sizeof r);
        cw_block(f, RS_BLOCK_EVENTS, i % 2, 0);
    }
    struct rs_open o = {.op = CW_SEND, .comm = 1, .peer = 1, .start = 30000, .range_depth = 2};
    o.range[1].start = 29000;
    cw_put(f, &o, sizeof o);
    cw_block(f, RS_BLOCK_OPEN, 1, 0);
    cw_end(f, RS_END_KILLED, 40000, 12, 0);
    return g_byte_array_ref(f->bytes);
}

typedef struct {
    gboolean read;
    guint events, warnings;
    gboolean incomplete;
} Outcome;

static Outcome read_bytes(const guint8 *data, gsize n)
{
    g_autoptr(GBytes) bytes = g_bytes_new(data, n);
    g_autoptr(RsBlocks) blocks = rs_blocks_open_bytes("x.rsc", bytes);
    g_autoptr(RsBuilder) b = rs_builder_new();
    g_autoptr(GError) error = NULL;
    if (!rs_capture_read(b, &blocks, 1, NULL, NULL, NULL, &error)) {
        assert_non_null(error);
        assert_null(strchr(error->message, '\n'));
        assert_non_null(strstr(error->message, "x.rsc"));
        return (Outcome){FALSE, 0, 0, TRUE};
    }
    g_autoptr(RsModel) m = rs_builder_finish(g_steal_pointer(&b), RS_FINISH_NO_MISSING);
    for (guint32 i = 0; i < m->events.n; i++)
        assert_true(m->events.end_ns[i] >= m->events.start_ns[i] && m->events.start_ns[i] >= 0);
    return (Outcome){TRUE, m->events.n, m->warnings->len, m->incomplete};
}

static void whole_capture_reads_without_a_warning(void **state)
{
    g_autoptr(GByteArray) a = make_capture();
    Outcome o = read_bytes(a->data, a->len);
    assert_true(o.read);
    assert_int_equal(o.events, 12 + 3); /* the open call, its range, the end */
    assert_int_equal(o.warnings, 0);
}

static void capture_cut_at_every_byte_gives_what_is_before(void **state)
{
    g_autoptr(GByteArray) a = make_capture();
    guint events = 0, first_good = 0;
    for (guint n = 0; n < a->len; n++) {
        Outcome o = read_bytes(a->data, n);
        assert_true(o.incomplete);
        if (o.read && !first_good)
            first_good = n;
        assert_true(o.read == (first_good != 0));
        assert_true(o.events >= events); /* more bytes never give less */
        events = o.events;
    }
    assert_true(first_good > 64 && first_good < 512); /* as soon as META is whole */
    assert_int_equal(events, 14); /* without END alone nothing is lost but the end */
}

static void capture_with_any_byte_flipped_loses_one_block_at_most(void **state)
{
    g_autoptr(GByteArray) a = make_capture();
    guint harmless = 0, warned = 0;
    for (guint at = 0; at < a->len; at++) {
        for (guint bit = 0; bit < 8; bit += 7) { /* lowest and highest */
            a->data[at] ^= (guint8)(1u << bit);
            Outcome o = read_bytes(a->data, a->len);
            a->data[at] ^= (guint8)(1u << bit);
            assert_true(o.read);
            assert_true(o.events >= 10); /* a block holds at most 4 of the 15 */
            if (o.warnings == 0)
                harmless++;
            else
                warned++;
        }
    }
    assert_true(harmless < 2 * 7 * 8); /* padding between blocks alone */
    assert_true(warned > 0);
}

/* A block that lost bytes (a hole punched, a bad copy) must not take the next one with it. */
static void bytes_lost_within_a_block_lose_that_block_alone(void **state)
{
    g_autoptr(GByteArray) a = make_capture();
    guint at = 0;
    for (struct rs_block h;; at += (guint)sizeof h + ((h.payload_bytes + 7) & ~7u)) {
        memcpy(&h, a->data + at, sizeof h);
        if (h.kind == RS_BLOCK_EVENTS)
            break;
    }
    g_byte_array_remove_range(a, at + 100, 40);
    Outcome o = read_bytes(a->data, a->len);
    assert_int_equal(o.events, 15 - 4);
    assert_int_equal(o.warnings, 2); /* where it is, and that a block is missing */
}

static void garbage_between_blocks_is_skipped(void **state)
{
    g_autoptr(GByteArray) a = make_capture();
    g_autoptr(GByteArray) b = g_byte_array_new();
    struct rs_block first;
    memcpy(&first, a->data, sizeof first);
    guint cut = (guint)sizeof first + ((first.payload_bytes + 7) & ~7u);
    g_byte_array_append(b, a->data, cut);
    for (guint i = 0; i < 1000; i++) {
        guint8 junk[] = {'R', 'S', 'C', 'B', (guint8)i, (guint8)(i >> 8), 3};
        g_byte_array_append(b, junk, sizeof junk);
    }
    g_byte_array_append(b, a->data + cut, a->len - cut);
    Outcome o = read_bytes(b->data, b->len);
    assert_int_equal(o.events, 15);
    assert_int_equal(o.warnings, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_capture_reads_without_a_warning),
        cmocka_unit_test(capture_cut_at_every_byte_gives_what_is_before),
        cmocka_unit_test(capture_with_any_byte_flipped_loses_one_block_at_most),
        cmocka_unit_test(bytes_lost_within_a_block_lose_that_block_alone),
        cmocka_unit_test(garbage_between_blocks_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
