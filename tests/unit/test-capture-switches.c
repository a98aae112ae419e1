/* SPDX-License-Identifier: Apache-2.0 */
/* Captures written by hand whose process had capture switched off and on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture-writer.h"
#include "run.h"

static CwFile *begin(void)
{
    CwFile *f = cw_new();
    cw_process(f, 0, 1, "alpha", "alpha", 500, "1000000000");
    cw_anchor(f, 1000000, 1000000, 1700000000000000000, 40);
    cw_block(f, RS_BLOCK_CLOCK, 0, 0);
    cw_standard_defs(f, 0, 1);
    return f;
}

static void put_call(CwFile *f, guint16 op, guint64 start, guint64 end, guint32 number)
{
    cw_event(f, (struct rs_event){.op = op,
                                  .flags = op == CW_BARRIER ? 0 : RS_EVENT_EXT,
                                  .start = start,
                                  .end = end,
                                  .count = 1,
                                  .comm = op == CW_WAIT ? 0 : 1,
                                  .dtype = 1,
                                  .seq = number});
}

static void put_switch(CwFile *f, guint64 tick, guint32 on)
{
    cw_put(f, &(struct rs_switch){.tick = tick, .on = on, .why = RS_SWITCH_CONTROL},
           sizeof(struct rs_switch));
}

static RsModel *finish(CwFile *f, const gchar *folder)
{
    g_autoptr(GError) error = NULL;
    const gchar *paths[] = {folder, NULL};
    cw_end(f, RS_END_FINALIZE, 10000, 0, 0);
    g_free(cw_save(f, folder, "alpha-500.rsc"));
    cw_free(f);
    RsModel *m = rs_run_open(paths, NULL, NULL, &error);
    if (!m)
        fail_msg("%s", error->message);
    return m;
}

static const RsOffTime *off_time(const RsModel *m, guint i)
{
    return &g_array_index(m->offs, RsOffTime, i);
}

/* A recovered capture may have one twice, and the last blocks before those of the rings. */
static void switches_in_any_order_are_times_off(void **state)
{
    CwFile *f = begin();
    put_call(f, CW_BARRIER, 1000, 1500, 0);
    put_call(f, CW_BARRIER, 5000, 5500, 1);
    put_call(f, CW_BARRIER, 9900, 9950, 2);
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    put_switch(f, 6000, 0);
    put_switch(f, 7000, 1);
    put_switch(f, 9960, 0);
    cw_block(f, RS_BLOCK_SWITCH, 0, 0);
    put_switch(f, 2000, 0);
    put_switch(f, 4000, 1);
    put_switch(f, 6000, 0);
    cw_block(f, RS_BLOCK_SWITCH, 0, 0);
    g_autoptr(RsModel) m = finish(f, *state);
    const RsRank *r = rs_model_rank(m, 0);
    assert_int_equal(m->warnings->len, 0);
    assert_int_equal(m->offs->len, 3);
    assert_int_equal(r->off_count, 3);
    assert_int_equal(off_time(m, 0)->start_ns, 1000); /* after the first event */
    assert_int_equal(off_time(m, 0)->end_ns, 3000);
    assert_int_equal(off_time(m, 1)->start_ns, 5000);
    assert_int_equal(off_time(m, 1)->end_ns, 6000);
    assert_int_equal(off_time(m, 2)->start_ns, 8960); /* to the end */
    assert_int_equal(r->off_until_ns, off_time(m, 2)->end_ns);
    assert_int_equal(r->off_ns, 3000 + off_time(m, 2)->end_ns - 8960);
    assert_int_equal(r->dropped, 0);
    static const struct {
        gint64 from, to;
        gboolean off;
    } asked[] = {{0, 999, FALSE},     {0, 1000, TRUE},          {1500, 1600, TRUE},
                 {3000, 3100, TRUE},  {3001, 4999, FALSE},      {4000, 8000, TRUE},
                 {6001, 8959, FALSE}, {G_MININT64, 999, FALSE}, {G_MININT64, G_MAXINT64, TRUE}};
    for (guint i = 0; i < G_N_ELEMENTS(asked); i++)
        assert_int_equal(rs_model_was_off(m, 0, asked[i].from, asked[i].to), asked[i].off);
}

static void capture_that_was_never_off_has_no_such_time(void **state)
{
    CwFile *f = begin();
    put_call(f, CW_BARRIER, 1000, 1500, 0);
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    g_autoptr(RsModel) m = finish(f, *state);
    assert_int_equal(m->offs->len, 0);
    assert_false(rs_model_was_off(m, 0, G_MININT64, G_MAXINT64));
    assert_false(rs_model_rank(m, 0)->unseen);
}

/* The value may have been given to another request meanwhile. */
static void request_open_over_a_time_off_is_completed_by_nothing_later(void **state)
{
    CwFile *f = begin();
    for (guint i = 0; i < 2; i++) {
        put_call(f, CW_IALLREDUCE, 1000 + 2000 * i, 1100 + 2000 * i, i);
        cw_request(f, 0x10 + i);
    }
    for (guint i = 0; i < 2; i++) { /* off from 2000 to 2500: between the two */
        put_call(f, CW_WAIT, 4000 + 1000 * i, 4100 + 1000 * i, 0);
        cw_done(f, 0x10 + i, -3, 0);
    }
    cw_block(f, RS_BLOCK_EVENTS, 0, 0);
    put_switch(f, 2000, 0);
    put_switch(f, 2500, 1);
    cw_block(f, RS_BLOCK_SWITCH, 0, 0);
    g_autoptr(RsModel) m = finish(f, *state);
    guint32 linked = 0;
    for (guint32 i = 0; i < m->events.n; i++)
        if (g_str_equal(rs_model_str(m, rs_model_sig(m, i)->name), "MPI_Iallreduce")) {
            assert_int_equal(m->events.link[i] != RS_NONE, m->events.start_ns[i] > 0);
            linked += m->events.link[i] != RS_NONE;
        }
    assert_int_equal(linked, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, cw_setup, cw_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(switches_in_any_order_are_times_off),
        TEST(capture_that_was_never_off_has_no_such_time),
        TEST(request_open_over_a_time_off_is_completed_by_nothing_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
