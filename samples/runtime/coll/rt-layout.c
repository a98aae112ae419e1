/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-layout.h"

#include <errno.h>
#include <stdlib.h>

#include "rt-coll.h"

static int first_of_name(const int *name, int rank)
{
    int r = 0;
    while (name[r] != name[rank])
        r++;
    return r;
}

static void number_hosts(struct rt_layout *l, const int *name)
{
    for (int r = 0; r < l->size; r++) {
        int first = first_of_name(name, r);
        l->host[r] = first == r ? l->host_count++ : l->host[first];
        l->local[r] = 0;
        for (int before = first; before < r; before++)
            l->local[r] += name[before] == name[r];
    }
}

static void sort_ranks(struct rt_layout *l)
{
    int n = 0;
    for (int h = 0; h < l->host_count; h++) {
        l->first[h] = n;
        for (int r = 0; r < l->size; r++)
            if (l->host[r] == h)
                l->ranks[n++] = r;
    }
    l->first[l->host_count] = n;
}

int rt_layout_init(struct rt_layout *ret, const int *name, int size)
{
    if (size < 1)
        return -EINVAL;
    int *block = calloc(4 * (size_t)size + 1, sizeof *block);
    if (!block)
        return -ENOMEM;
    *ret = (struct rt_layout){.size = size,
                              .host = block,
                              .local = block + size,
                              .ranks = block + 2 * size,
                              .first = block + 3 * size};
    number_hosts(ret, name);
    sort_ranks(ret);
    return 0;
}

void rt_layout_release(struct rt_layout *l)
{
    free(l->host);
    *l = (struct rt_layout){0};
}

int rt_layout_most(const struct rt_layout *l)
{
    int most = 0;
    for (int h = 0; h < l->host_count; h++)
        most = rt_layout_local_size(l, h) > most ? rt_layout_local_size(l, h) : most;
    return most;
}

int rt_layout_fewest(const struct rt_layout *l)
{
    int fewest = l->size;
    for (int h = 0; h < l->host_count; h++)
        fewest = rt_layout_local_size(l, h) < fewest ? rt_layout_local_size(l, h) : fewest;
    return fewest;
}

uint64_t rt_layout_cut(const struct rt_layout *l, enum rt_cut cut, uint64_t count, int host,
                       int local)
{
    const int n = rt_layout_local_size(l, host);
    if (cut == RT_CUT_FAIR)
        return rt_part_first(count, n, local);
    const uint64_t at = rt_part_count(count, n, 0) * (uint64_t)local;
    return at < count ? at : count;
}
