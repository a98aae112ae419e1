/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rt-two-hosts.h"

#define SHORT_BYTES                                                                                \
    ((uint64_t)16 << 10) /* up to here a whole buffer a step costs less than more steps */
#define LONGEST_LOG2 36
#define NO_END       UINT64_MAX

/* ---- plans ---- */

static int algorithm_of(const char *name, uint32_t *ret)
{
    const struct rt_algorithm *found = rt_algorithm_find(name);
    for (unsigned i = 0; found && rt_algorithm_at(i); i++)
        if (rt_algorithm_at(i) == found) {
            *ret = i;
            return 0;
        }
    return -EINVAL;
}

int rt_plan_parse(const char *text, struct rt_plan *ret)
{
    static const char by_hosts[] = "hierarchical";
    const size_t n = sizeof by_hosts - 1;
    if (strcmp(text, "two-level-ring") == 0) {
        *ret = (struct rt_plan){.kind = RT_PLAN_TWO_LEVEL_RING};
        return 0;
    }
    struct rt_plan plan = {.kind = RT_PLAN_FLAT};
    if (strcmp(text, by_hosts) == 0) {
        *ret = (struct rt_plan){.kind = RT_PLAN_HIERARCHICAL};
        return 0;
    }
    if (strncmp(text, by_hosts, n) == 0 && text[n] == ':') {
        plan.kind = RT_PLAN_HIERARCHICAL;
        text += n + 1;
    }
    int error = algorithm_of(text, &plan.algorithm);
    if (!error)
        *ret = plan;
    return error;
}

void rt_plan_text(struct rt_plan plan, char text[RT_PLAN_TEXT_MAX])
{
    const struct rt_algorithm *algorithm = rt_algorithm_at(plan.algorithm);
    if (plan.kind == RT_PLAN_TWO_LEVEL_RING)
        snprintf(text, RT_PLAN_TEXT_MAX, "two-level-ring");
    else
        snprintf(text, RT_PLAN_TEXT_MAX, "%s%s",
                 plan.kind == RT_PLAN_HIERARCHICAL ? "hierarchical:" : "", algorithm->name);
}

bool rt_plan_at(const struct rt_layout *layout, unsigned i, struct rt_plan *ret)
{
    unsigned named = 0;
    while (rt_algorithm_at(named))
        named++;
    named--; /* not "auto" */
    const bool several = layout->size > layout->host_count, hosts = layout->host_count > 1;
    /* on one host by NCCL, on two piece by piece: neither is one of the named */
    const bool automatic = layout->host_count == 2 || (several && !hosts);
    if (i < named) {
        *ret = (struct rt_plan){RT_PLAN_FLAT, i + 1};
        return true;
    }
    i -= named;
    if (automatic && i == 0) {
        *ret = (struct rt_plan){RT_PLAN_HIERARCHICAL, 0};
        return true;
    }
    i -= automatic;
    if (!several || !hosts || i > named)
        return false;
    *ret = i < named ? (struct rt_plan){RT_PLAN_HIERARCHICAL, i + 1}
                     : (struct rt_plan){RT_PLAN_TWO_LEVEL_RING, 0};
    return true;
}

/* ---- choices ---- */

struct rt_plan rt_choice_at(const struct rt_choice *c, uint64_t bytes)
{
    uint32_t i = 0;
    while (i + 1 < c->n && bytes > c->steps[i].up_to)
        i++;
    return c->steps[i].plan;
}

struct rt_choice rt_choice_of(struct rt_plan plan)
{
    return (struct rt_choice){.n = 1, .steps = {{plan, NO_END}}};
}

struct rt_choice rt_choice_default(const struct rt_layout *layout)
{
    const bool several = layout->size > layout->host_count || layout->host_count == 2;
    return rt_choice_of((struct rt_plan){several ? RT_PLAN_HIERARCHICAL : RT_PLAN_FLAT, 0});
}

struct rt_choice rt_choice_same_bits(void)
{
    struct rt_choice c = {.n = 2, .steps = {{.up_to = SHORT_BYTES}, {.up_to = NO_END}}};
    rt_plan_parse("recursive-doubling", &c.steps[0].plan);
    rt_plan_parse("halving-doubling", &c.steps[1].plan);
    return c;
}

int rt_choice_add(struct rt_choice *c, uint64_t up_to, struct rt_plan plan)
{
    struct rt_choice_step *last = c->n > 0 ? &c->steps[c->n - 1] : NULL;
    if (last && last->plan.kind == plan.kind && last->plan.algorithm == plan.algorithm) {
        last->up_to = up_to;
        return 0;
    }
    if (c->n == RT_CHOICE_STEPS_MAX)
        return -E2BIG;
    c->steps[c->n++] = (struct rt_choice_step){plan, up_to};
    return 0;
}

static unsigned least(const double *values, unsigned n)
{
    unsigned best = 0;
    for (unsigned i = 1; i < n; i++)
        if (values[i] < values[best])
            best = i;
    return best;
}

void rt_choice_pick(const double *seconds, unsigned sizes, unsigned plans, unsigned *ret)
{
    double sum[RT_CHOICE_PLANS_MAX] = {0}; /* that ends with this plan at this size */
    uint8_t before[RT_CHOICE_STEPS_MAX][RT_CHOICE_PLANS_MAX] = {{0}};
    for (unsigned i = 0; i < sizes; i++) {
        const double *at = seconds + i * plans, quickest = at[least(at, plans)];
        const unsigned best = least(sum, plans);
        const double changed = sum[best] + (i > 0 ? RT_CHOICE_CHANGE : 0);
        for (unsigned p = 0; p < plans; p++) {
            before[i][p] = (uint8_t)(sum[p] <= changed ? p : best);
            sum[p] = (sum[p] <= changed ? sum[p] : changed) + at[p] / quickest - 1;
        }
    }
    unsigned plan = least(sum, plans);
    for (unsigned i = sizes; i-- > 0; plan = before[i][plan])
        ret[i] = plan;
}

double rt_plan_cost(struct rt_plan plan, const struct rt_layout *layout, const struct rt_costs *c,
                    uint64_t bytes)
{
    const int most = rt_layout_most(layout), hosts = layout->host_count;
    rt_cost_fn *fn = rt_algorithm_at(plan.algorithm)->cost;
    if (plan.kind == RT_PLAN_HIERARCHICAL && !fn && hosts == 2 &&
        most == rt_layout_fewest(layout) && bytes > 2 * (uint64_t)most * RT_TWO_HOSTS_SHORT_BYTES)
        return rt_cost_two_hosts(&c->inside, &c->across, most, (double)bytes);
    if (plan.kind != RT_PLAN_FLAT)
        return rt_cost_hierarchical(&c->inside, &c->across, fn ? fn : rt_cost_ring, hosts, most,
                                    (double)bytes);
    struct rt_cost flat = hosts > 1 ? c->across : c->inside;
    /* but for a ring, all ranks of a host may want its link at once */
    if (hosts > 1 && fn != rt_cost_ring)
        flat.b *= most;
    return (fn ? fn : rt_cost_ring)(&flat, layout->size, (double)bytes);
}

static struct rt_plan cheapest(const struct rt_layout *layout, const struct rt_costs *c,
                               uint64_t bytes)
{
    struct rt_plan plan, best = {0};
    double least = -1;
    for (unsigned i = 0; rt_plan_at(layout, i, &plan); i++) {
        double cost = rt_plan_cost(plan, layout, c, bytes);
        if (least < 0 || cost < least) {
            least = cost;
            best = plan;
        }
    }
    return best;
}

struct rt_choice rt_choice_predict(const struct rt_layout *layout, const struct rt_costs *c)
{
    struct rt_choice choice = {0};
    for (int k = 3; k <= LONGEST_LOG2; k++)
        if (rt_choice_add(&choice, (uint64_t)1 << k, cheapest(layout, c, (uint64_t)1 << k)))
            break;
    choice.steps[choice.n - 1].up_to = NO_END;
    return choice;
}

void rt_topology_text(const char *word, const struct rt_layout *layout,
                      char text[RT_TOPOLOGY_TEXT_MAX])
{
    size_t n = (size_t)snprintf(text, RT_TOPOLOGY_TEXT_MAX, "%s ", word);
    for (int h = 0; h < layout->host_count; h++) {
        if (n > RT_TOPOLOGY_TEXT_MAX - 32) {
            snprintf(text + n, RT_TOPOLOGY_TEXT_MAX - n, ",...%d", layout->host_count);
            return;
        }
        n += (size_t)snprintf(text + n, RT_TOPOLOGY_TEXT_MAX - n, "%s%d", h > 0 ? "," : "",
                              rt_layout_local_size(layout, h));
    }
}
