/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-cost.h - what the algorithms cost by their own account: the formulas at their heads, as code.
 *
 * A model, for a first choice where nothing was measured: messages don't wait for each other, and
 * every rank has a link of its own. Seconds, bytes.
 */
#ifndef RT_COST_H
#define RT_COST_H

struct rt_cost {
    double a, b;  /* a message, and a byte of it */
    double g;     /* reducing a byte */
    double block; /* bytes of the longest message */
};

/* An allreduce of `bytes` over `n` ranks. */
typedef double rt_cost_fn(const struct rt_cost *c, int n, double bytes);
rt_cost_fn rt_cost_ring;
rt_cost_fn rt_cost_recursive_doubling;
rt_cost_fn rt_cost_halving_doubling;
rt_cost_fn rt_cost_tree;
rt_cost_fn rt_cost_double_tree;
rt_cost_fn rt_cost_flat;

/* Over `hosts` of `per_host` ranks that share what `across` says of the link between hosts. */
double rt_cost_hierarchical(const struct rt_cost *inside, const struct rt_cost *across,
                            rt_cost_fn *fn, int hosts, int per_host, double bytes);

/* The same over two of them, alike, piece by piece. */
double rt_cost_two_hosts(const struct rt_cost *inside, const struct rt_cost *across, int per_host,
                         double bytes);

static inline int rt_ceil_log2(int n)
{
    int k = 0;
    while (1 << k < n)
        k++;
    return k;
}

#endif
