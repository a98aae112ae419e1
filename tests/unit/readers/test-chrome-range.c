/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that a file may hold and nothing can be: they cost no memory, and nothing overflows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "traces.h"

#define KERNEL                                                                                     \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"pid\":0,\"tid\":7,"   \
    "\"ts\":5,\"dur\":3,\"args\":{\"Collective name\":\"allreduce\",\"dtype\":\"Float\","          \
    "\"Process Group Name\":\"0\",\"Seq\":1,\"In msg nelems\":18446744073709551615,"

static void sizes_beyond_belief_are_no_members(void **state)
{
    g_autoptr(RsModel) m = tr_read("{\"distributedInfo\":{\"rank\":0,\"world_size\":2000000000},"
                                   "\"traceEvents\":[" KERNEL "\"Group size\":2000000000}}]}",
                                   -1);
    assert_int_equal(tr_count(m, "allreduce"), 1);
    assert_int_equal(m->ranks->len, 1);
}

static void many_groups_of_all_ranks_share_what_there_is(void **state)
{
    GString *text = g_string_new("{\"distributedInfo\":{\"rank\":0,\"world_size\":1000000},"
                                 "\"traceEvents\":[");
    for (guint i = 0; i < 2000; i++)
        g_string_append_printf(text,
                               "%s" KERNEL "\"Process Group Name\":\"%u\","
                               "\"Group size\":1000000}}",
                               i ? "," : "", i);
    g_string_append(text, "]}");
    g_autoptr(RsModel) m = tr_read(text->str, -1); /* 8 GB, were each to have its own list */
    assert_int_equal(tr_count(m, "allreduce"), 2000);
    g_string_free(text, TRUE);
}

static void members_beyond_belief_make_no_world(void **state)
{
    g_autoptr(RsModel) m = tr_read(
        "[" KERNEL "\"Group size\":2,\"Process Group Ranks\":\"[0, 2147483647]\",\"Rank\":0}}]",
        -1);
    assert_int_equal(tr_count(m, "allreduce"), 1);
    assert_int_equal(m->ranks->len, 1);
    assert_in_range(m->world_size, 0, 2);
}

static void ticks_beyond_belief_are_no_ranks(void **state)
{
    g_autoptr(RsModel) m =
        tr_read("[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"t\"}},"
                "{\"ph\":\"B\",\"name\":\"NEGOTIATE_ALLREDUCE\",\"pid\":1,\"ts\":1},"
                "{\"ph\":\"X\",\"name\":\"0\",\"pid\":1,\"ts\":2,\"dur\":0},"
                "{\"ph\":\"X\",\"name\":\"999999\",\"pid\":1,\"ts\":2,\"dur\":0},"
                "{\"ph\":\"E\",\"pid\":1,\"ts\":3}]",
                -1);
    assert_int_equal(m->ranks->len, 1);
    assert_int_equal(tr_count(m, "999999"), 1);
}

static void counters_beyond_their_range_are_counted(void **state)
{
    g_autoptr(RsModel) m = tr_read("[{\"ph\":\"C\",\"name\":\"n\",\"pid\":1,\"ts\":1,\"args\":"
                                   "{\"v\":1e39,\"w\":-1e300,\"x\":3e38}}]",
                                   -1);
    assert_int_equal(m->events.n, 1);
    assert_int_equal(tr_count(m, "n x"), 1);
    assert_non_null(tr_warning(m, "2 values of counters beyond 3.4e38"));
}

/* What is wrong here is seen by the sanitizer of undefined behaviour. */
static void what_a_file_does_not_say_of_its_rank_is_unknown(void **state)
{
    g_autoptr(RsModel) m = tr_read("{\"distributedInfo\":{\"backend\":\"nccl\"},\"metadata\":{},"
                                   "\"traceEvents\":[" KERNEL "\"Rank\":{}}}]}",
                                   -1);
    assert_int_equal(m->ranks->len, 1);
}

/* As above. */
static void times_at_the_ends_of_their_range_do_not_overflow(void **state)
{
    static const gchar *const times[] = {"9223372036854775807",  "9223372036854775808",
                                         "18446744073709551615", "18446744073709551616",
                                         "4611686018427387904",  "-4611686018427387904",
                                         "4611686018427387.904", "-4611686018427387.904"};
    for (guint i = 0; i < G_N_ELEMENTS(times) * G_N_ELEMENTS(times); i++) {
        const gchar *a = times[i % G_N_ELEMENTS(times)], *b = times[i / G_N_ELEMENTS(times)];
        g_autofree gchar *text = g_strdup_printf(
            "{\"baseTimeNanoseconds\":%s,\"traceEvents\":[{\"ph\":\"M\",\"name\":\"x\",\"args\":"
            "{\"start_time_since_epoch_in_micros\":%s}},{\"ph\":\"X\",\"name\":\"first\",\"ts\":%s,"
            "\"dur\":%s},{\"ph\":\"X\",\"name\":\"second\",\"ts\":%s,\"dur\":%s}]}",
            a, b, a, b, b, a);
        g_autoptr(RsModel) m = tr_read(text, -1);
        assert_true(m->events.n <= 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_beyond_belief_are_no_members),
        cmocka_unit_test(many_groups_of_all_ranks_share_what_there_is),
        cmocka_unit_test(members_beyond_belief_make_no_world),
        cmocka_unit_test(ticks_beyond_belief_are_no_ranks),
        cmocka_unit_test(counters_beyond_their_range_are_counted),
        cmocka_unit_test(what_a_file_does_not_say_of_its_rank_is_unknown),
        cmocka_unit_test(times_at_the_ends_of_their_range_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
