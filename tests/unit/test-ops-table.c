/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coll-names.h"
#include "ops.h"

static void rs_op_table_all_rows_numbers_are_sorted_and_unique(void **state)
{
    (void)state;
    assert_true(rs_op_table_len > 100);
    for (size_t i = 1; i < rs_op_table_len; i++)
        assert_true(rs_op_table[i - 1].op < rs_op_table[i].op);
}

static void rs_op_table_all_rows_numbers_lie_in_their_apis_range(void **state)
{
    (void)state;
    for (size_t i = 0; i < rs_op_table_len; i++) {
        const struct rs_op_info *r = &rs_op_table[i];
        static const struct {
            uint16_t first, last;
            char prefix[5];
        } apis[RS_API_COUNT] = {
            [RS_API_MPI] = {100, 1099, "MPI"},
            [RS_API_NCCL] = {1100, 1399, "nccl"},
            [RS_API_CUDA] = {1400, 1499, "cuda"},
            [RS_API_GLOO] = {1500, 1599, "gloo"},
        };
        assert_in_range(r->op, apis[r->api].first, apis[r->api].last);
        assert_int_equal(strncmp(r->name, apis[r->api].prefix, strlen(apis[r->api].prefix)), 0);
    }
}

static void rs_op_table_all_rows_names_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < rs_op_table_len; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(rs_op_table[i].name, rs_op_table[j].name);
}

static void rs_op_find_each_row_finds_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < rs_op_table_len; i++)
        assert_ptr_equal(rs_op_find(rs_op_table[i].op), &rs_op_table[i]);
}

static void rs_op_find_unknown_number_is_null(void **state)
{
    (void)state;
    assert_null(rs_op_find(0));
    assert_null(rs_op_find(99));
    assert_null(rs_op_find(1099));
    assert_null(rs_op_find(UINT16_MAX));
}

/* Numbers that captures of this version hold: they must never mean anything else. */
static void rs_op_find_known_numbers_keep_their_names(void **state)
{
    static const struct {
        uint16_t op;
        const char *name;
    } known[] = {
        {100, "MPI_Init"},       {102, "MPI_Finalize"},  {120, "MPI_Comm_dup"},
        {200, "MPI_Send"},       {208, "MPI_Recv"},      {280, "MPI_Wait"},
        {320, "MPI_Barrier"},    {332, "MPI_Allreduce"}, {360, "MPI_Ibarrier"},
        {372, "MPI_Iallreduce"}, {540, "MPI_Bcast_c"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_non_null(rs_op_find(known[i].op));
        assert_string_equal(rs_op_find(known[i].op)->name, known[i].name);
    }
}

/* The analyzer knows a collective by its name, so that it reads captures of later tracers too. */
static void rs_op_table_collectives_are_what_their_names_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < rs_op_table_len; i++) {
        const struct rs_op_info *r = &rs_op_table[i];
        gchar name[64];
        gboolean vector;
        g_strlcpy(name, r->name, sizeof name);
        if (g_str_has_suffix(name, "_c") || strstr(name, "eighbor") ||
            (r->klass != RS_CLASS_COLL && r->klass != RS_CLASS_COLL_START))
            continue;
        assert_int_equal(rs_coll_of_name(name, &vector), r->coll);
        if (r->coll != RS_COLL_NONE)
            assert_int_equal(vector, r->vector);
    }
}

static void rs_coll_name_each_is_named(void **state)
{
    (void)state;
    assert_string_equal(rs_coll_name(RS_COLL_ALLREDUCE), "allreduce");
    assert_string_equal(rs_coll_name(RS_COLL_REDUCE_SCATTER), "reduce_scatter");
    assert_string_equal(rs_coll_name(RS_COLL_SCAN), "scan");
    assert_string_equal(rs_coll_name(RS_COLL_COUNT), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rs_op_table_all_rows_numbers_are_sorted_and_unique),
        cmocka_unit_test(rs_op_table_all_rows_numbers_lie_in_their_apis_range),
        cmocka_unit_test(rs_op_table_all_rows_names_are_unique),
        cmocka_unit_test(rs_op_find_each_row_finds_itself),
        cmocka_unit_test(rs_op_find_unknown_number_is_null),
        cmocka_unit_test(rs_op_find_known_numbers_keep_their_names),
        cmocka_unit_test(rs_op_table_collectives_are_what_their_names_say),
        cmocka_unit_test(rs_coll_name_each_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
