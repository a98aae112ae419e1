/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coordinator and members together: simulated ranks that hand over in random orders, read and are
 * heard late, change tensors, disagree, and join, with caches too small and large. Every rank must
 * read the same orders, each tensor as it was handed over, once; what was agreed before must go by
 * bits and numbers. RT_TEST_SEED=... repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rt-coordinator.h"
#include "rt-member.h"

enum { RANKS_MAX = 5, NAMES = 24, ROUNDS = 40, QUEUE = 4096 };

struct queue {
    struct rt_bytes messages[QUEUE];
    int first, end;
};

struct rank {
    struct rt_member *member;
    struct queue to_rank0, from_rank0;
    int script[ROUNDS * NAMES + 8]; /* round * NAMES + name, in this rank's order; JOIN */
    int script_length, at;
    int pending[NAMES]; /* its round, -1 none */
    int pending_count;
    bool joining;
    unsigned read; /* orders */
};

struct world {
    unsigned seed;
    int size, rounds, names, mismatch_every, change_every;
    bool joins;
    struct rt_coordinator *coordinator;
    struct rank ranks[RANKS_MAX];
    int done[ROUNDS][NAMES]; /* ranks */
    char orders[QUEUE][80];  /* what the first rank to read each found */
    unsigned by_number, in_full;
};

enum { JOIN = -1 };

static unsigned draw(struct world *w, unsigned below)
{
    return (unsigned)rand_r(&w->seed) % below;
}

static void push(struct queue *q, const struct rt_bytes *message)
{
    assert_true(q->end < QUEUE);
    struct rt_bytes copy = {.data = malloc(message->n + 1), .n = message->n};
    memcpy(copy.data, message->data, message->n);
    q->messages[q->end++] = copy;
}

/* ---- what is handed over ---- */

static bool mismatches(const struct world *w, int round, int name)
{
    return w->mismatch_every > 0 && w->size > 1 && (round * 5 + name) % w->mismatch_every == 0;
}

static struct rt_tensor tensor_of(const struct world *w, int rank, int round, int name)
{
    static const uint8_t kinds[] = {RT_ALLREDUCE, RT_ALLGATHER, RT_ALLREDUCE, RT_BROADCAST};
    struct rt_tensor t = {.kind = kinds[name % 4], .prescale = 1, .postscale = 1};
    snprintf(t.name, sizeof t.name, "tensor.%d", name);
    if (t.kind == RT_ALLGATHER)
        t.row_count = 3;
    else
        t.count = 10 + (uint64_t)name;
    if (w->change_every > 0)
        t.count += (uint64_t)(round / w->change_every);
    if (mismatches(w, round, name) && rank == (round + name) % w->size)
        t.type = RT_INT64;
    return t;
}

/* The same tensors on all ranks, each in its own order. */
static void write_round(struct world *w, struct rank *rank, int round)
{
    int order[NAMES];
    for (int i = 0; i < w->names; i++) {
        int k = (int)draw(w, (unsigned)i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (int i = 0; i < w->names; i++)
        rank->script[rank->script_length++] = round * NAMES + order[i];
}

/* Who joins has fewer rounds of an epoch than others. */
static void write_scripts(struct world *w)
{
    const int epochs = w->joins ? 3 : 1, each = w->rounds / epochs;
    for (int r = 0; r < w->size; r++)
        for (int epoch = 0; epoch < epochs; epoch++) {
            const int rounds = w->joins ? (int)draw(w, (unsigned)each + 1) : each;
            for (int i = 0; i < rounds; i++)
                write_round(w, &w->ranks[r], epoch * each + i);
            if (w->joins)
                w->ranks[r].script[w->ranks[r].script_length++] = JOIN;
        }
}

/* ---- what ranks do ---- */

static void hand_over_next(struct world *w, int r)
{
    struct rank *rank = &w->ranks[r];
    if (rank->at == rank->script_length || rank->joining)
        return;
    const int next = rank->script[rank->at];
    struct rt_tensor t = {.kind = RT_JOIN, .name = "rt.join"};
    if (next == JOIN) {
        rank->joining = true;
    } else if (rank->pending[next % NAMES] >= 0) {
        return; /* its name is in use */
    } else {
        t = tensor_of(w, r, next / NAMES, next % NAMES);
        rank->pending[next % NAMES] = next / NAMES;
    }
    rank->pending_count++;
    rank->at++;
    assert_int_equal(rt_member_announce(rank->member, &t), 0);
}

static void announce(struct rank *rank)
{
    struct rt_bytes message = {0};
    rt_member_put(rank->member, &message);
    if (message.n > 0)
        push(&rank->to_rank0, &message);
    free(message.data);
}

static void hear(struct world *w, int r)
{
    struct queue *q = &w->ranks[r].to_rank0;
    if (q->first == q->end)
        return;
    struct rt_bytes *m = &q->messages[q->first++];
    struct rt_reader reader = {m->data, m->n};
    while (reader.left > 0)
        assert_int_equal(rt_coordinator_hear(w->coordinator, r, &reader), 0);
    free(m->data);
}

static void decide(struct world *w)
{
    struct rt_bytes message = {0};
    struct rt_order order;
    while (rt_coordinator_next(w->coordinator, &order) > 0) {
        for (uint32_t i = 0; i < order.n; i++)
            *(order.slots[i] & RT_SLOT_STORE ? &w->in_full : &w->by_number) += 1;
        rt_put_order(&message, &order);
        rt_order_clear(&order);
    }
    for (int r = 0; r < w->size && message.n > 0; r++)
        push(&w->ranks[r].from_rank0, &message);
    free(message.data);
}

static void finish(struct world *w, int r, const struct rt_order *order, const struct rt_tensor *t)
{
    struct rank *rank = &w->ranks[r];
    int name;
    if (t->kind == RT_JOIN) {
        assert_true(rank->joining);
        rank->joining = false;
        rank->pending_count--;
        return;
    }
    assert_int_equal(sscanf(t->name, "tensor.%d", &name), 1);
    const int round = rank->pending[name];
    if (round < 0) { /* takes part without */
        assert_true(rank->joining);
        return;
    }
    const struct rt_tensor mine = tensor_of(w, r, round, name);
    if (order->error) {
        assert_int_equal(order->error, -EINVAL);
        if (mismatches(w, round, name))
            assert_non_null(strstr(order->text, "int64"));
        else
            assert_true(w->joins && strstr(order->text, "its root, rank 0, has joined"));
    } else {
        assert_true(rt_tensor_is_like(t, &mine));
    }
    rank->pending[name] = -1;
    rank->pending_count--;
    w->done[round][name]++;
}

static bool concerns(const struct rt_order *order, int r)
{
    for (uint32_t i = 0; i < order->addressee_count; i++)
        if (order->addressees[i] == r)
            return true;
    return order->addressee_count == 0;
}

/* A rank with nothing to wait for sleeps. */
static void read_orders(struct world *w, int r)
{
    struct rank *rank = &w->ranks[r];
    struct queue *q = &rank->from_rank0;
    if (q->first == q->end || rank->pending_count == 0)
        return;
    announce(rank); /* as the worker does */
    struct rt_bytes *m = &q->messages[q->first++];
    struct rt_reader reader = {m->data, m->n};
    while (reader.left > 0) {
        struct rt_order order;
        char text[80];
        assert_int_equal(rt_member_get_order(rank->member, &reader, &order), 0);
        assert_true(rank->read < QUEUE);
        snprintf(text, sizeof text, "%u %.16s %.16s %llu", order.n, order.tensors[0].name,
                 order.tensors[order.n - 1].name, (unsigned long long)order.tensors[0].count);
        char *first = w->orders[rank->read++];
        if (!*first)
            strcpy(first, text);
        assert_string_equal(text, first);
        for (uint32_t i = 0; i < order.n && concerns(&order, r); i++)
            finish(w, r, &order, &order.tensors[i]);
        rt_order_clear(&order);
    }
    free(m->data);
}

/* ---- runs ---- */

static bool all_is_done(const struct world *w)
{
    for (int r = 0; r < w->size; r++)
        if (w->ranks[r].at < w->ranks[r].script_length || w->ranks[r].pending_count > 0)
            return false;
    return true;
}

static void run(struct world *w, uint32_t capacity, uint64_t threshold)
{
    w->coordinator = rt_coordinator_new(w->size, threshold, capacity);
    for (int r = 0; r < w->size; r++) {
        w->ranks[r].member = rt_member_new();
        for (int n = 0; n < NAMES; n++)
            w->ranks[r].pending[n] = -1;
    }
    write_scripts(w);
    for (long step = 0; !all_is_done(w); step++) {
        const int r = (int)draw(w, (unsigned)w->size);
        assert_true(step < 10000000);
        switch (draw(w, 8)) {
        case 0:
            announce(&w->ranks[r]);
            break;
        case 1:
            hear(w, r);
            break;
        case 2:
            decide(w);
            break;
        case 3:
            read_orders(w, r);
            break;
        default:
            hand_over_next(w, r);
        }
    }
    for (int r = 0; r < w->size; r++) {
        struct queue *q = &w->ranks[r].from_rank0;
        assert_int_equal(w->ranks[r].to_rank0.first, w->ranks[r].to_rank0.end);
        while (q->first < q->end)
            free(q->messages[q->first++].data);
        rt_member_free(w->ranks[r].member);
    }
    rt_coordinator_free(w->coordinator);
}

static unsigned seed;

static struct world *new_world(void)
{
    struct world *w = calloc(1, sizeof *w);
    w->seed = seed;
    return w;
}

static void check_every_rank_did_every_tensor(const struct world *w)
{
    for (int round = 0; round < w->rounds; round++)
        for (int n = 0; n < w->names; n++)
            assert_int_equal(w->done[round][n], w->size);
}

static void ranks_that_agree_all_do_all_whatever_the_capacity(void **state)
{
    static const uint32_t capacities[] = {0, 1, 3, 23, 24, 1024};
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        struct world *w = new_world();
        w->size = 1 + (int)draw(w, RANKS_MAX);
        w->rounds = 20;
        w->names = NAMES;
        run(w, capacities[i], i % 2 ? 1000 : 0);
        check_every_rank_did_every_tensor(w);
        if (capacities[i] >= NAMES) { /* each in full once */
            assert_int_equal(w->in_full, NAMES);
            assert_int_equal(w->by_number, NAMES * 19);
        }
        free(w);
    }
}

static void ranks_that_change_tensors_all_do_all(void **state)
{
    static const uint32_t capacities[] = {0, 5, 1024};
    for (size_t i = 0; i < 3; i++) {
        struct world *w = new_world();
        w->size = 2 + (int)draw(w, RANKS_MAX - 1);
        w->rounds = 20;
        w->names = NAMES;
        w->change_every = 1 + (int)draw(w, 4);
        run(w, capacities[i], 1000);
        check_every_rank_did_every_tensor(w);
        free(w);
    }
}

static void ranks_that_disagree_are_all_told(void **state)
{
    static const uint32_t capacities[] = {0, 5, 1024};
    for (size_t i = 0; i < 3; i++) {
        struct world *w = new_world();
        w->size = 2 + (int)draw(w, RANKS_MAX - 1);
        w->rounds = 20;
        w->names = NAMES;
        w->mismatch_every = 2 + (int)draw(w, 7);
        run(w, capacities[i], 1000);
        check_every_rank_did_every_tensor(w);
        free(w);
    }
}

static void ranks_that_join_are_done_without(void **state)
{
    static const uint32_t capacities[] = {0, 2, 5, 1024};
    for (size_t i = 0; i < 4; i++) {
        struct world *w = new_world();
        w->size = 2 + (int)draw(w, RANKS_MAX - 1);
        w->rounds = 15;
        w->names = 1 + (int)draw(w, NAMES / 4);
        w->change_every = (int)draw(w, 4);
        w->joins = true;
        run(w, capacities[i], 1000);
        free(w);
    }
}

/* ---- priorities ---- */

/* One rank hands over two tensors; *ret_head is what it announced them by, of which returned is the
 * first to be ordered. */
static char first_of(struct rt_coordinator *c, struct rt_member *m, int a, int b,
                     struct rt_announcement *ret_head)
{
    struct rt_bytes message = {0}, orders = {0};
    struct rt_order order, read;
    char first = 0;
    for (int i = 0; i < 2; i++) {
        struct rt_tensor t = {.kind = RT_ALLREDUCE, .count = 1, .prescale = 1, .postscale = 1};
        t.name[0] = "ab"[i];
        t.priority = i ? b : a;
        assert_int_equal(rt_member_announce(m, &t), 0);
    }
    rt_member_put(m, &message);
    memcpy(ret_head, message.data, sizeof *ret_head);
    struct rt_reader reader = {message.data, message.n};
    assert_int_equal(rt_coordinator_hear(c, 0, &reader), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rt_coordinator_next(c, &order), 1);
        assert_int_equal(order.n, 1);
        first = first ? first : order.tensors[0].name[0];
        rt_put_order(&orders, &order);
        rt_order_clear(&order);
    }
    reader = (struct rt_reader){orders.data, orders.n};
    while (reader.left > 0) {
        assert_int_equal(rt_member_get_order(m, &reader, &read), 0);
        rt_order_clear(&read);
    }
    free(message.data);
    free(orders.data);
    return first;
}

static void priority_that_changes_is_told_once(void **state)
{
    struct rt_coordinator *c = rt_coordinator_new(1, 0, 16);
    struct rt_member *m = rt_member_new();
    struct rt_announcement head;
    assert_int_equal(first_of(c, m, 0, 0, &head), 'a');
    assert_int_equal(head.tensors, 2);
    assert_int_equal(first_of(c, m, 0, 0, &head), 'a');
    assert_int_equal(head.tensors, 0);
    assert_int_equal(first_of(c, m, 0, 5, &head), 'b');
    assert_int_equal(head.tensors, 1);
    assert_int_equal(first_of(c, m, 0, 5, &head), 'b');
    assert_int_equal(head.tensors, 0);
    rt_member_free(m);
    rt_coordinator_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_agree_all_do_all_whatever_the_capacity),
        cmocka_unit_test(ranks_that_change_tensors_all_do_all),
        cmocka_unit_test(ranks_that_disagree_are_all_told),
        cmocka_unit_test(ranks_that_join_are_done_without),
        cmocka_unit_test(priority_that_changes_is_told_once),
    };
    const char *given = getenv("RT_TEST_SEED");
    seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    printf("seed: RT_TEST_SEED=%u\n", seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
