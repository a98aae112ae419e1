/* SPDX-License-Identifier: Apache-2.0 */
/* The hierarchical allreduce between two hosts, which goes piece by piece. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rt-ranks.h"
#include "rt-reference.h"
#include "rt-transport-shm.h"
#include "rt-two-hosts.h"

enum { WRONG_VALUE = 1, WRONG_INPUT, FAILED, NO_MEMORY, NOT_BY_PIECES, HOSTS = 2 };

/* Longer than any piece's part: what a network's transport would take at once. */
#define BLOCK_BYTES ((uint64_t)1 << 20)

struct subject {
    int local;  /* ranks a host */
    bool round; /* ranks go to hosts in turn, not in halves */
    uint64_t count;
    enum rt_type type;
    enum rt_op op;
    bool in_place;
    bool alone;       /* no transport inside hosts: by the one of all */
    uint64_t at_once; /* the transport's at_once_bytes */
    int dies;         /* this rank, in the middle; -1: none */
    void *inside[HOSTS];
};

static int host_of(const struct subject *s, int rank)
{
    return s->round ? rank % HOSTS : rank / s->local;
}

static int reduce_once(const struct rt_hosts *hosts, const struct subject *s)
{
    const uint64_t bytes = s->count * rt_type_bytes(s->type);
    const int rank = hosts->all->rank, size = hosts->all->size;
    void *in = malloc(bytes), *out = s->in_place ? in : malloc(bytes);
    if (!in || !out)
        return NO_MEMORY;
    if (!rt_two_hosts_fits(hosts->all, hosts->layout, bytes))
        return NOT_BY_PIECES;
    fill(in, s->count, s->type, rank, 5, s->op);
    int error = rt_allreduce_hierarchical(hosts, rt_allreduce, in, out, s->count, s->type, s->op);
    int result = 0;
    if (error)
        result = s->dies >= 0 && error == -ECONNRESET ? 0 : FAILED;
    else if (s->dies >= 0 || !holds_reduced(out, 0, s->count, size, 5, s->type, s->op))
        result = WRONG_VALUE;
    else if (!s->in_place && !holds_values(in, 0, s->count, rank, 5, s->type, s->op))
        result = WRONG_INPUT;
    free(in);
    if (!s->in_place)
        free(out);
    return result;
}

static int rank_of_two_hosts(struct rt_transport *t, void *argument)
{
    const struct subject *s = argument;
    int name[16], result;
    struct rt_layout layout;
    struct rt_transport_shm inside;
    for (int r = 0; r < t->size; r++)
        name[r] = host_of(s, r);
    if (rt_layout_init(&layout, name, t->size) != 0 ||
        rt_transport_shm_init(&inside, s->inside[host_of(s, t->rank)], layout.local[t->rank],
                              s->local) != 0)
        return NO_MEMORY;
    t->block_bytes = BLOCK_BYTES;
    t->at_once_bytes = s->at_once;
    const struct rt_hosts hosts = {t, s->alone ? NULL : &inside.base, &layout};
    if (t->rank == s->dies) {
        rt_transport_shm_release(&inside);
        rt_layout_release(&layout);
        return 0;
    }
    result = reduce_once(&hosts, s);
    rt_transport_shm_release(&inside);
    rt_layout_release(&layout);
    return result;
}

static void run(struct subject s, bool processes)
{
    const uint64_t bytes = rt_shm_bytes(s.local);
    for (int h = 0; h < HOSTS; h++)
        s.inside[h] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int result = run_ranks(HOSTS * s.local, processes, rank_of_two_hosts, &s);
    if (result != 0)
        fail_msg("%d ranks a host, %s, type %d, op %d, %llu elements, %s: %d", s.local,
                 s.round ? "in turn" : "in halves", (int)s.type, (int)s.op,
                 (unsigned long long)s.count, s.in_place ? "in place" : "apart", result);
    for (int h = 0; h < HOSTS; h++)
        munmap(s.inside[h], bytes);
}

/* Two short pieces and one element, of which some ranks have none; what pieces don't divide; more
 * than are under way at once. A part as one message, as several, and as the most there may be. */
static void pieces_equal_serial_reduction(void **state)
{
    static const struct {
        enum rt_type type;
        enum rt_op op;
    } kinds[] = {{RT_FLOAT32, RT_SUM},
                 {RT_FLOAT16, RT_AVG},
                 {RT_INT32, RT_AVG},
                 {RT_FLOAT64, RT_MAX},
                 {RT_UINT8, RT_SUM}};
    int turn = 0;
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int local = 1; local <= 3; local++, turn++) {
            const uint64_t piece = (uint64_t)local * (60 << 10) / rt_type_bytes(kinds[k].type);
            const uint64_t counts[] = {2 * piece + 1, 21 * piece - 7, 42 * piece + 13};
            static const uint64_t at_once[] = {0, 60 << 10, 1 << 10};
            struct subject s = {.local = local,
                                .round = turn % 2 == 0,
                                .count = counts[turn % 3],
                                .type = kinds[k].type,
                                .op = kinds[k].op,
                                .in_place = turn % 4 < 2,
                                .alone = (turn + turn / 3) % 2 == 0,
                                .at_once = at_once[(turn + turn / 3) % 3],
                                .dies = -1};
            run(s, turn % 5 == 0);
        }
}

static void pieces_when_a_rank_leaves_return_connreset(void **state)
{
    for (int rank = 0; rank < 4; rank++) {
        struct subject s = {.local = 2,
                            .count = 1 << 20,
                            .type = RT_FLOAT32,
                            .op = RT_SUM,
                            .in_place = true,
                            .dies = rank};
        run(s, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_equal_serial_reduction),
        cmocka_unit_test(pieces_when_a_rank_leaves_return_connreset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
