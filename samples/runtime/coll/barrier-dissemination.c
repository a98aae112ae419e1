/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barrier by dissemination: in step k a rank tells the one 2^k after it, and hears from the one 2^k
 * before it.
 *
 * Cost: ceil(log2 n) a.
 */
#include "rt-step.h"

int rt_barrier(struct rt_transport *t)
{
    const int n = t->size;
    int32_t told = 0, heard = 0;
    for (int distance = 1; distance < n; distance *= 2) {
        int error = rt_exchange(t, (t->rank + distance) % n, &told, 1, (t->rank + n - distance) % n,
                                &heard, 1, RT_INT32);
        if (error)
            return error;
    }
    return 0;
}
