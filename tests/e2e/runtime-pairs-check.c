/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-pairs-check [all] - one rank: what the runtime does with each two of operation,
 * reduction, type, length, place, memory, scales, algorithm, hosts and how ranks are laid on them,
 * fusion, number of ranks and what connects hosts, compared with a serial reference. exit 1 and a
 * line where a result is wrong.
 *
 * Two covering arrays: one of jobs, of which this program begins those that have as many ranks as
 * it was started on, one after the other, and one of tensors, all of which go through each job at
 * once, handed over by each rank in an order of its own. So each two values meet, whichever array
 * they are of. With "all" the full product of both, for these ranks: hours.
 *
 * RUNTIME_CHECK_SEED: which rows, and orders.
 */
#ifndef WITHOUT_MPI
#include <mpi.h>
#endif
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "coll-cases.h"
#include "covering.h"
#include "rank-check.h"
#include "rt-reference.h"

#define GUARD     0x5a
#define THRESHOLD 4096 /* of the fusion buffer */

enum { ROWS_UNEVEN = 4, MEMBERS = 3, BATCH = 256 };

static uint64_t seed = 1;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* ---- jobs ---- */

static const char *const algorithms[] = {
    "auto",
    "ring",
    "recursive-doubling",
    "halving-doubling",
    "tree",
    "double-tree",
    "flat",
    "hierarchical",
    "hierarchical:ring",
    "hierarchical:recursive-doubling",
    "hierarchical:halving-doubling",
    "hierarchical:tree",
    "hierarchical:double-tree",
    "hierarchical:flat",
    "two-level-ring",
};

enum { ALGORITHM, RANKS, HOSTS, LAID, FUSED, TRANSPORT, JOB_PARAMETERS };
static const unsigned job_levels[JOB_PARAMETERS] = {
    sizeof algorithms / sizeof *algorithms, 8, MAX_HOSTS, LAID_COUNT, 2, 2};
#ifdef WITHOUT_MPI
enum { OWN_TRANSPORT = 0 };
#else
enum { OWN_TRANSPORT = 1 };
#endif

static const uint8_t *job; /* the one that runs */

static void begin_job(const uint8_t *row, int rank)
{
    char host[16], threshold[16];
    job = row;
    snprintf(host, sizeof host, "host%d",
             host_of(rank, row[RANKS] + 1, row[HOSTS] + 1, (enum laid)row[LAID]));
    snprintf(threshold, sizeof threshold, "%d", row[FUSED] ? THRESHOLD : 0);
    setenv("RT_HOST", host, 1);
    setenv("RT_ALLREDUCE", algorithms[row[ALGORITHM]], 1);
    setenv("RT_FUSION_THRESHOLD", threshold, 1);
    CHECK(rt_init() == 0, "%s", algorithms[row[ALGORITHM]]);
    CHECK(rt_size() == row[RANKS] + 1, "%d ranks", rt_size());
}

/* ---- tensors ---- */

enum kind { ALLREDUCE, GROUP, REDUCESCATTER, ALLGATHER, ALLTOALL, BROADCAST, KINDS };
static const char *const kinds[] = {"allreduce", "group",    "reducescatter",
                                    "allgather", "alltoall", "broadcast"};

/* Tensors in memory of rt_buffer_alloc: of no rank, of every second one, of all. */
enum memory { PRIVATE, MIXED, SHARED, MEMORIES };

enum { KIND, TYPE, OP, COUNT, PLACE, SCALED, MEMORY, TENSOR_PARAMETERS };
static const uint64_t counts[] = {0, 1, 2, 3, 13, 251, 4099}; /* then those at the fusion buffer */
enum { COUNTS = sizeof counts / sizeof *counts };
static const unsigned tensor_levels[TENSOR_PARAMETERS] = {
    KINDS, RT_TYPE_COUNT, RT_OP_COUNT, COUNTS + 3, 2, 2, MEMORIES};

struct tensor {
    int number;
    enum kind kind;
    enum rt_type type;
    enum rt_op op;
    uint64_t count, row; /* elements of a row */
    bool in_place, scaled, not_finite;
    enum memory memory;
    void *in[MEMBERS], *out[MEMBERS];
    struct rt_parts parts;
    int handle;
};

static struct tensor tensor_of(const uint8_t *row, int number)
{
    const enum rt_type type = (enum rt_type)row[TYPE];
    struct tensor t = {.number = number,
                       .kind = (enum kind)row[KIND],
                       .type = type,
                       .op = (enum rt_op)row[OP],
                       .in_place = row[PLACE],
                       .scaled = row[SCALED],
                       .memory = (enum memory)row[MEMORY],
                       .row = number % 2 ? 1 : 3};
    t.count = row[COUNT] < COUNTS ? counts[row[COUNT]]
                                  : THRESHOLD / rt_type_bytes(type) + row[COUNT] - COUNTS - 1;
    return t;
}

static bool is_float(enum rt_type type)
{
    return type == RT_FLOAT32 || type == RT_FLOAT64 || type == RT_FLOAT16 || type == RT_BFLOAT16 ||
           type == RT_FLOAT8_E4M3 || type == RT_FLOAT8_E5M2;
}

static bool has_infinity(enum rt_type type)
{
    return rt_type_bytes(type) > 1; /* float8 stops at its largest */
}

#define CHECK_TENSOR(condition, t, ...)                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr,                                                                        \
                    "%s, %d hosts laid %d, %s; %s %d: type %d, reduction %d, %" PRIu64             \
                    ", %s, %s, %s, memory %d: ",                                                   \
                    algorithms[job[ALGORITHM]], job[HOSTS] + 1, job[LAID],                         \
                    job[FUSED] ? "fused" : "not fused", kinds[(t)->kind], (t)->number,             \
                    (int)(t)->type, (int)(t)->op, (t)->count,                                      \
                    (t)->in_place ? "in place" : "apart", (t)->scaled ? "scaled" : "not scaled",   \
                    (t)->not_finite ? "not finite" : "finite", (int)(t)->memory);                  \
            CHECK(condition, __VA_ARGS__);                                                         \
        }                                                                                          \
    } while (0)

static bool is_shared(const struct tensor *t)
{
    return t->memory == SHARED || (t->memory == MIXED && rt_rank() % 2 == 0);
}

static void *new_buffer(const struct tensor *t, uint64_t count)
{
    const uint64_t bytes = count * rt_type_bytes(t->type);
    char *b = is_shared(t) ? rt_buffer_alloc(bytes + 8) : malloc(bytes + 8);
    CHECK_TENSOR(b, t, "no memory");
    memset(b, GUARD, bytes + 8);
    return b;
}

static void free_buffer(const struct tensor *t, void *buffer, uint64_t count)
{
    const char *end = (char *)buffer + count * rt_type_bytes(t->type);
    for (int i = 0; i < 8; i++)
        CHECK_TENSOR(end[i] == GUARD, t, "written behind a buffer");
    (is_shared(t) ? rt_buffer_free : free)(buffer);
}

static char *at(const struct tensor *t, void *buffer, uint64_t index)
{
    return (char *)buffer + index * rt_type_bytes(t->type);
}

/* Rows that a rank brings, for `to` in an alltoall: of some none, of some all. */
static uint64_t rows_between(const struct tensor *t, int from, int to)
{
    return t->count * (uint64_t)((from * 3 + to * 5 + t->number) % ROWS_UNEVEN) / 3;
}

/* Elements of what is reduced: a group's members, else one. */
static uint64_t count_of(const struct tensor *t, int member)
{
    const uint64_t group[MEMBERS] = {t->count, (uint64_t)t->number % 3, 17};
    return t->kind == GROUP           ? group[member]
           : t->kind == REDUCESCATTER ? t->count * t->row
                                      : t->count;
}

static int number_of(const struct tensor *t, int member)
{
    return t->number * MEMBERS + member;
}

static void fill_reduced(const struct tensor *t, int member)
{
    for (uint64_t i = 0; i < count_of(t, member) && t->not_finite; i++)
        set_element(t->in[member], i, t->type,
                    special_value(i, rt_rank(), rt_size(), has_infinity(t->type)));
    if (!t->not_finite)
        fill(t->in[member], count_of(t, member), t->type, rt_rank(), number_of(t, member), t->op);
}

/* Floats by 1/2 before and 2 after, integers by 1/2 after. */
static double scale_before(const struct tensor *t)
{
    return t->scaled && is_float(t->type) ? 0.5 : 1;
}

static double scale_after(const struct tensor *t)
{
    return !t->scaled ? 1 : is_float(t->type) ? 2 : 0.5;
}

static int hand_over_reduced(struct tensor *t, const char *name)
{
    const double before = scale_before(t), after = scale_after(t);
    const int members = t->kind == GROUP ? MEMBERS : 1;
    struct rt_group_member list[MEMBERS];
    for (int m = 0; m < members; m++) {
        const uint64_t count = count_of(t, m);
        t->in[m] = new_buffer(t, count);
        t->out[m] = t->in_place ? t->in[m]
                    : t->kind == REDUCESCATTER
                        ? new_buffer(t, rt_rows_of(t->count, rt_rank()) * t->row)
                        : new_buffer(t, count);
        fill_reduced(t, m);
        list[m] = (struct rt_group_member){t->in[m], t->out[m], count};
    }
    if (t->kind == GROUP)
        return rt_grouped_allreduce_async(name, list, MEMBERS, t->type, t->op, before, after, NULL);
    if (t->kind == REDUCESCATTER)
        return rt_reducescatter_async(name, t->in[0], t->out[0], t->count, t->row, t->type, t->op,
                                      before, after, NULL);
    return rt_allreduce_async(name, t->in[0], t->out[0], t->count, t->type, t->op, before, after,
                              NULL);
}

static int hand_over_moved(struct tensor *t, const char *name)
{
    const int me = rt_rank();
    if (t->kind == BROADCAST) {
        t->in[0] = new_buffer(t, t->count);
        fill(t->in[0], t->count, t->type, me, t->number, RT_MAX);
        return rt_broadcast_async(name, t->in[0], t->count, t->type, t->number % rt_size(), NULL);
    }
    if (t->kind == ALLGATHER) {
        const uint64_t rows = rows_between(t, me, 0);
        t->in[0] = new_buffer(t, rows * t->row);
        fill(t->in[0], rows * t->row, t->type, me, t->number, RT_MAX);
        return rt_allgather_async(name, t->in[0], rows, t->row, t->type, &t->parts, NULL);
    }
    uint64_t splits[8], rows = 0, first = 0;
    for (int r = 0; r < rt_size(); r++)
        rows += splits[r] = rows_between(t, me, r);
    t->in[0] = new_buffer(t, rows * t->row);
    for (int r = 0; r < rt_size(); first += splits[r++] * t->row)
        fill(at(t, t->in[0], first), splits[r] * t->row, t->type, me, t->number + r, RT_MAX);
    return rt_alltoall_async(name, t->in[0], splits, t->row, t->type, &t->parts, NULL);
}

static void hand_over(struct tensor *t)
{
    char name[32];
    snprintf(name, sizeof name, "pairs.%d", t->number);
    t->handle = t->kind <= REDUCESCATTER ? hand_over_reduced(t, name) : hand_over_moved(t, name);
    CHECK_TENSOR(t->handle >= 0, t, "refused");
}

/* ---- results ---- */

static double expected(const struct tensor *t, int member, uint64_t i)
{
    const double value = reduced_value(rt_size(), number_of(t, member), i, t->type, t->op);
    if (!t->scaled || t->type == RT_BOOL)
        return value;
    if (!is_float(t->type))
        return (double)(int64_t)(value / 2);
    return t->op == RT_PROD ? value * 2 / (double)(1 << rt_size()) : value;
}

static void check_reduced(struct tensor *t, int member)
{
    uint64_t first = 0, n = count_of(t, member);
    const uint64_t whole = n;
    for (int r = 0; r < rt_rank() && t->kind == REDUCESCATTER; r++)
        first += rt_rows_of(t->count, r) * t->row;
    if (t->kind == REDUCESCATTER)
        n = rt_rows_of(t->count, rt_rank()) * t->row;
    for (uint64_t i = 0; i < n; i++) {
        const double got = element(t->out[member], i, t->type);
        if (t->not_finite)
            CHECK_TENSOR(is_special_result(got, first + i, rt_size(), t->op, has_infinity(t->type)),
                         t, "[%" PRIu64 "] is %g", first + i, got);
        else
            CHECK_TENSOR(got == expected(t, member, first + i), t,
                         "[%" PRIu64 "] is %.9g, expected %.9g", first + i, got,
                         expected(t, member, first + i));
    }
    if (!t->in_place) {
        CHECK_TENSOR(t->not_finite || holds_values(t->in[member], 0, whole, rt_rank(),
                                                   number_of(t, member), t->type, t->op),
                     t, "input changed");
        free_buffer(t, t->out[member], n);
    }
    free_buffer(t, t->in[member], whole);
}

static void check_parts(struct tensor *t)
{
    const int me = t->kind == ALLTOALL ? rt_rank() : 0;
    uint64_t given = 0, first = 0;
    for (int r = 0; r < rt_size(); r++) {
        const uint64_t rows = rows_between(t, r, me);
        CHECK_TENSOR(t->parts.rows[r] == rows, t, "%" PRIu64 " rows from %d", t->parts.rows[r], r);
        CHECK_TENSOR(holds_values(at(t, t->parts.data, first), 0, rows * t->row, r, t->number + me,
                                  t->type, RT_MAX),
                     t, "rows from %d", r);
        first += rows * t->row;
        given += rows_between(t, rt_rank(), r);
    }
    CHECK_TENSOR(t->parts.total * t->row == first, t, "%" PRIu64 " rows", t->parts.total);
    rt_parts_clear(&t->parts);
    if (t->kind == ALLGATHER)
        given = rows_between(t, rt_rank(), 0);
    free_buffer(t, t->in[0], given * t->row);
}

static void check(struct tensor *t)
{
    CHECK_TENSOR(rt_wait(t->handle) == 0, t, "failed");
    if (t->kind <= REDUCESCATTER) {
        for (int m = 0; m < (t->kind == GROUP ? MEMBERS : 1); m++)
            check_reduced(t, m);
    } else if (t->kind == BROADCAST) {
        CHECK_TENSOR(
            holds_values(t->in[0], 0, t->count, t->number % rt_size(), t->number, t->type, RT_MAX),
            t, "not the root's");
        free_buffer(t, t->in[0], t->count);
    } else {
        check_parts(t);
    }
}

/* ---- all of them ---- */

static void run(struct tensor *tensors, unsigned n, uint64_t random)
{
    unsigned order[BATCH];
    for (unsigned i = 0; i < n; i++)
        order[i] = i;
    for (unsigned i = n; i > 1; i--) {
        random = mix(random + i);
        const unsigned j = (unsigned)(random % i), kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
    for (unsigned i = 0; i < n; i++)
        hand_over(&tensors[order[i]]);
    for (unsigned i = 0; i < n; i++)
        check(&tensors[i]);
}

/* Of each float type, in each of the ways that reduce. */
static unsigned add_not_finite(struct tensor *tensors, unsigned n)
{
    for (int type = 0; type < RT_TYPE_COUNT; type++)
        for (int kind = ALLREDUCE; kind <= REDUCESCATTER && is_float((enum rt_type)type); kind++) {
            CHECK(n < BATCH, "more than %d tensors", BATCH);
            tensors[n] = (struct tensor){.number = (int)n,
                                         .kind = (enum kind)kind,
                                         .type = (enum rt_type)type,
                                         .op = (enum rt_op)((unsigned)(type + kind) % RT_OP_COUNT),
                                         .count = 203,
                                         .row = 1,
                                         .in_place = n % 2,
                                         .memory = (enum memory)(n / 2 % MEMORIES),
                                         .not_finite = true};
            n++;
        }
    return n;
}

static uint64_t order_of(unsigned number)
{
    return mix(seed + (uint64_t)number * 64 + (uint64_t)rt_rank());
}

static void run_pairs(int rank, int size)
{
    struct covering jobs, rows;
    static struct tensor tensors[BATCH];
    unsigned done = 0, n = 0;
    CHECK(covering_make(&jobs, job_levels, JOB_PARAMETERS, seed) == 0 &&
              covering_make(&rows, tensor_levels, TENSOR_PARAMETERS, seed) == 0,
          "no rows");
    for (unsigned j = 0; j < jobs.count; j++) {
        const uint8_t *row = jobs.rows[j];
        if (row[RANKS] + 1 != size || row[TRANSPORT] != OWN_TRANSPORT)
            continue;
        begin_job(row, rank);
        CHECK(rows.count <= BATCH, "%u tensors", rows.count);
        for (n = 0; n < rows.count; n++)
            tensors[n] = tensor_of(rows.rows[n], (int)n);
        n = add_not_finite(tensors, n);
        run(tensors, n, order_of(j));
        CHECK(rt_shutdown() == 0, "end");
        done++;
    }
    covering_free(&jobs);
    covering_free(&rows);
    if (rank == 0)
        printf("%d ranks: %u jobs of %u tensors\n", size, done, n);
}

static bool next_row(uint8_t *row, const unsigned *levels, unsigned parameters)
{
    unsigned p = 0;
    while (p < parameters && ++row[p] == levels[p])
        row[p++] = 0;
    return p < parameters;
}

/* One row stands for all that would be alike. */
static bool is_new(const uint8_t *tensor)
{
    return tensor[KIND] <= REDUCESCATTER || (!tensor[OP] && !tensor[PLACE] && !tensor[SCALED]);
}

static uint64_t run_all_tensors(void)
{
    static struct tensor tensors[BATCH];
    uint8_t row[TENSOR_PARAMETERS] = {0};
    unsigned n = 0, batch = 0;
    uint64_t done = 0;
    bool more = true;
    while (more) {
        if (is_new(row)) {
            tensors[n] = tensor_of(row, (int)n);
            n++;
            done++;
        }
        more = next_row(row, tensor_levels, TENSOR_PARAMETERS);
        if (n == BATCH || !more) {
            run(tensors, n, order_of(batch++));
            n = 0;
        }
    }
    return done;
}

static void run_product(int rank, int size)
{
    uint8_t row[JOB_PARAMETERS] = {0};
    uint64_t done = 0;
    unsigned levels[JOB_PARAMETERS];
    memcpy(levels, job_levels, sizeof levels);
    levels[TRANSPORT] = levels[RANKS] = 1;
    do {
        const int hosts = row[HOSTS] + 1;
        row[RANKS] = (uint8_t)(size - 1);
        if (hosts <= size && (hosts > 1 || row[LAID] == LAID_IN_ORDER)) {
            begin_job(row, rank);
            done += run_all_tensors();
            CHECK(rt_shutdown() == 0, "end");
            if (rank == 0)
                fprintf(stderr, "%d ranks: %s, %d hosts laid %d: %" PRIu64 " cases done\n", size,
                        algorithms[row[ALGORITHM]], hosts, row[LAID], done);
        }
        row[RANKS] = 0;
    } while (next_row(row, levels, JOB_PARAMETERS));
}

int main(int argc, char **argv)
{
    int rank, size;
#ifdef WITHOUT_MPI
    rank = atoi(getenv("RT_RANK"));
    size = atoi(getenv("RT_SIZE"));
#else
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &rank);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#endif
    if (getenv("RUNTIME_CHECK_SEED"))
        seed = strtoull(getenv("RUNTIME_CHECK_SEED"), NULL, 10);
    (argc > 1 && strcmp(argv[1], "all") == 0 ? run_product : run_pairs)(rank, size);
#ifndef WITHOUT_MPI
    MPI_Finalize();
#endif
    return 0;
}
