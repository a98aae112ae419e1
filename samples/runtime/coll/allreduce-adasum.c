/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce by Adasum (S. Maleki et al., "Scaling Distributed Training with Adaptive Summation",
 * MLSys 2021): two gradients a and b become
 *
 *     a (1 - a.b / (2 |a|^2)) + b (1 - a.b / (2 |b|^2)),
 *
 * their sum where they are orthogonal, their average where they are parallel. In step k a rank
 * exchanges everything it has with the rank whose number differs in bit k, and both combine the
 * two, the lower rank's as a: the pairs, and so the result, depend on which rank has which number,
 * and are the same in every run. Where n is no power of two rt-fold.h's pairs are combined first.
 * Each tensor of a buffer has dot products of its own. They are sums of doubles; a combination
 * rounds once, to the type.
 *
 * A vector of zeros leaves the other as it is. One with a NaN, an infinity, or numbers whose squares
 * a double can't hold makes the whole tensor NaN.
 *
 * Cost: log2(n) (a + S b + 5 S g), n a power of two; else 2 a + 2 S b + 5 S g more. Scratch: S.
 *
 * Bits: depend on the ranks' numbers and on the tensor, not on what else is in the buffer.
 */
#include <errno.h>
#include <string.h>

#include "rt-convert.h"
#include "rt-fold.h"
#include "rt-step.h"

enum { AT_ONCE = 512, LANES = 4 };

/* ---- two vectors ---- */

struct products {
    double aa, ab, bb;
};

/* Some sums side by side: one alone would wait for itself at each number. Which one a number goes to
 * doesn't depend on the length: zeros behind a tensor, as in a fusion buffer, change no bit. */
static void add_products(struct products lanes[LANES], const double *a, const double *b, uint64_t n)
{
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const double x = a[i + (uint64_t)k], y = b[i + (uint64_t)k];
            lanes[k].aa += x * x;
            lanes[k].ab += x * y;
            lanes[k].bb += y * y;
        }
    for (; i < n; i++) {
        lanes[i % LANES].aa += a[i] * a[i];
        lanes[i % LANES].ab += a[i] * b[i];
        lanes[i % LANES].bb += b[i] * b[i];
    }
}

static struct products products_of(const char *a, const char *b, uint64_t count, enum rt_type type)
{
    struct products lanes[LANES] = {{0, 0, 0}}, sum = {0, 0, 0};
    double x[AT_ONCE], y[AT_ONCE];
    for (uint64_t first = 0; first < count; first += AT_ONCE) {
        const uint64_t some = rt_min_u64(AT_ONCE, count - first);
        rt_to_doubles(x, rt_at(a, first, type), some, type);
        rt_to_doubles(y, rt_at(b, first, type), some, type);
        add_products(lanes, x, y, some);
    }
    for (int k = 0; k < LANES; k++) {
        sum.aa += lanes[k].aa;
        sum.ab += lanes[k].ab;
        sum.bb += lanes[k].bb;
    }
    return sum;
}

/* out may be a or b. */
static void combine_tensor(char *out, const char *a, const char *b, uint64_t count,
                           enum rt_type type)
{
    const struct products p = products_of(a, b, count, type);
    const double of_a = p.aa == 0 ? 1 : 1 - p.ab / (2 * p.aa);
    const double of_b = p.bb == 0 ? 1 : 1 - p.ab / (2 * p.bb);
    double x[AT_ONCE], y[AT_ONCE];
    for (uint64_t first = 0; first < count; first += AT_ONCE) {
        const uint64_t some = rt_min_u64(AT_ONCE, count - first);
        rt_to_doubles(x, rt_at(a, first, type), some, type);
        rt_to_doubles(y, rt_at(b, first, type), some, type);
        for (uint64_t i = 0; i < some; i++)
            x[i] = of_a * x[i] + of_b * y[i];
        rt_of_doubles(rt_at_mutable(out, first, type), x, some, type);
    }
}

/* ---- all tensors, all ranks ---- */

struct adasum {
    struct rt_transport *t;
    const uint64_t *counts; /* of `n` tensors, one after the other */
    unsigned n;
    uint64_t total;
    enum rt_type type;
    char *received;
};

static void combine(const struct adasum *s, char *mine, bool received_is_lower)
{
    const char *received = s->received;
    for (unsigned i = 0; i < s->n; i++) {
        combine_tensor(mine, received_is_lower ? received : mine,
                       received_is_lower ? mine : received, s->counts[i], s->type);
        mine += s->counts[i] * rt_type_bytes(s->type);
        received += s->counts[i] * rt_type_bytes(s->type);
    }
}

/* `to` or `from` may be -1. */
static int exchange_all(const struct adasum *s, int to, const char *send, int from, char *recv)
{
    const uint64_t block = rt_block_count(s->t, s->type);
    int error = 0;
    for (uint64_t first = 0; first < s->total && !error; first += block) {
        const uint64_t some = rt_min_u64(block, s->total - first);
        error = rt_exchange(s->t, to, to < 0 ? NULL : rt_at(send, first, s->type), some, from,
                            from < 0 ? NULL : rt_at_mutable(recv, first, s->type), some, s->type);
    }
    return error;
}

static int steps(const struct adasum *s, const struct rt_fold *f, char *out)
{
    for (int bit = 1; bit < f->working; bit *= 2) {
        const int peer = rt_fold_rank(f, f->number ^ bit);
        int error = exchange_all(s, peer, out, peer, s->received);
        if (error)
            return error;
        combine(s, out, (f->number & bit) != 0);
    }
    return 0;
}

int rt_allreduce_adasum(struct rt_transport *t, const void *in, void *out, const uint64_t *counts,
                        unsigned n, enum rt_type type)
{
    struct adasum s = {.t = t, .counts = counts, .n = n, .type = type};
    const struct rt_fold f = rt_fold_of(t->rank, t->size);
    if (!rt_type_is_float(type))
        return -EINVAL;
    for (unsigned i = 0; i < n; i++)
        s.total += counts[i];
    rt_copy(out, in, s.total, type);
    if (t->size == 1 || s.total == 0)
        return 0;
    s.received = rt_scratch(t, RT_SCRATCH_A, s.total * rt_type_bytes(type));
    if (!s.received)
        return -ENOMEM;
    int error = 0;
    if (f.number < 0) { /* sits out: the partner, one higher, has the result at the end */
        error = exchange_all(&s, f.partner, out, -1, NULL);
        return error ? error : exchange_all(&s, -1, NULL, f.partner, out);
    }
    if (f.partner >= 0) {
        error = exchange_all(&s, -1, NULL, f.partner, s.received);
        if (!error)
            combine(&s, out, true);
    }
    if (!error)
        error = steps(&s, &f, out);
    return error || f.partner < 0 ? error : exchange_all(&s, f.partner, out, -1, NULL);
}
