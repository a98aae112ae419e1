/* SPDX-License-Identifier: Apache-2.0 */
/* rank-check.h - for programs of several ranks on the runtime: what is not so ends the rank, status
 * 1, with a line that names it, says more in printf's way, and has rt_error(). */
#ifndef RANK_CHECK_H
#define RANK_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "rt.h"

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d: %s: ", rt_rank(), #condition);                               \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, " (%s)\n", rt_error());                                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
