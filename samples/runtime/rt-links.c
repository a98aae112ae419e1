/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-links.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CONNECT_NS       20000000000u /* a host far away, or one with much to do */
#define HELLO_NS         30000000000u /* it comes with the connection, but a packet may be lost */
#define ACCEPTED_AT_ONCE 256
#define CALLERS          64 /* beside one a rank: more at once are strangers */

/* The first bytes on a connection. */
struct hello {
    struct rt_word word;
    int32_t rank, tag;
};

struct rt_link {
    struct rt_link *next;
    int fd;
    size_t got;
    struct hello hello;
    uint64_t deadline_ns; /* for the hello */
};

static struct rt_links *links_of(struct rt_tcp_links *base)
{
    return (struct rt_links *)base;
}

static int connect_out(struct rt_tcp_links *base, int rank, int tag)
{
    struct rt_links *l = links_of(base);
    const struct hello hello = {l->word, l->rank, tag};
    const uint64_t end = rt_now_ns() + CONNECT_NS;
    int fd = rt_net_connect(&l->places[rank], NULL, end);
    int error = fd < 0 ? fd : rt_net_send(fd, &hello, sizeof hello, end);
    if (error && fd >= 0)
        close(fd);
    return error ? error : fd;
}

/* ---- who comes ---- */

static void append(struct rt_link **list, struct rt_link *link)
{
    while (*list)
        list = &(*list)->next;
    link->next = NULL;
    *list = link;
}

static struct rt_link *remove_from(struct rt_link **list, struct rt_link *link)
{
    while (*list != link)
        list = &(*list)->next;
    *list = link->next;
    return link;
}

static struct rt_link *take_caller(struct rt_links *l, struct rt_link *caller)
{
    l->caller_count--;
    return remove_from(&l->callers, caller);
}

static void hang_up(struct rt_links *l, struct rt_link *caller)
{
    take_caller(l, caller);
    epoll_ctl(l->base.news, EPOLL_CTL_DEL, caller->fd, NULL); /* a fork may hold it open */
    close(caller->fd);
    free(caller);
}

/* Strangers are sent away. */
static void hear(struct rt_links *l, struct rt_link *c)
{
    char *at = (char *)&c->hello + c->got;
    int n = rt_net_receive_some(c->fd, at, sizeof c->hello - c->got);
    if (n == -EAGAIN)
        return;
    c->got += n > 0 ? (size_t)n : 0;
    if (n < 0 ||
        memcmp(&c->hello.word, &l->word, c->got < sizeof l->word ? c->got : sizeof l->word) != 0) {
        hang_up(l, c);
    } else if (c->got == sizeof c->hello) {
        if (c->hello.rank < 0 || c->hello.rank >= l->size) {
            hang_up(l, c);
            return;
        }
        epoll_ctl(l->base.news, EPOLL_CTL_DEL, c->fd, NULL);
        append(&l->waiting, take_caller(l, c));
    }
}

static int let_in(struct rt_links *l, int fd)
{
    struct rt_link *c = calloc(1, sizeof *c);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (!c || epoll_ctl(l->base.news, EPOLL_CTL_ADD, fd, &event)) {
        free(c);
        close(fd);
        return -ENOMEM;
    }
    c->fd = fd;
    c->deadline_ns = rt_now_ns() + HELLO_NS;
    append(&l->callers, c);
    l->caller_count++;
    hear(l, c);
    if (l->caller_count > l->size + CALLERS)
        hang_up(l, l->callers);
    return 0;
}

static void drop_silent(struct rt_links *l)
{
    const uint64_t now = rt_now_ns();
    for (struct rt_link *c = l->callers, *next; c; c = next) {
        next = c->next;
        if (now >= c->deadline_ns)
            hang_up(l, c);
    }
}

static bool is_full(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM;
}

/* The rest is told of again. */
static int accept_some(struct rt_links *l)
{
    drop_silent(l);
    for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
        const int fd = rt_net_accept(l->socket);
        const bool full = is_full(fd);
        const int error = fd >= 0 ? let_in(l, fd) : full && !l->callers ? fd : 0;
        if (error)
            return error;
        if (full)
            hang_up(l, l->callers);
        /* one that has gone again, or was never whole, is no failure of this end */
        if (fd < 0 && !full)
            return 0;
    }
    return 0;
}

static int receive_callers(struct rt_links *l)
{
    struct epoll_event events[16];
    int n, error = 0;
    if (l->base.news < 0)
        return 0;
    n = epoll_wait(l->base.news, events, 16, 0);
    bool has_new = false;
    for (int i = 0; i < n; i++)
        if (events[i].data.ptr)
            hear(l, events[i].data.ptr);
        else
            has_new = true;
    if (has_new) /* last: it may free callers */
        error = accept_some(l);
    return error;
}

/* `rank` -1: any. */
static int take_out(struct rt_links *l, int *rank, int tag)
{
    for (struct rt_link *link = l->waiting; link; link = link->next) {
        if (link->hello.tag != tag || (*rank >= 0 && link->hello.rank != *rank))
            continue;
        const int fd = link->fd;
        *rank = link->hello.rank;
        free(remove_from(&l->waiting, link));
        return fd;
    }
    return -EAGAIN;
}

static int connected_in(struct rt_tcp_links *base, int rank, int tag)
{
    struct rt_links *l = links_of(base);
    int error = receive_callers(l);
    return error ? error : take_out(l, &rank, tag);
}

int rt_links_next(struct rt_links *links, int tag, int *ret_rank)
{
    int error = receive_callers(links), rank = -1;
    int fd = error ? error : take_out(links, &rank, tag);
    if (fd >= 0)
        *ret_rank = rank;
    return fd;
}

/* To it this is a stranger who leaves at once. */
static int is_there(struct rt_tcp_links *base, int rank)
{
    int fd = rt_net_connect(&links_of(base)->places[rank], NULL, rt_now_ns() + CONNECT_NS);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || fd == -EMFILE || fd == -ENFILE || fd == -EADDRNOTAVAIL ? 0 : -ECONNRESET;
}

/* ---- begin and end ---- */

void rt_links_prepare(struct rt_links *links)
{
    *links = (struct rt_links){
        .base = {.out = connect_out, .in = connected_in, .check = is_there, .news = -1, .late = -1},
        .socket = -1};
}

int rt_links_listen(struct rt_links *l, int socket)
{
    struct epoll_event event = {.events = EPOLLIN};
    l->socket = socket;
    l->base.news = epoll_create1(EPOLL_CLOEXEC);
    return l->base.news >= 0 && epoll_ctl(l->base.news, EPOLL_CTL_ADD, l->socket, &event) == 0
               ? 0
               : -errno;
}

static void close_links(struct rt_link **list)
{
    while (*list) {
        struct rt_link *link = *list;
        *list = link->next;
        close(link->fd);
        free(link);
    }
}

void rt_links_release(struct rt_links *l)
{
    close_links(&l->callers);
    close_links(&l->waiting);
    if (l->base.news >= 0)
        close(l->base.news);
    if (l->socket >= 0)
        close(l->socket);
    free(l->places);
    l->places = NULL;
    l->socket = l->base.news = -1;
}
