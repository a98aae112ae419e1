/* SPDX-License-Identifier: Apache-2.0 */
/* What has waited too long. */
#include "rt-coordinator-state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STALLED_SAID 10

double rt_coordinator_age_s(const struct rt_coordinator *c, const struct rt_waiting *w)
{
    return (double)(c->now_ns - w->since_ns) * 1e-9;
}

void rt_coordinator_set_time(struct rt_coordinator *c, uint64_t now_ns)
{
    c->now_ns = now_ns;
}

static int compare_ages(const void *a, const void *b)
{
    const struct rt_waiting *x = *(struct rt_waiting *const *)a;
    const struct rt_waiting *y = *(struct rt_waiting *const *)b;
    if (x->since_ns != y->since_ns)
        return x->since_ns < y->since_ns ? -1 : 1;
    return strcmp(x->tensor.name, y->tensor.name);
}

/* Those that wait for so long, the oldest first. The caller frees them; NULL: no memory. */
static struct rt_waiting **find_stalled(const struct rt_coordinator *c, uint64_t after_ns,
                                        unsigned *ret_n)
{
    struct rt_waiting **found = malloc((c->waiting.count + 1) * sizeof(*found));
    uint32_t at = 0;
    *ret_n = 0;
    for (struct rt_waiting *w; found && (w = rt_index_next(&c->waiting, &at));)
        if (c->now_ns - w->since_ns >= after_ns)
            found[(*ret_n)++] = w;
    if (*ret_n > 1)
        qsort(found, *ret_n, sizeof(*found), compare_ages);
    return found;
}

unsigned rt_coordinator_say_stalled(const struct rt_coordinator *c, uint64_t after_ns,
                                    struct rt_bytes *text)
{
    unsigned n;
    struct rt_waiting **found = find_stalled(c, after_ns, &n);
    for (unsigned i = 0; i < n && i < STALLED_SAID; i++) {
        char title[RT_TITLE_MAX];
        rt_say(text, "  %s: for %.1f s for ", rt_tensor_title(&found[i]->tensor, title),
               rt_coordinator_age_s(c, found[i]));
        rt_waiting_say_missing(found[i], text);
        rt_say(text, "\n");
    }
    if (n > STALLED_SAID)
        rt_say(text, "  and %u more\n", n - STALLED_SAID);
    free(found);
    return n;
}

int rt_coordinator_give_up(struct rt_coordinator *c, uint64_t after_ns)
{
    unsigned n;
    struct rt_waiting **found = find_stalled(c, after_ns, &n);
    int error = found ? 0 : -ENOMEM;
    for (unsigned i = 0; i < n && !error; i++) {
        found[i]->given_up = true;
        error = rt_coordinator_make_ready(c, found[i]);
    }
    free(found);
    return error;
}
