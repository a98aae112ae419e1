/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-check - one rank of a test of the runtime; exit 1 and a line where a result is wrong.
 *
 * Inputs are integers that encode rank, tensor and index, exact in both types; the expected result
 * is computed here, one rank after the other. Every rank hands its tensors over in another order.
 * RUNTIME_CHECK_MPI=multiple|single: the program initialises MPI itself, with that thread level.
 */
#include <errno.h>
#ifndef WITHOUT_MPI
#include <mpi.h>
#endif
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rank-check.h"
#include "rt-reference.h"
#include "rt.h"

/* Counts that don't divide by anything, that do, none, one, and one longer than a small threshold.
 */
static const uint64_t counts[] = {1, 7, 64, 0, 1000, 4099, 3, 16, 12, 65537, 2, 240};
enum { TENSORS = sizeof counts / sizeof *counts, ROUNDS = 3 };

static int value(int rank, int tensor, uint64_t index, int round)
{
    return (rank + 1) * 7 + tensor * 131 + (int)(index % 1009) * 3 + round * 1000 -
           (int)(index % 5) * 500;
}

static int expected(int tensor, uint64_t index, int round, enum rt_op op)
{
    int result = value(0, tensor, index, round);
    for (int r = 1; r < rt_size(); r++) {
        int v = value(r, tensor, index, round);
        if (op == RT_SUM || op == RT_AVG)
            result += v;
        else
            result = op == RT_MAX ? (v > result ? v : result) : v < result ? v : result;
    }
    return op == RT_AVG ? result / rt_size() : result; /* as C divides: toward zero */
}

struct tensor {
    char name[64];
    uint64_t count;
    enum rt_type type;
    enum rt_op op;
    void *in, *out;
    int handle;
};

static void prepare(struct tensor *t, int tensor, int round)
{
    static const enum rt_op ops[] = {RT_SUM, RT_MAX, RT_SUM, RT_MIN, RT_SUM, RT_AVG};
    snprintf(t->name, sizeof t->name, "tensor.%d", tensor);
    t->count = counts[tensor];
    t->op = ops[tensor % 6];
    t->type = tensor % 2 || t->op == RT_AVG ? RT_INT32 : RT_FLOAT32;
    t->in = malloc(t->count * 4 + 1);
    t->out = tensor % 3 == 2 ? t->in : malloc(t->count * 4 + 1); /* some in place */
    for (uint64_t i = 0; i < t->count; i++) {
        int v = value(rt_rank(), tensor, i, round);
        if (t->type == RT_FLOAT32)
            ((float *)t->in)[i] = (float)v;
        else
            ((int32_t *)t->in)[i] = v;
    }
}

static void verify(struct tensor *t, int tensor, int round)
{
    for (uint64_t i = 0; i < t->count; i++)
        CHECK(element(t->out, i, t->type) == expected(tensor, i, round, t->op),
              "%s[%llu] is %.9g, expected %d", t->name, (unsigned long long)i,
              element(t->out, i, t->type), expected(tensor, i, round, t->op));
    if (t->out != t->in)
        free(t->out);
    free(t->in);
}

/* Every rank begins elsewhere and goes on by another stride. */
static int place(int i)
{
    static const int strides[] = {1, 5, 7, 11};
    return (rt_rank() * 3 + i * strides[rt_rank() % 4]) % TENSORS;
}

static void check_allreduce(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct tensor tensors[TENSORS];
        for (int t = 0; t < TENSORS; t++)
            prepare(&tensors[t], t, round);
        for (int i = 0; i < TENSORS; i++) {
            struct tensor *t = &tensors[place(i)];
            t->handle =
                rt_allreduce_async(t->name, t->in, t->out, t->count, t->type, t->op, 1, 1, NULL);
            CHECK(t->handle >= 0, "%s", t->name);
        }
        for (int t = 0; t < TENSORS; t++) {
            CHECK(rt_wait(tensors[t].handle) == 0, "%s", tensors[t].name);
            verify(&tensors[t], t, round);
        }
    }
}

static void check_scales(void)
{
    float in[5], out[5];
    for (int i = 0; i < 5; i++)
        in[i] = (float)(4 * value(rt_rank(), 0, (uint64_t)i, 0));
    int handle = rt_allreduce_async("scaled", in, out, 5, RT_FLOAT32, RT_SUM, 0.25, 2, NULL);
    CHECK(rt_wait(handle) == 0, "scaled");
    for (int i = 0; i < 5; i++)
        CHECK(out[i] == 2 * expected(0, (uint64_t)i, 0, RT_SUM), "scaled[%d] is %.9g", i, out[i]);
}

static void check_broadcast(void)
{
    enum { LONG = 300007 };
    int32_t *data[4], small[3];
    struct rt_parameter parameters[4];
    static const char *const names[] = {"p0", "p1", "p2", "p3"};
    for (int root = 0; root < rt_size(); root++) {
        for (int p = 0; p < 4; p++) {
            data[p] = malloc(LONG * sizeof **data);
            for (uint64_t i = 0; i < LONG; i++)
                data[p][i] = value(rt_rank(), p, i, root);
            int other = (p + rt_rank()) % 4;
            parameters[other] = (struct rt_parameter){
                names[p], data[p], p == 1 ? 0 : LONG - (uint64_t)p * 1001, RT_INT32};
        }
        CHECK(rt_broadcast_parameters(parameters, 4, root, NULL) == 0, "root %d", root);
        for (int p = 0; p < 4; p++) {
            uint64_t given = p == 1 ? 0 : LONG - (uint64_t)p * 1001;
            for (uint64_t i = 0; i < LONG; i++) {
                int want = value(i < given ? root : rt_rank(), p, i, root);
                CHECK(data[p][i] == want, "p%d[%llu] is %d, expected %d", p, (unsigned long long)i,
                      data[p][i], want);
            }
            free(data[p]);
        }
    }
    small[0] = 1;
    CHECK(rt_broadcast_async("x", small, 1, RT_INT32, rt_size(), NULL) == -EINVAL, "no such root");
}

/* Their announcements and orders are longer than what an MPI sends without the other side's help.
 */
static void check_many(void)
{
    enum { MANY = 500 };
    static int32_t data[MANY];
    static int handles[MANY];
    char name[RT_NAME_MAX + 1];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%0*d", RT_NAME_MAX, i);
        data[i] = rt_rank() + i;
        handles[i] = rt_allreduce_async(name, &data[i], &data[i], 1, RT_INT32, RT_MAX, 1, 1, NULL);
        CHECK(handles[i] >= 0, "%d", i);
    }
    for (int i = 0; i < MANY; i++) {
        CHECK(rt_wait(handles[i]) == 0, "%d", i);
        CHECK(data[i] == rt_size() - 1 + i, "%d is %d", i, data[i]);
    }
}

/* Nobody passes before the last has come: each leaves a file before, and sees all files after. */
static void check_barrier(void)
{
    const char *folder = getenv("RUNTIME_CHECK_DIR");
    char path[4096];
    CHECK(folder, "RUNTIME_CHECK_DIR is not set");
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%d-%d", folder, i, rt_rank());
        FILE *mark = fopen(path, "w");
        CHECK(mark && fclose(mark) == 0, "%s", path);
        int handle = rt_barrier_async(NULL);
        CHECK(handle >= 0 && rt_wait(handle) == 0, "barrier %d", i);
        for (int r = 0; r < rt_size(); r++) {
            snprintf(path, sizeof path, "%s/%d-%d", folder, i, r);
            CHECK(access(path, F_OK) == 0, "rank %d has not come to barrier %d", r, i);
        }
    }
}

/* The message of a refusal: what rank 0 said, and what the last one said, in one. */
static void expect_refusal(int handle, const char *name, const char *zero, const char *last)
{
    char want[256];
    CHECK(rt_wait(handle) == -EINVAL, "%s", name);
    snprintf(want, sizeof want, "ranks disagree about tensor %s; ", name);
    CHECK(strncmp(rt_error(), want, strlen(want)) == 0, "text");
    CHECK(strstr(rt_error(), zero), "expected %s", zero);
    snprintf(want, sizeof want, "rank %d %s", rt_size() - 1, last);
    CHECK(strstr(rt_error(), want), "expected %s", want);
}

static void check_mismatch(void)
{
    float data[8] = {0};
    int32_t words[8] = {0};
    const int last = rt_rank() == rt_size() - 1;
    const uint64_t shapes[2][2] = {{2, 3}, {3, 2}};
    const struct rt_options options = {.dimensions = 2, .shape = shapes[last]};

    expect_refusal(
        rt_allreduce_async("count", data, data, last ? 5 : 4, RT_FLOAT32, RT_SUM, 1, 1, NULL),
        "count", "shape: rank 0 [4], ", "[5]");
    expect_refusal(rt_allreduce_async("shape", data, data, 6, RT_FLOAT32, RT_SUM, 1, 1, &options),
                   "shape", "shape: rank 0 [2,3], ", "[3,2]");
    expect_refusal(last ? rt_allreduce_async("type", words, words, 4, RT_INT32, RT_SUM, 1, 1, NULL)
                        : rt_allreduce_async("type", data, data, 4, RT_FLOAT32, RT_SUM, 1, 1, NULL),
                   "type", "type: rank 0 float32, ", "int32");
    expect_refusal(
        rt_allreduce_async("op", data, data, 4, RT_FLOAT32, last ? RT_MAX : RT_SUM, 1, 1, NULL),
        "op", "reduction: rank 0 sum, ", "max");
    expect_refusal(
        rt_allreduce_async("scale", data, data, 4, RT_FLOAT32, RT_SUM, last ? 0.5 : 1, 1, NULL),
        "scale", "pre- and postscale: rank 0 1 and 1, ", "0.5 and 1");
    expect_refusal(rt_broadcast_async("root", data, 4, RT_FLOAT32, last, NULL), "root",
                   "root: rank 0 0, ", "1");
    expect_refusal(last ? rt_broadcast_async("all", words, 3, RT_INT32, 1, NULL)
                        : rt_allreduce_async("all", data, data, 4, RT_FLOAT32, RT_MAX, 2, 1, NULL),
                   "all", "operation: rank 0 ALLREDUCE, ", "BROADCAST; type: rank 0 float32, ");
    CHECK(rt_allreduce_async("x", data, data, 5, RT_FLOAT32, RT_SUM, 1, 1, &options) == -EINVAL,
          "not its count");

    /* the runtime still works, and the name can be used again */
    words[0] = rt_rank();
    int handle = rt_allreduce_async("count", words, words, 1, RT_INT32, RT_SUM, 1, 1, NULL);
    CHECK(rt_wait(handle) == 0, "after a mismatch");
    CHECK(words[0] == rt_size() * (rt_size() - 1) / 2, "sum %d", words[0]);

    /* what was agreed before isn't taken for granted; all may agree about something else */
    for (uint64_t count = 1; count <= 3; count++) {
        CHECK(rt_wait(rt_allreduce_async("count", words, words, count, RT_INT32, RT_MAX, 1, 1,
                                         NULL)) == 0,
              "count %d", (int)count);
        expect_refusal(rt_allreduce_async("count", words, words, count + (last ? 4 : 0), RT_INT32,
                                          RT_MAX, 1, 1, NULL),
                       "count", "shape: rank 0 [",
                       count == 1   ? "[5]"
                       : count == 2 ? "[6]"
                                    : "[7]");
    }
}

static void check_names(void)
{
    float data[2] = {0};
    char longest[RT_NAME_MAX + 2];
    memset(longest, 'n', sizeof longest - 1);
    longest[RT_NAME_MAX + 1] = 0;
    CHECK(rt_allreduce_async(longest, data, data, 2, RT_FLOAT32, RT_SUM, 1, 1, NULL) == -EINVAL,
          "long");
    CHECK(rt_allreduce_async("", data, data, 2, RT_FLOAT32, RT_SUM, 1, 1, NULL) == -EINVAL,
          "empty");
    CHECK(rt_allreduce_async("rt.x", data, data, 2, RT_FLOAT32, RT_SUM, 1, 1, NULL) == -EINVAL,
          "ours");
    CHECK(rt_broadcast_async("x", data, 1, RT_TYPE_COUNT, 0, NULL) == -EINVAL, "no such type");
    CHECK(rt_allreduce_async("x", data, data, 1, RT_FLOAT32, RT_ADASUM + 1, 1, 1, NULL) == -EINVAL,
          "no such reduction");
    longest[RT_NAME_MAX] = 0;
    int handle = rt_allreduce_async(longest, data, data, 2, RT_FLOAT32, RT_SUM, 1, 1, NULL);
    CHECK(rt_wait(handle) == 0, "longest");
    CHECK(rt_wait(handle) == -EINVAL && rt_poll(handle) == -EINVAL, "used handle");
}

/* Rank 0 leaves while the others wait for it: they are told, all can end. */
static void check_leaving(void)
{
    float data[2] = {0};
    if (rt_rank() == 0)
        return;
    int handle = rt_allreduce_async("orphan", data, data, 2, RT_FLOAT32, RT_SUM, 1, 1, NULL);
    CHECK(rt_wait(handle) == -ESHUTDOWN, "orphan");
    CHECK(strstr(rt_error(), "shut down without it: rank 0"), "text");
}

static void check_topology(void)
{
    const char *ranks = getenv("RT_HOST_RANKS");
    CHECK(ranks && rt_local_size() == atoi(ranks), "local size %d", rt_local_size());
    CHECK(rt_local_rank() < rt_local_size() && rt_cross_rank() < rt_cross_size(), "ranks");
}

/* What RUNTIME_CHECK_MPI says. */
static bool begin_mpi(int *argc, char ***argv)
{
    const char *mpi = getenv("RUNTIME_CHECK_MPI");
#ifndef WITHOUT_MPI
    int provided;
    if (mpi)
        MPI_Init_thread(argc, argv,
                        strcmp(mpi, "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                        &provided);
#endif
    return mpi;
}

static void end_mpi(void)
{
#ifndef WITHOUT_MPI
    MPI_Finalize(); /* the program's own: the runtime has left it alone */
#endif
}

int main(int argc, char **argv)
{
    static const struct {
        void (*check)(void);
        int ranks; /* at least */
    } cases[] = {
        {check_topology, 1},  {check_allreduce, 1}, {check_scales, 1},
        {check_broadcast, 1}, {check_many, 1},      {check_barrier, 1},
        {check_mismatch, 2},  {check_names, 1},     {check_leaving, 2}, /* ends the run: the last */
    };
    const bool has_mpi = begin_mpi(&argc, &argv);
    if (rt_init() < 0) {
        fprintf(stderr, "rt_init: %s\n", rt_error());
        return 2;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (rt_size() >= cases[i].ranks)
            cases[i].check();
    int rank = rt_rank();
    if (rt_shutdown() < 0 || rt_size() != -ESHUTDOWN) {
        fprintf(stderr, "rank %d: rt_shutdown: %s\n", rank, rt_error());
        return 1;
    }
    if (has_mpi)
        end_mpi();
    return 0;
}
