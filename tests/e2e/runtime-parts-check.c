/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-parts-check - one rank of a test of what the runtime does beside allreduce and broadcast:
 * allgather, alltoall and reducescatter of uneven rows, groups, join, priorities, poll; exit 1 and
 * a line where a result is wrong.
 *
 * Inputs encode rank, tensor and index; what must come is computed one rank after the other. Two
 * threads hand over at once, every rank in another order.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rank-check.h"
#include "rt-reference.h"
#include "rt.h"

/* With one that NCCL has not. */
static const enum rt_type types[] = {RT_FLOAT32, RT_INT16, RT_FLOAT64, RT_UINT8, RT_BFLOAT16};
enum { TYPES = sizeof types / sizeof *types, TENSORS = 15, MEMBERS = 7 };

/* Rows of some ranks are none, some few, some many; of every third tensor all have the same. */
static uint64_t rows_between(int from, int to, int tensor)
{
    static const uint64_t rows[] = {0, 1, 37, 5, 611, 2};
    return tensor % 3 == 0 ? 12 : rows[(from * 5 + to * 3 + tensor) % 6];
}

static uint64_t row_of(int tensor)
{
    static const uint64_t row_counts[] = {1, 3, 64, 17};
    return row_counts[tensor % 4];
}

struct given {
    int tensor;
    enum rt_type type;
    enum rt_op op;
    void *in, *out;
    struct rt_parts parts;
    struct rt_group_member members[MEMBERS];
    int handle;
};

static void *new_input(int tensor, enum rt_type type, enum rt_op op, uint64_t count)
{
    void *in = malloc(count * rt_type_bytes(type) + 1);
    fill(in, count, type, rt_rank(), tensor, op);
    return in;
}

static const char *name_of(const char *kind, int tensor)
{
    static _Thread_local char name[64];
    snprintf(name, sizeof name, "%s.%d", kind, tensor);
    return name;
}

/* ---- allgather ---- */

static void begin_allgather(struct given *g)
{
    uint64_t rows = rows_between(rt_rank(), 0, g->tensor), row = row_of(g->tensor);
    g->in = new_input(g->tensor, g->type, RT_SUM, rows * row);
    g->handle = rt_allgather_async(name_of("gather", g->tensor), g->in, rows, row, g->type,
                                   &g->parts, NULL);
}

static void check_parts(struct given *g, bool to_me)
{
    const uint64_t row = row_of(g->tensor);
    const char *at = g->parts.data;
    uint64_t total = 0;
    for (int r = 0; r < rt_size(); r++) {
        uint64_t rows = rows_between(r, to_me ? rt_rank() : 0, g->tensor);
        CHECK(g->parts.rows[r] == rows, "tensor %d: %llu rows from %d, expected %llu", g->tensor,
              (unsigned long long)g->parts.rows[r], r, (unsigned long long)rows);
        /* an alltoall's part for rank q holds the values of tensor + q */
        CHECK(holds_values(at, 0, rows * row, r, g->tensor + (to_me ? rt_rank() : 0), g->type,
                           RT_SUM),
              "tensor %d: part of %d", g->tensor, r);
        at += rows * row * rt_type_bytes(g->type);
        total += rows;
    }
    CHECK(g->parts.total == total, "tensor %d: %llu rows", g->tensor,
          (unsigned long long)g->parts.total);
    rt_parts_clear(&g->parts);
}

static void end_allgather(struct given *g)
{
    check_parts(g, false);
    free(g->in);
}

/* ---- alltoall ---- */

static void begin_alltoall(struct given *g)
{
    uint64_t splits[64], count = 0, row = row_of(g->tensor);
    for (int r = 0; r < rt_size(); r++)
        count += splits[r] = rows_between(rt_rank(), r, g->tensor);
    g->in = malloc(count * row * rt_type_bytes(g->type) + 1);
    char *at = g->in;
    for (int r = 0; r < rt_size(); r++) {
        fill(at, splits[r] * row, g->type, rt_rank(), g->tensor + r, RT_SUM);
        at += splits[r] * row * rt_type_bytes(g->type);
    }
    g->handle = rt_alltoall_async(name_of("all", g->tensor), g->in, splits, row, g->type, &g->parts,
                                  NULL); /* the splits may go now */
}

static void end_alltoall(struct given *g)
{
    check_parts(g, true);
    free(g->in);
}

/* ---- reducescatter ---- */

static void begin_reducescatter(struct given *g)
{
    uint64_t rows = rows_between(0, 0, g->tensor), row = row_of(g->tensor);
    g->in = new_input(g->tensor, g->type, g->op, rows * row);
    g->out = malloc(rt_rows_of(rows, rt_rank()) * row * rt_type_bytes(g->type) + 1);
    g->handle = rt_reducescatter_async(name_of("scatter", g->tensor), g->in, g->out, rows, row,
                                       g->type, g->op, 1, 1, NULL);
}

static void end_reducescatter(struct given *g)
{
    uint64_t rows = rows_between(0, 0, g->tensor), row = row_of(g->tensor), first = 0;
    for (int r = 0; r < rt_rank(); r++)
        first += rt_rows_of(rows, r);
    CHECK(holds_reduced(g->out, first * row, rt_rows_of(rows, rt_rank()) * row, rt_size(),
                        g->tensor, g->type, g->op),
          "tensor %d", g->tensor);
    CHECK(holds_values(g->in, 0, rows * row, rt_rank(), g->tensor, g->type, g->op),
          "tensor %d: input changed", g->tensor);
    free(g->in);
    free(g->out);
}

/* ---- groups ---- */

static uint64_t member_count(int tensor, int member)
{
    static const uint64_t counts[] = {1, 0, 250, 16, 4099, 3, 77, 1};
    return counts[(tensor + member) % 8];
}

static void begin_group(struct given *g)
{
    for (int m = 0; m < MEMBERS; m++) {
        uint64_t count = member_count(g->tensor, m);
        void *in = new_input(g->tensor * 8 + m, g->type, g->op, count);
        void *out = m % 2 ? in : malloc(count * rt_type_bytes(g->type) + 1);
        g->members[m] = (struct rt_group_member){in, out, count};
    }
    struct rt_group_member list[MEMBERS]; /* may go after the call */
    memcpy(list, g->members, sizeof list);
    g->handle = rt_grouped_allreduce_async(name_of("group", g->tensor), list, MEMBERS, g->type,
                                           g->op, 1, 1, NULL);
    memset(list, 0, sizeof list);
}

static void end_group(struct given *g)
{
    for (int m = 0; m < MEMBERS; m++) {
        struct rt_group_member *member = &g->members[m];
        CHECK(holds_reduced(member->out, 0, member->count, rt_size(), g->tensor * 8 + m, g->type,
                            g->op),
              "group %d, tensor %d", g->tensor, m);
        if (member->out != member->in)
            free(member->out);
        free((void *)member->in);
    }
}

/* ---- all at once ---- */

struct kind {
    void (*begin)(struct given *g);
    void (*end)(struct given *g);
};

static const struct kind kinds[][2] = {
    {{begin_allgather, end_allgather}, {begin_group, end_group}},
    {{begin_alltoall, end_alltoall}, {begin_reducescatter, end_reducescatter}},
};

/* One of the two threads: two kinds, by turns. */
static void *hand_over(void *data)
{
    const struct kind *two = data;
    struct given given[2 * TENSORS];
    for (int i = 0; i < 2 * TENSORS; i++) {
        int t = (i * 7 + rt_rank() * 11) % (2 * TENSORS);
        struct given *g = &given[t];
        *g = (struct given){
            .tensor = t / 2, .type = types[t / 2 % TYPES], .op = (enum rt_op)(t / 2 % RT_OP_COUNT)};
        two[t % 2].begin(g);
        CHECK(g->handle >= 0, "tensor %d", t);
    }
    for (int t = 0; t < 2 * TENSORS; t++) {
        CHECK(rt_wait(given[t].handle) == 0, "tensor %d", t);
        two[t % 2].end(&given[t]);
    }
    return NULL;
}

static void check_all(void)
{
    for (int round = 0; round < 2; round++) {
        pthread_t other;
        CHECK(pthread_create(&other, NULL, hand_over, (void *)kinds[1]) == 0, "thread");
        hand_over((void *)kinds[0]);
        pthread_join(other, NULL);
    }
}

/* ---- join ---- */

/* Ranks have data for different numbers of steps; who has most changes. */
static int steps_of(int rank, int round)
{
    return 2 * ((rank + round) % rt_size()) + 1;
}

static int32_t value(int rank, int step, int i)
{
    return (rank + 1) * 1000 + step * 100 + i;
}

static int32_t sum_at(int step, int i, int round)
{
    int32_t sum = 0;
    for (int r = 0; r < rt_size(); r++)
        sum += step < steps_of(r, round) ? value(r, step, i) : 0;
    return sum;
}

enum { LENGTH = 41 };

static void check_sums(const int32_t *data, int first, int count, int step, int round, int divisor)
{
    for (int i = 0; i < count; i++)
        CHECK(data[i] == sum_at(step, first + i, round) / divisor,
              "step %d: [%d] is %d, expected %d", step, first + i, data[i],
              sum_at(step, first + i, round) / divisor);
}

static void join_step(int step, int round)
{
    int32_t in[LENGTH], sum[LENGTH], average[LENGTH], first[LENGTH], second[2], mine[LENGTH];
    uint64_t splits[64];
    struct rt_parts gathered, exchanged;
    for (int i = 0; i < LENGTH; i++)
        in[i] = value(rt_rank(), step, i);
    for (int r = 0; r < rt_size(); r++)
        splits[r] = 1;
    const struct rt_group_member members[] = {{in, first, LENGTH}, {in, second, 2}};
    const int handles[] = {
        rt_allreduce_async("j.sum", in, sum, LENGTH, RT_INT32, RT_SUM, 1, 1, NULL),
        rt_allreduce_async("j.average", in, average, LENGTH, RT_INT32, RT_AVG, 1, 1, NULL),
        rt_grouped_allreduce_async("j.group", members, 2, RT_INT32, RT_SUM, 1, 1, NULL),
        rt_reducescatter_async("j.scatter", in, mine, LENGTH, 1, RT_INT32, RT_SUM, 1, 1, NULL),
        rt_allgather_async("j.gather", in, 2, 3, RT_INT32, &gathered, NULL),
        rt_alltoall_async("j.all", in, splits, 2, RT_INT32, &exchanged, NULL),
    };
    for (int i = 0; i < 6; i++)
        CHECK(rt_wait(handles[i]) == 0, "step %d: %d", step, i);
    check_sums(sum, 0, LENGTH, step, round, 1);
    check_sums(average, 0, LENGTH, step, round, rt_size());
    check_sums(first, 0, LENGTH, step, round, 1);
    check_sums(second, 0, 2, step, round, 1);
    int before = 0;
    for (int r = 0; r < rt_rank(); r++)
        before += (int)rt_rows_of(LENGTH, r);
    check_sums(mine, before, (int)rt_rows_of(LENGTH, rt_rank()), step, round, 1);
    const int32_t *from_gather = gathered.data, *from_all = exchanged.data;
    for (int r = 0; r < rt_size(); r++) {
        bool has = step < steps_of(r, round);
        CHECK(gathered.rows[r] == (has ? 2 : 0) && exchanged.rows[r] == has, "from %d", r);
        for (int i = 0; i < 6 && has; i++)
            CHECK(*from_gather++ == value(r, step, i), "from %d", r);
        for (int i = 0; i < 2 && has; i++)
            CHECK(*from_all++ == value(r, step, 2 * rt_rank() + i), "from %d", r);
    }
    rt_parts_clear(&gathered);
    rt_parts_clear(&exchanged);
}

static void check_join(void)
{
    for (int round = 0; round < 3; round++) {
        int last = -1;
        for (int step = 0; step < steps_of(rt_rank(), round); step++)
            join_step(step, round);
        CHECK(rt_wait(rt_join_async(&last, NULL)) == 0, "join");
        CHECK(steps_of(last, round) == 2 * rt_size() - 1, "last %d", last);
    }
}

static void check_joined_root(void)
{
    int last = -1;
    int32_t data[2] = {0};
    if (rt_rank() != 0) {
        CHECK(rt_wait(rt_broadcast_async("rootless", data, 2, RT_INT32, 0, NULL)) == -EINVAL,
              "root");
        CHECK(strstr(rt_error(), "its root, rank 0, has joined"), "text");
    }
    CHECK(rt_wait(rt_join_async(&last, NULL)) == 0 && last > 0, "last %d", last);
    CHECK(rt_wait(rt_broadcast_async("rootless", data, 2, RT_INT32, 0, NULL)) == 0, "after join");
}

/* ---- priorities, poll ---- */

static void gate(void)
{
    int32_t one = 1;
    CHECK(rt_wait(rt_allreduce_async("gate", &one, &one, 1, RT_INT32, RT_SUM, 1, 1, NULL)) == 0,
          "gate");
}

/* Rank 0 hands over when all others have looked. */
static void check_poll(void)
{
    int32_t one = 1;
    int handle = -1;
    if (rt_rank() == 0)
        gate();
    handle = rt_allreduce_async("polled", &one, &one, 1, RT_INT32, RT_SUM, 1, 1, NULL);
    if (rt_rank() > 0) {
        CHECK(rt_poll(handle) == 0, "done without rank 0");
        gate();
    }
    while (rt_poll(handle) == 0)
        sched_yield();
    CHECK(rt_poll(handle) == 1 && one == rt_size(), "%d", one);
    CHECK(rt_wait(handle) == 0 && rt_poll(handle) == -EINVAL, "after the wait");
}

/* All become ready at once, as rank 0 joins, and none goes with another: their scales differ. Each
 * takes what the one of the next higher priority gives, and so shows the order (no program may do
 * so: who waits for nothing may count on none). The lowest was handed over first. */
static void check_priorities(void)
{
    enum { RANKED = 6, LONG = 1001 };
    static float data[RANKED + 1][LONG];
    int handles[RANKED], last = -1;
    float want = 1;
    for (int i = 0; i < LONG; i++)
        data[RANKED][i] = 1;
    for (int t = 0; t < RANKED && rt_rank() > 0; t++) {
        const struct rt_options options = {.priority = t - 2};
        handles[t] = rt_allreduce_async(name_of("ranked", t), data[t + 1], data[t], LONG,
                                        RT_FLOAT32, RT_SUM, 1, t + 2, &options);
        CHECK(handles[t] >= 0, "tensor %d", t);
        want *= (float)((t + 2) * (rt_size() - 1));
    }
    gate();
    for (int t = 0; t < RANKED && rt_rank() > 0; t++) {
        CHECK(t == 0 || rt_poll(handles[t]) == 1, "priority %d comes after -2", t - 2);
        CHECK(rt_wait(handles[t]) == 0, "tensor %d", t);
    }
    for (int i = 0; i < LONG && rt_rank() > 0; i++)
        CHECK(data[0][i] == want, "[%d] is %g, expected %g", i, data[0][i], want);
    CHECK(rt_wait(rt_join_async(&last, NULL)) == 0, "join");
}

/* ---- disagreement ---- */

static void expect_refusal(int handle, const char *before, const char *last_value)
{
    char text[128];
    CHECK(rt_wait(handle) == -EINVAL, "%s", before);
    CHECK(strstr(rt_error(), before), "expected %s", before);
    snprintf(text, sizeof text, "rank %d %s", rt_size() - 1, last_value);
    CHECK(strstr(rt_error(), text), "expected %s", text);
}

static void check_mismatch(void)
{
    float data[64] = {0}, out[64];
    struct rt_parts parts = {.total = 99};
    const int last = rt_rank() == rt_size() - 1;
    expect_refusal(rt_allgather_async("g", data, 2, last ? 5 : 4, RT_FLOAT32, &parts, NULL),
                   "tensor g; shape: rank 0 [*,4], ", "[*,5]");
    CHECK(parts.total == 99 && !parts.data, "written");
    expect_refusal(
        rt_reducescatter_async("s", data, out, last ? 9 : 8, 2, RT_FLOAT32, RT_SUM, 1, 1, NULL),
        "tensor s; shape: rank 0 [8,2], ", "[9,2]");
    expect_refusal(rt_reducescatter_async("s", data, out, 8, 2, RT_FLOAT32, last ? RT_MAX : RT_SUM,
                                          1, 1, NULL),
                   "tensor s; reduction: rank 0 sum, ", "max");
    expect_refusal(
        last ? rt_allgather_async("k", data, 2, 4, RT_FLOAT32, &parts, NULL)
             : rt_reducescatter_async("k", data, out, 2, 4, RT_FLOAT32, RT_SUM, 1, 1, NULL),
        "tensor k; operation: rank 0 REDUCESCATTER, ", "ALLGATHER");
    const struct rt_group_member members[] = {{data, out, last ? 3 : 4}, {data, out, last ? 4 : 3}};
    expect_refusal(rt_grouped_allreduce_async("m", members, 2, RT_FLOAT32, RT_SUM, 1, 1, NULL),
                   "tensor m; shape: rank 0 [4]+[3], ", "[3]+[4]");
    expect_refusal(rt_grouped_allreduce_async("m", members + last, last ? 1 : 2, RT_FLOAT32, RT_SUM,
                                              1, 1, NULL),
                   "tensors of the group: rank 0 2, ", "1");
}

static void check_arguments(void)
{
    float data[4] = {0};
    struct rt_parts parts;
    CHECK(rt_allgather_async("x", data, 1, 0, RT_FLOAT32, &parts, NULL) == -EINVAL, "no row");
    CHECK(rt_reducescatter_async("x", data, data, 1, 0, RT_FLOAT32, RT_SUM, 1, 1, NULL) == -EINVAL,
          "no row");
    CHECK(rt_reducescatter_async("x", data, data, 1, 1, RT_FLOAT32, RT_OP_COUNT, 1, 1, NULL) ==
              -EINVAL,
          "no such reduction");
    CHECK(rt_grouped_allreduce_async("x", NULL, 0, RT_FLOAT32, RT_SUM, 1, 1, NULL) == -EINVAL,
          "none");
}

/* Rank 0 leaves without joining: the others are told. */
static void check_leaving(void)
{
    int last = -1;
    if (rt_rank() == 0)
        return;
    CHECK(rt_wait(rt_join_async(&last, NULL)) == -ESHUTDOWN && last == -1, "join");
    CHECK(strstr(rt_error(), "shut down without it: rank 0"), "text");
}

int main(void)
{
    if (rt_init() < 0) {
        fprintf(stderr, "rt_init: %s\n", rt_error());
        return 2;
    }
    check_all();
    check_join();
    check_arguments();
    if (rt_size() > 1) {
        check_joined_root();
        check_poll();
        check_priorities();
        check_mismatch();
        check_leaving(); /* ends the run: the last */
    }
    if (rt_shutdown() < 0) {
        fprintf(stderr, "rt_shutdown: %s\n", rt_error());
        return 1;
    }
    return 0;
}
