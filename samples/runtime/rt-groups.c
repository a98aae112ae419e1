/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG_ALL, TAG_LOCAL };
_Static_assert(TAG_LOCAL < RT_GROUPS_TAGS, "tags of one rt_groups");

static void host_name(char name[RT_HOST_MAX])
{
    const char *given = getenv("RT_HOST");
    memset(name, 0, RT_HOST_MAX);
    if (given && *given)
        snprintf(name, RT_HOST_MAX, "%s", given);
    else
        gethostname(name, RT_HOST_MAX - 1);
}

int rt_groups_hosts(struct rt_fabric *f, char (**ret)[RT_HOST_MAX])
{
    char mine[RT_HOST_MAX], (*hosts)[RT_HOST_MAX] = calloc((size_t)f->size, RT_HOST_MAX);
    if (!hosts)
        return -ENOMEM;
    host_name(mine);
    int error = f->ops->allgather(f, mine, hosts, RT_HOST_MAX);
    if (error)
        free(hosts);
    else
        *ret = hosts;
    return error;
}

/* ---- the groups ---- */

struct set {
    const int *ranks; /* of the job */
    int n;
    const char (*hosts)[RT_HOST_MAX]; /* by place in the set */
};

static int find_layout(struct rt_groups *g, const struct set *s)
{
    int *numbers = calloc((size_t)s->n, sizeof *numbers);
    if (!numbers)
        return -ENOMEM;
    rt_topology_number_hosts(s->hosts, s->n, numbers);
    int error = rt_layout_init(&g->layout, numbers, s->n);
    free(numbers);
    return error;
}

static int make_group(struct rt_groups *g, const int *ranks, int n, int tag,
                      struct rt_transport **ret)
{
    *ret = g->fabric->ops->group_new(g->fabric, ranks, n, tag);
    return *ret ? 0 : -errno;
}

/* The ranks of this host. */
static int make_local(struct rt_groups *g, const struct set *s, int tag, struct rt_transport **ret)
{
    const struct rt_layout *l = &g->layout;
    const int n = g->topology.local_size;
    int *ranks = calloc((size_t)n, sizeof *ranks);
    if (!ranks)
        return -ENOMEM;
    for (int i = 0; i < n; i++)
        ranks[i] = s->ranks[l->ranks[l->first[g->topology.host] + i]];
    int error = make_group(g, ranks, n, tag, ret);
    free(ranks);
    return error;
}

/* The id, or that there is none, from local rank 0: all ranks of the host agree. */
static int join_inside(struct rt_groups *g, struct rt_transport *local)
{
    struct {
        int error;
        struct rt_inside_id id;
    } told = {0};
    if (local->rank == 0)
        told.error = rt_inside_make_id(&told.id);
    int error = rt_broadcast(local, &told, sizeof told, RT_UINT8, 0);
    if (error || told.error)
        return error ? error : told.error;
    g->inside = rt_inside_new(&told.id, local->rank, local->size, g->device);
    return g->inside ? 0 : -EIO;
}

static int make_inside(struct rt_groups *g, const struct set *s, int tag)
{
    struct rt_transport *local = NULL;
    if (g->topology.local_size == 1)
        return 0;
    int error = make_local(g, s, tag, &local);
    if (!error)
        error = join_inside(g, local);
    g->fabric->ops->group_free(local);
    return error;
}

static int make_all(struct rt_groups *g, const struct set *s, int tag, bool hierarchical,
                    char *message, size_t message_bytes)
{
    int error = find_layout(g, s);
    if (!error)
        error = make_group(g, s->ranks, s->n, tag + TAG_ALL, &g->all);
    if (error) {
        snprintf(message, message_bytes, "can't set up transports between ranks: %s",
                 strerror(-error));
        return error;
    }
    error = hierarchical ? make_inside(g, s, tag + TAG_LOCAL) : 0;
    if (error)
        snprintf(message, message_bytes, "can't set up NCCL inside the host: %s",
                 error == -EIO && *rt_inside_error() ? rt_inside_error() : strerror(-error));
    return error;
}

int rt_groups_init(struct rt_groups *g, struct rt_fabric *f, const int *ranks, int n,
                   const char (*hosts)[RT_HOST_MAX], int tag, bool hierarchical, char *message,
                   size_t message_bytes)
{
    memset(g, 0, sizeof *g);
    g->fabric = f;
    char(*of_set)[RT_HOST_MAX] = calloc((size_t)n, RT_HOST_MAX);
    g->ranks = malloc((size_t)n * sizeof *g->ranks);
    if (!of_set || !g->ranks) {
        free(of_set);
        rt_groups_release(g);
        return -ENOMEM;
    }
    memcpy(g->ranks, ranks, (size_t)n * sizeof *g->ranks);
    for (int i = 0; i < n; i++)
        memcpy(of_set[i], hosts[ranks[i]], RT_HOST_MAX);
    const struct set s = {ranks, n, (const char(*)[RT_HOST_MAX])of_set};
    g->topology = rt_topology_of(s.hosts, rt_groups_place(g, f->rank), n);
    for (int r = 0; r < f->rank; r++)
        g->device += strncmp(hosts[r], hosts[f->rank], RT_HOST_MAX) == 0;
    int error = make_all(g, &s, tag, hierarchical, message, message_bytes);
    free(of_set);
    if (error)
        rt_groups_release(g);
    return error;
}

int rt_groups_place(const struct rt_groups *g, int rank)
{
    int place = 0;
    while (g->ranks[place] != rank)
        place++;
    return place;
}

void rt_groups_release(struct rt_groups *g)
{
    rt_inside_free(g->inside);
    rt_layout_release(&g->layout);
    free(g->ranks);
    if (g->fabric) {
        g->fabric->ops->group_free(g->all);
    }
    memset(g, 0, sizeof *g);
}
