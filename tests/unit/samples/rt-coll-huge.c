/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-coll-huge [ALGORITHM] - allreduce of 2^31 + 7 bytes between two processes, in place, compared
 * byte by byte. Takes 4.3 GiB; not run with the other tests:
 *
 *   meson test -C build --benchmark rt-coll-huge
 */
#include <stdio.h>
#include <stdlib.h>

#include "rt-ranks.h"

#define COUNT ((uint64_t)(1ull << 31) + 7)

/* Neighbours differ, and places 2^31, 2^24 and so on apart. */
static uint8_t value(int rank, uint64_t i)
{
    return (uint8_t)(i + (i >> 8) * 3 + (i >> 16) * 5 + (i >> 24) * 7 + (uint64_t)rank * 11);
}

static int one_rank(struct rt_transport *t, void *argument)
{
    uint8_t *data = malloc(COUNT);
    if (!data)
        return 2;
    for (uint64_t i = 0; i < COUNT; i++)
        data[i] = value(t->rank, i);
    int result = rt_allreduce_find(argument)(t, data, data, COUNT, RT_UINT8, RT_SUM) ? 3 : 0;
    for (uint64_t i = 0; i < COUNT && result == 0; i++)
        if (data[i] != (uint8_t)(value(0, i) + value(1, i))) {
            fprintf(stderr, "rank %d: [%llu] is %d\n", t->rank, (unsigned long long)i, data[i]);
            result = 4;
        }
    free(data);
    return result;
}

int main(int argc, char **argv)
{
    char *name = argc > 1 ? argv[1] : (char[]){"auto"};
    if (!rt_allreduce_find(name)) {
        fprintf(stderr, "usage: rt-coll-huge [%s]\n", rt_allreduce_names());
        return 2;
    }
    int result = run_ranks(2, true, one_rank, name);
    printf("%s, %llu bytes: %s\n", name, (unsigned long long)COUNT,
           result == 0   ? "right"
           : result == 2 ? "no memory"
           : result == 3 ? "failed"
                         : "wrong");
    return result;
}
