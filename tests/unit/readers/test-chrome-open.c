/* SPDX-License-Identifier: Apache-2.0 */
/* Slices that end in any order find their beginnings, however many are open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "readers/chrome-open.h"
#include "traces.h"

#define NAMES 5
#define OPEN  200000

/* The same, by looking through all of them. */
static gboolean take_plainly(GArray *open, RsStr name, guint32 *ret_row, gboolean *ret_inside)
{
    for (guint i = open->len; i-- > 0;) {
        RsChromeOpenSlice s = g_array_index(open, RsChromeOpenSlice, i);
        if (name && s.name != name)
            continue;
        *ret_row = s.row;
        *ret_inside = i + 1 < open->len;
        g_array_remove_index(open, i);
        return TRUE;
    }
    return FALSE;
}

static void take_both(RsChromeOpen *o, GArray *plain, RsStr name)
{
    guint32 row = 0, row_plain = 0;
    gboolean inside = FALSE, inside_plain = FALSE;
    gboolean any = take_plainly(plain, name, &row_plain, &inside_plain);
    assert_int_equal(rs_chrome_open_take(o, name, &row, &inside), any);
    assert_int_equal(row, row_plain);
    assert_int_equal(inside, inside_plain);
}

static void check_rest(RsChromeOpen *o, GArray *plain)
{
    guint at = 0, n = 0;
    for (guint32 row; rs_chrome_open_next(o, &at, &row); n++)
        assert_int_equal(row, g_array_index(plain, RsChromeOpenSlice, n).row);
    assert_int_equal(n, plain->len);
    rs_chrome_open_clear(o);
    g_array_set_size(plain, 0);
}

static void take_any_order_finds_the_innermost_of_the_name(void **state)
{
    guint32 seed = g_random_int();
    g_autoptr(GRand) r = g_rand_new_with_seed(seed);
    g_autoptr(GArray) plain = g_array_new(FALSE, FALSE, sizeof(RsChromeOpenSlice));
    g_auto(RsChromeOpen) o;
    rs_chrome_open_init(&o);
    print_message("seed %u\n", seed);
    for (guint32 i = 0; i < 200000; i++) {
        RsChromeOpenSlice s = {.name = (RsStr)g_rand_int_range(r, 0, NAMES), .row = i};
        if (g_rand_int_range(r, 0, 1000) == 0) {
            check_rest(&o, plain);
        } else if (g_rand_int_range(r, 0, 100) < 52) {
            rs_chrome_open_push(&o, s.name, s.row);
            g_array_append_val(plain, s);
        } else {
            take_both(&o, plain, s.name);
        }
    }
    check_rest(&o, plain);
}

/* `n` of begins that stay open, then as many ends of another name. */
static gchar *dup_mismatched(const gchar *begin, const gchar *end)
{
    GString *text = g_string_new("[");
    for (guint i = 0; i < 2 * OPEN; i++)
        g_string_append_printf(text,
                               "%s{\"ph\":\"%s\",\"id\":1,\"name\":\"%s\",\"pid\":1,\"tid\":1,"
                               "\"ts\":%u}",
                               i ? "," : "", i < OPEN ? begin : end, i < OPEN ? "a" : "z", i);
    g_string_append_c(text, ']');
    return g_string_free(text, FALSE);
}

static void ends_of_another_name_do_not_search_all_that_is_open(void **state)
{
    g_autofree gchar *stack = dup_mismatched("B", "E"), *async = dup_mismatched("b", "e");
    g_autoptr(RsModel) m = tr_read(stack, -1);
    assert_non_null(tr_warning(m, "200000 ends without a beginning"));
    assert_non_null(tr_warning(m, "200000 without an end"));
    g_autoptr(RsModel) of_async = tr_read(async, -1);
    assert_non_null(tr_warning(of_async, "200000 asynchronous ends without a beginning"));
    assert_non_null(tr_warning(of_async, "200000 without an end"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(take_any_order_finds_the_innermost_of_the_name),
        cmocka_unit_test(ends_of_another_name_do_not_search_all_that_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
