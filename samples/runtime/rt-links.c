/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_NS 20000000000u /* a host far away, or one with much to do */
#define HELLO_NS   1000000000u  /* it comes with the connection */

struct rt_link {
    struct rt_link *next;
    int fd, rank, tag;
};

/* The first bytes on a connection. */
struct hello {
    struct rt_word word;
    int32_t rank, tag;
};

static struct rt_links *links_of(struct rt_tcp_links *base)
{
    return (struct rt_links *)base;
}

static int connect_out(struct rt_tcp_links *base, int rank, int tag)
{
    struct rt_links *l = links_of(base);
    const struct hello hello = {l->word, l->rank, tag};
    const uint64_t end = rt_net_now_ns() + CONNECT_NS;
    int fd = rt_net_connect(&l->places[rank], NULL, end);
    int error = fd < 0 ? fd : rt_net_send(fd, &hello, sizeof hello, end);
    if (error && fd >= 0)
        close(fd);
    return error ? error : fd;
}

/* Strangers are sent away. */
static int take_in(struct rt_links *l, int fd)
{
    struct hello hello;
    if (rt_net_receive(fd, &hello, sizeof hello, rt_net_now_ns() + HELLO_NS) ||
        memcmp(&hello.word, &l->word, sizeof hello.word) != 0 || hello.rank < 0 ||
        hello.rank >= l->size) {
        close(fd);
        return 0;
    }
    struct rt_link *link = malloc(sizeof *link);
    if (!link) {
        close(fd);
        return -ENOMEM;
    }
    *link = (struct rt_link){l->waiting, fd, hello.rank, hello.tag};
    l->waiting = link;
    return 0;
}

static int accept_all(struct rt_links *l)
{
    int fd, error = 0;
    while (!error && (fd = rt_net_accept(l->base.listener)) >= 0)
        error = take_in(l, fd);
    return error;
}

/* `rank` -1: any. */
static int take_out(struct rt_links *l, int *rank, int tag)
{
    for (struct rt_link **place = &l->waiting; *place; place = &(*place)->next) {
        struct rt_link *link = *place;
        if (link->tag != tag || (*rank >= 0 && link->rank != *rank))
            continue;
        const int fd = link->fd;
        *rank = link->rank;
        *place = link->next;
        free(link);
        return fd;
    }
    return -EAGAIN;
}

static int connected_in(struct rt_tcp_links *base, int rank, int tag)
{
    struct rt_links *l = links_of(base);
    int error = accept_all(l);
    return error ? error : take_out(l, &rank, tag);
}

int rt_links_next(struct rt_links *links, int tag, int *ret_rank)
{
    int error = accept_all(links), rank = -1;
    int fd = error ? error : take_out(links, &rank, tag);
    if (fd >= 0)
        *ret_rank = rank;
    return fd;
}

void rt_links_prepare(struct rt_links *links)
{
    links->base.out = connect_out;
    links->base.in = connected_in;
    links->base.listener = -1;
}

void rt_links_release(struct rt_links *l)
{
    while (l->waiting) {
        struct rt_link *link = l->waiting;
        l->waiting = link->next;
        close(link->fd);
        free(link);
    }
    if (l->base.listener >= 0)
        close(l->base.listener);
    free(l->places);
    l->places = NULL;
    l->base.listener = -1;
}
