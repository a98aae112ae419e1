/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-train.h"

/* splitmix64's finish */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A Feistel network permutes the numbers of an even number of bits, whatever its function is. */
static uint64_t permute_bits(uint64_t x, unsigned half_bits, uint64_t key)
{
    uint64_t mask = ((uint64_t)1 << half_bits) - 1;
    uint64_t left = x >> half_bits, right = x & mask;
    for (unsigned round = 0; round < 6; round++) {
        uint64_t next = left ^ (mix(right + key + round * 0x9e3779b97f4a7c15u) & mask);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

/* Where place `x` < n lies in the epoch's order: walked on until it is below n again, which keeps
 * it a permutation. Nothing is stored, so that any number of items costs no memory. */
static uint64_t permute(uint64_t x, uint64_t n, uint64_t key)
{
    unsigned half_bits = 1;
    while (half_bits < 32 && n > (uint64_t)1 << 2 * half_bits)
        half_bits++;
    do
        x = permute_bits(x, half_bits, key);
    while (x >= n);
    return x;
}

/* What this rank has of a whole global batch: where its part begins, and how long it is. */
static uint64_t part(const struct rt_shard *s, uint64_t *ret_rows)
{
    uint64_t each = s->global_batch / (uint64_t)s->size, more = s->global_batch % (uint64_t)s->size;
    uint64_t rank = (uint64_t)s->rank;
    *ret_rows = each + (rank < more);
    return each * rank + (rank < more ? rank : more);
}

static bool is_one(const struct rt_shard *s)
{
    return s->global_batch > 0 && s->rank >= 0 && s->rank < s->size;
}

uint64_t rt_shard_steps(const struct rt_shard *s)
{
    if (!is_one(s))
        return 0;
    return s->items / s->global_batch + (s->items % s->global_batch != 0);
}

uint64_t rt_shard_rows(const struct rt_shard *s, uint64_t step)
{
    if (step >= rt_shard_steps(s))
        return 0;
    uint64_t rows, first = part(s, &rows), left = s->items - step * s->global_batch;
    if (first >= left)
        return 0;
    return left - first < rows ? left - first : rows;
}

uint64_t rt_shard_own_steps(const struct rt_shard *s)
{
    uint64_t steps = rt_shard_steps(s);
    if (rt_shard_rows(s, 0) == 0)
        return 0;
    return rt_shard_rows(s, steps - 1) == 0 ? steps - 1 : steps;
}

uint64_t rt_shard_item(const struct rt_shard *s, uint64_t epoch, uint64_t step, uint64_t row)
{
    if (!is_one(s) || s->items == 0)
        return 0;
    uint64_t rows, place = step * s->global_batch + part(s, &rows) + row;
    return s->in_order ? place : permute(place, s->items, mix(s->seed + mix(epoch + 1)));
}
