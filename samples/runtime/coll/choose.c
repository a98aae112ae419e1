/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which algorithm, by size and ranks. The thresholds come from tests/bench/coll on shared memory;
 * between hosts, where a message costs more, they only move the border between good choices.
 */
#include <stdbool.h>
#include <string.h>

#include "rt-cost.h"
#include "rt-step.h"

#define FLAT_RANKS   4
#define FLAT_BYTES   (2u << 10)   /* up to here one wait costs less than two steps */
#define SHORT_BYTES  (16u << 10)  /* up to here steps cost more than bytes */
#define MIDDLE_BYTES (256u << 10) /* up to here fewer steps beat near partners */
#define DIRECT_BYTES (2u << 10)   /* from here on two waits cost less than copies */
#define CHAIN_BYTES  (256u << 10)

static bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

rt_allreduce_fn *rt_allreduce_choice(int size, uint64_t bytes)
{
    if (bytes <= FLAT_BYTES && size > 2 && size <= FLAT_RANKS)
        return rt_allreduce_flat;
    if (bytes <= SHORT_BYTES)
        return rt_allreduce_recursive_doubling;
    if (bytes <= MIDDLE_BYTES && is_power_of_two(size))
        return rt_allreduce_halving_doubling;
    return rt_allreduce_ring;
}

int rt_allreduce(struct rt_transport *t, const void *in, void *out, uint64_t count,
                 enum rt_type type, enum rt_op op)
{
    if (t->ops->meet && count * rt_type_bytes(type) >= DIRECT_BYTES)
        return rt_allreduce_direct(t, in, out, count, type, op);
    return rt_allreduce_choice(t->size, count * rt_type_bytes(type))(t, in, out, count, type, op);
}

rt_broadcast_fn *rt_broadcast_choice(int size, uint64_t bytes)
{
    return size == 2 || bytes <= CHAIN_BYTES ? rt_broadcast_binomial : rt_broadcast_chain;
}

int rt_broadcast(struct rt_transport *t, void *data, uint64_t count, enum rt_type type, int root)
{
    return rt_broadcast_choice(t->size, count * rt_type_bytes(type))(t, data, count, type, root);
}

static const struct rt_algorithm algorithms[] = {
    {"auto", rt_allreduce, NULL, false},
    {"ring", rt_allreduce_ring, rt_cost_ring, false},
    {"recursive-doubling", rt_allreduce_recursive_doubling, rt_cost_recursive_doubling, true},
    {"halving-doubling", rt_allreduce_halving_doubling, rt_cost_halving_doubling, true},
    {"tree", rt_allreduce_tree, rt_cost_tree, true},
    {"double-tree", rt_allreduce_double_tree, rt_cost_double_tree, false},
    {"flat", rt_allreduce_flat, rt_cost_flat, true},
};

const struct rt_algorithm *rt_algorithm_at(unsigned i)
{
    return i < sizeof algorithms / sizeof *algorithms ? &algorithms[i] : NULL;
}

const struct rt_algorithm *rt_algorithm_find(const char *name)
{
    if (strcmp(name, "rabenseifner") == 0)
        name = "halving-doubling";
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        if (strcmp(name, algorithms[i].name) == 0)
            return &algorithms[i];
    return NULL;
}

rt_allreduce_fn *rt_allreduce_find(const char *name)
{
    const struct rt_algorithm *found = rt_algorithm_find(name);
    return found ? found->fn : NULL;
}

const char *rt_allreduce_names(void)
{
    return "auto, ring, recursive-doubling, halving-doubling, tree, double-tree, flat";
}
