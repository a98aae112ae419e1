/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx.h - what the functions of NVTX and of its extension share. */
#ifndef RS_TRACER_NVTX_NVTX_H
#define RS_TRACER_NVTX_NVTX_H

#include "core.h"

/* Records only once MPI or NCCL has been called: NVTX alone leaves no file. Nothing inside a
 * recorded call, which the call's own record tells of. */
static inline bool rs_nvtx_is_wanted(void)
{
    return rs_core && *rs_core->started && *rs_core->on && (!rs_self || rs_self->depth == 0);
}

#endif
