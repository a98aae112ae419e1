/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt_tune [--table FILE] [--from BYTES] [--to BYTES] [--rounds N] - measures every way an allreduce
 * can go over the ranks it is started on, and writes which is quickest for each size into the table
 * that rt_init reads (rt-choice.h). To be started as the program is that the table is for: as many
 * ranks on as many hosts, with the same settings.
 *
 * For each size rounds of all plans take turns; a round's time is that of the slowest rank, and
 * medians are compared. The formulas of rt-cost.h, with costs measured here, are printed beside.
 * Exit: 0, 1 what was measured could not be written, 2 wrong arguments or no runtime.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rt-choice.h"
#include "rt-config.h"
#include "rt-execute.h"

enum { PLANS_MAX = 16, ROUNDS_MAX = 99, SIZES_MAX = 40, REPEATS = 200 };

struct options {
    char table[4096];
    uint64_t from, to;
    int rounds;
};

struct tune {
    struct options options;
    struct rt_fabric *fabric;
    struct rt_groups groups;
    struct rt_executor executor;
    struct rt_operation *operation;
    struct rt_plan plans[PLANS_MAX];
    unsigned plan_count;
    struct rt_costs costs;
    uint64_t sizes[SIZES_MAX];
    double seconds[SIZES_MAX][PLANS_MAX];
    unsigned size_count;
};

static int fail(const struct tune *t, const char *what, int error)
{
    fprintf(stderr, "rt_tune: rank %d: %s: %s\n", t->fabric ? t->fabric->rank : -1, what,
            strerror(-error));
    return error;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

/* The slowest rank's. */
static int slowest(struct tune *t, double *seconds)
{
    return rt_allreduce_recursive_doubling(t->groups.all, seconds, seconds, 1, RT_FLOAT64, RT_MAX);
}

/* ---- plans ---- */

static int run_plan(struct tune *t, struct rt_plan plan, uint64_t bytes)
{
    t->executor.choice = rt_choice_of(plan);
    t->operation->tensor.count = bytes / sizeof(float);
    return rt_execute(&t->executor, &t->operation, 1);
}

static int repeats_for(uint64_t bytes)
{
    const uint64_t n = (1u << 20) / bytes;
    return n < 1 ? 1 : n > REPEATS ? REPEATS : (int)n;
}

static int one_round(struct tune *t, struct rt_plan plan, uint64_t bytes, double *ret)
{
    const int repeats = repeats_for(bytes);
    int error = run_plan(t, plan, bytes);
    if (!error)
        error = rt_barrier(t->groups.all);
    const double start = now();
    for (int i = 0; i < repeats && !error; i++)
        error = run_plan(t, plan, bytes);
    *ret = (now() - start) / repeats;
    return error ? error : slowest(t, ret);
}

static int measure_size(struct tune *t, uint64_t bytes, double *ret)
{
    double rounds[PLANS_MAX][ROUNDS_MAX];
    int error = 0;
    for (int r = 0; r < t->options.rounds && !error; r++)
        for (unsigned p = 0; p < t->plan_count && !error; p++)
            error = one_round(t, t->plans[p], bytes, &rounds[p][r]);
    for (unsigned p = 0; p < t->plan_count && !error; p++)
        ret[p] = median(rounds[p], t->options.rounds);
    return error;
}

/* ---- costs ---- */

/* Seconds of a message of `bytes` from `here` to `there` and back, halved; 0 on the others. */
static int ping(struct tune *t, int here, int there, uint64_t bytes, double *ret)
{
    struct rt_transport *all = t->groups.all;
    const int peer = all->rank == here ? there : here, repeats = repeats_for(bytes);
    struct rt_request request;
    int error = rt_barrier(all);
    const double start = now();
    for (int i = 0; i < 2 * repeats && !error; i++) {
        if (all->rank != here && all->rank != there)
            break;
        const bool sends = (i % 2 == 0) == (all->rank == here);
        error = sends ? all->ops->send(all, t->operation->in, bytes, peer, &request)
                      : all->ops->recv(all, t->operation->out, bytes, peer, &request);
        if (!error)
            error = all->ops->wait(all, &request, 1);
    }
    *ret = (now() - start) / repeats / 2;
    if (all->rank != here)
        *ret = 0;
    return error ? error : slowest(t, ret);
}

static int measure_link(struct tune *t, int here, int there, struct rt_cost *ret)
{
    enum { SHORT = 8, LONG = 4 << 20 };
    const uint64_t block = t->groups.all->block_bytes;
    const uint64_t most = block < LONG ? block : LONG;
    const uint64_t bytes = most < t->options.to ? most : t->options.to;
    double few = 0, many = 0;
    int error = ping(t, here, there, SHORT, &few);
    if (!error)
        error = ping(t, here, there, bytes, &many);
    ret->a = few;
    ret->b = bytes > SHORT && many > few ? (many - few) / (double)(bytes - SHORT) : 0;
    ret->block = (double)block;
    return error;
}

static double reduction_cost(struct tune *t)
{
    const uint64_t count = (t->options.to < 1u << 20 ? t->options.to : 1u << 20) / sizeof(float);
    double rounds[5];
    for (int i = 0; i < 5; i++) {
        const double start = now();
        rt_reduce(t->operation->out, t->operation->out, t->operation->in, count, RT_FLOAT32,
                  RT_SUM);
        rounds[i] = (now() - start) / (double)(count * sizeof(float));
    }
    return median(rounds, 5);
}

/* Between rank 0 and the next on its host, and the first on another; where there is no such one
 * both are the same. */
static int measure_costs(struct tune *t)
{
    const struct rt_layout *l = &t->groups.layout;
    const int near = rt_layout_local_size(l, 0) > 1 ? l->ranks[1] : -1;
    const int far = l->host_count > 1 ? l->ranks[l->first[1]] : -1;
    int error = measure_link(t, 0, near >= 0 ? near : far, &t->costs.inside);
    if (!error)
        error = measure_link(t, 0, far >= 0 ? far : near, &t->costs.across);
    double g = reduction_cost(t);
    if (!error)
        error = slowest(t, &g);
    t->costs.inside.g = t->costs.across.g = g;
    return error;
}

/* ---- what came out ---- */

static unsigned quickest(const struct tune *t, unsigned size)
{
    unsigned best = 0;
    for (unsigned p = 1; p < t->plan_count; p++)
        if (t->seconds[size][p] < t->seconds[size][best])
            best = p;
    return best;
}

static void print_table(const struct tune *t)
{
    char name[RT_PLAN_TEXT_MAX];
    printf("allreduce of float, %d ranks on %d hosts, microseconds: measured (the quickest: *), "
           "and by "
           "formula\n%32s",
           t->fabric->size, t->groups.layout.host_count, "bytes");
    for (unsigned i = 0; i < t->size_count; i++)
        printf(" %19llu", (unsigned long long)t->sizes[i]);
    for (unsigned p = 0; p < t->plan_count; p++) {
        rt_plan_text(t->plans[p], name);
        printf("\n%32s", name);
        for (unsigned i = 0; i < t->size_count; i++)
            printf(" %9.1f%c %8.1f", t->seconds[i][p] * 1e6, p == quickest(t, i) ? '*' : ' ',
                   rt_plan_cost(t->plans[p], &t->groups.layout, &t->costs, t->sizes[i]) * 1e6);
    }
    printf("\n");
}

/* A size stands for those up to the middle between it and the next. */
static struct rt_choice choice_of(const struct tune *t)
{
    struct rt_choice c = {0};
    for (unsigned i = 0; i < t->size_count; i++)
        if (rt_choice_add(&c, t->sizes[i] * 2, t->plans[quickest(t, i)]))
            break;
    c.steps[c.n - 1].up_to = UINT64_MAX;
    return c;
}

static int write_table(const struct tune *t)
{
    char message[1024], topology[RT_TOPOLOGY_TEXT_MAX];
    const struct rt_choice c = choice_of(t);
    rt_topology_text(t->fabric->word, &t->groups.layout, topology);
    int error = rt_choice_write(t->options.table, topology, &t->costs, &c, message, sizeof message);
    if (error)
        fprintf(stderr, "rt_tune: %s\n", message);
    else
        printf("%s: topology %s\n", t->options.table, topology);
    return error;
}

/* ---- the run ---- */

static int measure(struct tune *t)
{
    int error = measure_costs(t);
    if (error)
        return fail(t, "can't measure messages", error);
    while (rt_plan_at(&t->groups.layout, t->plan_count, &t->plans[t->plan_count]))
        t->plan_count++;
    for (uint64_t bytes = t->options.from; bytes <= t->options.to; bytes *= 4) {
        const unsigned i = t->size_count++;
        t->sizes[i] = bytes;
        error = measure_size(t, bytes, t->seconds[i]);
        if (error)
            return fail(t, "an allreduce failed", error);
    }
    return 0;
}

static int connect_ranks(struct tune *t)
{
    char message[1024] = "", (*hosts)[RT_HOST_MAX] = NULL;
    struct rt_config config;
    int error = rt_config_read(&config, message, sizeof message);
    if (!error)
        t->fabric = rt_fabric_new(&error, message, sizeof message);
    if (!t->fabric || error) {
        fprintf(stderr, "rt_tune: %s\n", message);
        return error;
    }
    int *all = calloc((size_t)t->fabric->size, sizeof *all);
    for (int r = 0; all && r < t->fabric->size; r++)
        all[r] = r;
    error = all ? rt_groups_hosts(t->fabric, &hosts) : -ENOMEM;
    if (!error)
        error = rt_groups_init(&t->groups, t->fabric, all, t->fabric->size,
                               (const char(*)[RT_HOST_MAX])hosts, 0, true, message, sizeof message);
    if (error)
        fprintf(stderr, "rt_tune: %s (%s)\n", message, strerror(-error));
    free(hosts);
    free(all);
    t->executor = (struct rt_executor){.groups = &t->groups, .hierarchical = true};
    return error;
}

static int allocate(struct tune *t)
{
    const uint64_t bytes = t->options.to + 64;
    struct rt_operation *o = rt_operation_new(RT_ALLREDUCE, "tune");
    if (!o)
        return -ENOMEM;
    o->tensor.type = RT_FLOAT32;
    o->in = calloc(1, bytes);
    o->out = calloc(1, bytes);
    t->operation = o;
    return o->in && o->out ? 0 : -ENOMEM;
}

static void release(struct tune *t)
{
    if (t->operation) {
        free((void *)t->operation->in);
        free(t->operation->out);
    }
    rt_operation_free(t->operation);
    rt_executor_release(&t->executor);
    rt_groups_release(&t->groups);
    t->fabric->ops->free(t->fabric);
}

/* ---- arguments ---- */

static int read_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return *text < '0' || *text > '9' || *end || errno || *ret < least || *ret > most ? -EINVAL : 0;
}

static void usage(FILE *to)
{
    fprintf(
        to,
        "usage: rt_tune [OPTION]...\n"
        "  --table FILE    is written (RT_TABLE's, else ~/.config/ringscope/allreduce.table)\n"
        "  --from BYTES    the first size measured, from 4 on; the next are 4 times as large (64)\n"
        "  --to BYTES      the largest (16777216)\n"
        "  --rounds N      of which medians are taken, 1 to %d (7)\n"
        "example: mpirun -np 4 rt_tune --table allreduce.table --to 1048576\n",
        ROUNDS_MAX);
}

/* Ends the program after --help. */
static int read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"table", 1, NULL, 't'}, {"from", 1, NULL, 'f'},
                                          {"to", 1, NULL, 'o'},    {"rounds", 1, NULL, 'r'},
                                          {"help", 0, NULL, 'h'},  {0}};
    bool must;
    uint64_t rounds = 7;
    int error = 0, c;
    *o = (struct options){.from = 64, .to = 16u << 20};
    rt_choice_path(o->table, sizeof o->table, &must);
    while (!error && (c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 't')
            snprintf(o->table, sizeof o->table, "%s", optarg);
        else if (c == 'f')
            error = read_number(optarg, sizeof(float), 1u << 30, &o->from);
        else if (c == 'o')
            error = read_number(optarg, sizeof(float), (uint64_t)1 << 34, &o->to);
        else if (c == 'r')
            error = read_number(optarg, 1, ROUNDS_MAX, &rounds);
        else if (c == 'h') {
            usage(stdout);
            exit(0);
        } else
            error = -EINVAL;
    }
    o->rounds = (int)rounds;
    if (!error && optind == argc && o->from <= o->to && *o->table)
        return 0;
    if (error && optarg)
        fprintf(stderr, "rt_tune: '%s': expected a whole number as below\n", optarg);
    else if (optind < argc)
        fprintf(stderr, "rt_tune: unexpected '%s'\n", argv[optind]);
    else if (o->from > o->to)
        fprintf(stderr, "rt_tune: --from is more than --to\n");
    else if (!*o->table)
        fprintf(stderr, "rt_tune: no file to write to: give --table FILE\n");
    usage(stderr);
    return -EINVAL;
}

int main(int argc, char **argv)
{
    static struct tune t;
    if (read_options(argc, argv, &t.options) || connect_ranks(&t))
        return 2;
    if (t.fabric->size < 2) {
        fprintf(stderr, "rt_tune: one rank has nothing to choose; start it by the launcher\n");
        release(&t);
        return 2;
    }
    int error = allocate(&t), status = 0;
    if (error)
        fail(&t, "buffers", error);
    else
        error = measure(&t);
    if (error)
        return 2; /* ranks are no longer in step: nothing can be ended together */
    if (t.fabric->rank == 0) {
        print_table(&t);
        status = write_table(&t) ? 1 : 0;
    }
    release(&t);
    return status;
}
