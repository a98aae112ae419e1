/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce by two binary trees, each for one half of the buffer: reduce to the root, then
 * broadcast from it. A rank with children in one tree has none, or one, in the other (Sanders,
 * Speck, Traff: Two-tree algorithms for full bandwidth broadcast, reduction and scan).
 *
 * Cost: at most 4 ceil(log2 n) (a + S/2 (b + g)) for one block; of many, those on different levels
 * overlap, and a rank gives and gets at most 2 S each whatever n is (the root of a binomial tree:
 * log2(n) S). Few messages a rank, and no rank is everybody's: for many ranks.
 *
 * Bits: the halves have different trees, so they depend on the count, the element's place and the
 * transport's block.
 */
#include "rt-cost.h"
#include "rt-step.h"

/* After the first block a rank that has children in one tree is busy with three messages up and
 * three down in each. */
double rt_cost_double_tree(const struct rt_cost *c, int n, double bytes)
{
    const double block = bytes < c->block ? bytes : c->block;
    const double more = block > 0 ? bytes / block - 1 : 0;
    return 4 * rt_ceil_log2(n) * (c->a + block / 2 * (c->b + c->g)) +
           more * (6 * c->a + block * (3 * c->b + c->g));
}

struct node {
    int parent, children[2]; /* -1: none */
};

/* In order: odd ranks are leaves, those that two divides once are above them, and so on; rank 0
 * stands over all, with one child. */
static struct node in_order_tree(int n, int rank)
{
    int bit = 1;
    while (bit < n && !(rank & bit))
        bit *= 2;
    if (rank == 0)
        return (struct node){-1, {-1, n > 1 ? bit / 2 : -1}};
    struct node node = {(rank ^ bit) | (2 * bit), {-1, -1}};
    if (node.parent >= n)
        node.parent = rank ^ bit;
    if (bit > 1)
        node.children[0] = rank - bit / 2;
    for (int low = bit / 2; low > 0 && node.children[1] < 0; low /= 2)
        if (rank + low < n)
            node.children[1] = rank + low;
    return node;
}

/* The other tree: the first one mirrored where n is even, moved by one where it is odd. */
static int renumber(int n, int rank, int move)
{
    if (rank < 0)
        return -1;
    return n % 2 == 0 ? n - 1 - rank : (rank + move + n) % n;
}

static struct node other_tree(int n, int rank)
{
    struct node node = in_order_tree(n, renumber(n, rank, -1));
    node.parent = renumber(n, node.parent, 1);
    for (int i = 0; i < 2; i++)
        node.children[i] = renumber(n, node.children[i], 1);
    return node;
}

static int reduce_up(struct rt_transport *t, const struct node *node, const void *in, void *out,
                     uint64_t count, enum rt_type type, enum rt_op op)
{
    for (int i = 0; i < 2; i++) {
        if (node->children[i] < 0)
            continue;
        int error = rt_exchange_reduce(t, -1, NULL, 0, node->children[i], out, in, count, type, op);
        if (error)
            return error;
        in = out;
    }
    if (node->parent < 0) {
        rt_average_end(out, count, type, op, t->size);
        return 0;
    }
    return rt_exchange(t, node->parent, in, count, -1, NULL, 0, type);
}

static int broadcast_down(struct rt_transport *t, const struct node *node, void *out,
                          uint64_t count, enum rt_type type)
{
    int error = 0;
    if (node->parent >= 0)
        error = rt_exchange(t, -1, NULL, 0, node->parent, out, count, type);
    for (int i = 0; i < 2 && !error; i++)
        if (node->children[i] >= 0)
            error = rt_exchange(t, node->children[i], out, count, -1, NULL, 0, type);
    return error;
}

static int double_tree_block(struct rt_transport *t, const struct node trees[2], const void *in,
                             void *out, uint64_t count, enum rt_type type, enum rt_op op)
{
    int error = 0;
    in = rt_average_begin(out, in, count, type, op, t->size);

    /* 1. Each half to its root. All ranks take the trees in the same order. */
    for (int i = 0; i < 2 && !error; i++) {
        uint64_t first = rt_part_first(count, 2, i);
        error = reduce_up(t, &trees[i], rt_at(in, first, type), rt_at_mutable(out, first, type),
                          rt_part_count(count, 2, i), type, op);
    }

    /* 2. And back. */
    for (int i = 0; i < 2 && !error; i++)
        error = broadcast_down(t, &trees[i], rt_at_mutable(out, rt_part_first(count, 2, i), type),
                               rt_part_count(count, 2, i), type);
    return error;
}

int rt_allreduce_double_tree(struct rt_transport *t, const void *in, void *out, uint64_t count,
                             enum rt_type type, enum rt_op op)
{
    if (t->size == 1) {
        rt_copy(out, in, count, type);
        return 0;
    }
    const struct node trees[2] = {in_order_tree(t->size, t->rank), other_tree(t->size, t->rank)};
    const uint64_t block = rt_block_count(t, type);
    for (uint64_t first = 0; first < count; first += block) {
        int error =
            double_tree_block(t, trees, rt_at(in, first, type), rt_at_mutable(out, first, type),
                              rt_min_u64(block, count - first), type, op);
        if (error)
            return error;
    }
    return 0;
}
