/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-fusion.h"

#include <stdbool.h>

#include "rt-wire.h"

uint64_t rt_fusion_bytes(const struct rt_tensor *tensor)
{
    uint64_t bytes = tensor->count * rt_type_bytes(rt_wire_type(tensor));
    return (bytes + RT_FUSION_UNIT - 1) / RT_FUSION_UNIT * RT_FUSION_UNIT;
}

static bool may_go_together(const struct rt_tensor *a, const struct rt_tensor *b)
{
    return a->kind == RT_ALLREDUCE && b->kind == RT_ALLREDUCE && a->type == b->type &&
           a->op == b->op && a->compression == b->compression && a->prescale == b->prescale &&
           a->postscale == b->postscale;
}

unsigned rt_fusion_plan(const struct rt_tensor *const *ready, unsigned n, uint64_t threshold,
                        unsigned *ret)
{
    if (n == 0)
        return 0;
    unsigned taken = 1;
    uint64_t sum = rt_fusion_bytes(ready[0]);
    ret[0] = 0;
    for (unsigned i = 1; i < n; i++) {
        uint64_t bytes = rt_fusion_bytes(ready[i]);
        if (!may_go_together(ready[0], ready[i]) || sum > threshold || bytes > threshold - sum)
            continue;
        sum += bytes;
        ret[taken++] = i;
    }
    return taken;
}
