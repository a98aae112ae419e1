/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of a dead process, laid out by hand after schemas/ring.h: read beside, appended, refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <glib/gstdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture-writer.h"
#include "recover.h"
#include "ring.h"
#include "run.h"

#define SLOTS 8u /* of the ring: events wrap around its end */

typedef struct {
    gchar *folder, *capture, *prefix;
    pid_t pid;
    guint64 start;
} Left;

static int set_up(void **state)
{
    Left *l = g_new0(Left, 1);
    l->folder = cw_make_folder();
    l->prefix = g_build_filename(l->folder, "rings", NULL);
    l->pid = fork();
    if (l->pid == 0)
        _exit(0);
    waitpid(l->pid, NULL, 0); /* a process that is no more */
    l->start = 123456;
    *state = l;
    return 0;
}

static int tear_down(void **state)
{
    Left *l = *state;
    cw_remove_folder(l->folder);
    g_free(l->folder);
    g_free(l->capture);
    g_free(l->prefix);
    g_free(l);
    return 0;
}

static void write_file(const Left *l, guint number, const guint8 *data, gsize n)
{
    g_autofree gchar *path = g_strdup_printf("%s.%u", l->prefix, number);
    assert_true(g_file_set_contents(path, (const gchar *)data, (gssize)n, NULL));
}

/* The ring: slots 5..11, of which 5 and 6 are in the capture, an event with its extension across
 * the end (7 is the last slot), two more, and a call that never ended. */
static void write_ring(const Left *l)
{
    g_autofree guint8 *file = g_malloc0(RS_RING_SLOTS_OFFSET + SLOTS * sizeof(struct rs_event));
    struct rs_ring_thread t = {.magic = RS_RING_MAGIC, .version = RS_RING_VERSION, .tid = 99};
    t.slot_count = SLOTS;
    t.head = 11;
    t.tail = 7;
    t.events = 9;
    t.dropped = 4;
    t.open.op = CW_ALLREDUCE;
    t.open.comm = 1;
    t.open.seq = 3;
    t.open.start = 70000;
    memcpy(file, &t, sizeof t);
    struct rs_event slots[SLOTS];
    memset(slots, 0xee, sizeof slots); /* old ones */
    slots[7] = (struct rs_event){.op = CW_IRECV, .flags = RS_EVENT_EXT, .peer = 1, .start = 50000};
    slots[7].end = 50100;
    slots[7].comm = slots[7].dtype = 1;
    struct rs_ext_request x = {.op = RS_EXT_REQUEST, .request = 0x42};
    memcpy(&slots[0], &x, sizeof x);
    for (guint i = 1; i < 3; i++)
        slots[i] = (struct rs_event){.op = CW_ALLREDUCE,
                                     .peer = -1,
                                     .start = 55000 + 1000 * i,
                                     .end = 55500 + 1000 * i,
                                     .comm = 1,
                                     .dtype = 1,
                                     .seq = i};
    memcpy(file + RS_RING_SLOTS_OFFSET, slots, sizeof slots);
    write_file(l, 1, file, RS_RING_SLOTS_OFFSET + sizeof slots);
}

static void write_control(const Left *l, guint64 capture_bytes, guint32 next_sequence)
{
    g_autofree guint8 *file = g_malloc0(RS_RING_DEFS_OFFSET + 4096);
    struct rs_ring_process p = {.magic = RS_RING_MAGIC, .version = RS_RING_VERSION};
    p.pid = l->pid;
    p.pid_start = l->start;
    p.thread_count = 1;
    p.defs_capacity = 4096;
    p.capture_bytes = capture_bytes;
    p.next_sequence = next_sequence;
    p.last_anchor = (struct rs_anchor){RS_CLOCK_ANCHOR, 40, 60000, 30000, 1700000000000030000};
    /* one definition that the capture has, one that it lacks */
    struct rs_def d = {.kind = RS_DEF_STRING, .bytes = 24, .id = 500, .text_bytes = 5};
    memcpy(file + RS_RING_DEFS_OFFSET, &d, sizeof d);
    memcpy(file + RS_RING_DEFS_OFFSET + 16, "known", 5);
    d.id = 501;
    memcpy(file + RS_RING_DEFS_OFFSET + 24, &d, sizeof d);
    memcpy(file + RS_RING_DEFS_OFFSET + 40, "later", 5);
    p.alive_tick = 90000;
    p.defs_written = 24;
    p.defs_used = 48;
    memcpy(file, &p, sizeof p);
    write_file(l, 0, file, RS_RING_DEFS_OFFSET + 4096);
}

/* A capture with one event; behind it, half a block that the drain thread did not finish. */
static void leave_behind(Left *l, gboolean closed)
{
    g_autoptr(CwFile) f = cw_new();
    g_autofree gchar *start = g_strdup_printf("%" G_GUINT64_FORMAT, l->start);
    cw_process(f, 0, 2, "alpha", "alpha", l->pid, "2000000000");
    cw_meta(f, "ring.prefix", l->prefix, "pid.start", start, NULL);
    cw_anchor(f, 1000, 500, 1700000000000000500, 40);
    cw_block(f, RS_BLOCK_CLOCK, 0, 0);
    cw_standard_defs(f, 0, 2);
    cw_event(
        f,
        (struct rs_event){
            .op = CW_ALLREDUCE, .peer = -1, .start = 20000, .end = 20500, .comm = 1, .dtype = 1});
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    if (closed)
        cw_end(f, RS_END_EXIT, 30000, 1, 0);
    write_control(l, f->bytes->len, f->sequence);
    if (!closed)
        g_byte_array_append(f->bytes, (const guint8 *)"RSCBhalf a block", 16);
    l->capture = cw_save(f, l->folder, "alpha-1.rsc");
}

static RsModel *open_run(const Left *l)
{
    const gchar *paths[] = {l->capture, NULL};
    g_autoptr(GError) error = NULL;
    RsModel *m = rs_run_open(paths, NULL, NULL, &error);
    if (!m)
        fail_msg("%s", error->message);
    return m;
}

static void check_model(const RsModel *m)
{
    assert_int_equal(m->events.n, 6);
    const RsRank *r = rs_model_rank(m, 0);
    assert_string_equal(rs_model_str(m, r->note), "its process was killed");
    assert_int_equal(r->ending, RS_ENDING_KILLED);
    assert_int_equal(r->dropped, 4);
    assert_int_equal(m->events.seq[r->open_event], 3);
    assert_int_equal(m->events.start_ns[r->open_event], (70000 - 20000) / 2);
    assert_int_equal(m->events.end_ns[r->open_event], (90000 - 20000) / 2); /* seen alive so long */
    assert_int_equal(r->last_ns, (90000 - 20000) / 2);
    guint recovered = 0;
    for (guint32 i = 0; i < m->events.n; i++)
        recovered += (m->events.flags[i] & RS_FLAG_RECOVERED) != 0;
    assert_int_equal(recovered, 3);
}

static gboolean rings_exist(const Left *l)
{
    g_autofree gchar *control = g_strdup_printf("%s.0", l->prefix);
    g_autofree gchar *ring = g_strdup_printf("%s.1", l->prefix);
    return g_file_test(control, G_FILE_TEST_EXISTS) || g_file_test(ring, G_FILE_TEST_EXISTS);
}

static void orphaned_rings_are_read_without_changing_anything(void **state)
{
    Left *l = *state;
    write_ring(l);
    leave_behind(l, FALSE);
    g_autofree gchar *before = NULL, *after = NULL;
    gsize n_before, n_after;
    assert_true(g_file_get_contents(l->capture, &before, &n_before, NULL));
    g_autoptr(RsModel) m = open_run(l);
    check_model(m);
    assert_int_equal(m->warnings->len, 1);
    const RsWarning *w = g_ptr_array_index(m->warnings, 0);
    assert_non_null(
        strstr(w->text, "3 events read from memory, where its process left them as it was killed"));
    assert_true(g_file_get_contents(l->capture, &after, &n_after, NULL));
    assert_int_equal(n_before, n_after);
    assert_memory_equal(before, after, n_before);
    assert_true(rings_exist(l));
}

static void recovered_capture_reads_alone(void **state)
{
    Left *l = *state;
    write_ring(l);
    leave_behind(l, FALSE);
    guint64 events;
    g_autoptr(GError) error = NULL;
    assert_true(rs_recover(l->capture, &events, &error));
    assert_int_equal(events, 3);
    assert_false(rings_exist(l));
    g_autoptr(RsModel) m = open_run(l);
    check_model(m);
    assert_int_equal(m->warnings->len, 0);
    assert_true(rs_recover(l->capture, &events, &error)); /* again: nothing to do */
    assert_int_equal(events, 0);
}

/* A program that starts threads all the time: the one that lives has a high number. */
static void ring_of_the_five_thousandth_thread_is_recovered(void **state)
{
    Left *l = *state;
    write_ring(l);
    leave_behind(l, FALSE);
    g_autofree gchar *first = g_strdup_printf("%s.1", l->prefix);
    g_autofree gchar *late = g_strdup_printf("%s.5000", l->prefix);
    g_autofree gchar *control = g_strdup_printf("%s.0", l->prefix);
    g_autofree gchar *bytes = NULL;
    gsize n;
    assert_int_equal(g_rename(first, late), 0);
    assert_true(g_file_get_contents(control, &bytes, &n, NULL));
    const guint32 count = 5000;
    memcpy(bytes + offsetof(struct rs_ring_process, thread_count), &count, sizeof count);
    assert_true(g_file_set_contents(control, bytes, (gssize)n, NULL));
    guint64 events;
    assert_true(rs_recover(l->capture, &events, NULL));
    assert_int_equal(events, 3);
    assert_false(g_file_test(late, G_FILE_TEST_EXISTS));
}

/* More slots than go into one block, and where the first block is full an event's extension
 * follows. */
static void event_and_its_extension_stay_together_across_blocks(void **state)
{
    Left *l = *state;
    const guint64 n = 1 << 15;
    gsize bytes = RS_RING_SLOTS_OFFSET + n * sizeof(struct rs_event);
    g_autofree guint8 *file = g_malloc0(bytes);
    struct rs_ring_thread t = {.magic = RS_RING_MAGIC, .version = RS_RING_VERSION};
    t.slot_count = n;
    t.head = n - 1;
    memcpy(file, &t, sizeof t);
    for (guint64 i = 0; i < t.head; i++) {
        struct rs_event e = {.op = CW_ALLREDUCE, .peer = -1, .start = 50000 + i, .end = 50001 + i};
        if (i > 0 && i % 2 == 0) { /* every event but the first has one */
            memset(&e, 0, sizeof e);
            e.op = RS_EXT_STREAM;
        }
        memcpy(file + RS_RING_SLOTS_OFFSET + i * sizeof e, &e, sizeof e);
    }
    write_file(l, 1, file, bytes);
    leave_behind(l, FALSE);
    assert_true(rs_recover(l->capture, NULL, NULL));
    g_autoptr(RsModel) m = open_run(l);
    assert_int_equal(m->events.n, 1 + 1 + (n - 2) / 2 + 1);
    assert_int_equal(m->warnings->len, 0); /* no slot without its event */
}

/* It died with the block of the first two events in the capture, but not yet behind `tail`. */
static void block_that_arrived_is_not_repeated(void **state)
{
    Left *l = *state;
    write_ring(l);
    leave_behind(l, FALSE);
    g_autofree gchar *control = g_strdup_printf("%s.0", l->prefix);
    g_autofree gchar *data = NULL;
    gsize n;
    assert_true(g_file_get_contents(control, &data, &n, NULL));
    struct rs_ring_process *p = (struct rs_ring_process *)(void *)data;
    p->writing = (struct rs_ring_write){p->capture_bytes, 9, 0, p->next_sequence + 1};
    for (guint arrived = 0; arrived < 2; arrived++) {
        p->writing.capture_bytes = p->capture_bytes + !arrived; /* else it is still on its way */
        assert_true(g_file_set_contents(control, data, (gssize)n, NULL));
        g_autoptr(RsModel) m = open_run(l);
        assert_int_equal(m->events.n, arrived ? 5 : 6);
    }
}

static void rings_of_a_living_process_stay(void **state)
{
    Left *l = *state;
    g_autofree gchar *stat = NULL;
    assert_true(g_file_get_contents("/proc/self/stat", &stat, NULL, NULL));
    g_auto(GStrv) fields = g_strsplit(strrchr(stat, ')') + 2, " ", 0);
    l->pid = getpid();
    l->start = g_ascii_strtoull(fields[19], NULL, 10); /* field 22, the third being fields[0] */
    write_ring(l);
    leave_behind(l, FALSE);
    assert_true(rs_process_lives(l->pid, l->start));
    assert_false(rs_process_lives(l->pid, l->start + 1)); /* the pid of another, later */
    assert_true(rs_recover(l->capture, NULL, NULL));
    assert_true(rings_exist(l));
    g_autoptr(RsModel) m = open_run(l);
    assert_int_equal(m->events.n, 1);
    assert_string_equal(rs_model_str(m, rs_model_rank(m, 0)->note),
                        "its process still runs: read as far as it is written");
}

static void rings_that_are_not_this_capture_s_are_left_alone(void **state)
{
    Left *l = *state;
    write_ring(l);
    leave_behind(l, FALSE);
    l->start++; /* another process of the same pid made them */
    g_autofree gchar *control = g_strdup_printf("%s.0", l->prefix);
    g_autofree gchar *data = NULL;
    gsize n;
    assert_true(g_file_get_contents(control, &data, &n, NULL));
    memcpy(data + offsetof(struct rs_ring_process, pid_start), &l->start, sizeof l->start);
    assert_true(g_file_set_contents(control, data, (gssize)n, NULL));
    assert_true(rs_recover(l->capture, NULL, NULL));
    assert_true(rings_exist(l));
}

static void damaged_rings_lose_themselves_alone(void **state)
{
    Left *l = *state;
    write_ring(l);
    g_autofree gchar *ring = g_strdup_printf("%s.1", l->prefix);
    g_autofree gchar *good = NULL;
    gsize n;
    assert_true(g_file_get_contents(ring, &good, &n, NULL));
    leave_behind(l, FALSE);
    for (gsize at = 0; at < sizeof(struct rs_ring_thread); at++) {
        good[at] ^= (gchar)0x80;
        assert_true(g_file_set_contents(ring, good, (gssize)n, NULL));
        g_autoptr(RsModel) m = open_run(l);
        assert_true(m->events.n >= 1);
        good[at] ^= (gchar)0x80;
    }
}

static void closed_capture_needs_no_second_end(void **state)
{
    Left *l = *state;
    leave_behind(l, TRUE); /* it died between closing its capture and removing its rings */
    g_autoptr(RsModel) m = open_run(l);
    assert_int_equal(rs_model_rank(m, 0)->ending, RS_ENDING_CLEAN);
    assert_int_equal(m->warnings->len, 0);
    assert_true(rs_recover(l->capture, NULL, NULL));
    assert_false(rings_exist(l));
    g_autoptr(RsModel) again = open_run(l);
    assert_int_equal(rs_model_rank(again, 0)->ending, RS_ENDING_CLEAN);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(orphaned_rings_are_read_without_changing_anything),
        TEST(recovered_capture_reads_alone),
        TEST(ring_of_the_five_thousandth_thread_is_recovered),
        TEST(event_and_its_extension_stay_together_across_blocks),
        TEST(block_that_arrived_is_not_repeated),
        TEST(rings_of_a_living_process_stay),
        TEST(rings_that_are_not_this_capture_s_are_left_alone),
        TEST(damaged_rings_lose_themselves_alone),
        TEST(closed_capture_needs_no_second_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
