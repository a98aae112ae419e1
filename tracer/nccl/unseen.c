/* SPDX-License-Identifier: Apache-2.0 */
/* unseen.c - an NCCL whose calls don't come by. That it is used it says itself: it asks for its
 * profiler plug-in, and opens its NVTX domain, whoever called it and however. */
#include "library.h"
#include "unobserved.h"

void rs_nccl_unseen(struct rs_unseen *ret)
{
    if (rs_nccl_is_wrapped())
        return;
    if (rs_unseen_place(ret, rs_nccl_who_came())) {
        ret->use = RS_USE_CERTAIN;
        return;
    }
    if (!*rs_core->started) /* a hint, which makes no capture */
        return;
    void *version = rs_unseen_in_libraries("ncclGetVersion");
    if (!version)
        version = rs_unseen_in_program("ncclGetVersion");
    if (rs_unseen_place(ret, version))
        ret->use = RS_USE_MAPPED;
}
