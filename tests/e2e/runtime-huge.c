/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-huge - one rank of two: allreduce, broadcast, allgather, alltoall and reducescatter of
 * 2^31 + 7 bytes through the runtime, compared byte by byte. Takes 13 GiB in all; not run with the
 * other tests:
 *
 *   meson test -C build --benchmark runtime-huge runtime-huge-hosts
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rank-check.h"

#define COUNT ((uint64_t)(1ull << 31) + 7)
#define FIRST ((uint64_t)(1ull << 30) + 5) /* rows of rank 0 where ranks have different ones */

/* Neighbours differ, and places 2^31, 2^24 and so on apart. */
static uint8_t value(int rank, uint64_t i)
{
    return (uint8_t)(i + (i >> 8) * 3 + (i >> 16) * 5 + (i >> 24) * 7 + (uint64_t)rank * 11);
}

static void fill_with(uint8_t *data, uint64_t count, int rank)
{
    for (uint64_t i = 0; i < count; i++)
        data[i] = value(rank, i);
}

static void done(int handle, const char *what)
{
    CHECK(handle >= 0 && rt_wait(handle) == 0, "%s", what);
    if (rt_rank() == 0)
        printf("%s of %llu bytes\n", what, (unsigned long long)COUNT);
    fflush(stdout);
}

static void check_sum(const uint8_t *data, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        CHECK(data[i] == (uint8_t)(value(0, first + i) + value(1, first + i)), "[%llu] is %d",
              (unsigned long long)(first + i), data[i]);
}

/* `rows[r]` of rank r's from its `first[r]` on. */
static void check_parts(struct rt_parts *parts, const uint64_t first[2], const uint64_t rows[2])
{
    const uint8_t *at = parts->data;
    for (int r = 0; r < 2; r++) {
        CHECK(parts->rows[r] == rows[r], "%llu rows", (unsigned long long)parts->rows[r]);
        for (uint64_t i = 0; i < rows[r]; i++, at++)
            CHECK(*at == value(r, first[r] + i), "[%llu] of rank %d is %d", (unsigned long long)i,
                  r, *at);
    }
    rt_parts_clear(parts);
}

int main(void)
{
    uint8_t *data = malloc(COUNT);
    struct rt_parts parts;
    CHECK(data, "no memory");
    CHECK(rt_init() == 0 && rt_size() == 2, "%d ranks", rt_size());
    const int me = rt_rank();
    const uint64_t rows[2] = {FIRST, COUNT - FIRST}, start[2] = {0, 0};

    fill_with(data, COUNT, me);
    done(rt_allreduce_async("sum", data, data, COUNT, RT_UINT8, RT_SUM, 1, 1, NULL), "allreduce");
    check_sum(data, 0, COUNT);

    fill_with(data, COUNT, me);
    done(rt_broadcast_async("all", data, COUNT, RT_UINT8, 1, NULL), "broadcast");
    for (uint64_t i = 0; i < COUNT; i++)
        CHECK(data[i] == value(1, i), "[%llu] is %d", (unsigned long long)i, data[i]);

    fill_with(data, COUNT, me);
    done(rt_allgather_async("gather", data, rows[me], 1, RT_UINT8, &parts, NULL), "allgather");
    check_parts(&parts, start, rows);

    /* rank 0 gets FIRST of both, rank 1 the rest */
    const uint64_t from[2] = {me ? FIRST : 0, me ? FIRST : 0}, taken[2] = {rows[me], rows[me]};
    done(rt_alltoall_async("exchange", data, rows, 1, RT_UINT8, &parts, NULL), "alltoall");
    check_parts(&parts, from, taken);

    const uint64_t mine = rt_rows_of(COUNT, me);
    uint8_t *out = malloc(mine);
    CHECK(out, "no memory");
    done(rt_reducescatter_async("scatter", data, out, COUNT, 1, RT_UINT8, RT_SUM, 1, 1, NULL),
         "reducescatter");
    check_sum(out, me ? rt_rows_of(COUNT, 0) : 0, mine);
    free(out);
    free(data);
    CHECK(rt_shutdown() == 0, "end");
    return 0;
}
