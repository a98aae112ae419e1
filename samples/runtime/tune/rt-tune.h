/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-tune.h - what rt_tune knows, and the parts of it that measure and that check a table.
 *
 * Functions are called by all ranks together, and return 0 or a negative errno.
 */
#ifndef RT_TUNE_H
#define RT_TUNE_H

#include "rt-choice.h"
#include "rt-execute.h"

enum {
    RT_TUNE_PLANS = RT_CHOICE_PLANS_MAX,
    RT_TUNE_ROUNDS = 199,
    RT_TUNE_SIZES = 40,
    RT_TUNE_PASSES = 4,
    RT_TUNE_CHECKS = 2, /* passes of --check */
};

struct rt_tune_options {
    const char *table;
    uint64_t from, to;
    int rounds; /* of a size in each pass; 0: some, for a second in all passes together */
    bool check;
};

struct rt_tune {
    struct rt_tune_options options;
    struct rt_fabric *fabric;
    struct rt_groups groups;
    struct rt_executor executor;
    struct rt_operation *operation;
    struct rt_plan plans[RT_TUNE_PLANS];
    unsigned plan_count;
    struct rt_costs costs;
    uint64_t sizes[RT_TUNE_SIZES];
    double passes[RT_TUNE_SIZES][RT_TUNE_PLANS][RT_TUNE_PASSES]; /* quarter points of the rounds */
    double seconds[RT_TUNE_SIZES][RT_TUNE_PLANS];                /* quarter points of the passes */
    bool is_out[RT_TUNE_SIZES][RT_TUNE_PLANS];
    unsigned size_count;
    int pass_count;                               /* to be made */
    double rounds[RT_TUNE_PLANS][RT_TUNE_ROUNDS]; /* of the size that was measured last */
    int round_count, repeats;
    /* --check */
    struct rt_choice table;
    unsigned asked[RT_TUNE_SIZES], found[RT_TUNE_SIZES]; /* the table's plan, and the quickest */
    double ratio[RT_TUNE_SIZES];
};

/* At size number `i` rounds of all plans in turn: into `rounds`, and the quarter points of each
 * plan's into `ret`. A plan that is_out isn't run: it takes what `seconds` says. */
int rt_tune_measure_size(struct rt_tune *t, unsigned i, double *ret);
/* What that pass, after those before it, says of size number `i`: into `seconds`. */
int rt_tune_pass_size(struct rt_tune *t, unsigned i, int pass);
/* Of the rounds `first`, `first` + `step`, ... of that plan the quarter point. */
double rt_tune_quarter(const struct rt_tune *t, unsigned p, int first, int step);
/* Messages and reductions: into `costs`. */
int rt_tune_measure_costs(struct rt_tune *t);

/* Rank 0's table, for all. */
int rt_tune_read_table(struct rt_tune *t);
/* The table's plan against the quickest, at size number `i`. */
int rt_tune_check_size(struct rt_tune *t, unsigned i, int pass);
/* 1: the table is wrong somewhere. */
int rt_tune_print_check(const struct rt_tune *t);

#endif
