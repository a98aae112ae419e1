/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of words, as settings hold them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "settings.h"

static void find(const char *list, uint32_t mask, const char *unknown)
{
    const char *first;
    size_t n;
    assert_int_equal(rs_words_find("one,two,twofold", list, &first, &n), mask);
    assert_int_equal(first != NULL, unknown != NULL);
    if (unknown) {
        assert_int_equal(n, strlen(unknown));
        assert_memory_equal(first, unknown, n);
    }
}

static void find_knownWords_givesTheirBits(void **state)
{
    find("one", 1, NULL);
    find("twofold,one", 5, NULL);
    find("two,two", 2, NULL);
}

static void find_unknownWords_givesTheFirst(void **state)
{
    find("tw,one,three", 1, "tw");
    find("twofolds", 0, "twofolds");
    find("one,", 1, "");
    find(",two", 2, "");
    find("one two", 0, "one two");
}

/* Bits are places in the list: the enums must follow it. */
static void find_theTracersWords_givesTheirParts(void **state)
{
    const char *unknown;
    size_t n;
    assert_int_equal(rs_words_find(RS_TRACE_WORDS, "nccl", &unknown, &n), RS_PART_NCCL);
    assert_int_equal(rs_words_find(RS_TRACE_WORDS, "mpi", &unknown, &n), RS_PART_MPI);
    assert_int_equal(rs_words_find(RS_TRACE_WORDS, "nvtx", &unknown, &n), RS_PART_NVTX);
    assert_int_equal(rs_words_find(RS_TRACE_WORDS, "io", &unknown, &n), RS_PART_IO);
    assert_int_equal(rs_words_find(RS_TRACE_WORDS, "counters", &unknown, &n), RS_PART_COUNTERS);
    assert_int_equal(rs_words_find(RS_TRACE_WORDS, "cuda", &unknown, &n), RS_PART_CUDA);
    assert_int_equal(rs_words_find(RS_TRACE_WORDS, "gloo", &unknown, &n), RS_PART_GLOO);
    assert_int_equal(rs_words_find(RS_EXPORT_WORDS, "chrome", &unknown, &n), RS_EXPORT_CHROME);
    assert_int_equal(rs_words_find(RS_EXPORT_WORDS, "sqlite", &unknown, &n), RS_EXPORT_SQLITE);
    assert_int_equal(rs_words_find(RS_EXPORT_WORDS, "none", &unknown, &n), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_knownWords_givesTheirBits),
        cmocka_unit_test(find_unknownWords_givesTheFirst),
        cmocka_unit_test(find_theTracersWords_givesTheirParts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
