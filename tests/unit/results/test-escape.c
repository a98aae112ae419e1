/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile names on their way into terminals, JSON and CSV; numbers without printf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib/gstdio.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "escape.h"
#include "export/stream.h"
#include "run.h"

typedef void (*Escape)(GString *, const gchar *);

static void assert_escaped(Escape escape, const char *text, const char *expected)
{
    GString *s = g_string_new("<");
    escape(s, text);
    g_autofree gchar *want = g_strconcat("<", expected, NULL);
    assert_string_equal(s->str, want);
    g_string_free(s, TRUE);
}

static void text_shows_what_a_terminal_would_obey(void **state)
{
    assert_escaped(rs_escape_text, "MPI_Send", "MPI_Send");
    assert_escaped(rs_escape_text, NULL, "");
    assert_escaped(rs_escape_text, "\x1b[2J\x07", "\\x1b[2J\\x07");
    assert_escaped(rs_escape_text, "a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f");
    assert_escaped(rs_escape_text,
                   "\xc2\x9b"
                   "31m",
                   "\\u{009b}31m");
    assert_escaped(rs_escape_text,
                   "x\xe2\x80\xae"
                   "cba",
                   "x\\u{202e}cba");
    assert_escaped(rs_escape_text, "caf\xc3\xa9 \xe5\xb1\x82", "caf\xc3\xa9 \xe5\xb1\x82");
    assert_escaped(rs_escape_text,
                   "\xff"
                   "a\xc3",
                   "\xef\xbf\xbd"
                   "a\xef\xbf\xbd");
    assert_escaped(rs_escape_text, "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static void json_strings_are_strict(void **state)
{
    assert_escaped(rs_escape_json, "a\"b\\c", "\"a\\\"b\\\\c\"");
    assert_escaped(rs_escape_json, "\x01\n\t\x1f\x7f", "\"\\u0001\\n\\t\\u001f\\u007f\"");
    assert_escaped(rs_escape_json, "\xfe", "\"\\ufffd\"");
    assert_escaped(rs_escape_json, "\xe5\xb1\x82 \xf0\x9f\x98\x80",
                   "\"\xe5\xb1\x82 \xf0\x9f\x98\x80\"");
    assert_escaped(rs_escape_json, "\xe2\x80\xa8", "\"\\u2028\"");
    assert_escaped(rs_escape_json, "", "\"\"");
}

static void csv_fields_are_quoted_and_no_formulas(void **state)
{
    assert_escaped(rs_escape_csv, "plain name", "plain name");
    assert_escaped(rs_escape_csv, "a,b", "\"a,b\"");
    assert_escaped(rs_escape_csv, "say \"hi\"", "\"say \"\"hi\"\"\"");
    assert_escaped(rs_escape_csv, "=1+1", "\"'=1+1\"");
    assert_escaped(rs_escape_csv, "@SUM(A1)", "\"'@SUM(A1)\"");
    assert_escaped(rs_escape_csv, "-5.25", "-5.25");
    assert_escaped(rs_escape_csv, "-5.25|cmd", "\"'-5.25|cmd\"");
    assert_escaped(rs_escape_csv, "a\r\nb", "a\\x0d\\x0ab");
}

static void columns_are_counted_as_a_terminal_shows_them(void **state)
{
    GString *s = g_string_new(NULL);
    assert_int_equal(rs_text_width("abc"), 3);
    assert_int_equal(rs_text_width("\xe5\xb1\x82"), 2);
    assert_int_equal(rs_text_width("e\xcc\x81"), 1);
    rs_text_pad(s, "\xe5\xb1\x82x", 5);
    rs_text_pad(s, "12", -4);
    rs_text_pad(s, "too long", 3);
    rs_text_pad(s, "\xe5\xb1\x82\xe5\xb1\x82", 3); /* half a wide one fits nowhere */
    assert_string_equal(s->str, "\xe5\xb1\x82x    12too\xe5\xb1\x82 ");
    g_string_free(s, TRUE);
}

static gchar *written(const gint64 *values, guint n, gboolean us)
{
    g_autofree gchar *folder = g_dir_make_tmp("escape-XXXXXX", NULL);
    g_autofree gchar *path = g_build_filename(folder, "numbers", NULL);
    RsStream *s = rs_stream_open(path, NULL);
    assert_non_null(s);
    for (guint i = 0; i < n; i++) {
        if (us)
            rs_stream_put_us(s, values[i]);
        else
            rs_stream_put_i64(s, values[i]);
        rs_stream_put(s, " ");
    }
    assert_false(g_file_test(path, G_FILE_TEST_EXISTS)); /* not before it is whole */
    assert_true(rs_stream_finish(s, NULL));
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    gchar *text;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_unlink(path);
    assert_int_equal(g_rmdir(folder), 0); /* nothing else was left there */
    return text;
}

static void stream_writes_numbers_as_printf_does(void **state)
{
    enum { N = 30000 }; /* more than one buffer */
    g_autofree gint64 *values = g_new(gint64, N);
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    g_autoptr(GString) plain = g_string_new(NULL);
    g_autoptr(GString) us = g_string_new(NULL);
    const gint64 corners[] = {0, 9, 10, 99, 100, 999, 1000, 1001, -1, -999, G_MAXINT64, -1000000};
    for (guint i = 0; i < N; i++) {
        guint64 wide = (guint64)g_rand_int(rand) << 32 | g_rand_int(rand);
        values[i] = i < G_N_ELEMENTS(corners) ? corners[i] : (gint64)(wide >> (i % 63 + 1));
        g_string_append_printf(plain, "%" PRId64 " ", values[i]);
        guint64 a = (guint64)ABS(values[i]);
        g_string_append_printf(us, "%s%" PRIu64 ".%03u ", values[i] < 0 ? "-" : "", a / 1000,
                               (guint)(a % 1000));
    }
    g_autofree gchar *got = written(values, N, FALSE);
    assert_string_equal(got, plain->str);
    g_autofree gchar *got_us = written(values, N, TRUE);
    assert_string_equal(got_us, us->str);
}

static void stream_into_nowhere_fails_with_the_name(void **state)
{
    g_autoptr(GError) error = NULL;
    assert_null(rs_stream_open("/nonexistent-folder/x.json", &error));
    assert_true(g_error_matches(error, RS_ERROR, RS_ERROR_IO));
    assert_non_null(strstr(error->message, "/nonexistent-folder/x.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_shows_what_a_terminal_would_obey),
        cmocka_unit_test(json_strings_are_strict),
        cmocka_unit_test(csv_fields_are_quoted_and_no_formulas),
        cmocka_unit_test(columns_are_counted_as_a_terminal_shows_them),
        cmocka_unit_test(stream_writes_numbers_as_printf_does),
        cmocka_unit_test(stream_into_nowhere_fails_with_the_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
