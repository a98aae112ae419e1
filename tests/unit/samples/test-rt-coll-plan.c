/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the algorithms of rt_coll would move of 2^40 elements, on a transport that moves nothing:
 * one rank after the other is run, and what it posts is noted. Then every message must have its
 * like on the other side, in order and of its length; none may be longer than a block, or lie
 * beside the buffers; and together they must write the whole result.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rt-coll.h"

enum { RANKS_MAX = 7 };
#define COUNT ((uint64_t)(1ull << 40) + 7)
#define BLOCK ((uint64_t)1 << 32)
#define GAP   (2 * BLOCK)
#define SPACE (2 * COUNT * 8 + 3 * GAP)

struct range {
    const char *first, *end;
};

struct list {
    void *data;
    size_t n, capacity, each;
};

static void add(struct list *l, const void *item, size_t each)
{
    if (l->n == l->capacity) {
        l->capacity = l->capacity ? l->capacity * 2 : 256;
        l->data = realloc(l->data, l->capacity * each);
        assert_non_null(l->data);
    }
    memcpy((char *)l->data + l->n++ * each, item, each);
}

struct sham {
    struct rt_transport base;
    struct range space, in, out;                      /* with gaps before, between and after */
    struct list sent[RANKS_MAX], received[RANKS_MAX]; /* uint64_t: bytes, by peer */
    struct list written;                              /* struct range: of out */
    int beside;
};

static bool lies_in(const struct range *r, const char *first, uint64_t bytes)
{
    return first >= r->first && first + bytes <= r->end;
}

/* What isn't in the space at all is scratch. */
static bool lies_beside(const struct sham *s, const char *first, uint64_t bytes)
{
    const bool scratch = first + bytes <= s->space.first || first >= s->space.end;
    return !scratch && !lies_in(&s->in, first, bytes) && !lies_in(&s->out, first, bytes);
}

static void note(struct sham *s, const void *data, uint64_t bytes, struct list *messages)
{
    const char *first = data;
    s->beside += lies_beside(s, first, bytes);
    assert_in_range(bytes, 1, BLOCK);
    add(messages, &bytes, sizeof bytes);
}

static int sham_send(struct rt_transport *t, const void *data, uint64_t bytes, int peer,
                     struct rt_request *ret)
{
    struct sham *s = (struct sham *)t;
    note(s, data, bytes, &s->sent[peer]);
    return 0;
}

static int sham_recv(struct rt_transport *t, void *data, uint64_t bytes, int peer,
                     struct rt_request *ret)
{
    struct sham *s = (struct sham *)t;
    const struct range written = {data, (char *)data + bytes};
    note(s, data, bytes, &s->received[peer]);
    if (lies_in(&s->out, data, bytes))
        add(&s->written, &written, sizeof written);
    return 0;
}

static int sham_recv_reduce(struct rt_transport *t, void *out, const void *operand, uint64_t count,
                            enum rt_type type, enum rt_op op, int peer, struct rt_request *ret)
{
    struct sham *s = (struct sham *)t;
    const uint64_t bytes = count * rt_type_bytes(type);
    s->beside += lies_beside(s, operand, bytes);
    return sham_recv(t, out, bytes, peer, ret);
}

static int sham_wait(struct rt_transport *t, struct rt_request *requests, unsigned n)
{
    return 0;
}

static const struct rt_transport_ops sham_ops = {
    .send = sham_send, .recv = sham_recv, .recv_reduce = sham_recv_reduce, .wait = sham_wait};

/* ---- one collective ---- */

struct what {
    const char *name; /* as in coll-cases.h */
    int size;
    int hosts[RANKS_MAX];
    bool whole; /* everything in `out` is written by messages */
};

struct call {
    struct sham *s;
    const struct what *w;
    void *in, *out;
    enum rt_type type;
};

static int call_over_hosts(const struct call *c)
{
    struct rt_layout layout;
    assert_int_equal(rt_layout_init(&layout, c->w->hosts, c->w->size), 0);
    const struct rt_hosts hosts = {.all = &c->s->base, .layout = &layout};
    const char *colon = strchr(c->w->name, ':');
    int error = colon ? rt_allreduce_hierarchical(&hosts, rt_allreduce_find(colon + 1), c->in,
                                                  c->out, COUNT, c->type, RT_SUM)
                      : rt_allreduce_two_level_ring(&hosts, c->in, c->out, COUNT, c->type, RT_SUM);
    rt_layout_release(&layout);
    return error;
}

/* Of parts, rank r has every third or all but a few. */
static uint64_t part_of(int size, int r)
{
    return r == 0 ? 0 : COUNT / (uint64_t)size + (uint64_t)r;
}

static int call_parts(const struct call *c)
{
    struct rt_transport *t = &c->s->base;
    const uint64_t each = rt_type_bytes(c->type);
    const uint64_t first = rt_part_first(COUNT, t->size, t->rank) * each;
    uint64_t counts[RANKS_MAX], before = 0;
    for (int r = 0; r < t->size; r++) {
        counts[r] = part_of(t->size, r);
        before += r < t->rank ? counts[r] : 0;
    }
    if (strcmp(c->w->name, "reduce-scatter") == 0)
        return rt_reduce_scatter_ring(t, c->in, (char *)c->out + first, COUNT, c->type, RT_SUM);
    if (strcmp(c->w->name, "allgather") == 0)
        return rt_allgather_ring(t, (char *)c->out + first, c->out, COUNT, c->type);
    if (strcmp(c->w->name, "allgatherv") == 0)
        return rt_allgatherv_ring(t, (char *)c->out + before * each, c->out, counts, c->type);
    if (strcmp(c->w->name, "binomial") == 0)
        return rt_broadcast_binomial(t, c->out, COUNT, c->type, 1);
    if (strcmp(c->w->name, "chain") == 0)
        return rt_broadcast_chain(t, c->out, COUNT, c->type, 1);
    return rt_reduce_binomial(t, c->in, c->out, COUNT, c->type, RT_SUM, 0);
}

static int call(const struct call *c)
{
    const struct rt_algorithm *flat = rt_algorithm_find(c->w->name);
    if (flat)
        return flat->fn(&c->s->base, c->in, c->out, COUNT, c->type, RT_SUM);
    bool over_hosts = strchr(c->w->name, ':') || strcmp(c->w->name, "two-level-ring") == 0;
    return over_hosts ? call_over_hosts(c) : call_parts(c);
}

/* ---- what came of it ---- */

static int by_first(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static bool is_whole(struct sham *s)
{
    struct range *ranges = s->written.data;
    const char *reached = s->out.first;
    qsort(ranges, s->written.n, sizeof *ranges, by_first);
    for (size_t i = 0; i < s->written.n && ranges[i].first <= reached; i++)
        reached = ranges[i].end > reached ? ranges[i].end : reached;
    return reached == s->out.end;
}

static void check_ranks(const struct what *w, struct sham *ranks)
{
    for (int a = 0; a < w->size; a++) {
        if (ranks[a].beside > 0)
            fail_msg("%s, %d ranks: rank %d touches what isn't its own", w->name, w->size, a);
        if (w->whole && !is_whole(&ranks[a]))
            fail_msg("%s, %d ranks: rank %d doesn't get everything", w->name, w->size, a);
        for (int b = 0; b < w->size; b++) {
            const struct list *sent = &ranks[a].sent[b], *received = &ranks[b].received[a];
            if (sent->n != received->n || (sent->n > 0 && memcmp(sent->data, received->data,
                                                                 sent->n * sizeof(uint64_t)) != 0))
                fail_msg("%s, %d ranks: what %d sends and %d receives differ", w->name, w->size, a,
                         b);
        }
    }
}

static void release(struct sham *s)
{
    for (int r = 0; r < RANKS_MAX; r++) {
        free(s->sent[r].data);
        free(s->received[r].data);
    }
    free(s->written.data);
}

/* `space` ends with scratch, which nobody touches either. */
static void check(const struct what *w, char *space, enum rt_type type)
{
    const uint64_t bytes = COUNT * rt_type_bytes(type);
    struct sham *ranks = calloc(RANKS_MAX, sizeof *ranks);
    for (int r = 0; r < w->size; r++) {
        struct sham *s = &ranks[r];
        s->base = (struct rt_transport){
            .ops = &sham_ops, .rank = r, .size = w->size, .block_bytes = BLOCK};
        for (int i = 0; i < RT_SCRATCH_COUNT; i++)
            s->base.scratch[i] = (struct rt_scratch){space + SPACE + (uint64_t)i * BLOCK, BLOCK};
        s->space = (struct range){space, space + SPACE};
        s->in = (struct range){space + GAP, space + GAP + bytes};
        s->out = (struct range){space + SPACE - GAP - bytes, space + SPACE - GAP};
        const struct call c = {s, w, space + GAP, space + SPACE - GAP - bytes, type};
        assert_int_equal(call(&c), 0);
    }
    check_ranks(w, ranks);
    for (int r = 0; r < w->size; r++)
        release(&ranks[r]);
    free(ranks);
}

/* Ranks that would copy, or reduce what came to scratch, are not among these sizes: nothing may be
 * touched. */
static const struct what whats[] = {
    {"ring", 2, {0}, true},
    {"ring", 7, {0}, true},
    {"recursive-doubling", 4, {0}, true},
    {"halving-doubling", 4, {0}, true},
    {"halving-doubling", 5, {0}, true},
    {"halving-doubling", 7, {0}, true},
    {"tree", 5, {0}, true},
    {"double-tree", 2, {0}, true},
    {"double-tree", 6, {0}, true},
    {"double-tree", 7, {0}, true},
    {"hierarchical:ring", 4, {0, 0, 1, 1}, true},
    {"hierarchical:ring", 7, {0, 0, 1, 1, 2, 2, 2}, true},
    {"hierarchical:halving-doubling", 5, {0, 1, 0, 1, 1}, true},
    {"hierarchical:double-tree", 7, {0, 1, 1, 0, 1, 0, 1}, true},
    {"two-level-ring", 4, {0, 0, 1, 1}, true},
    {"two-level-ring", 7, {0, 1, 1, 2, 0, 2, 2}, true},
    {"reduce-scatter", 3, {0}, false},
    {"reduce", 5, {0}, false},
    {"allgather", 3, {0}, false},
    {"allgatherv", 4, {0}, false},
    {"binomial", 7, {0}, false},
    {"chain", 4, {0}, false},
};

static void messages_of_2_to_the_40_elements_fit_together(void **state)
{
    /* address space that nobody touches */
    char *space = mmap(NULL, SPACE + RT_SCRATCH_COUNT * BLOCK, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(space != MAP_FAILED);
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        check(&whats[i], space, RT_UINT8);
        if (strcmp(whats[i].name, "chain") != 0) /* of short segments: too many */
            check(&whats[i], space, RT_FLOAT64);
    }
    munmap(space, SPACE + RT_SCRATCH_COUNT * BLOCK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_2_to_the_40_elements_fit_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
