/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every algorithm of rt_coll over shared memory, against serial sums of exact integers: two types
 * in all combinations, and, with the argument "types", all types in pairs (RT_COLL_SEED=... for the
 * same ones again).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "covering.h"
#include "rt-process.h"
#include "rt-ranks.h"
#include "rt-reference.h"
#include "rt-transport-shm.h"

#define GUARD 0x5a

enum { WRONG_VALUE = 1, WRONG_GUARD, WRONG_INPUT, FAILED, NO_MEMORY };

struct subject {
    const char *algorithm;
    enum rt_type type;
    enum rt_op op;
    bool in_place;
    const uint64_t *counts;
    unsigned count_count;
};

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

static int one_allreduce(struct rt_transport *t, const struct subject *s, uint64_t count,
                         int tensor)
{
    char *in = new_buffer(s, count), *out = s->in_place ? in : new_buffer(s, count);
    if (!in || !out)
        return NO_MEMORY;
    fill(in, count, s->type, t->rank, tensor, s->op);
    int result = 0;
    if (rt_allreduce_find(s->algorithm)(t, in, out, count, s->type, s->op) != 0)
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

static int allreduce_rank(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    int result = 0;
    for (unsigned i = 0; i < s->count_count && result == 0; i++)
        result = one_allreduce(t, s, s->counts[i], (int)i);
    return result;
}

static int reduce_scatter_rank(struct rt_transport *t, void *argument)
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

static int allgather_rank(struct rt_transport *t, void *argument)
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

static int allgatherv_rank(struct rt_transport *t, void *argument)
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
static int alltoallv_rank(struct rt_transport *t, void *argument)
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

static int broadcast_rank(struct rt_transport *t, void *argument)
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

static int reduce_rank(struct rt_transport *t, void *argument)
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

/* None, one, fewer than ranks, not dividing, one block and a bit, several rounds of the ring. */
static const uint64_t counts[] = {0, 1, 3, 7, 12, 13, 1000, 4097, 65537, 300001};
#define COUNT_COUNT (sizeof counts / sizeof *counts)

static void run_subject(struct subject *s, int size, bool processes, rank_fn *fn)
{
    int result = run_ranks(size, processes, fn, s);
    if (result != 0)
        fail_msg("%s: %d ranks, type %d, op %d, %s, %s, from %llu elements on: %d", s->algorithm,
                 size, (int)s->type, (int)s->op, s->in_place ? "in place" : "apart",
                 processes ? "processes" : "threads", (unsigned long long)s->counts[0], result);
}

/* Runs `fn` in 1 to 8 ranks, two types, all operations and places, in threads or processes by
 * turns; the long ones for sums only: what cuts buffers up doesn't know the operation. */
static void run_everywhere(const char *algorithm, rank_fn *fn)
{
    int turn = 0;
    for (int size = 1; size <= 8; size++)
        for (int type = RT_FLOAT32; type <= RT_INT32; type++)
            for (int op = 0; op < RT_OP_COUNT; op++, turn++) {
                struct subject s = {algorithm,      (enum rt_type)type,
                                    (enum rt_op)op, turn % 3 == 0,
                                    counts,         op == RT_SUM ? COUNT_COUNT : COUNT_COUNT - 2};
                run_subject(&s, size, turn % 2 == 0, fn);
            }
}

static void allreduce_auto_equals_serial_sum(void **state)
{
    run_everywhere("auto", allreduce_rank);
}
static void allreduce_ring_equals_serial_sum(void **state)
{
    run_everywhere("ring", allreduce_rank);
}
static void allreduce_recursive_doubling_equals_serial_sum(void **state)
{
    run_everywhere("recursive-doubling", allreduce_rank);
}
static void allreduce_halving_doubling_equals_serial_sum(void **state)
{
    run_everywhere("halving-doubling", allreduce_rank);
}
static void allreduce_tree_equals_serial_sum(void **state)
{
    run_everywhere("tree", allreduce_rank);
}
static void allreduce_double_tree_equals_serial_sum(void **state)
{
    run_everywhere("double-tree", allreduce_rank);
}
static void reduce_scatter_gives_own_part(void **state)
{
    run_everywhere("reduce-scatter", reduce_scatter_rank);
}
static void allgather_gives_all_parts(void **state)
{
    run_everywhere("allgather", allgather_rank);
}
static void allgatherv_gives_parts_of_any_length(void **state)
{
    run_everywhere("allgatherv", allgatherv_rank);
}
static void alltoallv_gives_each_its_part(void **state)
{
    run_everywhere("alltoallv", alltoallv_rank);
}
static void broadcast_gives_the_roots_data(void **state)
{
    run_everywhere("binomial", broadcast_rank);
    run_everywhere("chain", broadcast_rank);
    run_everywhere("auto", broadcast_rank);
}
static void reduce_gives_root_the_sum(void **state)
{
    run_everywhere("reduce", reduce_rank);
}

static void allreduce_find_unknown_is_null(void **state)
{
    assert_null(rt_allreduce_find("rings"));
    assert_non_null(strstr(rt_allreduce_names(), "halving-doubling"));
}

/* ---- hierarchical: hosts of `local` ranks, each transport a region of its own ---- */

#define GRID_MAX 8

struct grid {
    struct subject subject;
    int hosts, local;
    void *inside[GRID_MAX], *across[GRID_MAX];
};

static int hierarchical_once(struct rt_transport *inside, struct rt_transport *across,
                             const struct grid *g, int rank, unsigned i)
{
    const struct subject *s = &g->subject;
    const uint64_t count = s->counts[i];
    char *in = new_buffer(s, count), *out = s->in_place ? in : new_buffer(s, count);
    int result = 0;
    fill(in, count, s->type, rank, (int)i, s->op);
    if (rt_allreduce_hierarchical(inside, across, in, out, count, s->type, s->op))
        result = FAILED;
    else if (!is_reduced(out, 0, count, s, g->hosts * g->local, (int)i))
        result = WRONG_VALUE;
    else if (!guard_is_whole(s, out, count))
        result = WRONG_GUARD;
    else if (!s->in_place && !is_input(in, count, s, rank, (int)i))
        result = WRONG_INPUT;
    free(in);
    if (!s->in_place)
        free(out);
    return result;
}

static int hierarchical_rank(struct rt_transport *t, void *argument)
{
    struct grid *g = argument;
    int host = t->rank / g->local, local = t->rank % g->local, result = 0;
    struct rt_transport_shm inside, across;
    if (rt_transport_shm_init(&inside, g->inside[host], local, g->local) != 0 ||
        rt_transport_shm_init(&across, g->across[local], host, g->hosts) != 0)
        return FAILED;
    for (unsigned i = 0; i < g->subject.count_count && result == 0; i++)
        result = hierarchical_once(&inside.base, &across.base, g, t->rank, i);
    rt_transport_shm_release(&inside);
    rt_transport_shm_release(&across);
    return result;
}

static void *new_region(int size)
{
    return mmap(NULL, rt_shm_bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                0);
}

static void run_hierarchical(const struct subject *s, int hosts, int local, bool processes)
{
    struct grid g = {.subject = *s, .hosts = hosts, .local = local};
    for (int i = 0; i < hosts; i++)
        g.inside[i] = new_region(local);
    for (int i = 0; i < local; i++)
        g.across[i] = new_region(hosts);
    int result = run_ranks(hosts * local, processes, hierarchical_rank, &g);
    if (result != 0)
        fail_msg("hierarchical: %d hosts of %d, type %d, op %d, from %llu elements on: %d", hosts,
                 local, (int)s->type, (int)s->op, (unsigned long long)s->counts[0], result);
    for (int i = 0; i < hosts; i++)
        munmap(g.inside[i], rt_shm_bytes(local));
    for (int i = 0; i < local; i++)
        munmap(g.across[i], rt_shm_bytes(hosts));
}

static void allreduce_hierarchical_equals_serial_sum(void **state)
{
    for (int op = 0; op < RT_OP_COUNT; op++) {
        struct subject s = {"hierarchical", RT_INT32, (enum rt_op)op, false, counts, COUNT_COUNT};
        run_hierarchical(&s, 3, 2, op % 2 == 0);
    }
}

/* ---- all types ---- */

static const struct {
    const char *name;
    rank_fn *run; /* NULL: hierarchical */
} algorithms[] = {
    {"auto", allreduce_rank},
    {"ring", allreduce_rank},
    {"recursive-doubling", allreduce_rank},
    {"halving-doubling", allreduce_rank},
    {"tree", allreduce_rank},
    {"double-tree", allreduce_rank},
    {"hierarchical", NULL},
    {"reduce-scatter", reduce_scatter_rank},
    {"reduce", reduce_rank},
    {"allgather", allgather_rank},
    {"allgatherv", allgatherv_rank},
    {"alltoallv", alltoallv_rank},
    {"binomial", broadcast_rank},
    {"chain", broadcast_rank},
};

#define ALGORITHMS (sizeof algorithms / sizeof *algorithms)

/* Then those at the length of a block, and at that of a round of the ring. */
static const uint64_t short_counts[] = {0, 1, 2, 3, 13, 251, 4099};
#define SHORT_COUNTS (sizeof short_counts / sizeof *short_counts)
enum { BLOCK_BYTES = 256 << 10 };

static uint64_t count_at(unsigned level, enum rt_type type, int size)
{
    const uint64_t block = BLOCK_BYTES / rt_type_bytes(type);
    if (level < SHORT_COUNTS)
        return short_counts[level];
    return level < SHORT_COUNTS + 3 ? block + level - SHORT_COUNTS - 1
                                    : block * (uint64_t)size + level - SHORT_COUNTS - 4;
}

static void run_algorithm(unsigned algorithm, struct subject *s, int size, bool processes)
{
    const int local = size % 3 == 0 ? 3 : size % 2 == 0 ? 2 : 1;
    s->algorithm = algorithms[algorithm].name;
    if (algorithms[algorithm].run)
        run_subject(s, size, processes, algorithms[algorithm].run);
    else
        run_hierarchical(s, size / local, local, processes);
}

static void all_types_and_operations_in_all_algorithms_equal_serial_reference(void **state)
{
    static const uint64_t length[] = {13};
    for (unsigned a = 0; a < ALGORITHMS; a++)
        for (int type = 0; type < RT_TYPE_COUNT; type++)
            for (int op = 0; op < RT_OP_COUNT; op++) {
                struct subject s = {NULL, (enum rt_type)type, (enum rt_op)op, false, length, 1};
                run_algorithm(a, &s, 4 + (type + op) % 3, false);
            }
}

static void all_types_in_all_algorithms_by_pairs_equal_serial_reference(void **state)
{
    enum { TYPE, OP, ALGORITHM, COUNT, SIZE, PLACE, PROCESSES, PARAMETERS };
    const unsigned levels[PARAMETERS] = {RT_TYPE_COUNT,
                                         RT_OP_COUNT,
                                         sizeof algorithms / sizeof *algorithms,
                                         SHORT_COUNTS + 6,
                                         8,
                                         2,
                                         2};
    struct covering c;
    assert_int_equal(covering_make(&c, levels, PARAMETERS, covering_seed("RT_COLL_SEED")), 0);
    for (unsigned i = 0; i < c.count; i++) {
        const uint8_t *row = c.rows[i];
        const int size = row[SIZE] + 1;
        const uint64_t count = count_at(row[COUNT], row[TYPE], size);
        struct subject s = {NULL, row[TYPE], row[OP], row[PLACE], &count, 1};
        run_algorithm(row[ALGORITHM], &s, size, row[PROCESSES]);
    }
    covering_free(&c);
}

/* ---- barrier ---- */

static int barrier_rank(struct rt_transport *t, void *argument)
{
    uint32_t *arrived = argument;
    for (uint32_t round = 1; round <= 50; round++) {
        __atomic_fetch_add(arrived, 1, __ATOMIC_SEQ_CST);
        if (rt_barrier(t) != 0)
            return FAILED;
        if (__atomic_load_n(arrived, __ATOMIC_SEQ_CST) < round * (uint32_t)t->size)
            return WRONG_VALUE;
    }
    return 0;
}

static void barrier_waits_for_all(void **state)
{
    for (int size = 1; size <= 7; size++) {
        uint32_t arrived = 0;
        assert_int_equal(run_ranks(size, false, barrier_rank, &arrived), 0);
    }
}

/* ---- trouble ---- */

static int leaving_rank(struct rt_transport *t, void *argument)
{
    int32_t value = t->rank;
    if (t->rank == 1)
        return 0; /* leaves without a word */
    return rt_allreduce(t, &value, &value, 1, RT_INT32, RT_SUM) == -ECONNRESET ? 0 : FAILED;
}

static void allreduce_when_peer_leaves_returns_connreset(void **state)
{
    assert_int_equal(run_ranks(2, false, leaving_rank, NULL), 0);
    assert_int_equal(run_ranks(2, true, leaving_rank, NULL), 0);
}

/* Rank 1 leaves. Of the others only rank 2 waits for it; none releases before all have noticed. */
static int chained_rank(struct rt_transport *t, void *argument)
{
    int32_t values[16] = {0};
    if (t->rank == 1)
        return 0;
    int error = rt_allreduce_ring(t, values, values, 16, RT_INT32, RT_SUM);
    __atomic_fetch_add((int *)argument, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n((int *)argument, __ATOMIC_ACQUIRE) < t->size - 1)
        sched_yield();
    return error == -ECONNRESET ? 0 : FAILED;
}

static void allreduce_when_peer_leaves_ends_for_those_who_wait_for_others(void **state)
{
    int noticed = 0;
    assert_int_equal(run_ranks(5, false, chained_rank, &noticed), 0);
}

/* Its parent doesn't reap rank 1 before rank 0 has noticed: a zombie is dead. */
static void allreduce_when_peer_is_killed_returns_connreset(void **state)
{
    void *region = new_region(2);
    pid_t victim = fork();
    if (victim == 0) {
        struct rt_transport_shm t;
        if (rt_transport_shm_init(&t, region, 1, 2) == 0)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    struct rt_transport_shm t;
    assert_int_equal(rt_transport_shm_init(&t, region, 0, 2), 0);
    int32_t value = 1;
    assert_int_equal(rt_allreduce(&t.base, &value, &value, 1, RT_INT32, RT_SUM), -ECONNRESET);
    rt_transport_shm_release(&t);
    int status;
    assert_int_equal(waitpid(victim, &status, 0), victim);
    assert_true(WIFSIGNALED(status));
    munmap(region, rt_shm_bytes(2));
}

static int last_words_rank(struct rt_transport *t, void *argument)
{
    int32_t value = 40 + t->rank;
    struct rt_request r;
    if (t->rank == 1)
        return t->ops->send(t, &value, sizeof value, 0, &r) || t->ops->wait(t, &r, 1) ? FAILED : 0;
    int error = t->ops->recv(t, &value, sizeof value, 1, &r);
    while (!error && rt_shm_peer_alive((struct rt_transport_shm *)t, 1))
        sched_yield();
    error = error ? error : t->ops->wait(t, &r, 1);
    return error ? FAILED : value == 41 ? 0 : WRONG_VALUE;
}

static void recv_from_peer_that_left_gets_what_it_had_sent(void **state)
{
    assert_int_equal(run_ranks(2, false, last_words_rank, NULL), 0);
}

static void *abort_soon(void *argument)
{
    rt_transport_shm_abort(argument);
    return NULL;
}

static int aborting_rank(struct rt_transport *t, void *argument)
{
    if (t->rank == 1) { /* takes part in nothing, but stays until rank 0 is through */
        while (!__atomic_load_n((int *)argument, __ATOMIC_ACQUIRE))
            sched_yield();
        return 0;
    }
    int32_t value = 1;
    pthread_t thread;
    pthread_create(&thread, NULL, abort_soon, t);
    int error = rt_allreduce(t, &value, &value, 1, RT_INT32, RT_SUM);
    pthread_join(thread, NULL);
    __atomic_store_n((int *)argument, 1, __ATOMIC_RELEASE);
    return error == -ECANCELED ? 0 : FAILED;
}

static void allreduce_when_aborted_returns_canceled(void **state)
{
    int through = 0;
    assert_int_equal(run_ranks(2, false, aborting_rank, &through), 0);
}

static int disagreeing_rank(struct rt_transport *t, void *argument)
{
    int32_t values[8] = {0};
    int error =
        rt_allreduce_recursive_doubling(t, values, values, t->rank == 0 ? 4 : 8, RT_INT32, RT_SUM);
    return t->rank == 0 ? (error == -EMSGSIZE ? 0 : FAILED) : (error == -ECONNRESET ? 0 : FAILED);
}

static void allreduce_of_different_counts_is_an_error_not_an_overrun(void **state)
{
    assert_int_equal(run_ranks(2, false, disagreeing_rank, NULL), 0);
}

/* Three words for two of twice the size: no whole number of elements has come. */
static int broken_element_rank(struct rt_transport *t, void *argument)
{
    int32_t words[3] = {1, 2, 3};
    double numbers[2] = {0};
    struct rt_request r;
    if (t->rank == 0)
        return t->ops->send(t, words, sizeof words, 1, &r) || t->ops->wait(t, &r, 1) ? FAILED : 0;
    int error = t->ops->recv_reduce(t, numbers, numbers, 2, RT_FLOAT64, RT_SUM, 0, &r);
    return !error && t->ops->wait(t, &r, 1) == -EMSGSIZE ? 0 : FAILED;
}

static void reduce_of_a_part_of_an_element_is_an_error(void **state)
{
    assert_int_equal(run_ranks(2, false, broken_element_rank, NULL), 0);
}

static void shm_init_of_taken_place_is_busy(void **state)
{
    void *region = new_region(2);
    struct rt_transport_shm a, b;
    assert_int_equal(rt_transport_shm_init(&a, region, 0, 2), 0);
    assert_int_equal(rt_transport_shm_init(&b, region, 0, 2), -EBUSY);
    assert_int_equal(rt_transport_shm_init(&b, region, 2, 2), -EINVAL);
    rt_transport_shm_release(&a);
    munmap(region, rt_shm_bytes(2));
}

/* ---- many messages at once, as in a group of sends and receives ---- */

#define MESSAGES 5

static int crossing_rank(struct rt_transport *t, void *argument)
{
    enum { LENGTH = 70001 };
    int n = t->size, others = n - 1;
    int32_t *out = malloc(sizeof *out * LENGTH * (size_t)(MESSAGES * others));
    int32_t *in = malloc(sizeof *in * LENGTH * (size_t)(MESSAGES * others));
    struct rt_request *r = calloc((size_t)(2 * MESSAGES * others), sizeof *r);
    unsigned posted = 0;
    for (int m = 0; m < MESSAGES; m++)
        for (int d = 1; d < n; d++) {
            int to = (t->rank + d) % n, from = (t->rank + n - d) % n;
            size_t at = (size_t)(m * others + d - 1) * LENGTH, bytes = sizeof *in * (LENGTH - m);
            for (int i = 0; i < LENGTH; i++)
                out[at + (size_t)i] = t->rank * 1000000 + to * 100000 + m * 10000 + i % 9973;
            if (t->ops->send(t, out + at, bytes, to, &r[posted++]) != 0 ||
                t->ops->recv(t, in + at, bytes, from, &r[posted++]) != 0)
                return FAILED;
        }
    if (t->ops->wait(t, r, posted) != 0)
        return FAILED;
    for (int m = 0; m < MESSAGES; m++)
        for (int d = 1; d < n; d++)
            for (int i = 0; i < LENGTH - m; i++) {
                int from = (t->rank + n - d) % n;
                if (in[(size_t)(m * others + d - 1) * LENGTH + (size_t)i] !=
                    from * 1000000 + t->rank * 100000 + m * 10000 + i % 9973)
                    return WRONG_VALUE;
            }
    free(out);
    free(in);
    free(r);
    return 0;
}

static void wait_for_many_crossing_messages_delivers_all_in_order(void **state)
{
    assert_int_equal(run_ranks(4, false, crossing_rank, NULL), 0);
    assert_int_equal(run_ranks(3, true, crossing_rank, NULL), 0);
}

/* ---- parts and processes ---- */

static void part_first_covers_everything_once(void **state)
{
    const uint64_t huge = ((uint64_t)1 << 40) + 5;
    for (int n = 1; n < 20; n++) {
        assert_int_equal(rt_part_first(huge, n, 0), 0);
        assert_int_equal(rt_part_first(huge, n, n), huge);
        for (int i = 0; i < n; i++) {
            uint64_t part = rt_part_count(huge, n, i);
            assert_true(part == huge / (uint64_t)n || part == huge / (uint64_t)n + 1);
        }
    }
    assert_int_equal(rt_part_count(2, 3, 2), 0);
}

static void process_alive_knows_start_time(void **state)
{
    uint64_t start = rt_process_start(getpid());
    assert_true(start > 0);
    assert_true(rt_process_alive(getpid(), start));
    assert_false(rt_process_alive(getpid(), start + 1));
    assert_false(rt_process_alive(0x7ffffff0, start));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(part_first_covers_everything_once),
        cmocka_unit_test(process_alive_knows_start_time),
        cmocka_unit_test(allreduce_find_unknown_is_null),
        cmocka_unit_test(barrier_waits_for_all),
        cmocka_unit_test(allreduce_auto_equals_serial_sum),
        cmocka_unit_test(allreduce_ring_equals_serial_sum),
        cmocka_unit_test(allreduce_recursive_doubling_equals_serial_sum),
        cmocka_unit_test(allreduce_halving_doubling_equals_serial_sum),
        cmocka_unit_test(allreduce_tree_equals_serial_sum),
        cmocka_unit_test(allreduce_double_tree_equals_serial_sum),
        cmocka_unit_test(allreduce_hierarchical_equals_serial_sum),
        cmocka_unit_test(reduce_scatter_gives_own_part),
        cmocka_unit_test(allgather_gives_all_parts),
        cmocka_unit_test(allgatherv_gives_parts_of_any_length),
        cmocka_unit_test(alltoallv_gives_each_its_part),
        cmocka_unit_test(broadcast_gives_the_roots_data),
        cmocka_unit_test(reduce_gives_root_the_sum),
        cmocka_unit_test(wait_for_many_crossing_messages_delivers_all_in_order),
        cmocka_unit_test(recv_from_peer_that_left_gets_what_it_had_sent),
        cmocka_unit_test(shm_init_of_taken_place_is_busy),
        cmocka_unit_test(allreduce_of_different_counts_is_an_error_not_an_overrun),
        cmocka_unit_test(reduce_of_a_part_of_an_element_is_an_error),
        cmocka_unit_test(allreduce_when_aborted_returns_canceled),
        cmocka_unit_test(allreduce_when_peer_leaves_returns_connreset),
        cmocka_unit_test(allreduce_when_peer_leaves_ends_for_those_who_wait_for_others),
        cmocka_unit_test(allreduce_when_peer_is_killed_returns_connreset),
    };
    const struct CMUnitTest types[] = {
        cmocka_unit_test(all_types_and_operations_in_all_algorithms_equal_serial_reference),
        cmocka_unit_test(all_types_in_all_algorithms_by_pairs_equal_serial_reference),
    };
    return argc > 1 ? cmocka_run_group_tests(types, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
