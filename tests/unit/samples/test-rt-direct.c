/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt_alloc's memory, and allreduces that work in it: right results wherever the buffers lie, and
 * errors in place of hangs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt-alloc.h"
#include "rt-ranks.h"
#include "rt-reference.h"
#include "rt-transport-shm.h"

enum { WRONG_VALUE = 1, WRONG_INPUT, FAILED, NO_MEMORY, NOT_DIRECT };

#define HUGE_BYTES ((uint64_t)2 << 20)

/* ---- memory ---- */

static void alloc_gives_apart_and_aligned_memory_free_takes_it_back(void **state)
{
    char *a = rt_alloc(1), *b = rt_alloc(5000), *c = rt_alloc(HUGE_BYTES + 1), *d = rt_alloc(1);
    assert_true(a && b && c && d && a != b && b != d);
    assert_int_equal((uintptr_t)c % HUGE_BYTES, 0);
    memset(a, 1, 1);
    memset(b, 2, 5000);
    memset(c, 3, HUGE_BYTES + 1);
    memset(d, 4, 1);
    assert_true(*a == 1 && b[4999] == 2 && c[HUGE_BYTES] == 3 && *d == 4);
    struct rt_memory_name name;
    uint64_t offset, offset_d;
    assert_true(rt_heap_find(b, 5000, &name, &offset));
    assert_int_equal(name.pid, getpid());
    assert_true(rt_heap_find(d, 1, &name, &offset_d));
    rt_free(b);
    char *again = rt_alloc(8000); /* the gap is taken again, and is empty */
    assert_ptr_equal(again, b);
    assert_int_equal(again[0] | again[4999], 0);
    assert_int_equal(*d, 4);
    rt_free(NULL);
    rt_free(a);
    rt_free(again);
    rt_free(c);
    rt_free(d);
}

static void alloc_of_more_than_there_is_gives_none_and_breaks_nothing(void **state)
{
    assert_null(rt_alloc(UINT64_MAX));
    char *p = rt_alloc(10);
    assert_non_null(p);
    rt_free(p);
}

static void find_of_other_memory_is_false(void **state)
{
    char *p = rt_alloc(10), *other = malloc(10);
    struct rt_memory_name name;
    uint64_t offset;
    assert_false(rt_heap_find(other, 10, &name, &offset));
    assert_false(rt_heap_find(p, UINT64_MAX, &name, &offset));
    free(other);
    rt_free(p);
}

/* The child exits with 0 where all is well. */
static int in_child(int (*fn)(void *), void *argument)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(fn(argument));
    int status = -1;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int child_allocates(void *argument)
{
    char *parents = argument, *own = rt_alloc(100);
    struct rt_memory_name name;
    uint64_t offset;
    if (!own || *parents != 7 || rt_heap_find(parents, 1, &name, &offset) ||
        !rt_heap_find(own, 1, &name, &offset) || name.pid != getpid())
        return 1;
    *own = 9;
    rt_free(parents); /* not its own: nothing happens */
    rt_free(own);
    return *parents == 7 ? 0 : 2;
}

static void alloc_after_fork_is_of_a_heap_of_its_own(void **state)
{
    char *p = rt_alloc(100);
    *p = 7;
    assert_int_equal(in_child(child_allocates, p), 0);
    assert_int_equal(*p, 7);
    char *q = rt_alloc(100);
    assert_ptr_not_equal(p, q);
    rt_free(q);
    rt_free(p);
}

struct told {
    struct rt_memory_name name;
    uint64_t offset;
};

static int child_reaches(void *argument)
{
    const struct told *told = argument;
    struct rt_memory_name wrong = told->name;
    wrong.token[0]++;
    char *base = rt_heap_map(&told->name);
    if (!base || rt_heap_map(&wrong))
        return 1;
    if (memcmp(base + told->offset, "hello", 6) != 0)
        return 2;
    memcpy(base + told->offset, "world", 6);
    rt_heap_unmap(base);
    return 0;
}

static void map_reaches_another_process_by_name_only(void **state)
{
    char *p = rt_alloc(HUGE_BYTES);
    struct told told;
    memcpy(p, "hello", 6);
    assert_true(rt_heap_find(p, HUGE_BYTES, &told.name, &told.offset));
    assert_ptr_equal(rt_heap_map(&told.name) + told.offset, p);
    assert_int_equal(in_child(child_reaches, &told), 0);
    assert_string_equal(p, "world");
    rt_free(p);
}

/* ---- allreduce ---- */

/* Which ranks' buffers are rt_alloc's. */
enum where { ALL, NONE, ALL_BUT_LAST, ONLY_IN };

struct subject {
    enum rt_type type;
    enum rt_op op;
    bool in_place;
    enum where where;
    rt_allreduce_fn *fn;
};

static void *new_buffer(bool shared, uint64_t bytes)
{
    return shared ? rt_alloc(bytes) : malloc(bytes + 1);
}

static void free_buffer(bool shared, void *p)
{
    if (shared)
        rt_free(p);
    else
        free(p);
}

static int reduce_once(struct rt_transport *t, const struct subject *s, uint64_t count, int tensor)
{
    const uint64_t bytes = count * rt_type_bytes(s->type);
    const bool in_heap = s->where == ALL || s->where == ONLY_IN ||
                         (s->where == ALL_BUT_LAST && t->rank < t->size - 1);
    const bool out_heap = in_heap && (s->where != ONLY_IN || s->in_place);
    void *in = new_buffer(in_heap, bytes), *out = s->in_place ? in : new_buffer(out_heap, bytes);
    if (!in || !out)
        return NO_MEMORY;
    fill(in, count, s->type, t->rank, tensor, s->op);
    int result = 0;
    if (s->fn(t, in, out, count, s->type, s->op) != 0)
        result = FAILED;
    else if (!holds_reduced(out, 0, count, t->size, tensor, s->type, s->op))
        result = WRONG_VALUE;
    else if (!s->in_place && !holds_values(in, 0, count, t->rank, tensor, s->type, s->op))
        result = WRONG_INPUT;
    free_buffer(in_heap, in);
    if (!s->in_place)
        free_buffer(out_heap, out);
    return result;
}

static int reducing_rank(struct rt_transport *t, void *argument)
{
    static const uint64_t counts[] = {0, 1, 2, 3, 13, 1021, 4096, 70001};
    int result = 0;
    for (unsigned i = 0; i < sizeof counts / sizeof *counts && result == 0; i++)
        result = reduce_once(t, argument, counts[i], (int)i);
    return result;
}

static void run(const struct subject *s, int size, bool processes)
{
    struct subject copy = *s;
    int result = run_ranks(size, processes, reducing_rank, &copy);
    if (result != 0)
        fail_msg("%d ranks, type %d, op %d, %s, buffers %d, %s: %d", size, (int)s->type, (int)s->op,
                 s->in_place ? "in place" : "apart", (int)s->where,
                 processes ? "processes" : "threads", result);
}

static void direct_equals_serial_reduction_wherever_buffers_lie(void **state)
{
    int turn = 0;
    for (int type = 0; type < RT_TYPE_COUNT; type++)
        for (int op = RT_SUM; op <= RT_AVG; op++)
            for (int where = ALL; where <= ONLY_IN; where++, turn++) {
                /* all of them in rt_alloc's memory every time, the others by turns */
                if (where != ALL && turn % 5 != 0)
                    continue;
                struct subject s = {(enum rt_type)type, (enum rt_op)op, turn % 2 == 0,
                                    (enum where)where, rt_allreduce_direct};
                run(&s, 1 + turn % 6, turn % 3 == 0);
            }
}

static void auto_equals_serial_reduction_wherever_buffers_lie(void **state)
{
    for (int where = ALL; where <= ONLY_IN; where++)
        for (int size = 2; size <= 5; size++) {
            struct subject s = {RT_FLOAT32, RT_SUM, size % 2 == 0, (enum where)where, rt_allreduce};
            run(&s, size, where % 2 == 0);
        }
}

/* Buffers come and go, here and there: what ranks agreed on before must not be taken for now. */
static int changing_rank(struct rt_transport *t, void *argument)
{
    int result = 0;
    for (int i = 0; i < 60 && result == 0; i++) {
        struct subject s = {RT_INT32, RT_SUM, i % 3 == 0, (enum where)(i * 7 % 4),
                            rt_allreduce_direct};
        result = reduce_once(t, &s, (uint64_t)(i * 131 % 5000), i % 20);
    }
    return result;
}

static void direct_with_changing_buffers_equals_serial_reduction(void **state)
{
    for (int size = 2; size <= 4; size++) {
        assert_int_equal(run_ranks(size, true, changing_rank, NULL), 0);
        assert_int_equal(run_ranks(size, false, changing_rank, NULL), 0);
    }
}

/* Rank 0 sees its peer write into its own memory: no copy was made on the way. */
static int meeting_rank(struct rt_transport *t, void *argument)
{
    int32_t *mine = rt_alloc(sizeof *mine);
    struct rt_reach reach[2];
    *mine = t->rank;
    if (t->ops->meet(t, mine, mine, sizeof *mine, reach) != 1)
        return NOT_DIRECT;
    if (reach[t->rank].out != mine || *(const int32_t *)reach[1 - t->rank].in != 1 - t->rank)
        return WRONG_VALUE;
    if (t->ops->part(t) != 0 || t->ops->meet(t, mine, mine, sizeof *mine, reach) != 1)
        return FAILED;
    *(int32_t *)reach[1 - t->rank].out = 10 + t->rank;
    if (t->ops->part(t) != 0)
        return FAILED;
    int result = *mine == 11 - t->rank ? 0 : WRONG_VALUE;
    rt_free(mine);
    return result;
}

static void meet_reaches_the_peers_own_memory(void **state)
{
    assert_int_equal(run_ranks(2, true, meeting_rank, NULL), 0);
    assert_int_equal(run_ranks(2, false, meeting_rank, NULL), 0);
}

/* ---- trouble ---- */

enum { LENGTH = 1 << 16 };

/* Rank 1 is killed between meeting and parting, when it could have been anywhere in the others'
 * memory. */
static int killed_rank(struct rt_transport *t, void *argument)
{
    int32_t *values = rt_alloc(LENGTH * sizeof *values);
    struct rt_reach reach[4];
    if (t->rank == 1) {
        if (t->ops->meet(t, values, values, LENGTH * sizeof *values, reach) == 1)
            kill(getpid(), SIGKILL);
        return FAILED;
    }
    return rt_allreduce_direct(t, values, values, LENGTH, RT_INT32, RT_SUM) == -ECONNRESET ? 0
                                                                                           : FAILED;
}

/* run_ranks would report the death: the survivors are looked at here. */
static void direct_when_peer_is_killed_in_the_middle_returns_connreset(void **state)
{
    enum { SIZE = 3 };
    const uint64_t bytes = rt_shm_bytes(SIZE);
    void *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[SIZE];
    for (int r = 0; r < SIZE; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            struct rt_transport_shm t;
            int error = rt_transport_shm_init(&t, region, r, SIZE);
            _exit(error ? NO_MEMORY : killed_rank(&t.base, NULL));
        }
    }
    /* the victim stays a zombie until last: that is dead, too */
    for (int r = 0; r < SIZE; r++) {
        int status, i = r == SIZE - 1 ? 1 : r == 1 ? 2 : 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        if (i == 1)
            assert_true(WIFSIGNALED(status));
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    munmap(region, bytes);
}

/* One works in memory, the other with messages. */
static int disagreeing_rank(struct rt_transport *t, void *argument)
{
    int32_t *values = rt_alloc(LENGTH * sizeof *values);
    int error = t->rank == 0
                    ? rt_allreduce_direct(t, values, values, LENGTH, RT_INT32, RT_SUM)
                    : rt_allreduce_recursive_doubling(t, values, values, 16, RT_INT32, RT_SUM);
    rt_free(values);
    return error == (t->rank == 0 ? -EMSGSIZE : -ECONNRESET) ? 0 : FAILED;
}

static int differing_rank(struct rt_transport *t, void *argument)
{
    int32_t *values = rt_alloc(LENGTH * sizeof *values);
    int error =
        rt_allreduce_direct(t, values, values, (uint64_t)(LENGTH - t->rank), RT_INT32, RT_SUM);
    rt_free(values);
    return error == -EMSGSIZE ? 0 : FAILED;
}

static void ranks_that_disagree_get_an_error(void **state)
{
    assert_int_equal(run_ranks(2, false, disagreeing_rank, NULL), 0);
    assert_int_equal(run_ranks(2, true, disagreeing_rank, NULL), 0);
    assert_int_equal(run_ranks(3, false, differing_rank, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_gives_apart_and_aligned_memory_free_takes_it_back),
        cmocka_unit_test(alloc_of_more_than_there_is_gives_none_and_breaks_nothing),
        cmocka_unit_test(find_of_other_memory_is_false),
        cmocka_unit_test(alloc_after_fork_is_of_a_heap_of_its_own),
        cmocka_unit_test(map_reaches_another_process_by_name_only),
        cmocka_unit_test(direct_equals_serial_reduction_wherever_buffers_lie),
        cmocka_unit_test(auto_equals_serial_reduction_wherever_buffers_lie),
        cmocka_unit_test(direct_with_changing_buffers_equals_serial_reduction),
        cmocka_unit_test(meet_reaches_the_peers_own_memory),
        cmocka_unit_test(direct_when_peer_is_killed_in_the_middle_returns_connreset),
        cmocka_unit_test(ranks_that_disagree_get_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
