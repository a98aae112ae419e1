/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-door.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt-net.h"

#define HELLO_NS 5000000000u /* who connects says hello at once */
#define HURRY_NS 250000000u  /* ... at the latest so long after, where others want the place */
#define CALLERS  64          /* beside one a rank */

/* A connection whose hello isn't complete. */
struct rt_caller {
    int fd; /* -1: none */
    size_t got;
    uint64_t since_ns;
};

static void turn_away(struct rt_caller *c)
{
    close(c->fd);
    c->fd = -1;
}

static void turn_stranger_away(struct rt_door *d, struct rt_caller *c)
{
    d->strangers++;
    turn_away(c);
}

static void hear(struct rt_door *d, struct rt_caller *c)
{
    char *hello = d->hellos + (size_t)(c - d->callers) * d->hello_bytes;
    const int n = rt_net_receive_some(c->fd, hello + c->got, d->hello_bytes - c->got);
    if (n == -EAGAIN)
        return;
    c->got += n > 0 ? (size_t)n : 0;
    if (n < 0 || !d->may_be(d->data, hello, c->got)) {
        turn_stranger_away(d, c);
    } else if (c->got == d->hello_bytes) {
        if (d->welcome(d->data, c->fd, hello))
            c->fd = -1;
        else
            turn_away(c);
    }
}

/* Free; or of the one that is silent longest, NULL where that isn't long. */
static struct rt_caller *find_place(struct rt_door *d, bool free)
{
    struct rt_caller *oldest = NULL;
    for (int i = 0; i < d->room; i++) {
        struct rt_caller *c = &d->callers[i];
        if (free && c->fd < 0)
            return c;
        if (c->fd >= 0 && (!oldest || c->since_ns < oldest->since_ns))
            oldest = c;
    }
    if (!oldest || rt_now_ns() - oldest->since_ns < HURRY_NS)
        return NULL;
    turn_stranger_away(d, oldest);
    return oldest;
}

static bool has_callers(const struct rt_door *d)
{
    for (int i = 0; i < d->room; i++)
        if (d->callers[i].fd >= 0)
            return true;
    return false;
}

static int let_in(struct rt_door *d)
{
    struct rt_caller *c = NULL;
    for (int i = 0; i < d->room && (c = find_place(d, true)); i++) {
        int fd = rt_net_accept(d->listener);
        if (fd == -EMFILE && has_callers(d)) {
            c = find_place(d, false);
            fd = c ? rt_net_accept(d->listener) : -EBUSY;
        }
        d->is_full = fd == -EBUSY;
        if (fd == -EAGAIN || fd == -ECONNABORTED || fd == -EINTR || fd == -EBUSY)
            return 0;
        if (fd < 0)
            return fd;
        *c = (struct rt_caller){.fd = fd, .since_ns = rt_now_ns()};
    }
    d->is_full = !c;
    return 0;
}

static void drop_silent(struct rt_door *d, uint64_t now)
{
    for (int i = 0; i < d->room; i++)
        if (d->callers[i].fd >= 0 && now - d->callers[i].since_ns > HELLO_NS)
            turn_stranger_away(d, &d->callers[i]);
}

int rt_door_serve(struct rt_door *d, uint64_t end_ns)
{
    const uint64_t now = rt_now_ns();
    const uint64_t rest = now < end_ns ? end_ns - now : 0;
    const uint64_t most = d->is_full ? HURRY_NS / 4 : HELLO_NS;
    nfds_t n = 1, at = 1;
    drop_silent(d, now);
    d->polled[0] = (struct pollfd){.fd = d->is_full ? -1 : d->listener, .events = POLLIN};
    for (int i = 0; i < d->room; i++) /* poll takes no more than there may be descriptors */
        if (d->callers[i].fd >= 0)
            d->polled[n++] = (struct pollfd){.fd = d->callers[i].fd, .events = POLLIN};
    if (poll(d->polled, n, (int)((rest < most ? rest : most) / 1000000) + 1) < 0)
        return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < d->room && at < n; i++)
        if (d->callers[i].fd >= 0 && d->polled[at++].revents)
            hear(d, &d->callers[i]);
    return d->polled[0].revents || d->is_full ? let_in(d) : 0;
}

int rt_door_open(struct rt_door *d)
{
    d->room = d->ranks + CALLERS;
    d->callers = calloc((size_t)d->room, sizeof *d->callers);
    d->hellos = calloc((size_t)d->room, d->hello_bytes);
    d->polled = calloc((size_t)d->room + 1, sizeof *d->polled);
    for (int i = 0; i < d->room && d->callers; i++)
        d->callers[i].fd = -1;
    return d->callers && d->hellos && d->polled ? 0 : -ENOMEM;
}

void rt_door_close(struct rt_door *d)
{
    for (int i = 0; d->callers && i < d->room; i++)
        if (d->callers[i].fd >= 0)
            close(d->callers[i].fd);
    free(d->callers);
    free(d->hellos);
    free(d->polled);
    d->callers = NULL;
    d->hellos = NULL;
    d->polled = NULL;
}
