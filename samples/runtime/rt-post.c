/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-post.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Lengths and messages that wait to go out. */
struct out {
    int fd; /* -1: nothing was sent yet */
    struct rt_bytes kept;
    size_t gone;
};

/* A message that is coming in. */
struct in {
    struct in *next;
    int fd, rank;
    uint64_t length;
    size_t got; /* with the length */
    uint8_t *data;
};

struct rt_post {
    struct rt_links *links;
    struct out *outs; /* by rank */
    unsigned kept;    /* ranks with something kept */
    struct in *ins;
    int epoll;
};

#define LENGTH_BYTES sizeof(uint64_t)

/* ---- out ---- */

static int append(struct rt_bytes *to, const void *data, size_t bytes)
{
    if (to->n + bytes > to->capacity) {
        const size_t capacity = (to->n + bytes) * 2;
        uint8_t *grown = realloc(to->data, capacity);
        if (!grown)
            return -ENOMEM;
        to->data = grown;
        to->capacity = capacity;
    }
    memcpy(to->data + to->n, data, bytes);
    to->n += bytes;
    return 0;
}

/* What has gone takes no room while the rest waits for its turn, however long that is. */
static void forget_gone(struct out *o)
{
    if (o->gone < o->kept.n / 2)
        return;
    memmove(o->kept.data, o->kept.data + o->gone, o->kept.n - o->gone);
    o->kept.n -= o->gone;
    o->gone = 0;
}

static int push(struct rt_post *p, struct out *o)
{
    while (o->gone < o->kept.n) {
        ssize_t n =
            send(o->fd, o->kept.data + o->gone, o->kept.n - o->gone, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno != EINTR)
            return -ECONNRESET;
        o->gone += n > 0 ? (size_t)n : 0;
    }
    p->kept -= o->kept.n > 0;
    o->kept.n = o->gone = 0;
    return 0;
}

static int push_all(struct rt_post *p)
{
    int error = 0;
    for (int r = 0; r < p->links->size && p->kept > 0 && !error; r++)
        if (p->outs[r].kept.n > 0)
            error = push(p, &p->outs[r]);
    return error;
}

/* Of this rank's, not the other's end. */
static bool is_own_want(int error)
{
    return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -ENOBUFS;
}

int rt_post_send(struct rt_post *p, int to, const struct rt_bytes *message)
{
    struct out *o = &p->outs[to];
    const uint64_t length = message->n;
    if (length > RT_POST_MAX)
        return -EMSGSIZE;
    if (o->fd < 0) {
        o->fd = p->links->base.out(&p->links->base, to, RT_POST_TAG);
        if (o->fd < 0)
            return is_own_want(o->fd) ? o->fd : -ECONNRESET;
    }
    const unsigned had = o->kept.n > 0;
    if (had)
        forget_gone(o);
    int error = append(&o->kept, &length, sizeof length);
    if (!error)
        error = append(&o->kept, message->data, message->n);
    if (error)
        return error; /* half of it may be kept: the stream is broken */
    p->kept += 1 - had;
    return push(p, o);
}

bool rt_post_keeps(const struct rt_post *p)
{
    return p->kept > 0;
}

int rt_post_flush(struct rt_post *p)
{
    for (int r = 0; r < p->links->size && p->kept > 0; r++) {
        struct out *o = &p->outs[r];
        while (o->kept.n > 0) {
            struct pollfd f = {.fd = o->fd, .events = POLLOUT};
            if (poll(&f, 1, -1) < 0 && errno != EINTR)
                return -errno;
            int error = push(p, o);
            if (error)
                return error;
        }
    }
    return 0;
}

/* ---- in ---- */

static int watch(struct rt_post *p, int fd, int rank)
{
    struct in *i = calloc(1, sizeof *i);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = i};
    if (!i || epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event)) {
        free(i);
        close(fd);
        return -ENOMEM;
    }
    i->fd = fd;
    i->rank = rank;
    i->next = p->ins;
    p->ins = i;
    return 0;
}

/* A caller that can't be taken may have said something already, and would wait for the answer. */
static int take_callers(struct rt_post *p)
{
    int fd, rank, error = 0;
    while (!error && (fd = rt_links_next(p->links, RT_POST_TAG, &rank)) >= 0)
        error = watch(p, fd, rank);
    return error ? error : fd == -EAGAIN ? 0 : fd;
}

/* 1 a whole message is there, 0 not yet. */
static int pull(struct in *i)
{
    for (;;) {
        const bool in_length = i->got < LENGTH_BYTES;
        char *at =
            in_length ? (char *)&i->length + i->got : (char *)i->data + i->got - LENGTH_BYTES;
        const size_t left = (in_length ? 0 : i->length) + LENGTH_BYTES - i->got;
        if (left == 0)
            return 1;
        ssize_t n = recv(i->fd, at, left, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n == 0 || (n < 0 && errno != EINTR))
            return -ECONNRESET;
        i->got += n > 0 ? (size_t)n : 0;
        if (!in_length || i->got < LENGTH_BYTES)
            continue;
        if (i->length > RT_POST_MAX)
            return -EPROTO;
        i->data = malloc(i->length + 1);
        if (!i->data)
            return -ENOMEM;
    }
}

int rt_post_receive(struct rt_post *p, int *ret_from, struct rt_bytes *ret)
{
    struct epoll_event events[16];
    int error = push_all(p);
    if (!error)
        error = take_callers(p);
    int n = error ? error : epoll_wait(p->epoll, events, 16, 0);
    if (n < 0)
        return error ? error : errno == EINTR ? 0 : -errno;
    for (int e = 0; e < n; e++) {
        struct in *i = events[e].data.ptr;
        int got = pull(i);
        if (got < 0)
            return got;
        if (got == 0)
            continue;
        *ret_from = i->rank;
        *ret = (struct rt_bytes){.data = i->data, .n = i->length, .capacity = i->length + 1};
        i->data = NULL;
        i->got = 0;
        return 1;
    }
    return 0;
}

/* ---- begin and end ---- */

struct rt_post *rt_post_new(struct rt_links *links)
{
    struct rt_post *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->links = links;
    p->outs = calloc((size_t)links->size, sizeof *p->outs);
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int r = 0; r < links->size && p->outs; r++)
        p->outs[r].fd = -1;
    if (p->outs && p->epoll >= 0)
        return p;
    const int error = errno;
    rt_post_free(p);
    errno = error;
    return NULL;
}

void rt_post_free(struct rt_post *p)
{
    if (!p)
        return;
    for (int r = 0; p->outs && r < p->links->size; r++) {
        if (p->outs[r].fd >= 0)
            close(p->outs[r].fd);
        free(p->outs[r].kept.data);
    }
    free(p->outs);
    while (p->ins) {
        struct in *i = p->ins;
        p->ins = i->next;
        close(i->fd);
        free(i->data);
        free(i);
    }
    if (p->epoll >= 0)
        close(p->epoll);
    free(p);
}
