/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "rt-tune.h"

#define CHECK_MOST 1.1

int rt_tune_read_table(struct rt_tune *t)
{
    struct told {
        int32_t error, spare;
        struct rt_choice table;
    } told = {0};
    char message[1024] = "", topology[RT_TOPOLOGY_TEXT_MAX];
    bool found = false;
    rt_topology_text(t->fabric->word, &t->groups.layout, topology);
    if (t->fabric->rank == 0) {
        told.error = rt_choice_read(t->options.table, topology, &t->groups.layout, &told.table,
                                    &found, message, sizeof message);
        if (told.error)
            fprintf(stderr, "rt_tune: %s\n", message);
        else
            printf("%s: topology %s%s\n", t->options.table, topology,
                   found ? "" : " is not in it; compared is what a run takes then");
    }
    int error = rt_broadcast(t->groups.all, &told, sizeof told, RT_UINT8, 0);
    t->table = told.table;
    return error ? error : told.error;
}

/* Its place among those measured; one that isn't there comes last. */
static unsigned place_of(struct rt_tune *t, struct rt_plan plan)
{
    unsigned p = 0;
    while (p < t->plan_count &&
           (t->plans[p].kind != plan.kind || t->plans[p].algorithm != plan.algorithm))
        p++;
    if (p == RT_TUNE_PLANS)
        p = RT_TUNE_PLANS - 1;
    if (p >= t->plan_count) {
        t->plans[p] = plan;
        t->plan_count = p + 1;
    }
    return p;
}

int rt_tune_check_size(struct rt_tune *t, unsigned i, int pass)
{
    double seconds[RT_TUNE_PLANS] = {0}, least = 0;
    unsigned found = 0;
    if (pass > 0 && t->ratio[i] <= CHECK_MOST)
        return 0;
    const unsigned asked = place_of(t, rt_choice_at(&t->table, t->sizes[i]));
    memset(t->is_out[i], 0, sizeof t->is_out[i]); /* whatever a pass before it saw */
    int error = rt_tune_measure_size(t, i, seconds);
    if (error)
        return error;
    for (unsigned p = 0; p < t->plan_count; p++) {
        const double even = rt_tune_quarter(t, p, 0, 2);
        if (p == 0 || even < least) {
            found = p;
            least = even;
        }
    }
    const double ratio = rt_tune_quarter(t, asked, 1, 2) / rt_tune_quarter(t, found, 1, 2);
    if (pass > 0 && ratio >= t->ratio[i])
        return 0;
    memcpy(t->seconds[i], seconds, sizeof seconds);
    t->asked[i] = asked;
    t->found[i] = found;
    t->ratio[i] = ratio;
    return 0;
}

/* Where a size lies beside those for which the table was measured. */
static const char *beside(const struct rt_choice *table, uint64_t bytes)
{
    if (table->measured_to == 0)
        return "";
    return bytes < table->measured_from ? " below" : bytes > table->measured_to ? " beyond" : "";
}

static void explain_beside(const struct rt_tune *t)
{
    const struct rt_choice *table = &t->table;
    const uint64_t least = t->sizes[0], largest = t->sizes[t->size_count - 1];
    if (!*beside(table, least) && !*beside(table, largest))
        return;
    const uint64_t from = least < table->measured_from ? least : table->measured_from;
    const uint64_t to = largest > table->measured_to ? largest : table->measured_to;
    printf("below, beyond: the table was measured from %llu to %llu bytes; --from %llu --to %llu "
           "without --check measures these sizes, too\n",
           (unsigned long long)table->measured_from, (unsigned long long)table->measured_to,
           (unsigned long long)from, (unsigned long long)to);
}

int rt_tune_print_check(const struct rt_tune *t)
{
    char asked[RT_PLAN_TEXT_MAX], found[RT_PLAN_TEXT_MAX];
    unsigned worst = 0;
    printf("allreduce of float, %d ranks on %d hosts, microseconds\n%12s %32s %10s %32s "
           "%10s %6s\n",
           t->fabric->size, t->groups.layout.host_count, "bytes", "the table's", "", "the quickest",
           "", "ratio");
    for (unsigned i = 0; i < t->size_count; i++) {
        rt_plan_text(t->plans[t->asked[i]], asked);
        rt_plan_text(t->plans[t->found[i]], found);
        printf("%12llu %32s %10.1f %32s %10.1f %6.3f%s\n", (unsigned long long)t->sizes[i], asked,
               t->seconds[i][t->asked[i]] * 1e6, found, t->seconds[i][t->found[i]] * 1e6,
               t->ratio[i], beside(&t->table, t->sizes[i]));
        worst = t->ratio[i] > t->ratio[worst] ? i : worst;
    }
    explain_beside(t);
    printf("RATIO %.3f BAR <= %g %s: the table's choice over the quickest, at %llu bytes\n",
           t->ratio[worst], CHECK_MOST, t->ratio[worst] <= CHECK_MOST ? "met" : "MISSED",
           (unsigned long long)t->sizes[worst]);
    return t->ratio[worst] > CHECK_MOST;
}
