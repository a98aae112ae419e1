/* SPDX-License-Identifier: Apache-2.0 */
/* Known values of RFC 3720, appendix B.4, by the CPU's instruction and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crc32c.h"

static void crc32c_of_known_texts_is_known(void **state)
{
    uint8_t zeros[32] = {0}, ones[32], rising[32];
    memset(ones, 0xff, sizeof ones);
    for (size_t i = 0; i < sizeof rising; i++)
        rising[i] = (uint8_t)i;
    assert_int_equal(rs_crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(rs_crc32c(0, zeros, 32), 0x8a9136aau);
    assert_int_equal(rs_crc32c(0, ones, 32), 0x62a8ab43u);
    assert_int_equal(rs_crc32c(0, rising, 32), 0x46dd794eu);
    assert_int_equal(rs_crc32c(0, "", 0), 0);
}

static void crc32c_portable_equals_fast_at_every_length_and_place(void **state)
{
    uint8_t data[300];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 131 + (i >> 3) * 7 + 5);
    for (size_t at = 0; at < 9; at++)
        for (size_t n = 0; at + n <= sizeof data; n++)
            assert_int_equal(rs_crc32c(0, data + at, n), rs_crc32c_portable(0, data + at, n));
}

static void crc32c_in_parts_equals_the_whole(void **state)
{
    const char text[] = "the quick brown fox jumps over the lazy dog";
    for (size_t cut = 0; cut < sizeof text; cut++)
        assert_int_equal(rs_crc32c(rs_crc32c(0, text, cut), text + cut, sizeof text - cut),
                         rs_crc32c(0, text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_of_known_texts_is_known),
        cmocka_unit_test(crc32c_portable_equals_fast_at_every_length_and_place),
        cmocka_unit_test(crc32c_in_parts_equals_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
