/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-coll-mpi SEED [pairs|all] - every algorithm of rt_coll over MPI messages, against serial sums;
 * to be run by mpirun. With "pairs" those of coll-cases too, all pairs of what they vary (SEED says
 * which rows), on 1 rank to all; with "all" their full product: 1.7 million.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll-cases.h"
#include "rt-reference.h"
#include "rt-transport-mpi.h"

enum { TAG_FIXED = 7, TAG_CASES };

static MPI_Comm comm;
/* Short ones: many of them in short buffers. */
static uint64_t block_bytes = 64 << 10;

/* The last is longer than one message. */
static const uint64_t counts[] = {0, 1, 5, 4099, 200003, 4300001};
#define COUNTS (sizeof counts / sizeof *counts)

static bool is_reduced(const void *data, uint64_t first, uint64_t count, int size,
                       enum rt_type type, enum rt_op op)
{
    return holds_reduced(data, first, count, size, 3, type, op);
}

static int report(const struct rt_transport *t, const char *what, uint64_t count)
{
    fprintf(stderr, "rank %d of %d: %s of %llu is wrong\n", t->rank, t->size, what,
            (unsigned long long)count);
    return 1;
}

static int check_allreduce(struct rt_transport *t, const char *name, uint64_t count,
                           enum rt_type type, enum rt_op op, bool in_place)
{
    const uint64_t bytes = count * rt_type_bytes(type) + 1;
    void *in = malloc(bytes), *out = in_place ? in : malloc(bytes);
    fill(in, count, type, t->rank, 3, op);
    int error = rt_allreduce_find(name)(t, in, out, count, type, op);
    int bad = error || !is_reduced(out, 0, count, t->size, type, op);
    free(in);
    if (!in_place)
        free(out);
    if (bad)
        fprintf(stderr, "type %d, operation %d: ", (int)type, (int)op);
    return bad ? report(t, name, count) : 0;
}

static int check_halves(struct rt_transport *t, uint64_t count)
{
    uint64_t first = rt_part_first(count, t->size, t->rank);
    uint64_t mine = rt_part_count(count, t->size, t->rank);
    int32_t *in = malloc(count * 4 + 4), *part = malloc(mine * 4 + 4);
    fill(in, count, RT_INT32, t->rank, 3, RT_SUM);
    if (rt_reduce_scatter_ring(t, in, part, count, RT_INT32, RT_SUM) ||
        !is_reduced(part, first, mine, t->size, RT_INT32, RT_SUM))
        return report(t, "reduce-scatter", count);
    if (rt_allgather_ring(t, part, in, count, RT_INT32) ||
        !is_reduced(in, 0, count, t->size, RT_INT32, RT_SUM))
        return report(t, "allgather", count);
    if (t->rank != 1 % t->size)
        memset(in, 0, count * 4);
    if (rt_broadcast_chain(t, in, count, RT_INT32, 1 % t->size) ||
        !is_reduced(in, 0, count, t->size, RT_INT32, RT_SUM))
        return report(t, "broadcast", count);
    free(in);
    free(part);
    return rt_barrier(t) ? report(t, "barrier", 0) : 0;
}

static const char *const names[] = {"auto", "ring",       "recursive-doubling", "halving-doubling",
                                    "tree", "double-tree"};
#define NAMES (sizeof names / sizeof *names)

/* The first `size` ranks; the others are through. */
static int run(int size, unsigned transport, rank_fn *fn, struct subject *subject)
{
    int ranks[8], rank, world, result;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &world);
    for (int r = 0; r < size; r++)
        ranks[r] = r;
    if (size > world || rank >= size)
        return 0;
    struct rt_transport *t = rt_transport_mpi_new(&comm, TAG_CASES, ranks, size);
    if (!t)
        return NO_MEMORY;
    t->block_bytes = block_bytes;
    result = fn(t, subject);
    rt_transport_mpi_free(t);
    return result;
}

static int check_fixed(struct rt_transport *t)
{
    int failed = t ? 0 : 1;
    for (unsigned c = 0; c < COUNTS && !failed; c++) {
        for (unsigned n = 0; n < NAMES; n++)
            failed += check_allreduce(t, names[n], counts[c], n % 2 ? RT_FLOAT32 : RT_INT32,
                                      (enum rt_op)((n + c) % RT_OP_COUNT), (n + c) % 3 == 0);
        failed += check_halves(t, counts[c]);
    }
    return failed;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    struct rt_transport *t = rt_transport_mpi_new(&comm, TAG_FIXED, NULL, 0);
    const bool all = argc > 2 && strcmp(argv[2], "all") == 0;
    if (all)
        block_bytes = 256;
    const struct coll_runner cases = {.seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
                                      .all = all,
                                      .progress = t && t->rank == 0,
                                      .transports = 1,
                                      .block_bytes = block_bytes,
                                      .run = run};
    int failed = check_fixed(t);
    if (!failed && argc > 2)
        failed = coll_cases_run(&cases);
    int rank = t ? t->rank : 0, size = t ? t->size : 0;
    if (failed)
        MPI_Abort(MPI_COMM_WORLD, 1); /* the others may wait for this one */
    rt_transport_mpi_free(t);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    if (rank == 0)
        printf("%d ranks: right\n", size);
    return 0;
}
