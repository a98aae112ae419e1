/* SPDX-License-Identifier: Apache-2.0 */
/* nccl-check.h - the way out of what one rank of a test of hostnccl does: it returns the line that
 * failed. */
#ifndef NCCL_CHECK_H
#define NCCL_CHECK_H

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__;                                                                       \
    } while (0)
#define OK(call) CHECK((call) == 0)

#endif
