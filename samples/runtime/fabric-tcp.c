/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fabric of a job without MPI: TCP between hosts, shared memory between ranks of one host where
 * a group has no others. Ranks find each other by the rendezvous.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rt-fabric.h"
#include "rt-links.h"
#include "rt-post.h"
#include "rt-rendezvous.h"
#include "rt-shm-group.h"
#include "rt-transport-tcp.h"

#define TAG_GATHER (-1)
#define ANSWER_NS  2000000000u

struct tcp_fabric {
    struct rt_fabric base;
    struct rt_job job;
    struct rt_links links;
    struct rt_post *post;
    struct rt_transport *all; /* for allgather */
};

static struct tcp_fabric *of(struct rt_fabric *f)
{
    return (struct tcp_fabric *)f;
}

static int allgather(struct rt_fabric *f, const void *mine, void *ret, size_t bytes)
{
    return rt_allgather_ring(of(f)->all, mine, ret, bytes * (size_t)f->size, RT_UINT8);
}

/* ---- groups ---- */

/* Every rank decides alike. A logical host is one, too: between them it goes by TCP. */
static bool shares_memory(const struct tcp_fabric *t, const int *ranks, int n)
{
    const struct rt_card *first = &t->job.cards[ranks[0]];
    for (int i = 0; i < n; i++) {
        const struct rt_card *c = &t->job.cards[ranks[i]];
        if (!*c->memory || strncmp(c->memory, first->memory, sizeof c->memory) != 0 ||
            strncmp(c->host, first->host, sizeof c->host) != 0 ||
            strncmp(c->machine, first->machine, sizeof c->machine) != 0)
            return false;
    }
    return n > 1;
}

static int place_of(const int *ranks, int n, int rank)
{
    for (int i = 0; i < n; i++)
        if (ranks[i] == rank)
            return i;
    return -1;
}

static struct rt_transport *group_new(struct rt_fabric *f, const int *ranks, int n, int tag)
{
    struct tcp_fabric *t = of(f);
    const int place = place_of(ranks, n, f->rank);
    if (place < 0 || tag <= RT_POST_TAG) {
        errno = EINVAL;
        return NULL;
    }
    struct rt_transport *by = rt_transport_tcp_new(&t->links.base, tag, ranks, n, place);
    if (!by || !shares_memory(t, ranks, n))
        return by;
    struct rt_transport *group = rt_shm_group_new(by);
    if (!group && errno == EOPNOTSUPP)
        return by;
    const int error = errno;
    rt_transport_tcp_free(by);
    errno = error;
    return group;
}

static void group_free(struct rt_transport *t)
{
    if (t && rt_transport_is_tcp(t))
        rt_transport_tcp_free(t);
    else
        rt_shm_group_free(t);
}

/* ---- messages ---- */

static int send_message(struct rt_fabric *f, int to, const struct rt_bytes *message)
{
    return rt_post_send(of(f)->post, to, message);
}

static int flush_messages(struct rt_fabric *f)
{
    return rt_post_flush(of(f)->post);
}

static bool is_sending(const struct rt_fabric *f)
{
    return rt_post_keeps(((const struct tcp_fabric *)f)->post);
}

static int receive_message(struct rt_fabric *f, int *ret_from, struct rt_bytes *ret)
{
    return rt_post_receive(of(f)->post, ret_from, ret);
}

/* ---- who is there ---- */

static void started(struct rt_fabric *f)
{
    of(f)->links.base.deadline_ns = 0;
}

/* What doesn't answer keeps nobody for long: of its machine nobody else is asked. */
static bool is_gone(struct tcp_fabric *t, int rank, const char **silent_machine)
{
    const struct rt_card *c = &t->job.cards[rank];
    if (*silent_machine && strncmp(*silent_machine, c->machine, sizeof c->machine) == 0)
        return true;
    int fd = rt_net_connect(&t->links.places[rank], NULL, rt_now_ns() + ANSWER_NS);
    if (fd >= 0)
        close(fd);
    if (fd == -ETIMEDOUT || fd == -EHOSTUNREACH || fd == -ENETUNREACH)
        *silent_machine = c->machine;
    return fd == -ECONNREFUSED || *silent_machine == c->machine;
}

static int find_gone(struct rt_fabric *f, char *ret, size_t bytes)
{
    struct tcp_fabric *t = of(f);
    const char *silent_machine = NULL;
    int found = 0;
    size_t n = 0;
    for (int r = 0; r < f->size && n < bytes; r++) {
        if (r == f->rank || !is_gone(t, r, &silent_machine))
            continue;
        const struct rt_card *c = &t->job.cards[r];
        n += (size_t)snprintf(ret + n, bytes - n, "%srank %d (%.100s, process %d) is gone",
                              found++ ? ", " : "", r, c->host, (int)c->pid);
    }
    const int late = t->links.base.late;
    if (found && n < bytes)
        snprintf(ret + n, bytes - n, ": killed, or ended");
    else if (late >= 0)
        snprintf(ret, bytes, "rank %d (%.100s, process %d) has met the others, then said no more",
                 late, t->job.cards[late].host, (int)t->job.cards[late].pid);
    return found > 0 || late >= 0;
}

/* ---- from begin to end ---- */

static void free_fabric(struct rt_fabric *f)
{
    struct tcp_fabric *t = of(f);
    rt_transport_tcp_free(t->all);
    rt_post_free(t->post);
    rt_links_release(&t->links);
    free(t->job.cards);
    free(t);
}

static const struct rt_fabric_ops ops = {
    .allgather = allgather,
    .group_new = group_new,
    .group_free = group_free,
    .send = send_message,
    .flush = flush_messages,
    .is_sending = is_sending,
    .receive = receive_message,
    .started = started,
    .find_gone = find_gone,
    .free = free_fabric,
};

static int make_transports(struct tcp_fabric *t)
{
    int *ranks = malloc((size_t)t->job.size * sizeof *ranks);
    for (int r = 0; r < t->job.size && ranks; r++)
        ranks[r] = r;
    if (ranks)
        t->all = rt_transport_tcp_new(&t->links.base, TAG_GATHER, ranks, t->job.size, t->job.rank);
    free(ranks);
    t->post = t->all ? rt_post_new(&t->links) : NULL;
    return t->post ? 0 : -ENOMEM;
}

struct rt_fabric *rt_fabric_tcp_open(int *ret_error, char *message, size_t message_bytes)
{
    struct tcp_fabric *t = calloc(1, sizeof *t);
    *ret_error = -ENOMEM;
    if (!t)
        return NULL;
    *ret_error = rt_rendezvous(&t->job, &t->links, message, message_bytes);
    if (*ret_error) {
        free(t);
        return NULL;
    }
    t->base =
        (struct rt_fabric){.ops = &ops, .word = "TCP", .rank = t->job.rank, .size = t->job.size};
    if (t->job.rank > 0)
        t->base.root = &t->links.places[0];
    *ret_error = make_transports(t);
    if (!*ret_error)
        return &t->base;
    snprintf(message, message_bytes, "no memory");
    free_fabric(&t->base);
    return NULL;
}
