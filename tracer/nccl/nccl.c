/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

void rs_nccl_init(const char *library)
{
    (void)library;
}
