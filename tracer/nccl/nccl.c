/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "parts.h"

void rs_nccl_init(const char *library)
{
    /* NCCL loads it by path, finds it loaded, and takes its ncclProfiler_vN from it. */
    if (library && rs_core && (rs_core->parts & RS_PART_NCCL))
        setenv("NCCL_PROFILER_PLUGIN", library, 0);
}
