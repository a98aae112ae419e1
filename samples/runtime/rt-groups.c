/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG_ALL, TAG_ACROSS, TAG_LOCAL };
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

/* ---- who is in which ---- */

/* The ranks of a host, or those of a local rank, one a host: of the job, in `ret`. */
struct members {
    int *ranks;
    int n;
};

static bool is_inside(const struct rt_topology *mine, const struct rt_topology *other)
{
    return other->host == mine->host;
}

static bool is_across(const struct rt_topology *mine, const struct rt_topology *other)
{
    return other->local_rank == (mine->even ? mine->local_rank : 0);
}

struct set {
    const int *ranks;
    int n;
    const char (*hosts)[RT_HOST_MAX]; /* by place in the set */
};

static int choose(const struct set *s, const struct rt_topology *mine,
                  bool (*is_member)(const struct rt_topology *mine,
                                    const struct rt_topology *other),
                  struct members *ret)
{
    ret->n = 0;
    ret->ranks = malloc((size_t)s->n * sizeof *ret->ranks);
    if (!ret->ranks)
        return -ENOMEM;
    for (int place = 0; place < s->n; place++) {
        const struct rt_topology other = rt_topology_of(s->hosts, place, s->n);
        if (is_member(mine, &other))
            ret->ranks[ret->n++] = s->ranks[place];
    }
    return 0;
}

/* ---- the groups ---- */

static int make_group(struct rt_groups *g, const struct members *m, int tag,
                      struct rt_transport **ret)
{
    *ret = g->fabric->ops->group_new(g->fabric, m->ranks, m->n, tag);
    return *ret ? 0 : -errno;
}

static int make_across(struct rt_groups *g, const struct set *s, int tag)
{
    struct members m;
    if (!g->topology.even && g->topology.local_rank != 0)
        return 0;
    int error = choose(s, &g->topology, is_across, &m);
    if (!error)
        error = make_group(g, &m, tag, &g->across);
    free(m.ranks);
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
    g->inside = rt_inside_new(&told.id, local->rank, local->size);
    return g->inside ? 0 : -EIO;
}

static int make_inside(struct rt_groups *g, const struct set *s, int tag)
{
    struct rt_transport *local = NULL;
    struct members m;
    if (g->topology.local_size == 1)
        return 0;
    int error = choose(s, &g->topology, is_inside, &m);
    if (!error)
        error = make_group(g, &m, tag, &local);
    free(m.ranks);
    if (!error)
        error = join_inside(g, local);
    g->fabric->ops->group_free(local);
    return error;
}

static int make_all(struct rt_groups *g, const struct set *s, int tag, bool hierarchical,
                    char *message, size_t message_bytes)
{
    const struct members all = {(int *)(uintptr_t)s->ranks, s->n};
    int error = make_group(g, &all, tag + TAG_ALL, &g->all);
    if (!error)
        error = make_across(g, s, tag + TAG_ACROSS);
    if (error) {
        snprintf(message, message_bytes, "can't set up transports between ranks: %s",
                 strerror(-error));
        return error;
    }
    error = hierarchical ? make_inside(g, s, tag + TAG_LOCAL) : 0;
    if (error)
        snprintf(message, message_bytes, "can't set up NCCL inside the host: %s",
                 rt_inside_error());
    return error;
}

int rt_groups_init(struct rt_groups *g, struct rt_fabric *f, const int *ranks, int n,
                   const char (*hosts)[RT_HOST_MAX], int tag, bool hierarchical, char *message,
                   size_t message_bytes)
{
    memset(g, 0, sizeof *g);
    g->fabric = f;
    char(*of_set)[RT_HOST_MAX] = calloc((size_t)n, RT_HOST_MAX);
    if (!of_set)
        return -ENOMEM;
    int place = 0;
    for (int i = 0; i < n; i++) {
        memcpy(of_set[i], hosts[ranks[i]], RT_HOST_MAX);
        place = ranks[i] == f->rank ? i : place;
    }
    const struct set s = {ranks, n, (const char(*)[RT_HOST_MAX])of_set};
    g->topology = rt_topology_of(s.hosts, place, n);
    int error = make_all(g, &s, tag, hierarchical, message, message_bytes);
    free(of_set);
    if (error)
        rt_groups_release(g);
    return error;
}

void rt_groups_release(struct rt_groups *g)
{
    rt_inside_free(g->inside);
    if (g->fabric) {
        g->fabric->ops->group_free(g->across);
        g->fabric->ops->group_free(g->all);
    }
    memset(g, 0, sizeof *g);
}
