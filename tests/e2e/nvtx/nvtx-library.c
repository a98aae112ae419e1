/* SPDX-License-Identifier: Apache-2.0 */
/* A second copy of NVTX in the process. */
#include <nvtx3/nvToolsExt.h>

void library_work(void);
void library_work(void)
{
    nvtxRangePushA("from the library");
    nvtxRangePop();
}
