/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt_tune [--table FILE] [--from BYTES] [--to BYTES] [--rounds N] [--check] - measures every way an
 * allreduce can go over the ranks it is started on, and writes which is quickest for each size into
 * the table that rt_init reads (rt-choice.h). To be started as the program is that the table is
 * for: as many ranks on as many hosts, with the same settings.
 *
 * Twice over all sizes: for each rounds of all plans take turns, N of them, else 4 or more for half
 * a second; a round's time is that of the slowest rank, and the quarter points of a plan's rounds
 * are compared (rt_choice_pick), the quicker of both. What is always twice as slow as the quickest
 * is soon left out. The formulas of rt-cost.h, with costs measured here, are printed beside.
 *
 * With --check the table stays as it is, and what it says for each size is compared with what is
 * quickest now: the plan with the least quarter point of the even rounds. The ratio is that of both
 * in the odd ones, where nobody has been chosen for having been lucky. A ratio above CHECK_MOST is
 * measured once more, in the second pass: what is wrong stays so.
 *
 * Exit: 0, 1 what was measured could not be written, or a ratio is above CHECK_MOST, 2 wrong
 * arguments or no runtime.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-launcher.h"

#include "rt-config.h"
#include "rt-post.h"
#include "rt-tune.h"

#define COLUMNS 6 /* sizes side by side */
#define PASSES  2

static int fail(const struct rt_tune *t, const char *what, int error)
{
    fprintf(stderr, "rt_tune: rank %d: %s: %s\n", t->fabric ? t->fabric->rank : -1, what,
            strerror(-error));
    return error;
}

/* ---- what came out ---- */

static void print_sizes(const struct rt_tune *t, const unsigned *picks, unsigned first,
                        unsigned end)
{
    char name[RT_PLAN_TEXT_MAX];
    printf("%32s", "bytes");
    for (unsigned i = first; i < end; i++)
        printf(" %19llu", (unsigned long long)t->sizes[i]);
    for (unsigned p = 0; p < t->plan_count; p++) {
        rt_plan_text(t->plans[p], name);
        printf("\n%32s", name);
        for (unsigned i = first; i < end; i++)
            printf(" %9.1f%c %8.1f", t->seconds[i][p] * 1e6, p == picks[i] ? '*' : ' ',
                   rt_plan_cost(t->plans[p], &t->groups.layout, &t->costs, t->sizes[i]) * 1e6);
    }
    printf("\n");
}

static void print_table(const struct rt_tune *t, const unsigned *picks)
{
    printf("allreduce of float, %d ranks on %d hosts, microseconds: measured (*: for the table), "
           "and by formula\n",
           t->fabric->size, t->groups.layout.host_count);
    for (unsigned i = 0; i < t->size_count; i += COLUMNS)
        print_sizes(t, picks, i, i + COLUMNS < t->size_count ? i + COLUMNS : t->size_count);
}

/* A size stands for those up to the middle between it and the next. */
static struct rt_choice choice_of(const struct rt_tune *t, const unsigned *picks)
{
    struct rt_choice c = {0};
    for (unsigned i = 0; i < t->size_count; i++)
        if (rt_choice_add(&c, t->sizes[i] / 2 * 3, t->plans[picks[i]]))
            break;
    c.steps[c.n - 1].up_to = UINT64_MAX;
    return c;
}

static int write_table(const struct rt_tune *t)
{
    char message[1024], topology[RT_TOPOLOGY_TEXT_MAX];
    double seconds[RT_TUNE_SIZES * RT_TUNE_PLANS];
    unsigned picks[RT_TUNE_SIZES];
    for (unsigned i = 0; i < t->size_count; i++)
        memcpy(seconds + i * t->plan_count, t->seconds[i], t->plan_count * sizeof *seconds);
    rt_choice_pick(seconds, t->size_count, t->plan_count, picks);
    print_table(t, picks);
    const struct rt_choice c = choice_of(t, picks);
    rt_topology_text(t->fabric->word, &t->groups.layout, topology);
    int error = rt_choice_write(t->options.table, topology, &t->costs, &c, message, sizeof message);
    if (error)
        fprintf(stderr, "rt_tune: %s\n", message);
    else
        printf("%s: topology %s\n", t->options.table, topology);
    return error;
}

/* ---- the run ---- */

/* What disturbs now may be gone by the second pass: of both what was quicker. */
static int measure_size(struct rt_tune *t, unsigned i, int pass)
{
    double seconds[RT_TUNE_PLANS];
    int error = rt_tune_measure_size(t, t->sizes[i], seconds);
    for (unsigned p = 0; p < t->plan_count && !error; p++)
        if (pass == 0 || seconds[p] < t->seconds[i][p])
            t->seconds[i][p] = seconds[p];
    return error;
}

static int measure(struct rt_tune *t)
{
    int error = t->options.check ? rt_tune_read_table(t) : rt_tune_measure_costs(t);
    if (error)
        return fail(t, t->options.check ? "no table" : "can't measure messages", error);
    while (rt_plan_at(&t->groups.layout, t->plan_count, &t->plans[t->plan_count]))
        t->plan_count++;
    for (uint64_t bytes = t->options.from; bytes <= t->options.to; bytes *= 2)
        t->sizes[t->size_count++] = bytes;
    for (int pass = 0; pass < PASSES; pass++)
        for (unsigned i = 0; i < t->size_count && !error; i++)
            error = t->options.check ? rt_tune_check_size(t, i, pass) : measure_size(t, i, pass);
    if (error)
        return fail(t, "an allreduce failed", error);
    return 0;
}

static int connect_ranks(struct rt_tune *t)
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
                               (const char(*)[RT_HOST_MAX])hosts, RT_POST_TAG + 1, true, message,
                               sizeof message);
    if (error)
        fprintf(stderr, "rt_tune: %s (%s)\n", message, strerror(-error));
    if (t->fabric->ops->started)
        t->fabric->ops->started(t->fabric);
    free(hosts);
    free(all);
    t->executor = (struct rt_executor){.groups = &t->groups, .hierarchical = true};
    return error;
}

static int allocate(struct rt_tune *t)
{
    const uint64_t bytes = t->options.to + 64;
    struct rt_operation *o = rt_operation_new(RT_ALLREDUCE, "tune");
    if (!o)
        return -ENOMEM;
    o->tensor.type = RT_FLOAT32;
    o->in = malloc(bytes);
    o->out = malloc(bytes);
    t->operation = o;
    if (!o->in || !o->out)
        return -ENOMEM;
    /* of pages that nobody wrote there is but one */
    memset((void *)o->in, 0, bytes);
    memset(o->out, 0, bytes);
    return 0;
}

static void release(struct rt_tune *t)
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

static void usage(FILE *to, const char *program)
{
    fprintf(
        to,
        "usage: %s [OPTION]...\n"
        "  --table FILE    is written (RT_TABLE's, else ~/.config/ringscope/allreduce.table)\n"
        "  --from BYTES    the first size measured, from 4 on; the next are twice as large (64)\n"
        "  --to BYTES      the largest (16777216)\n"
        "  --rounds N      of a size, twice, 1 to %d, with --check from 2 on (4, or more for "
        "half\n                  a second)\n"
        "  --check         compares what the table says with what is quickest now\n"
        "example: %s %s --table allreduce.table --to 1048576\n",
        program, RT_TUNE_ROUNDS, rt_launcher(program), program);
}

/* Ends the program after --help. */
static int read_options(int argc, char **argv, struct rt_tune_options *o)
{
    static const struct option names[] = {{"table", 1, NULL, 't'},
                                          {"from", 1, NULL, 'f'},
                                          {"to", 1, NULL, 'o'},
                                          {"rounds", 1, NULL, 'r'},
                                          {"check", 0, NULL, 'c'},
                                          {"help", 0, NULL, 'h'},
                                          {0}};
    bool must;
    uint64_t rounds = 0;
    int error = 0, c;
    *o = (struct rt_tune_options){.from = 64, .to = 16u << 20};
    rt_choice_path(o->table, sizeof o->table, &must);
    while (!error && (c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 't')
            snprintf(o->table, sizeof o->table, "%s", optarg);
        else if (c == 'f')
            error = read_number(optarg, sizeof(float), 1u << 30, &o->from);
        else if (c == 'o')
            error = read_number(optarg, sizeof(float), (uint64_t)1 << 34, &o->to);
        else if (c == 'r')
            error = read_number(optarg, 1, RT_TUNE_ROUNDS, &rounds);
        else if (c == 'c')
            o->check = true;
        else if (c == 'h') {
            usage(stdout, argv[0]);
            exit(0);
        } else
            error = -EINVAL;
    }
    o->rounds = (int)rounds;
    if (o->check && rounds == 1)
        error = -EINVAL;
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
    usage(stderr, argv[0]);
    return -EINVAL;
}

int main(int argc, char **argv)
{
    static struct rt_tune t;
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
    if (t.fabric->rank == 0)
        status = (t.options.check ? rt_tune_print_check(&t) : write_table(&t)) ? 1 : 0;
    release(&t);
    return status;
}
