/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt_tune [--table FILE] [--from BYTES] [--to BYTES] [--rounds N] [--check] - measures every way an
 * allreduce can go over the ranks it is started on, and writes which is quickest for each size into
 * the table that rt_init reads (rt-choice.h). To be started as the program is that the table is
 * for: as many ranks on as many hosts, with the same settings.
 *
 * Four times over all sizes: for each rounds of all plans take turns, N of them, else 2 or more for
 * a quarter of a second; a round's time is that of the slowest rank. The quarter point of a plan's
 * rounds is what a pass says, and the quarter points of the passes are compared (rt_choice_pick).
 * What is always twice as slow as the quickest is soon left out. The formulas of rt-cost.h, with
 * costs measured here, are printed beside.
 *
 * With --check the table stays as it is, and what it says for each size is compared with what is
 * quickest now: the plan with the least quarter point of the even rounds. The ratio is that of both
 * in the odd ones, where nobody has been chosen for having been lucky. There are two passes: a
 * ratio above CHECK_MOST is measured once more in the second: what is wrong stays so. Sizes for
 * which the table was not measured are marked: what it says there was measured at its first or last
 * size.
 *
 * Exit: 0, 1 what was measured could not be written, or a ratio is above CHECK_MOST, 2 wrong
 * arguments or no runtime.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command-line.h"
#include "rt-config.h"
#include "rt-post.h"
#include "rt-tune.h"

#define COLUMNS 6 /* sizes side by side */

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
    c.measured_from = t->sizes[0];
    c.measured_to = t->sizes[t->size_count - 1];
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

static int measure(struct rt_tune *t)
{
    int error = t->options.check ? rt_tune_read_table(t) : rt_tune_measure_costs(t);
    if (error)
        return fail(t, t->options.check ? "no table" : "can't measure messages", error);
    while (rt_plan_at(&t->groups.layout, t->plan_count, &t->plans[t->plan_count]))
        t->plan_count++;
    for (uint64_t bytes = t->options.from; bytes <= t->options.to; bytes *= 2)
        t->sizes[t->size_count++] = bytes;
    t->pass_count = t->options.check ? RT_TUNE_CHECKS : RT_TUNE_PASSES;
    for (int pass = 0; pass < t->pass_count; pass++)
        for (unsigned i = 0; i < t->size_count && !error; i++)
            error = (t->options.check ? rt_tune_check_size : rt_tune_pass_size)(t, i, pass);
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

#define AT(member) offsetof(struct rt_tune_options, member)
static const struct rt_option options[] = {
    {"table", "FILE", "is written; RT_TABLE names it, too", RT_OPTION_TEXT, AT(table), 0, 0, 0},
    {"from", "BYTES", "the first size, from 4 on; the next are twice as large", RT_OPTION_UINT64,
     AT(from), sizeof(float), 1u << 30, 0},
    {"to", "BYTES", "the largest", RT_OPTION_UINT64, AT(to), sizeof(float), (double)(1ull << 34),
     0},
    {"rounds", "N", "of a size in each pass; if not given, as many as take a second in all",
     RT_OPTION_INT, AT(rounds), 1, RT_TUNE_ROUNDS, 0},
    {"check", NULL, "compares what the table says with what is quickest now", RT_OPTION_FLAG,
     AT(check), 0, 0, 0},
    {0},
};

static void read_options(int argc, char **argv, struct rt_tune_options *o)
{
    static const struct rt_command_line line = {options, 0, "--table allreduce.table --to 1048576"};
    static char table[4096];
    bool must;
    rt_choice_path(table, sizeof table, &must);
    *o = (struct rt_tune_options){.table = table, .from = 64, .to = 16u << 20};
    rt_command_line_read(&line, o, argc, argv);
    if (o->check && o->rounds == 1)
        rt_command_line_refuse(argv, "--rounds 1: expected 2 or more with --check");
    if (o->from > o->to)
        rt_command_line_refuse(argv, "--from is more than --to");
    if (!*o->table)
        rt_command_line_refuse(argv, "no file for the table: give --table FILE, or RT_TABLE");
}

int main(int argc, char **argv)
{
    static struct rt_tune t;
    read_options(argc, argv, &t.options);
    if (connect_ranks(&t))
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
