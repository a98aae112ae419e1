/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "rt-clock.h"
#include "rt-tune.h"

#define ROUND_SECONDS   1e-3
#define ROUND_BYTES     (2u << 20)
#define NOT_SHORT_BYTES (1u << 10)
#define REPEATS         200 /* of a short one in a round */
#define USUAL_SECONDS   1.0 /* of a size in all passes */
#define USUAL_ROUNDS    8
#define OTHERS_SECONDS  0.02 /* what a round may lose to others on the machine */
#define ROUNDS_TO_TELL  8    /* one of these it will not */

/* Seconds. */
static double since(uint64_t start_ns)
{
    return (double)(rt_now_ns() - start_ns) / 1e9;
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
static int slowest(struct rt_tune *t, double *seconds)
{
    return rt_allreduce_recursive_doubling(t->groups.all, seconds, seconds, 1, RT_FLOAT64, RT_MAX);
}

/* ---- plans ---- */

static int run_plan(struct rt_tune *t, struct rt_plan plan, uint64_t bytes)
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

/* In a round about a millisecond's: short against a time slice, so that many rounds are nobody
 * else's, and long against the clock. Of what is not short as many bytes as a link must carry at
 * its rate, though it may take some at once after a rest. The same on all ranks; by one plan for
 * all. */
static int find_repeats(struct rt_tune *t, uint64_t bytes)
{
    double taken = 0;
    int error = run_plan(t, t->plans[0], bytes);
    for (int i = 0; i < 5 && !error; i++) {
        const uint64_t start = rt_now_ns();
        error = run_plan(t, t->plans[0], bytes);
        const double one = since(start);
        taken = i == 0 || one < taken ? one : taken;
    }
    error = error ? error : slowest(t, &taken);
    double repeats = taken > 0 ? ROUND_SECONDS / taken : REPEATS;
    if (bytes >= NOT_SHORT_BYTES && repeats < ROUND_BYTES / (double)bytes)
        repeats = ROUND_BYTES / (double)bytes;
    t->repeats = repeats < 1 ? 1 : repeats > REPEATS ? REPEATS : (int)repeats;
    return error;
}

static int one_round(struct rt_tune *t, struct rt_plan plan, uint64_t bytes, bool first,
                     double *ret)
{
    const int repeats = t->repeats;
    int error = first || repeats > 1 ? run_plan(t, plan, bytes) : 0;
    if (!error)
        error = rt_barrier(t->groups.all);
    const uint64_t start = rt_now_ns();
    for (int i = 0; i < repeats && !error; i++)
        error = run_plan(t, plan, bytes);
    *ret = since(start) / repeats;
    return error ? error : slowest(t, ret);
}

/* Others on the machine only make a round longer: of many, the quarter that is quickest says more
 * than the half. */
static double quarter(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 4];
}

double rt_tune_quarter(const struct rt_tune *t, unsigned p, int first, int step)
{
    double values[RT_TUNE_ROUNDS];
    int n = 0;
    for (int r = first; r < t->round_count; r += step)
        values[n++] = t->rounds[p][r];
    return quarter(values, n);
}

static double quickest_round(const struct rt_tune *t, unsigned p, int rounds)
{
    double best = t->rounds[p][0];
    for (int r = 1; r < rounds; r++)
        best = t->rounds[p][r] < best ? t->rounds[p][r] : best;
    return best;
}

/* What was always twice as slow as the quickest is left out, once that can't be others' doing:
 * after some rounds, or two long ones. The same on all ranks. */
static void leave_out_hopeless(struct rt_tune *t, bool *is_out)
{
    const int rounds = t->round_count;
    const double others = rounds >= ROUNDS_TO_TELL ? 0 : OTHERS_SECONDS / t->repeats;
    double best = quickest_round(t, 0, rounds);
    for (unsigned p = 1; p < t->plan_count; p++) {
        const double one = quickest_round(t, p, rounds);
        best = one < best ? one : best;
    }
    for (unsigned p = 0; p < t->plan_count && rounds >= 2; p++)
        is_out[p] = is_out[p] || quickest_round(t, p, rounds) > 2 * best + others;
}

static int play_round(struct rt_tune *t, unsigned i, int r)
{
    int error = 0;
    for (unsigned p = 0; p < t->plan_count && !error; p++)
        if (t->is_out[i][p])
            t->rounds[p][r] = r == 0 ? t->seconds[i][p] : quickest_round(t, p, r);
        else
            error = one_round(t, t->plans[p], t->sizes[i], r == 0, &t->rounds[p][r]);
    return error;
}

int rt_tune_measure_size(struct rt_tune *t, unsigned i, double *ret)
{
    const uint64_t start = rt_now_ns();
    const int asked = t->options.rounds, least = asked > 0 ? asked : USUAL_ROUNDS / t->pass_count;
    double taken = 0;
    int error = find_repeats(t, t->sizes[i]);
    t->round_count = 0;
    while (!error && t->round_count < RT_TUNE_ROUNDS &&
           (t->round_count < least || (asked == 0 && taken < USUAL_SECONDS / t->pass_count))) {
        error = play_round(t, i, t->round_count++);
        leave_out_hopeless(t, t->is_out[i]);
        taken = since(start);
        error = error ? error : slowest(t, &taken);
    }
    for (unsigned p = 0; p < t->plan_count && !error; p++)
        ret[p] = rt_tune_quarter(t, p, 0, 1);
    return error;
}

/* What disturbs now may be gone in a later pass; and for the length of a pass ranks may stand to
 * each other by chance as they seldom do, which makes one plan quick. Of the passes, as of the
 * rounds, the quarter point says what a plan takes. */
int rt_tune_pass_size(struct rt_tune *t, unsigned i, int pass)
{
    double seconds[RT_TUNE_PLANS], passes[RT_TUNE_PASSES];
    int error = rt_tune_measure_size(t, i, seconds);
    for (unsigned p = 0; p < t->plan_count && !error; p++) {
        t->passes[i][p][pass] = seconds[p];
        memcpy(passes, t->passes[i][p], sizeof passes);
        t->seconds[i][p] = quarter(passes, pass + 1);
    }
    return error;
}

/* ---- costs ---- */

/* Seconds of a message of `bytes` from `here` to `there` and back, halved; 0 on the others. */
static int ping(struct rt_tune *t, int here, int there, uint64_t bytes, double *ret)
{
    struct rt_transport *all = t->groups.all;
    const int peer = all->rank == here ? there : here, repeats = repeats_for(bytes);
    struct rt_request request;
    int error = rt_barrier(all);
    const uint64_t start = rt_now_ns();
    for (int i = 0; i < 2 * repeats && !error; i++) {
        if (all->rank != here && all->rank != there)
            break;
        const bool sends = (i % 2 == 0) == (all->rank == here);
        error = sends ? all->ops->send(all, t->operation->in, bytes, peer, &request)
                      : all->ops->recv(all, t->operation->out, bytes, peer, &request);
        if (!error)
            error = all->ops->wait(all, &request, 1);
    }
    *ret = since(start) / repeats / 2;
    if (all->rank != here)
        *ret = 0;
    return error ? error : slowest(t, ret);
}

static int measure_link(struct rt_tune *t, int here, int there, struct rt_cost *ret)
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

static double reduction_cost(struct rt_tune *t)
{
    const uint64_t count = (t->options.to < 1u << 20 ? t->options.to : 1u << 20) / sizeof(float);
    double rounds[5];
    for (int i = 0; i < 5; i++) {
        const uint64_t start = rt_now_ns();
        rt_reduce(t->operation->out, t->operation->out, t->operation->in, count, RT_FLOAT32,
                  RT_SUM);
        rounds[i] = since(start) / (double)(count * sizeof(float));
    }
    return median(rounds, 5);
}

/* Between rank 0 and the next on its host, and the first on another; where there is no such one
 * both are the same. */
int rt_tune_measure_costs(struct rt_tune *t)
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
