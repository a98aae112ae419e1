/* SPDX-License-Identifier: Apache-2.0 */
/* What plays in the runtime and in the stand-in NCCL, beneath the calls that a tracer sees. */
#include "play.h"
#include "rt-fault-hooks.h"

static const struct rt_fault *find(enum rt_fault_kind kind)
{
    const struct rt_faults *f = rt_faults_of_process();
    return f ? rt_faults_find(f, kind) : NULL;
}

void rt_fault_hook_kernel(void)
{
    const struct rt_fault *fault = find(RT_FAULT_SLOW_LAUNCH);
    if (fault)
        rt_faults_sleep((int64_t)(fault->ms * 1e6));
}

/* A bit of a word in the middle: of a float the fraction's third, which later sums don't round
 * away. */
void rt_fault_hook_result(void *data, uint64_t bytes)
{
    static bool done; /* one bit in a run */
    unsigned char *at = data;
    if (!find(RT_FAULT_FLIP_BIT) || bytes == 0 ||
        __atomic_exchange_n(&done, true, __ATOMIC_RELAXED))
        return;
    at[bytes / 2 / 8 * 8 + (bytes > 2 ? 2 : 0)] ^= 0x10;
}

int rt_fault_hook_nccl_version(int code)
{
    const struct rt_fault *fault = find(RT_FAULT_VERSION);
    return fault ? fault->version : code;
}
