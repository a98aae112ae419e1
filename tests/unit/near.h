/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near.h - assert_near(value, expected, most): they differ by at most `most`, in double. For what
 * cmocka's assert_float_equal is: that of 1.1.5 compares floats, and takes NaN and infinity for
 * equal to any number. After cmocka.h.
 */
#ifndef NEAR_H
#define NEAR_H

#include <math.h>

#define assert_near(value, expected, most) check_near(value, expected, most, __FILE__, __LINE__)

static inline void check_near(double value, double expected, double most, const char *file,
                              int line)
{
    if (fabs(value - expected) <= most)
        return;
    print_error("%.17g is not %.17g, by more than %g\n", value, expected, most);
    _fail(file, line);
}

#endif
