/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-sets-check [SEED] - one rank of a test of process sets; exit 1 and a line where an answer
 * is wrong.
 *
 * Drawn alike on all ranks: overlapping sets, and operations of every kind in them, under a few
 * names, so that sets share them. Each rank hands over in another order, by several threads. What
 * must come is computed here, one rank after the other. Then what is refused, joins in sets, and
 * sets that are added and removed over and over: the heap and descriptors stay.
 */
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rank-check.h"
#include "rt.h"

#define RANKS_MAX 16
enum { SETS = 5, OPERATIONS = 48, THREADS = 3, ROUNDS = 4, NAMES = 12, COUNT_MAX = 3000 };

struct set {
    int id, n, place; /* place -1: this rank isn't in it */
    int ranks[RANKS_MAX];
};

enum kind {
    ALLREDUCE,
    GROUPED,
    ADASUM,
    ALLGATHER,
    BROADCAST,
    REDUCESCATTER,
    ALLTOALL,
    BARRIER,
    KINDS
};

struct operation {
    enum kind kind;
    const struct set *set;
    char name[16];
    uint32_t count;
    int root; /* of the job */
    int number, handle;
    enum rt_op op;
    int32_t *in, *out;
    struct rt_parts parts;
};

/* The same on all ranks (splitmix64). */
static uint32_t drawn(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32 ^ z);
}

/* Of `number` each rank of the job has another value at each index. */
static int32_t value(int rank, int number, uint64_t i)
{
    return (rank + 1) * 7 + number * 131 + (int32_t)(i % 1009) * 3 - (int32_t)(i % 5) * 500;
}

static uint64_t rows_of(const struct operation *o, int rank, int to)
{
    return (o->count + (uint32_t)rank * 7 + (uint32_t)to * 3) % 40;
}

static int32_t reduced(const struct operation *o, uint64_t i)
{
    int32_t result = value(o->set->ranks[0], o->number, i);
    for (int p = 1; p < o->set->n; p++) {
        const int32_t v = value(o->set->ranks[p], o->number, i);
        if (o->op == RT_MAX || o->op == RT_MIN)
            result = (v > result) == (o->op == RT_MAX) ? v : result;
        else
            result += v;
    }
    return o->op == RT_AVG ? result / o->set->n : result;
}

/* ---- one operation ---- */

static int start_grouped(const struct operation *o, const struct rt_options *options)
{
    const uint32_t first = o->count / 3;
    const struct rt_group_member members[] = {{o->in, o->out, first},
                                              {o->in + first, o->out + first, o->count - first}};
    return rt_grouped_allreduce_async(o->name, members, 2, RT_INT32, o->op, 1, 1, options);
}

/* Parallel gradients are averaged: what all have alike comes out. */
static int start_adasum(const struct operation *o, const struct rt_options *options)
{
    float *data = (float *)o->out;
    for (uint32_t i = 0; i < o->count; i++)
        data[i] = (float)value(0, o->number, i);
    return rt_allreduce_async(o->name, data, data, o->count, RT_FLOAT32, RT_ADASUM, 1, 1, options);
}

static int start(struct operation *o)
{
    const struct rt_options options = {.set = o->set->id, .priority = o->number % 3};
    uint64_t splits[RANKS_MAX];
    for (uint32_t i = 0; i < o->count; i++)
        o->in[i] = value(rt_rank(), o->number, i);
    switch (o->kind) {
    case ALLREDUCE:
        return rt_allreduce_async(o->name, o->in, o->out, o->count, RT_INT32, o->op, 1, 1,
                                  &options);
    case GROUPED:
        return start_grouped(o, &options);
    case ADASUM:
        return start_adasum(o, &options);
    case ALLGATHER:
        return rt_allgather_async(o->name, o->in, rows_of(o, rt_rank(), 0), 2, RT_INT32, &o->parts,
                                  &options);
    case BROADCAST:
        return rt_broadcast_async(o->name, o->in, o->count, RT_INT32, o->root, &options);
    case REDUCESCATTER:
        return rt_reducescatter_async(o->name, o->in, o->out, o->count / 2, 2, RT_INT32, o->op, 1,
                                      1, &options);
    case ALLTOALL:
        for (int p = 0; p < o->set->n; p++)
            splits[p] = rows_of(o, rt_rank(), p);
        return rt_alltoall_async(o->name, o->in, splits, 2, RT_INT32, &o->parts, &options);
    default:
        return rt_barrier_async(&options);
    }
}

static void check_reduced(const struct operation *o, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        CHECK(o->out[i] == reduced(o, first + i), "%s of set %d, kind %d, [%d] is %d, not %d",
              o->name, o->set->id, (int)o->kind, (int)i, (int)o->out[i],
              (int)reduced(o, first + i));
}

/* Rows of each rank of the set, by place; of an alltoall those before this rank's are left out. */
static void check_parts(const struct operation *o)
{
    const int32_t *at = o->parts.data;
    const bool scattered = o->kind == ALLTOALL;
    for (int p = 0; p < o->set->n; p++) {
        const int rank = o->set->ranks[p];
        const uint64_t rows = rows_of(o, rank, scattered ? o->set->place : 0);
        uint64_t before = 0;
        for (int to = 0; to < o->set->place && scattered; to++)
            before += rows_of(o, rank, to);
        CHECK(o->parts.rows[p] == rows, "%s of set %d: rows of place %d", o->name, o->set->id, p);
        for (uint64_t i = 0; i < 2 * rows; i++, at++)
            CHECK(*at == value(rank, o->number, 2 * before + i), "%s of set %d: place %d [%d]",
                  o->name, o->set->id, p, (int)i);
    }
}

static void check(const struct operation *o)
{
    const float *data = (const float *)o->out;
    uint64_t first = 0;
    switch (o->kind) {
    case ALLREDUCE:
    case GROUPED:
        check_reduced(o, 0, o->count);
        break;
    case ADASUM:
        for (uint32_t i = 0; i < o->count; i++) {
            const float want = (float)value(0, o->number, i), off = data[i] - want;
            CHECK(off * off <= want * want * 1e-8f, "adasum %s [%d]: %g", o->name, (int)i, data[i]);
        }
        break;
    case BROADCAST:
        for (uint32_t i = 0; i < o->count; i++)
            CHECK(o->in[i] == value(o->root, o->number, i), "%s of set %d, root %d", o->name,
                  o->set->id, o->root);
        break;
    case REDUCESCATTER:
        for (int p = 0; p < o->set->place; p++)
            first += rt_process_set_rows_of(o->set->id, o->count / 2, p);
        check_reduced(o, 2 * first,
                      2 * rt_process_set_rows_of(o->set->id, o->count / 2, o->set->place));
        break;
    case BARRIER:
        break;
    default:
        check_parts(o);
    }
}

/* ---- drawn ---- */

static void draw_set(struct set *s, uint64_t *state)
{
    s->n = 0;
    while (s->n == 0)
        for (int r = 0; r < rt_size(); r++)
            if (drawn(state) % 3 > 0)
                s->ranks[s->n++] = r;
}

static void add(struct set *s)
{
    int backwards[RANKS_MAX], ranks[RANKS_MAX];
    for (int i = 0; i < s->n; i++)
        backwards[s->n - 1 - i] = s->ranks[i];
    s->id = rt_add_process_set(rt_rank() % 2 ? backwards : s->ranks, s->n);
    CHECK(s->id > 0, "add");
    s->place = -1;
    for (int i = 0; i < s->n; i++)
        s->place = s->ranks[i] == rt_rank() ? i : s->place;
    CHECK(rt_process_set_size(s->id) == s->n, "set %d", s->id);
    CHECK(rt_process_set_included(s->id) == (s->place >= 0), "set %d", s->id);
    CHECK(rt_process_set_rank(s->id) == (s->place >= 0 ? s->place : -EPERM), "set %d", s->id);
    CHECK(rt_process_set_ranks(s->id, ranks, RANKS_MAX) == s->n, "set %d", s->id);
    CHECK(memcmp(ranks, s->ranks, (size_t)s->n * sizeof *ranks) == 0, "set %d", s->id);
}

/* Each name once in a set, as each barrier. */
static void draw(struct operation *o, const struct set *sets, int number, uint64_t *state)
{
    memset(o, 0, sizeof *o);
    o->number = number;
    o->set = &sets[number % (SETS + 1)];
    snprintf(o->name, sizeof o->name, "t.%d", number / (SETS + 1) % NAMES);
    o->kind = (enum kind)(drawn(state) % (number < SETS + 1 ? KINDS : BARRIER));
    o->count = drawn(state) % (drawn(state) % 4 ? 100 : COUNT_MAX);
    o->root = o->set->ranks[drawn(state) % (uint32_t)o->set->n];
    const enum rt_op ops[] = {RT_SUM, RT_MAX, RT_MIN, RT_AVG};
    o->op = ops[drawn(state) % 4];
    o->in = malloc((COUNT_MAX + 100 * RANKS_MAX) * sizeof *o->in);
    o->out = malloc(COUNT_MAX * sizeof *o->out);
    for (uint32_t i = o->count; i < COUNT_MAX + 100 * RANKS_MAX; i++)
        o->in[i] = value(rt_rank(), number, i);
}

struct work {
    struct operation *operations;
    const int *order;
    int first;
};

static void *hand_over_and_wait(void *data)
{
    const struct work *w = data;
    for (int i = w->first; i < OPERATIONS; i += THREADS) {
        struct operation *o = &w->operations[w->order[i]];
        o->handle = o->set->place < 0 ? 0 : start(o);
        CHECK(o->handle >= 0, "%s of set %d", o->name, o->set->id);
    }
    for (int i = w->first; i < OPERATIONS; i += THREADS) {
        struct operation *o = &w->operations[w->order[i]];
        if (o->set->place < 0)
            continue;
        CHECK(rt_wait(o->handle) == 0, "%s of set %d", o->name, o->set->id);
        check(o);
    }
    return NULL;
}

static void shuffle(int *order, int n, uint64_t state)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int other = (int)(drawn(&state) % (uint32_t)(i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static void round_of(const struct set *sets, uint64_t *state)
{
    struct operation operations[OPERATIONS];
    int order[OPERATIONS];
    pthread_t threads[THREADS];
    struct work work[THREADS];
    for (int i = 0; i < OPERATIONS; i++)
        draw(&operations[i], sets, i, state);
    shuffle(order, OPERATIONS, *state + (uint64_t)rt_rank() * 977);
    for (int t = 0; t < THREADS; t++) {
        work[t] = (struct work){operations, order, t};
        CHECK(pthread_create(&threads[t], NULL, hand_over_and_wait, &work[t]) == 0, "thread");
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int i = 0; i < OPERATIONS; i++) {
        rt_parts_clear(&operations[i].parts);
        free(operations[i].in);
        free(operations[i].out);
    }
}

static void check_drawn(uint64_t seed)
{
    uint64_t state = seed;
    struct set sets[SETS + 1] = {{.id = RT_GLOBAL_SET, .n = rt_size(), .place = rt_rank()}};
    for (int r = 0; r < rt_size(); r++)
        sets[0].ranks[r] = r;
    for (int i = 1; i <= SETS; i++) {
        draw_set(&sets[i], &state);
        add(&sets[i]);
    }
    for (int round = 0; round < ROUNDS; round++)
        round_of(sets, &state);
    for (int i = SETS; i > 0; i--)
        CHECK(rt_remove_process_set(sets[i].id) == 0, "set %d", sets[i].id);
}

/* ---- joins ---- */

/* Rank 0 joins at once, the others after two sums; the set of all goes on meanwhile. */
static void check_join(void)
{
    const int ranks[] = {0, 1, 2};
    const struct rt_options options = {.set = rt_add_process_set(ranks, 3)};
    int32_t one = 1, all = 1;
    int last = -1;
    CHECK(options.set > 0, "add");
    const bool inside = rt_rank() < 3;
    for (int i = 0; i < 2 && rt_rank() > 0 && inside; i++) {
        one = 1;
        int handle = rt_allreduce_async("left", &one, &one, 1, RT_INT32, RT_SUM, 1, 1, &options);
        CHECK(rt_wait(handle) == 0 && one == 2, "%d", (int)one);
    }
    int join = inside ? rt_join_async(&last, &options) : 0;
    CHECK(join >= 0, "join");
    CHECK(rt_wait(rt_allreduce_async("all", &all, &all, 1, RT_INT32, RT_SUM, 1, 1, NULL)) == 0 &&
              all == rt_size(),
          "%d", (int)all);
    CHECK(!inside || (rt_wait(join) == 0 && last > 0 && last < 3), "last %d", last);
    CHECK(rt_remove_process_set(options.set) == 0, "remove");
}

/* ---- what is refused ---- */

static bool says(const char *text)
{
    return strstr(rt_error(), text) != NULL;
}

static int sum_in(int set, const char *name, int32_t *data, uint64_t count)
{
    const struct rt_options options = {.set = set};
    return rt_allreduce_async(name, data, data, count, RT_INT32, RT_SUM, 1, 1, &options);
}

static void check_lists(void)
{
    const int last = rt_size() - 1, twice[] = {1, 0, 1}, high[] = {0, rt_size()}, low[] = {-1};
    const int mine[] = {0, rt_rank() == last ? last : 1};
    char want[160];
    CHECK(rt_add_process_set(NULL, 2) == -EINVAL && says("no ranks"), "NULL");
    CHECK(rt_add_process_set(mine, 0) == -EINVAL && says("no ranks"), "none");
    CHECK(rt_add_process_set(mine, 1 << 30) == -EINVAL && says("ranks of"), "many");
    CHECK(rt_add_process_set(twice, 3) == -EINVAL && says("ranks 0-1,1"), "twice");
    CHECK(rt_add_process_set(high, 2) == -EINVAL && says("ranks 0,"), "high");
    CHECK(rt_add_process_set(low, 1) == -EINVAL && says("rank -1"), "low");
    CHECK(rt_add_process_set(mine, 2) == -EINVAL, "ranks differ");
    snprintf(want, sizeof want,
             "rank 0 ranks 0-1, rank 1 ranks 0-1, rank 2 ranks 0-1, rank %d "
             "ranks 0,%d",
             last, last);
    CHECK(rt_size() != 4 || says(want), "expected %s", want);
    CHECK(rt_add_process_set(rt_rank() == last ? high : mine, 2) == -EINVAL && says("disagree"),
          "one can't be");
    int removed_or_added = rt_rank() == 0 ? rt_remove_process_set(0) : rt_add_process_set(mine, 1);
    CHECK(removed_or_added == -EINVAL && says("operation: rank 0 REMOVE_PROCESS_SET, rank 1 ADD"),
          "one removes");
}

static void check_use(void)
{
    const int ranks[] = {1, 2}, last = rt_size() - 1;
    int32_t data[3] = {0};
    const int id = rt_add_process_set(ranks, 2);
    const bool inside = rt_rank() == 1 || rt_rank() == 2;
    const struct rt_options options = {.set = id};
    char want[160];
    CHECK(sum_in(id + 1, "x", data, 1) == -ENOENT && says("there is no process set"), "later");
    CHECK(sum_in(-1, "x", data, 1) == -ENOENT && says("there is no process set -1"), "negative");
    if (!inside) {
        CHECK(sum_in(id, "x", data, 1) == -EPERM, "not in it");
        snprintf(want, sizeof want,
                 "tensor x: rank %d is not in process set %d, which has ranks "
                 "1-2",
                 rt_rank(), id);
        CHECK(says(want), "expected %s", want);
        CHECK(rt_barrier_async(&options) == -EPERM && rt_join_async(data, &options) == -EPERM,
              "not in it");
    } else {
        CHECK(rt_broadcast_async("b", data, 1, RT_INT32, 0, &options) == -EINVAL &&
                  says("its root, rank 0, is not in process set"),
              "root");
        int handle = sum_in(id, "differs", data, rt_rank() == 1 ? 2 : 3);
        CHECK(rt_wait(handle) == -EINVAL, "differs");
        snprintf(want, sizeof want,
                 "tensor differs of process set %d; shape: rank 1 [2], rank 2 "
                 "[3]",
                 id);
        CHECK(says(want), "expected %s", want);
    }
    CHECK(rt_remove_process_set(rt_rank() == last ? id : id + 5) == -EINVAL && says("disagree"),
          "which");
    int orphan = rt_rank() == 1 ? sum_in(id, "orphan", data, 1) : 0;
    CHECK(orphan >= 0, "orphan");
    CHECK(rt_remove_process_set(id) == 0, "remove");
    CHECK(rt_rank() != 1 || (rt_wait(orphan) == -ENOENT && says("removed")), "orphan");
    snprintf(want, sizeof want, "process set %d was removed", id);
    CHECK(sum_in(id, "x", data, 1) == -ENOENT && says(want), "expected %s", want);
    CHECK(rt_process_set_size(id) == -ENOENT && says(want), "expected %s", want);
    CHECK(rt_remove_process_set(id) == -ENOENT && says(want), "expected %s", want);
    CHECK(rt_remove_process_set(id + 1) == -ENOENT && says("there is no"), "never was");
    CHECK(rt_remove_process_set(RT_GLOBAL_SET) == -EINVAL && says("stays"), "of all");
    CHECK(rt_process_set_size(RT_GLOBAL_SET) == rt_size(), "of all");
}

/* Rank 1 has joined, and can't come to it. */
static void check_add_after_join(void)
{
    const int ranks[] = {0};
    int last;
    if (rt_rank() != 1)
        CHECK(rt_add_process_set(ranks, 1) == -EINVAL && says("have joined: rank 1"), "joined");
    CHECK(rt_wait(rt_join_async(&last, NULL)) == 0, "join");
}

/* ---- over and over ---- */

/* What may come and go, without glibc's caches of threads, which fill for long (the test's script);
 * an MPI's own lists grow now and then. */
#ifdef WITHOUT_MPI
enum { HEAP_BYTES = 4096, SHARED_KIB = 60 };
#else
enum { HEAP_BYTES = 65536, SHARED_KIB = 4096 };
#endif

static int descriptors(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n;
}

/* Where fusion buffers are. */
static long shared_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "RssShmem: %ld", &kib);
    if (f)
        fclose(f);
    return kib;
}

/* Two, which are fused where both are ready. */
static void sum_two(const struct set *s)
{
    int32_t data[1000];
    for (int k = 0; k < 1000; k++)
        data[k] = 1;
    const int a = sum_in(s->id, "again", data, 500), b = sum_in(s->id, "more", data + 500, 500);
    CHECK(rt_wait(a) == 0 && rt_wait(b) == 0, "%d", s->id);
    CHECK(data[0] == s->n && data[999] == s->n, "%d", s->id);
}

static void check_again(void)
{
    enum { TIMES = 60 };
    size_t least[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX}; /* of each third: it swings */
    int before = 0, open = 0;
    long shared = 0;
    for (int i = 0; i < TIMES; i++) {
        struct set s = {.n = 0};
        for (int r = i % 2; r < rt_size(); r += 1 + i % 3)
            s.ranks[s.n++] = r;
        add(&s);
        CHECK(s.id > before, "numbers ascend: %d after %d", s.id, before);
        before = s.id;
        if (s.place >= 0)
            sum_two(&s);
        CHECK(rt_remove_process_set(s.id) == 0, "set %d", s.id);
        const size_t bytes = mallinfo2().uordblks;
        least[i * 3 / TIMES] = least[i * 3 / TIMES] < bytes ? least[i * 3 / TIMES] : bytes;
        if (i == TIMES / 3) {
            open = descriptors();
            shared = shared_kib();
        }
    }
    CHECK(descriptors() <= open, "descriptors: %d, then %d", open, descriptors());
    CHECK(shared_kib() < shared + SHARED_KIB, "shared memory: %ld, then %ld KiB", shared,
          shared_kib());
    CHECK(least[2] < least[1] + HEAP_BYTES, "the heap has grown from %zu to %zu bytes", least[1],
          least[2]);
}

/* What is refused leaves nothing, either. */
static void check_refused_again(void)
{
    enum { TIMES = 1000 };
    size_t least[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    for (int i = 0; i < TIMES; i++) {
        CHECK(rt_remove_process_set(RT_GLOBAL_SET) == -EINVAL, "of all");
        const size_t bytes = mallinfo2().uordblks;
        least[i * 3 / TIMES] = least[i * 3 / TIMES] < bytes ? least[i * 3 / TIMES] : bytes;
    }
    CHECK(least[2] < least[1] + HEAP_BYTES, "the heap has grown from %zu to %zu bytes", least[1],
          least[2]);
}

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    if (rt_init() < 0) {
        fprintf(stderr, "rt_init: %s\n", rt_error());
        return 2;
    }
    check_drawn(seed);
    if (rt_size() >= 3) {
        check_lists();
        check_use();
        check_join();
        check_add_after_join();
    }
    check_again();
    check_refused_again();
    const int ranks[] = {rt_size() - 1};
    CHECK(rt_add_process_set(ranks, 1) > 0, "one that is left at the end");
    if (rt_shutdown() < 0) {
        fprintf(stderr, "rt_shutdown: %s\n", rt_error());
        return 1;
    }
    return 0;
}
