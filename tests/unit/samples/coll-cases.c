/* SPDX-License-Identifier: Apache-2.0 */
#include "coll-cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "covering.h"
#include "rt-reference.h"

#define GUARD 0x5a

/* A buffer with a guard behind it. */
static char *new_buffer(const struct subject *s, uint64_t count)
{
    const uint64_t bytes = count * rt_type_bytes(s->type);
    char *b = malloc(bytes + 64);
    if (b)
        memset(b, GUARD, bytes + 64);
    return b;
}

static bool guard_is_whole(const struct subject *s, const char *b, uint64_t count)
{
    const uint64_t bytes = count * rt_type_bytes(s->type);
    for (uint64_t i = bytes; i < bytes + 64; i++)
        if (b[i] != GUARD)
            return false;
    return true;
}

static char *at(const struct subject *s, char *buffer, uint64_t index)
{
    return buffer + index * rt_type_bytes(s->type);
}

static bool is_input(const void *data, uint64_t count, const struct subject *s, int rank,
                     int tensor)
{
    return holds_values(data, 0, count, rank, tensor, s->type, s->op);
}

static bool is_reduced(const void *data, uint64_t first, uint64_t count, const struct subject *s,
                       int size, int tensor)
{
    return holds_reduced(data, first, count, size, tensor, s->type, s->op);
}

/* "hierarchical:ACROSS", "two-level-ring", or one over all ranks; `layout` may be NULL then. */
static int call(struct rt_transport *t, const struct subject *s, const struct rt_layout *layout,
                const void *in, void *out, uint64_t count)
{
    const struct rt_hosts hosts = {.all = t, .layout = layout};
    const char *colon = strchr(s->algorithm, ':');
    if (colon)
        return rt_allreduce_hierarchical(&hosts, rt_allreduce_find(colon + 1), in, out, count,
                                         s->type, s->op);
    if (layout)
        return rt_allreduce_two_level_ring(&hosts, in, out, count, s->type, s->op);
    return rt_allreduce_find(s->algorithm)(t, in, out, count, s->type, s->op);
}

static int one_allreduce(struct rt_transport *t, const struct subject *s,
                         const struct rt_layout *layout, uint64_t count, int tensor)
{
    char *in = new_buffer(s, count), *out = s->in_place ? in : new_buffer(s, count);
    if (!in || !out)
        return NO_MEMORY;
    fill(in, count, s->type, t->rank, tensor, s->op);
    int result = 0;
    if (call(t, s, layout, in, out, count) != 0)
        result = FAILED;
    else if (!is_reduced(out, 0, count, s, t->size, tensor))
        result = WRONG_VALUE;
    else if (!guard_is_whole(s, out, count))
        result = WRONG_GUARD;
    else if (!s->in_place && !is_input(in, count, s, t->rank, tensor))
        result = WRONG_INPUT;
    free(in);
    if (!s->in_place)
        free(out);
    return result;
}

int allreduce_rank(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    int result = 0;
    for (unsigned i = 0; i < s->count_count && result == 0; i++)
        result = one_allreduce(t, s, NULL, s->counts[i], (int)i);
    return result;
}

int host_of(int rank, int size, int hosts, enum laid laid)
{
    hosts = hosts < size ? hosts : size;
    if (laid == LAID_IN_TURN)
        return rank % hosts;
    if (laid == LAID_UNEVEN)
        return rank < hosts - 1 ? rank : hosts - 1;
    int host = 0;
    while (rt_part_first((uint64_t)size, hosts, host + 1) <= (uint64_t)rank)
        host++;
    return host;
}

static int layout_of(const struct subject *s, int size, struct rt_layout *ret)
{
    int name[64];
    for (int r = 0; r < size; r++)
        name[r] = host_of(r, size, s->hosts, s->laid);
    return rt_layout_init(ret, name, size);
}

int hosts_rank(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    struct rt_layout layout;
    int result = 0;
    if (layout_of(s, t->size, &layout) != 0)
        return NO_MEMORY;
    for (unsigned i = 0; i < s->count_count && result == 0; i++)
        result = one_allreduce(t, s, &layout, s->counts[i], (int)i);
    rt_layout_release(&layout);
    return result;
}

/* Of four elements one is ordinary, one has a NaN on one of the ranks, two an infinity. */
double special_value(uint64_t i, int rank, int size, bool infinite)
{
    static const double specials[] = {1, NAN, INFINITY, -INFINITY};
    return i / 4 % (uint64_t)size == (uint64_t)rank && (infinite || i % 4 < 2) ? specials[i % 4]
                                                                               : 1;
}

bool is_special_result(double got, uint64_t i, int size, enum rt_op op, bool infinite)
{
    const double ordinary = op == RT_SUM ? size : 1;
    if (i % 4 == 1)
        return isnan(got);
    const bool others_win = (op == RT_MIN && i % 4 == 2) || (op == RT_MAX && i % 4 == 3);
    if (i % 4 == 0 || !infinite || (others_win && size > 1))
        return got == ordinary;
    return isinf(got) && (got > 0) == (i % 4 == 2);
}

int not_finite_rank(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    const bool infinite = rt_type_bytes(s->type) > 1; /* float8 stops at its largest */
    const uint64_t count = s->counts[0];
    const bool by_hosts = strchr(s->algorithm, ':') || strcmp(s->algorithm, "two-level-ring") == 0;
    struct rt_layout layout = {0};
    char *in = new_buffer(s, count), *out = s->in_place ? in : new_buffer(s, count);
    if (!in || !out || layout_of(s, t->size, &layout) != 0)
        return NO_MEMORY;
    for (uint64_t i = 0; i < count; i++)
        set_element(in, i, s->type, special_value(i, t->rank, t->size, infinite));
    int result = call(t, s, by_hosts ? &layout : NULL, in, out, count) != 0 ? FAILED : 0;
    for (uint64_t i = 0; i < count && result == 0; i++)
        if (!is_special_result(element(out, i, s->type), i, t->size, s->op, infinite))
            result = WRONG_VALUE;
    rt_layout_release(&layout);
    free(in);
    if (!s->in_place)
        free(out);
    return result;
}

int reduce_scatter_rank(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    for (unsigned i = 0; i < s->count_count; i++) {
        uint64_t count = s->counts[i], first = rt_part_first(count, t->size, t->rank);
        uint64_t mine = rt_part_count(count, t->size, t->rank);
        char *in = new_buffer(s, count), *apart = new_buffer(s, mine);
        char *out = s->in_place ? at(s, in, first) : apart;
        fill(in, count, s->type, t->rank, (int)i, s->op);
        if (rt_reduce_scatter_ring(t, in, out, count, s->type, s->op) != 0)
            return FAILED;
        if (!is_reduced(out, first, mine, s, t->size, (int)i))
            return WRONG_VALUE;
        if (!guard_is_whole(s, in, count) || !guard_is_whole(s, apart, mine))
            return WRONG_GUARD;
        if (!s->in_place && !is_input(in, count, s, t->rank, (int)i))
            return WRONG_INPUT;
        free(in);
        free(apart);
    }
    return 0;
}

/* Element i of the whole is the owner's value i. */
static bool is_gathered(char *out, uint64_t count, const struct subject *s, int size, int tensor)
{
    for (int r = 0; r < size; r++)
        if (!holds_values(at(s, out, rt_part_first(count, size, r)), rt_part_first(count, size, r),
                          rt_part_count(count, size, r), r, tensor, s->type, s->op))
            return false;
    return true;
}

int allgather_rank(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    for (unsigned i = 0; i < s->count_count; i++) {
        uint64_t count = s->counts[i], first = rt_part_first(count, t->size, t->rank);
        char *whole = new_buffer(s, count), *out = new_buffer(s, count);
        fill(whole, count, s->type, t->rank, (int)i, s->op);
        if (s->in_place)
            memcpy(at(s, out, first), at(s, whole, first),
                   rt_part_count(count, t->size, t->rank) * rt_type_bytes(s->type));
        const char *in = at(s, s->in_place ? out : whole, first);
        if (rt_allgather_ring(t, in, out, count, s->type) != 0)
            return FAILED;
        if (!is_gathered(out, count, s, t->size, (int)i))
            return WRONG_VALUE;
        if (!guard_is_whole(s, out, count))
            return WRONG_GUARD;
        free(whole);
        free(out);
    }
    return 0;
}

/* Elements that `from` gives `to` of about `count`: none, few and many side by side. */
static uint64_t uneven(uint64_t count, int from, int to)
{
    return count * (uint64_t)((from * 3 + to * 5) % 4) / 3;
}

int allgatherv_rank(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    for (unsigned i = 0; i < s->count_count; i++) {
        uint64_t parts[64], whole = 0, first = 0;
        for (int r = 0; r < t->size; r++) {
            parts[r] = uneven(s->counts[i], r, (int)i);
            whole += parts[r];
            first += r < t->rank ? parts[r] : 0;
        }
        char *mine = new_buffer(s, parts[t->rank]), *out = new_buffer(s, whole), *place = out;
        char *in = s->in_place ? at(s, out, first) : mine;
        fill(in, parts[t->rank], s->type, t->rank, (int)i, s->op);
        if (rt_allgatherv_ring(t, in, out, parts, s->type) != 0)
            return FAILED;
        for (int r = 0; r < t->size; place = at(s, place, parts[r++]))
            if (!holds_values(place, 0, parts[r], r, (int)i, s->type, s->op))
                return WRONG_VALUE;
        if (!guard_is_whole(s, out, whole))
            return WRONG_GUARD;
        free(mine);
        free(out);
    }
    return 0;
}

/* The part from rank r for rank q holds r's values of "tensor" q. */
int alltoallv_rank(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    for (unsigned i = 0; i < s->count_count; i++) {
        uint64_t given[64], taken[64], give = 0, take = 0;
        for (int r = 0; r < t->size; r++) {
            give += given[r] = uneven(s->counts[i], t->rank, r);
            take += taken[r] = uneven(s->counts[i], r, t->rank);
        }
        char *in = new_buffer(s, give), *out = new_buffer(s, take), *place = in;
        for (int r = 0; r < t->size; place = at(s, place, given[r++]))
            fill(place, given[r], s->type, t->rank, r, s->op);
        if (rt_alltoallv_pairwise(t, in, given, out, taken, s->type) != 0)
            return FAILED;
        place = out;
        for (int r = 0; r < t->size; place = at(s, place, taken[r++]))
            if (!holds_values(place, 0, taken[r], r, t->rank, s->type, s->op))
                return WRONG_VALUE;
        if (!guard_is_whole(s, out, take))
            return WRONG_GUARD;
        free(in);
        free(out);
    }
    return 0;
}

static rt_broadcast_fn *broadcast_of(const struct subject *s)
{
    return strcmp(s->algorithm, "chain") == 0      ? rt_broadcast_chain
           : strcmp(s->algorithm, "binomial") == 0 ? rt_broadcast_binomial
                                                   : rt_broadcast;
}

int broadcast_rank(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    for (unsigned i = 0; i < s->count_count; i++) {
        int root = (int)(i % (unsigned)t->size);
        char *data = new_buffer(s, s->counts[i]);
        fill(data, s->counts[i], s->type, t->rank, (int)i, s->op);
        if (broadcast_of(s)(t, data, s->counts[i], s->type, root) != 0)
            return FAILED;
        if (!is_input(data, s->counts[i], s, root, (int)i))
            return WRONG_VALUE;
        if (!guard_is_whole(s, data, s->counts[i]))
            return WRONG_GUARD;
        free(data);
    }
    return 0;
}

int reduce_rank(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    for (unsigned i = 0; i < s->count_count; i++) {
        int root = (int)(i % (unsigned)t->size);
        uint64_t count = s->counts[i];
        char *in = new_buffer(s, count), *apart = new_buffer(s, count);
        char *out = t->rank != root ? NULL : s->in_place ? in : apart;
        fill(in, count, s->type, t->rank, (int)i, s->op);
        if (rt_reduce_binomial(t, in, out, count, s->type, s->op, root) != 0)
            return FAILED;
        if (out && !is_reduced(out, 0, count, s, t->size, (int)i))
            return WRONG_VALUE;
        if (out != in && !is_input(in, count, s, t->rank, (int)i))
            return WRONG_INPUT;
        free(in);
        free(apart);
    }
    return 0;
}

/* ---- many at once ---- */

const struct coll_case coll_cases[] = {
    {"auto", allreduce_rank},
    {"ring", allreduce_rank},
    {"recursive-doubling", allreduce_rank},
    {"halving-doubling", allreduce_rank},
    {"tree", allreduce_rank},
    {"double-tree", allreduce_rank},
    {"flat", allreduce_rank},
    {"hierarchical:auto", hosts_rank},
    {"hierarchical:ring", hosts_rank},
    {"hierarchical:recursive-doubling", hosts_rank},
    {"hierarchical:halving-doubling", hosts_rank},
    {"hierarchical:tree", hosts_rank},
    {"hierarchical:double-tree", hosts_rank},
    {"hierarchical:flat", hosts_rank},
    {"two-level-ring", hosts_rank},
    {"reduce-scatter", reduce_scatter_rank},
    {"reduce", reduce_rank},
    {"allgather", allgather_rank},
    {"allgatherv", allgatherv_rank},
    {"alltoallv", alltoallv_rank},
    {"binomial", broadcast_rank},
    {"chain", broadcast_rank},
};
const unsigned coll_case_count = sizeof coll_cases / sizeof *coll_cases;

/* Then those at the length of a block, and at that of a round of the ring. */
static const uint64_t short_counts[] = {0, 1, 2, 3, 13, 251, 4099};
#define SHORT_COUNTS (sizeof short_counts / sizeof *short_counts)

static uint64_t count_at(unsigned level, enum rt_type type, int size, uint64_t block_bytes)
{
    const uint64_t block = block_bytes / rt_type_bytes(type);
    if (level < SHORT_COUNTS)
        return short_counts[level];
    return level < SHORT_COUNTS + 3 ? block + level - SHORT_COUNTS - 1
                                    : block * (uint64_t)size + level - SHORT_COUNTS - 4;
}

enum { TYPE, OP, CASE, COUNT, SIZE, PLACE, HOSTS, TRANSPORT, PARAMETERS };

/* Hosts and how ranks are laid on them are one parameter. */
static void levels_of(const struct coll_runner *r, unsigned levels[PARAMETERS])
{
    const unsigned l[PARAMETERS] = {RT_TYPE_COUNT,
                                    RT_OP_COUNT,
                                    sizeof coll_cases / sizeof *coll_cases,
                                    SHORT_COUNTS + 6,
                                    8,
                                    2,
                                    MAX_HOSTS * LAID_COUNT,
                                    r->transports};
    memcpy(levels, l, sizeof l);
}

/* All of them, one after the other, by the same ranks. */
static int run_counts(const struct coll_runner *r, const uint8_t *row, const uint64_t *counts,
                      unsigned n)
{
    const int size = row[SIZE] + 1;
    const struct coll_case *c = &coll_cases[row[CASE]];
    struct subject s = {.algorithm = c->name,
                        .type = row[TYPE],
                        .op = row[OP],
                        .in_place = row[PLACE],
                        .hosts = row[HOSTS] % MAX_HOSTS + 1,
                        .laid = row[HOSTS] / MAX_HOSTS,
                        .counts = counts,
                        .count_count = n};
    int result = r->run(size, row[TRANSPORT], c->run, &s);
    if (result != 0)
        fprintf(stderr,
                "%s: %d ranks on %d hosts laid %d, type %d, op %d, %s, transport %d, %llu elements"
                "%s: %d\n",
                s.algorithm, size, s.hosts, (int)s.laid, (int)s.type, (int)s.op,
                s.in_place ? "in place" : "apart", row[TRANSPORT], (unsigned long long)counts[0],
                n > 1 ? ", or more" : "", result);
    return result;
}

static int run_row(const struct coll_runner *r, const uint8_t *row)
{
    const uint64_t count = count_at(row[COUNT], row[TYPE], row[SIZE] + 1, r->block_bytes);
    return run_counts(r, row, &count, 1);
}

/* Where an algorithm doesn't know of hosts one row stands for all of theirs. */
static bool is_new(const uint8_t *row)
{
    return row[HOSTS] == 0 || coll_cases[row[CASE]].run == hosts_rank;
}

/* Ranks are started once for all lengths. */
static int run_product(const struct coll_runner *r, const unsigned *levels)
{
    uint64_t counts[SHORT_COUNTS + 6], cases = 0;
    uint8_t row[PARAMETERS] = {0};
    unsigned p = 0;
    int result = 0;
    while (p < PARAMETERS && result == 0) {
        for (unsigned i = 0; i < levels[COUNT]; i++)
            counts[i] = count_at(i, row[TYPE], row[SIZE] + 1, r->block_bytes);
        if (is_new(row)) {
            result = run_counts(r, row, counts, levels[COUNT]);
            cases += levels[COUNT];
        }
        for (p = 0; p < PARAMETERS && (p == COUNT || ++row[p] == levels[p]); p++)
            row[p] = 0;
        if (p == PARAMETERS || (p > CASE && r->progress))
            fprintf(stderr, "%llu cases done\n", (unsigned long long)cases);
    }
    return result;
}

int coll_cases_run(const struct coll_runner *r)
{
    unsigned levels[PARAMETERS];
    struct covering c;
    levels_of(r, levels);
    if (r->all)
        return run_product(r, levels);
    int result = covering_make(&c, levels, PARAMETERS, r->seed);
    if (result != 0)
        return result;
    for (unsigned i = 0; i < c.count && result == 0; i++)
        result = run_row(r, c.rows[i]);
    covering_free(&c);
    return result;
}
