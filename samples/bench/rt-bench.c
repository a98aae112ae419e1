/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-bench - times the runtime's collectives, with nccl-tests' options and table, so that what
 * reads that reads this.
 *
 * An operation is handed over and waited for, one at a time: the whole asynchronous path, with its
 * agreement of all ranks. Times are means over iterations and ranks. algbw = S / time and busbw =
 * algbw * factor, with nccl-tests' S and factors (collectives below; 1 GB = 1e9 bytes). In the
 * table "in place" is out = in; the runtime returns an allgather's and an alltoall's result in
 * memory of its own, so that these have none. Exit status 1 where a result was wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench-options.h"
#include "bench-values.h"
#include "rt-clock.h"
#include "rt-train.h"
#include "rt.h"

struct bench {
    struct bench_options o;
    const struct collective *c;
    enum rt_type type;
    enum rt_op op;
    uint64_t base; /* what a rank has, or one of its parts */
    void *in, *out;
    struct rt_parts parts;
    uint64_t *splits;
    double busbw_sum;
    int busbw_count;
    uint64_t wrong;
};

struct collective {
    const char *name;
    bool reduces, has_root, in_place;
    bool parts; /* S is that of `size` parts */
    double (*factor)(double n);
    int (*start)(struct bench *b, void *out);
    uint64_t (*wrong)(struct bench *b, const void *out);
    void (*fill)(struct bench *b);
};

static void check(const char *what, int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "rt-bench: rank %d: %s: %s\n", rt_rank(), what, rt_error());
    exit(1);
}

/* ---- collectives ---- */

static double twice(double n)
{
    return 2 * (n - 1) / n;
}

static double once(double n)
{
    return (n - 1) / n;
}

static double one(double n)
{
    return 1;
}

static void fill_own(struct bench *b)
{
    values_fill(b->in, b->base, b->type, b->op, rt_rank(), 0);
}

static void fill_parts(struct bench *b)
{
    values_fill(b->in, b->base * (uint64_t)rt_size(), b->type, b->op, rt_rank(), 0);
}

static int start_allreduce(struct bench *b, void *out)
{
    return rt_allreduce_async("bench", b->in, out, b->base, b->type, b->op, 1, 1, NULL);
}

static uint64_t wrong_allreduce(struct bench *b, const void *out)
{
    return values_wrong(out, b->base, b->type, b->op, rt_size(), 0);
}

static int start_reducescatter(struct bench *b, void *out)
{
    return rt_reducescatter_async("bench", b->in, out, b->base * (uint64_t)rt_size(), 1, b->type,
                                  b->op, 1, 1, NULL);
}

static uint64_t wrong_reducescatter(struct bench *b, const void *out)
{
    return values_wrong(out, b->base, b->type, b->op, rt_size(), b->base * (uint64_t)rt_rank());
}

static int start_broadcast(struct bench *b, void *out)
{
    return rt_broadcast_async("bench", out, b->base, b->type, b->o.root, NULL);
}

/* nccl-tests' root sends from `in`; the runtime has one buffer. */
static void fill_root(struct bench *b)
{
    values_fill(b->in, b->base, b->type, b->op, rt_rank(), 0);
    values_fill(b->out, b->base, b->type, b->op, rt_rank(), 0);
}

static uint64_t wrong_broadcast(struct bench *b, const void *out)
{
    return values_wrong_of_rank(out, b->base, b->type, b->op, b->o.root, 0);
}

static int start_allgather(struct bench *b, void *out)
{
    rt_parts_clear(&b->parts);
    return rt_allgather_async("bench", b->in, b->base, 1, b->type, &b->parts, NULL);
}

static int start_alltoall(struct bench *b, void *out)
{
    rt_parts_clear(&b->parts);
    for (int r = 0; r < rt_size(); r++)
        b->splits[r] = b->base;
    return rt_alltoall_async("bench", b->in, b->splits, 1, b->type, &b->parts, NULL);
}

/* From each rank a part: its first, or the one for this rank. */
static uint64_t wrong_parts(struct bench *b, uint64_t first)
{
    uint64_t bad = b->parts.total != b->base * (uint64_t)rt_size();
    for (int r = 0; r < rt_size() && !bad; r++)
        bad += values_wrong_of_rank((const char *)b->parts.data +
                                        (uint64_t)r * b->base * rt_type_bytes(b->type),
                                    b->base, b->type, b->op, r, first);
    return bad;
}

static uint64_t wrong_allgather(struct bench *b, const void *out)
{
    return wrong_parts(b, 0);
}

static uint64_t wrong_alltoall(struct bench *b, const void *out)
{
    return wrong_parts(b, b->base * (uint64_t)rt_rank());
}

static const struct collective collectives[] = {
    {"allreduce", true, false, true, false, twice, start_allreduce, wrong_allreduce, fill_own},
    {"allgather", false, false, false, true, once, start_allgather, wrong_allgather, fill_own},
    {"reducescatter", true, false, true, true, once, start_reducescatter, wrong_reducescatter,
     fill_parts},
    {"broadcast", false, true, true, false, one, start_broadcast, wrong_broadcast, fill_root},
    {"alltoall", false, false, false, true, once, start_alltoall, wrong_alltoall, fill_parts},
};
enum { COLLECTIVES = sizeof collectives / sizeof *collectives };

/* ---- one size ---- */

static void run(struct bench *b, void *out, int times)
{
    for (int i = 0; i < times; i++) {
        int handle = b->c->start(b, out);
        check(b->c->name, handle < 0 ? handle : rt_wait(handle));
    }
}

static void meet(void)
{
    int handle = rt_barrier_async(NULL);
    check("barrier", handle < 0 ? handle : rt_wait(handle));
}

static int64_t wrong_of_all(struct bench *b, void *out)
{
    meet(); /* no rank fills what another still reads */
    b->c->fill(b);
    run(b, out, 1);
    int64_t wrong = (int64_t)b->c->wrong(b, out);
    int handle = rt_allreduce_async("wrong", &wrong, &wrong, 1, RT_INT64, RT_SUM, 1, 1, NULL);
    check("wrong", handle < 0 ? handle : rt_wait(handle));
    return wrong;
}

/* The four columns of one way. */
static void measure(struct bench *b, void *out, uint64_t bytes)
{
    b->c->fill(b);
    run(b, out, b->o.warm_up);
    meet();
    const uint64_t start_ns = rt_now_ns();
    run(b, out, b->o.iterations);
    double us = (double)(rt_now_ns() - start_ns) / 1e3 / b->o.iterations;
    check("mean of the time", rt_mean_over_ranks("time", &us, 1, 1));
    double algbw = (double)bytes / us / 1e3, busbw = algbw * b->c->factor(rt_size());
    char wrong[24] = "N/A";
    if (b->o.check) {
        int64_t n = wrong_of_all(b, out);
        b->wrong += (uint64_t)n;
        snprintf(wrong, sizeof wrong, "%lld", (long long)n);
    }
    b->busbw_sum += busbw;
    b->busbw_count++;
    if (rt_rank() == 0)
        printf("  %7.*f  %6.2f  %6.2f  %5s", us < 1e4 ? 2 : 0, us, algbw, busbw, wrong);
}

static void one_line(struct bench *b, uint64_t wanted)
{
    const uint64_t of_type = rt_type_bytes(b->type), n = (uint64_t)rt_size();
    b->base = wanted / of_type / (b->c->parts ? n : 1);
    uint64_t bytes = b->base * of_type * (b->c->parts ? n : 1);
    if (rt_rank() == 0) {
        const char *type = "", *op = "none";
        for (const struct bench_word *w = bench_types; w->name; w++)
            type = w->value == (int)b->type ? w->name : type;
        for (const struct bench_word *w = bench_ops; w->name && b->c->reduces; w++)
            op = w->value == (int)b->op ? w->name : op;
        printf("%12llu  %12llu  %8s  %6s  %6d", (unsigned long long)bytes,
               (unsigned long long)b->base, type, op, b->c->has_root ? b->o.root : -1);
    }
    measure(b, b->out, bytes);
    if (b->c->in_place)
        measure(b, b->in, bytes);
    else if (rt_rank() == 0)
        printf("  %7s  %6s  %6s  %5s", "N/A", "N/A", "N/A", "N/A");
    if (rt_rank() == 0) {
        printf("\n");
        fflush(stdout);
    }
}

/* ---- the table ---- */

struct place {
    int64_t pid;
    char host[64];
};

static void print_head(const struct bench *b)
{
    struct place place = {.pid = getpid()};
    struct rt_parts places = {0};
    const char *logical = getenv("RT_HOST");
    gethostname(place.host, sizeof place.host - 1);
    if (logical)
        snprintf(place.host, sizeof place.host, "%s", logical);
    int handle = rt_allgather_async("places", &place, 1, sizeof place, RT_UINT8, &places, NULL);
    check("allgather of the places", handle < 0 ? handle : rt_wait(handle));
    if (rt_rank() == 0) {
        printf("# nThread 1 nGpus 1 minBytes %llu maxBytes %llu step: %g(%s) warmup iters: %d "
               "iters: %d agg iters: 1 validation: %d graph: 0\n#\n# Using devices\n",
               (unsigned long long)b->o.smallest, (unsigned long long)b->o.largest,
               b->o.step ? (double)b->o.step : b->o.factor, b->o.step ? "bytes" : "factor",
               b->o.warm_up, b->o.iterations, b->o.check);
        for (int r = 0; r < rt_size(); r++) {
            struct place p;
            memcpy(&p, (const char *)places.data + (size_t)r * sizeof p, sizeof p);
            printf("#  Rank %2d Group  0 Pid %6lld on %10s device %2d [host memory] %s\n", r,
                   (long long)p.pid, p.host, r, b->c->name);
        }
        printf("#\n"
               "# %61s %36s\n"
               "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s\n"
               "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s\n",
               "out-of-place", "in-place", "size", "count", "type", "redop", "root", "time",
               "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", "(B)", "(elements)",
               "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
    }
    rt_parts_clear(&places);
}

static void sizes(struct bench *b)
{
    const struct bench_options *o = &b->o;
    for (double bytes = (double)o->smallest; bytes <= (double)o->largest;) {
        one_line(b, (uint64_t)bytes);
        if (o->step)
            bytes += (double)o->step;
        else
            bytes = bytes > 0 ? bytes * o->factor : 1;
    }
}

static void types_and_ops(struct bench *b)
{
    for (int t = 0; t < b->o.types; t++)
        for (int p = 0; p < (b->c->reduces ? b->o.ops : 1); p++) {
            b->type = (enum rt_type)bench_types[b->o.type[t]].value;
            b->op = b->c->reduces ? (enum rt_op)bench_ops[b->o.op[p]].value : RT_SUM;
            sizes(b);
        }
}

int main(int argc, char **argv)
{
    const char *names[COLLECTIVES + 1] = {NULL};
    struct bench b = {0};
    for (int i = 0; i < COLLECTIVES; i++)
        names[i] = collectives[i].name;
    b.o = bench_options_read(argc, argv, names);
    for (int i = 0; i < COLLECTIVES; i++)
        if (strcmp(b.o.collective, names[i]) == 0)
            b.c = &collectives[i];
    check("start", rt_init());
    if (b.o.root >= rt_size()) {
        fprintf(stderr, "rt-bench: -r %d: there are %d ranks\n", b.o.root, rt_size());
        exit(2);
    }
    b.in = rt_buffer_alloc(b.o.largest + 64);
    b.out = rt_buffer_alloc(b.o.largest + 64);
    b.splits = calloc((size_t)rt_size(), sizeof *b.splits);
    if (!b.in || !b.out || !b.splits) {
        fprintf(stderr, "rt-bench: no memory for two buffers of %llu bytes\n",
                (unsigned long long)b.o.largest);
        exit(1);
    }
    print_head(&b);
    types_and_ops(&b);
    if (rt_rank() == 0)
        printf("# Out of bounds values : %llu %s\n# Avg bus bandwidth    : %g \n#\n",
               (unsigned long long)b.wrong, b.wrong ? "FAILED" : "OK",
               b.busbw_count ? b.busbw_sum / b.busbw_count : 0);
    meet();
    rt_parts_clear(&b.parts);
    rt_buffer_free(b.in);
    rt_buffer_free(b.out);
    free(b.splits);
    check("shutdown", rt_shutdown());
    return b.wrong > 0;
}
