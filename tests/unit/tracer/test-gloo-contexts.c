/* SPDX-License-Identifier: Apache-2.0 */
/* Which number a call of Gloo has on its context, by its tag; and who a context is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gloo/contexts.h"

static unsigned notes;

static void meta(const char *key, const char *value)
{
    assert_string_equal(key, "off.gloo.matching");
    notes++;
}

static const struct rs_core core = {.meta = meta};
const struct rs_core *rs_core = &core;
__thread struct rs_thread *rs_self;

static struct rs_gloo_context *fresh(void)
{
    static char place;
    rs_gloo_context_made(&place, 0, 2);
    notes = 0;
    return rs_gloo_context_find(&place);
}

static uint32_t number(struct rs_gloo_context *c, uint32_t tag, uint32_t thread)
{
    uint32_t n = UINT32_MAX;
    assert_true(rs_gloo_number(c, true, tag, thread, &n));
    return n;
}

static void number_tagsInAnyOrderOfTwoThreads_areTheNumbers(void **state)
{
    struct rs_gloo_context *c = fresh();
    for (uint32_t i = 0; i < 5000; i++) {
        assert_int_equal(number(c, i ^ 3, i & 1), i ^ 3);
        assert_false(c->counting);
    }
    c = fresh();
    for (uint32_t i = 0; i < 400; i++) /* a tag out of order by as much */
        assert_int_equal(number(c, i + 1, 0), i + 1);
    assert_int_equal(number(c, 0, 1), 0);
}

static void number_oneTagAgainAndAgain_countsTheCalls(void **state)
{
    struct rs_gloo_context *c = fresh();
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(number(c, 0, i % 3), i);
    c = fresh();
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(number(c, 77, 0), 77 + i);
    assert_int_equal(notes, 0);
}

static void number_tagsOfOneThreadAgain_goesOnBehindThem(void **state)
{
    struct rs_gloo_context *c = fresh();
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(number(c, i % 100, 0), i);
    c = fresh();
    assert_int_equal(number(c, 100000, 0), 100000);
    assert_int_equal(number(c, 0, 0), 0); /* in another word of tags */
    assert_int_equal(number(c, 0, 0), 100001);
}

static void number_tagsOfTheirOwnThreadsAgain_isNoneAndIsSaidOnce(void **state)
{
    struct rs_gloo_context *c = fresh();
    uint32_t n;
    for (uint32_t i = 0; i < 3; i++)
        rs_gloo_number(c, true, 1, 1, &n);
    rs_gloo_number(c, true, 2, 2, &n);
    assert_false(rs_gloo_number(c, true, 1, 1, &n));
    assert_false(rs_gloo_number(c, true, 2, 2, &n));
    assert_int_equal(notes, 1);
}

static void number_withoutTags_countsTheCallsOfOneThread(void **state)
{
    struct rs_gloo_context *c = fresh();
    uint32_t n;
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(rs_gloo_number(c, false, 0, 5, &n));
        assert_int_equal(n, i);
    }
}

static void connected_theSameAddressesInOtherPieces_isTheSameContext(void **state)
{
    struct rs_gloo_context *c = fresh();
    struct rs_gloo_mesh whole = {0}, pieces = {0}, other = {0};
    rs_gloo_mesh_add(&whole, "127.0.0.1:4000 127.0.0.1:4001", 29);
    rs_gloo_mesh_add(&pieces, "127.0.0.1:4000 ", 15);
    rs_gloo_mesh_add(&pieces, "127.0.0.1:4001", 14);
    rs_gloo_mesh_add(&other, "127.0.0.1:4000 127.0.0.1:4002", 29);
    rs_gloo_context_connected(c, &whole);
    uint64_t first = c->identity;
    c = fresh();
    assert_int_equal(c->identity, 0);
    rs_gloo_context_connected(c, &pieces);
    assert_int_equal(c->identity, first);
    rs_gloo_context_connected(c, &other);
    assert_int_not_equal(c->identity, first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(number_tagsInAnyOrderOfTwoThreads_areTheNumbers),
        cmocka_unit_test(number_oneTagAgainAndAgain_countsTheCalls),
        cmocka_unit_test(number_tagsOfOneThreadAgain_goesOnBehindThem),
        cmocka_unit_test(number_tagsOfTheirOwnThreadsAgain_isNoneAndIsSaidOnce),
        cmocka_unit_test(number_withoutTags_countsTheCallsOfOneThread),
        cmocka_unit_test(connected_theSameAddressesInOtherPieces_isTheSameContext),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
