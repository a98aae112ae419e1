/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX and nothing else: the tracer must leave no file. */
#include <nvtx3/nvToolsExt.h>

int main(void)
{
    nvtxRangePushA("alone");
    nvtxMarkA("mark");
    nvtxRangePop();
    nvtxRangeEnd(nvtxRangeStartA("span"));
    return 0;
}
