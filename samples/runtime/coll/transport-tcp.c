/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-clock.h"
#include "rt-transport-tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* A message's own cost doesn't count, and what was received is in cache when it is reduced. */
#define BLOCK_BYTES ((uint64_t)512 << 10)
#define CHECK_MS    1000

/* One end of a connection: the messages that were posted on it, in order. */
struct end {
    int fd; /* -1: not yet */
    uint32_t posted, done;
    uint64_t length; /* of the message that is under way */
};

struct peer {
    int rank; /* as `links` knows it */
    struct end out, in;
};

struct tcp_transport {
    struct rt_transport base;
    struct rt_tcp_links *links;
    int tag;
    struct pollfd *polled;
    unsigned polled_count;
    struct peer peers[];
};

/* What an rt_request holds here. `done` counts the length's bytes, too. */
struct message {
    uint8_t is_send, complete;
    int32_t peer;
    uint32_t ticket;
    uint32_t spare;
    char *data;
    uint64_t bytes, done;
};
_Static_assert(sizeof(struct message) <= sizeof(struct rt_request), "a request holds a message");

#define LENGTH_BYTES sizeof(uint64_t)

static struct tcp_transport *tcp_of(struct rt_transport *t)
{
    return (struct tcp_transport *)t;
}

static struct end *end_of(struct tcp_transport *t, const struct message *m)
{
    struct peer *p = &t->peers[m->peer];
    return m->is_send ? &p->out : &p->in;
}

/* 0 or -EAGAIN, else a failure. */
static int connect_end(struct tcp_transport *t, const struct message *m, struct end *e)
{
    if (e->fd >= 0)
        return 0;
    int fd = (m->is_send ? t->links->out : t->links->in)(t->links, t->peers[m->peer].rank, t->tag);
    if (fd < 0)
        return fd == -EAGAIN || fd == -ENOMEM || fd == -EMFILE || fd == -ENFILE ? fd : -ECONNRESET;
    e->fd = fd;
    return 0;
}

/* What is left of the length and of the bytes. */
static void rest_of(const struct message *m, struct end *e, struct iovec ret[2])
{
    const uint64_t of_length = m->done < LENGTH_BYTES ? m->done : LENGTH_BYTES;
    const uint64_t of_data = m->done - of_length;
    ret[0] = (struct iovec){(char *)&e->length + of_length, LENGTH_BYTES - of_length};
    ret[1] = (struct iovec){m->data + of_data, m->bytes - of_data};
}

/* 1 something moved, 0 not now, else a failure. */
static int move(const struct message *m, struct end *e, uint64_t *ret_bytes)
{
    struct iovec parts[2];
    rest_of(m, e, parts);
    const struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2};
    struct msghdr into = header;
    ssize_t n = m->is_send ? sendmsg(e->fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT)
                           : recvmsg(e->fd, &into, MSG_DONTWAIT);
    if (n > 0) {
        *ret_bytes = (uint64_t)n;
        return 1;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    const bool is_gone = n == 0 || errno == EPIPE || errno == ETIMEDOUT || errno == EHOSTUNREACH ||
                         errno == ENETUNREACH;
    return is_gone ? -ECONNRESET : -errno;
}

static int advance(struct tcp_transport *t, struct message *m)
{
    struct end *e = end_of(t, m);
    uint64_t bytes = 0;
    if (m->complete || m->ticket != e->done)
        return 0;
    int error = connect_end(t, m, e);
    if (error)
        return error == -EAGAIN ? 0 : error;
    if (m->is_send)
        e->length = m->bytes;
    int moved = move(m, e, &bytes);
    if (moved <= 0)
        return moved;
    m->done += bytes;
    if (m->done >= LENGTH_BYTES && e->length != m->bytes)
        return -EMSGSIZE;
    if (m->done == LENGTH_BYTES + m->bytes) {
        m->complete = 1;
        e->done++;
    }
    return 1;
}

static int post(struct rt_transport *base, bool is_send, void *data, uint64_t bytes, int peer,
                struct rt_request *ret)
{
    struct tcp_transport *t = tcp_of(base);
    struct message m = {.is_send = is_send, .peer = peer, .data = data, .bytes = bytes};
    m.ticket = end_of(t, &m)->posted++;
    int moved = is_send ? advance(t, &m) : 0;
    memcpy(ret->word, &m, sizeof m);
    return moved < 0 ? moved : 0;
}

static int tcp_send(struct rt_transport *t, const void *data, uint64_t bytes, int peer,
                    struct rt_request *ret)
{
    return post(t, true, (void *)(uintptr_t)data, bytes, peer, ret);
}

static int tcp_recv(struct rt_transport *t, void *data, uint64_t bytes, int peer,
                    struct rt_request *ret)
{
    return post(t, false, data, bytes, peer, ret);
}

/* ---- waiting ---- */

static int grow_polled(struct tcp_transport *t, unsigned n)
{
    if (n <= t->polled_count)
        return 0;
    struct pollfd *grown = realloc(t->polled, n * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    t->polled = grown;
    t->polled_count = n;
    return 0;
}

static bool is_due(struct tcp_transport *t, const struct message *m)
{
    return !m->complete && m->ticket == end_of(t, m)->done;
}

/* One that ended before it connected closes nothing that would tell. */
static int check_awaited(struct tcp_transport *t, const struct rt_request *requests, unsigned n)
{
    int error = 0;
    for (unsigned i = 0; i < n && !error; i++) {
        const struct message *m = (const struct message *)requests[i].word;
        if (is_due(t, m) && end_of(t, m)->fd < 0)
            error = t->links->check(t->links, t->peers[m->peer].rank);
    }
    return error;
}

/* For poll: whether somebody has gone, and the deadline, are looked at in between. -ETIMEDOUT. */
static int time_to_wait(const struct tcp_transport *t, bool awaits_peer)
{
    const uint64_t deadline = t->links->deadline_ns;
    if (!deadline)
        return awaits_peer ? CHECK_MS : -1;
    const uint64_t now = rt_now_ns();
    if (now >= deadline)
        return -ETIMEDOUT;
    const uint64_t left_ms = (deadline - now) / 1000000 + 1;
    return left_ms < CHECK_MS ? (int)left_ms : CHECK_MS;
}

static int sleep_until_some(struct tcp_transport *t, struct rt_request *requests, unsigned n)
{
    unsigned polled = 0;
    bool awaits_peer = false;
    int late = -1;
    int error = grow_polled(t, n + 1);
    if (error)
        return error;
    for (unsigned i = 0; i < n; i++) {
        const struct message *m = (const struct message *)requests[i].word;
        const struct end *e = end_of(t, m);
        if (!is_due(t, m))
            continue;
        late = t->peers[m->peer].rank;
        if (e->fd >= 0)
            t->polled[polled++] =
                (struct pollfd){.fd = e->fd, .events = m->is_send ? POLLOUT : POLLIN};
        else
            awaits_peer = true;
    }
    if (awaits_peer)
        t->polled[polled++] = (struct pollfd){.fd = t->links->news, .events = POLLIN};
    const int ms = time_to_wait(t, awaits_peer);
    if (ms == -ETIMEDOUT) {
        t->links->late = late;
        return ms;
    }
    const int some = poll(t->polled, polled, ms);
    if (some < 0)
        return errno == EINTR ? 0 : -errno;
    return some == 0 ? check_awaited(t, requests, n) : 0;
}

static int tcp_wait(struct rt_transport *base, struct rt_request *requests, unsigned n)
{
    struct tcp_transport *t = tcp_of(base);
    for (;;) {
        unsigned pending = 0;
        int any = 0;
        for (unsigned i = 0; i < n; i++) {
            struct message *m = (struct message *)requests[i].word;
            int moved = advance(t, m);
            if (moved < 0)
                return moved;
            any |= moved;
            pending += !m->complete;
        }
        if (pending == 0)
            return 0;
        int error = any ? 0 : sleep_until_some(t, requests, n);
        if (error)
            return error;
    }
}

static const struct rt_transport_ops tcp_ops = {
    .send = tcp_send,
    .recv = tcp_recv,
    .wait = tcp_wait,
};

struct rt_transport *rt_transport_tcp_new(struct rt_tcp_links *links, int tag, const int *ranks,
                                          int size, int rank)
{
    struct tcp_transport *t = calloc(1, sizeof *t + (size_t)size * sizeof *t->peers);
    if (!t)
        return NULL;
    t->base = (struct rt_transport){
        .ops = &tcp_ops, .rank = rank, .size = size, .block_bytes = BLOCK_BYTES};
    t->links = links;
    t->tag = tag;
    for (int i = 0; i < size; i++)
        t->peers[i] = (struct peer){.rank = ranks[i], .out.fd = -1, .in.fd = -1};
    return &t->base;
}

bool rt_transport_is_tcp(const struct rt_transport *t)
{
    return t->ops == &tcp_ops;
}

static void close_end(struct end *e)
{
    if (e->fd >= 0)
        close(e->fd);
}

void rt_transport_tcp_free(struct rt_transport *base)
{
    if (!base)
        return;
    struct tcp_transport *t = tcp_of(base);
    for (int i = 0; i < base->size; i++) {
        close_end(&t->peers[i].out);
        close_end(&t->peers[i].in);
    }
    rt_transport_release(base);
    free(t->polled);
    free(t);
}
