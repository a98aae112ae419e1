/* SPDX-License-Identifier: Apache-2.0 */
#include "tcp-ranks.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define TAG 5

static union rt_net_place loopback(bool v6)
{
    union rt_net_place at = {0};
    if (v6)
        at.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    else
        at.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return at;
}

/* What ranks share. */
struct square {
    union rt_net_place places[TCP_RANKS_MAX];
    int32_t come;  /* atomic */
    int32_t error; /* atomic: of any rank */
};

struct links_run {
    struct square *square;
    bool v6;
    links_fn *fn;
    void *argument;
};

static int listen_anywhere(struct rt_links *links, bool v6, union rt_net_place *ret)
{
    *ret = loopback(v6);
    int fd = rt_net_listen(ret);
    if (fd < 0 && v6) {
        *ret = loopback(false);
        fd = rt_net_listen(ret);
    }
    return fd < 0 ? fd : rt_links_listen(links, fd);
}

static int meet_others(struct square *s, struct rt_links *l, int error)
{
    if (error)
        __atomic_store_n(&s->error, error, __ATOMIC_RELEASE);
    __atomic_add_fetch(&s->come, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&s->come, __ATOMIC_ACQUIRE) < l->size)
        sched_yield();
    l->places = malloc((size_t)l->size * sizeof *l->places);
    if (!l->places)
        return -ENOMEM;
    memcpy(l->places, s->places, (size_t)l->size * sizeof *l->places);
    return __atomic_load_n(&s->error, __ATOMIC_ACQUIRE);
}

static int run_one(int rank, int size, void *data)
{
    const struct links_run *run = data;
    struct rt_links links;
    rt_links_prepare(&links);
    links.rank = rank;
    links.size = size;
    memset(&links.word, 'w', sizeof links.word);
    int result = listen_anywhere(&links, run->v6, &run->square->places[rank]);
    result = meet_others(run->square, &links, result);
    if (!result)
        result = run->fn(&links, run->argument);
    rt_links_release(&links);
    return result;
}

int run_links(int size, bool processes, bool v6, links_fn *fn, void *argument)
{
    struct square *square =
        mmap(NULL, sizeof *square, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (square == MAP_FAILED)
        return -errno;
    struct links_run run = {square, v6, fn, argument};
    int result = run_each(size, processes, run_one, &run);
    munmap(square, sizeof *square);
    return result;
}

struct ranks_run {
    uint64_t block_bytes;
    rank_fn *fn;
    void *argument;
};

static int run_transport(struct rt_links *links, void *data)
{
    const struct ranks_run *run = data;
    int ranks[TCP_RANKS_MAX];
    for (int r = 0; r < links->size; r++)
        ranks[r] = r;
    struct rt_transport *t =
        rt_transport_tcp_new(&links->base, TAG, ranks, links->size, links->rank);
    if (!t)
        return -errno;
    if (run->block_bytes)
        t->block_bytes = run->block_bytes;
    int result = run->fn(t, run->argument);
    rt_transport_tcp_free(t);
    return result;
}

int run_ranks_tcp(int size, bool processes, bool v6, uint64_t block_bytes, rank_fn *fn,
                  void *argument)
{
    struct ranks_run run = {block_bytes, fn, argument};
    return run_links(size, processes, v6, run_transport, &run);
}
