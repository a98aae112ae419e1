/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that programs may be linked to and the stand-in doesn't do: they say so and change nothing.
 */
#include "internal.h"

static ncclResult_t refuse(const char *name)
{
    return hostnccl_fail(ncclInvalidUsage, "%s: the stand-in for hosts without a GPU has it not",
                         name);
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
                             ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
    return refuse("ncclCommShrink");
}
HOSTNCCL_WEAK(CommShrink);

ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
                                     int winFlags)
{
    return refuse("ncclCommWindowRegister");
}
HOSTNCCL_WEAK(CommWindowRegister);

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
    return refuse("ncclCommWindowDeregister");
}
HOSTNCCL_WEAK(CommWindowDeregister);
