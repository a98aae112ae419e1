/* SPDX-License-Identifier: Apache-2.0 */
/* The header has to please the strict; the rest is C. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wold-style-cast"
#include <ringscope.h>
#pragma GCC diagnostic pop

#include "marks-program.c"
