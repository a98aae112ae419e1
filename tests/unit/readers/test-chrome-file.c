/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome traces whose text is damaged, cut or odd: what they hold is read, and what is wrong is
 * said once, with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "traces.h"

static void text_cut_before_first_event_is_an_error_that_says_so(void **state)
{
    g_autofree gchar *bracket = tr_fail("file/open-bracket-only.json");
    assert_non_null(strstr(bracket, "the file is cut before its first event"));
    g_autofree gchar *empty = tr_fail("file/empty.json");
    assert_non_null(strstr(empty, "empty.json: is empty"));
    g_autofree gchar *other = tr_fail_to_read("{\"a\": [1, 2]}", -1);
    assert_non_null(strstr(other, "JSON without trace events"));
    g_autofree gchar *none = tr_fail_to_read("{\"traceEvents\": []}", -1);
    assert_non_null(strstr(none, "a trace without events"));
}

static void array_without_end_is_read_with_a_note(void **state)
{
    g_autoptr(RsModel) m = tr_open("file/no-closing-bracket.json");
    assert_int_equal(m->events.n, 2);
    assert_int_equal(m->warnings->len, 1);
    assert_non_null(tr_warning(m, "the array of events is not closed"));
}

static void trailing_comma_is_a_warning(void **state)
{
    g_autoptr(RsModel) m = tr_open("file/trailing-comma-closed.json");
    assert_int_equal(m->events.n, 2);
    const RsWarning *w = tr_warning(m, "line 4: a comma before the end of the array");
    assert_non_null(w);
    assert_int_equal(m->warnings->len, 1);
}

static void cut_event_is_counted_with_its_place(void **state)
{
    g_autoptr(RsModel) m = tr_open("file/cut-in-record.json");
    assert_int_equal(m->events.n, 1);
    const RsWarning *w = tr_warning(m, "line 3: the file is cut inside an event; 1 place skipped");
    assert_non_null(w);
    assert_int_equal(w->offset, 85);
    g_autoptr(RsModel) utf8 = tr_open("file/cut-in-utf8.json");
    assert_int_equal(utf8->events.n, 1);
    assert_non_null(tr_warning(utf8, "cut inside an event"));
}

static void event_that_makes_no_sense_does_not_spoil_the_next(void **state)
{
    g_autoptr(RsModel) m = tr_open("file/raw-newline-in-name.json");
    assert_int_equal(m->events.n, 1);
    assert_int_equal(tr_count(m, "line1\nline2"), 1);
    const RsWarning *w = tr_warning(m, "line 1: an event makes no sense; 1 place skipped");
    assert_non_null(w);
    assert_int_equal(w->offset, 28);
}

static void control_bytes_in_a_name_are_kept(void **state)
{
    g_autoptr(RsModel) m = tr_open("file/control-chars.json");
    assert_int_equal(tr_count(m, "cfg\x01\x02\x1f"), 1);
    assert_non_null(tr_warning(m, "characters or words that JSON does not have"));
}

static void bytes_that_are_no_utf8_are_replaced(void **state)
{
    g_autoptr(RsModel) m = tr_open("file/non-utf8.json");
    assert_int_equal(m->events.n, 2);
    assert_int_equal(tr_count(m, "latin1 \xef\xbf\xbd"), 1);
    for (guint i = 0; i < m->strings->len; i++)
        assert_true(g_utf8_validate(rs_model_str(m, i), -1, NULL));
}

static void words_that_are_no_json_are_values(void **state)
{
    g_autoptr(RsModel) m = tr_open("file/nan-infinity.json");
    guint n;
    const RsArg *a = rs_model_args(m, tr_find(m, "a"), &n);
    assert_int_equal(n, 3);
    assert_string_equal(rs_model_str(m, a[0].name), "occ");
    for (guint i = 0; i < n; i++)
        assert_int_equal(a[i].type, 3);
    g_autoptr(RsModel) bare = tr_open("file/unquoted-values.json");
    assert_int_equal(tr_count(bare, "AllGather"), 1);
}

static void words_that_are_no_json_are_named_beside_other_damage(void **state)
{
    g_autoptr(RsModel) m = tr_read("[{\"ph\":\"i\",\"ts\":1,\"name\":\"a\"} nonsense\n"
                                   ",{\"ph\":\"i\",\"ts\":2,\"name\":nil},"
                                   "{\"ph\":\"i\",\"ts\":3,\"name\":nil}]",
                                   -1);
    assert_int_equal(m->events.n, 3);
    assert_non_null(tr_warning(m, "1 place skipped; 2 times: characters or words that JSON"));
    g_autoptr(RsModel) alone = tr_read("[{\"ph\":\"i\",\"ts\":2,\"name\":nil},"
                                       "{\"ph\":\"i\",\"ts\":3,\"name\":nil}]",
                                       -1);
    assert_non_null(tr_warning(alone, "words that JSON does not have; 2 such values"));
}

static void deep_nesting_costs_its_value_alone(void **state)
{
    g_autoptr(RsModel) m = tr_open("file/deep-nesting.json");
    assert_int_equal(tr_count(m, "a"), 1);
    assert_non_null(tr_warning(m, "values nested more than 512 deep are left out"));
    g_autoptr(GString) text =
        g_string_new("[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"a\",\"args\":");
    for (guint i = 0; i < 100000; i++)
        g_string_append(text, "{\"k\":[");
    g_autoptr(RsModel) cut = tr_read("[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"b\"}]", -1);
    assert_int_equal(cut->events.n, 1);
    g_autofree gchar *why = tr_fail_to_read(text->str, -1);
    assert_non_null(strstr(why, "the file is cut inside an event"));
}

static void metadata_behind_the_events_counts(void **state)
{
    g_autoptr(RsModel) m = tr_open("file/traceEvents-last-key-order.json");
    assert_int_equal(m->events.n, 2);
    assert_int_equal(rs_model_rank(m, 0)->rank, 3);
    assert_int_equal(m->world_size, 4);
    assert_int_equal(m->base_realtime_ns, 1700000000000000000);
    assert_int_equal(tr_duration(m, "a"), 10000); /* displayTimeUnit is not the times' unit */
}

static void packed_files_are_told_by_content(void **state)
{
    g_autoptr(RsModel) named = tr_open("file/gz-named-json.json");
    assert_int_equal(named->events.n, 2);
    g_autoptr(RsModel) cut = tr_open("file/truncated.json.gz");
    assert_true(cut->events.n >= 1);
    assert_non_null(tr_warning(cut, "the gzip stream is cut"));
    g_autoptr(RsModel) members = tr_open("file/two-members.json.gz");
    assert_int_equal(members->events.n, 2);
    assert_int_equal(members->warnings->len, 0);
#ifdef RS_HAVE_ZSTD
    g_autoptr(RsModel) zstd = tr_open("file/zstd-named-json.json");
    assert_int_equal(zstd->events.n, 2);
#else
    g_autofree gchar *why = tr_fail("file/zstd-named-json.json");
    assert_non_null(strstr(why, "neither"));
#endif
}

/* ---- other texts ---- */

#define EVENT "{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2}"

static void marks_and_line_ends_of_other_systems_are_read(void **state)
{
    g_autoptr(RsModel) bom = tr_read("\xef\xbb\xbf[\r\n" EVENT ",\r\n" EVENT "\r\n]\r\n", -1);
    assert_int_equal(bom->events.n, 2);
    assert_int_equal(bom->warnings->len, 0);
    static const gunichar2 mark = 0xfeff;
    g_autofree gunichar2 *wide = g_utf8_to_utf16("[" EVENT "]", -1, NULL, NULL, NULL);
    glong n = 0;
    while (wide[n])
        n++;
    g_autoptr(GByteArray) text = g_byte_array_new();
    g_byte_array_append(text, (const guint8 *)&mark, 2);
    g_byte_array_append(text, (const guint8 *)wide, (guint)n * 2);
    g_autoptr(RsModel) little = tr_read((const gchar *)text->data, text->len);
    assert_int_equal(tr_count(little, "a"), 1);
    for (guint i = 0; i + 1 < text->len; i += 2) {
        guint8 first = text->data[i];
        text->data[i] = text->data[i + 1];
        text->data[i + 1] = first;
    }
    g_autoptr(RsModel) big = tr_read((const gchar *)text->data, text->len);
    assert_int_equal(tr_count(big, "a"), 1);
}

static void of_a_key_twice_the_last_counts(void **state)
{
    g_autoptr(RsModel) m =
        tr_read("[{\"ph\":\"B\",\"ph\":\"X\",\"name\":\"x\",\"name\":\"y\",\"ts\":1,"
                "\"dur\":9,\"dur\":2}]",
                -1);
    assert_int_equal(tr_duration(m, "y"), 2000);
}

static void writers_that_interrupt_each_other_lose_what_they_cut(void **state)
{
    g_autoptr(RsModel) m = tr_read(
        "[\n" EVENT ",\n{\"ph\":\"X\",\"name\":\"cu\n" EVENT ",\n\"ts\":3}\n" EVENT "\n]", -1);
    assert_int_equal(tr_count(m, "a"), 3);
    assert_non_null(tr_warning(m, "skipped"));
}

static void a_name_of_a_mebibyte_crosses_blocks(void **state)
{
    g_autofree gchar *name = g_strnfill(1 << 20, 'n');
    g_autoptr(GString) text = g_string_new("[");
    for (guint i = 0; i < 5; i++)
        g_string_append_printf(text, "%s{\"ph\":\"X\",\"name\":\"%s%u\",\"ts\":%u,\"dur\":1}",
                               i ? "," : "", name, i, i + 1);
    g_string_append(text, "]");
    g_autoptr(RsModel) m = tr_read(text->str, (gssize)text->len);
    assert_int_equal(m->events.n, 5);
    assert_int_equal(m->warnings->len, 0);
}

static void lines_without_an_array_are_events(void **state)
{
    g_autoptr(RsModel) m = tr_read(EVENT "\n" EVENT "\n" EVENT "\n", -1);
    assert_int_equal(m->events.n, 3);
}

static gchar *pack(const gchar *bytes, gsize n, gsize *ret_n)
{
    g_autofree gchar *copy = g_memdup2(bytes, n + 1);
    gchar *packed = g_malloc(n + 100);
    z_stream z = {.next_in = (Bytef *)copy,
                  .avail_in = (uInt)n,
                  .next_out = (Bytef *)packed,
                  .avail_out = (uInt)n + 100};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *ret_n = z.total_out;
    deflateEnd(&z);
    return packed;
}

static void assert_nothing(const gchar *bytes, gsize n, const gchar *why)
{
    g_autofree gchar *told = tr_fail_to_read(bytes, (gssize)n);
    if (!strstr(told, why))
        fail_msg("%s", told);
}

static void packed_files_that_hold_nothing_say_why(void **state)
{
    static const gchar text[] = "[" EVENT "]";
    gsize n, n2;
    g_autofree gchar *once = pack(text, sizeof text - 1, &n);
    g_autofree gchar *twice = pack(once, n, &n2);
    assert_nothing(twice, n2, "trace.json: is packed twice: unpack it once");
    assert_nothing(once, 10, "trace.json: the gzip stream is cut at its end, byte 10");
    once[10] = (gchar)0xff; /* no such block */
    assert_nothing(once, n, "trace.json: the gzip stream is damaged at byte ");
    g_autofree gchar *empty = pack("", 0, &n);
    assert_nothing(empty, n, "trace.json: is empty when it is unpacked");
}

static void zstd_may_begin_with_a_frame_of_the_packers_own(void **state)
{
#ifdef RS_HAVE_ZSTD
    static const guint8 own[] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 'a', 'b', 'c', 'd'};
    g_autofree gchar *bytes = NULL;
    gsize n;
    assert_true(g_file_get_contents(RS_CASES "/file/zstd-named-json.json", &bytes, &n, NULL));
    g_autoptr(GByteArray) all = g_byte_array_new();
    g_byte_array_append(all, own, sizeof own);
    g_byte_array_append(all, (const guint8 *)bytes, (guint)n);
    g_autoptr(RsModel) m = tr_read((const gchar *)all->data, all->len);
    assert_int_equal(m->events.n, 2);
#endif
}

/* Cut anywhere, it is read up to there or refused, never worse. */
static void every_cut_gives_what_stands_before_it(void **state)
{
    static const gchar text[] = "{\"schemaVersion\":1,\"traceEvents\":[\n" EVENT ",\n" EVENT
                                ",\n" EVENT "\n],\"distributedInfo\":{\"rank\":1}}";
    const gchar *end = text;
    for (gsize n = 1; n < sizeof text; n++) {
        guint whole = 0;
        for (end = text; (end = strstr(end, EVENT)) && end + strlen(EVENT) <= text + n; end++)
            whole++;
        if (whole == 0) {
            g_free(tr_fail_to_read(text, (gssize)n));
            continue;
        }
        g_autoptr(RsModel) m = tr_read(text, (gssize)n);
        assert_int_equal(m->events.n, whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_cut_before_first_event_is_an_error_that_says_so),
        cmocka_unit_test(array_without_end_is_read_with_a_note),
        cmocka_unit_test(trailing_comma_is_a_warning),
        cmocka_unit_test(cut_event_is_counted_with_its_place),
        cmocka_unit_test(event_that_makes_no_sense_does_not_spoil_the_next),
        cmocka_unit_test(control_bytes_in_a_name_are_kept),
        cmocka_unit_test(bytes_that_are_no_utf8_are_replaced),
        cmocka_unit_test(words_that_are_no_json_are_values),
        cmocka_unit_test(words_that_are_no_json_are_named_beside_other_damage),
        cmocka_unit_test(deep_nesting_costs_its_value_alone),
        cmocka_unit_test(metadata_behind_the_events_counts),
        cmocka_unit_test(packed_files_are_told_by_content),
        cmocka_unit_test(marks_and_line_ends_of_other_systems_are_read),
        cmocka_unit_test(of_a_key_twice_the_last_counts),
        cmocka_unit_test(writers_that_interrupt_each_other_lose_what_they_cut),
        cmocka_unit_test(a_name_of_a_mebibyte_crosses_blocks),
        cmocka_unit_test(lines_without_an_array_are_events),
        cmocka_unit_test(packed_files_that_hold_nothing_say_why),
        cmocka_unit_test(zstd_may_begin_with_a_frame_of_the_packers_own),
        cmocka_unit_test(every_cut_gives_what_stands_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
