/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-lifeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt-clock.h"
#include "rt-lifeline-parts.h"

#define TEXT_MS 5000

/* ---- forks ---- */

static struct rt_lifeline *current; /* one a process */

static void close_all(struct rt_lifeline *l)
{
    for (int r = 0; r < l->size; r++)
        if (l->peers[r].fd >= 0)
            close(l->peers[r].fd);
}

static void in_child(void)
{
    if (current)
        close_all(current);
    current = NULL;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- the thread ---- */

static bool is_ready(int fd, short events, int ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, ms) == 1 && p.revents & events;
}

/* To the peers that are still there, but `but`. */
static void tell(struct rt_lifeline *l, char kind, const char *text, int but)
{
    char message[RT_LIFELINE_TEXT_MAX + 1] = {kind};
    snprintf(message + 1, sizeof message - 1, "%s", text);
    for (int r = 0; r < l->size; r++)
        if (l->peers[r].fd >= 0 && r != but)
            send(l->peers[r].fd, message, kind == RT_FAREWELL ? 1 : sizeof message, MSG_NOSIGNAL);
}

static void report(struct rt_lifeline *l, const char *text, int whose)
{
    if (l->rank == 0)
        tell(l, RT_DEATH, text, whose);
    pthread_mutex_lock(&l->lock);
    bool first = !l->known;
    l->known = true;
    pthread_mutex_unlock(&l->lock);
    if (first)
        l->user.died(l->user.data, text);
    pthread_mutex_lock(&l->lock);
    pthread_cond_broadcast(&l->news);
    pthread_mutex_unlock(&l->lock);
}

/* `error`: of the connection; 0: it was closed. */
static void hang_up(struct rt_lifeline *l, int rank, int error)
{
    struct peer *p = &l->peers[rank];
    const bool is_silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
    char text[RT_LIFELINE_TEXT_MAX];
    close(p->fd);
    p->fd = -1;
    if (p->left)
        return;
    int n = snprintf(text, sizeof text, "rank %d (%.255s, process %d) is gone: ", rank,
                     l->hosts[rank], p->pid);
    if (is_silent)
        snprintf(text + n, sizeof text - (size_t)n,
                 "no sign of life from its host for %u s (RT_HOST_TIMEOUT): down, or cut off",
                 l->user.timeout_s);
    else
        snprintf(text + n, sizeof text - (size_t)n, "killed, or ended without rt_shutdown");
    report(l, text, rank);
}

static void hear(struct rt_lifeline *l, int rank)
{
    char message[RT_LIFELINE_TEXT_MAX + 1];
    ssize_t n = recv(l->peers[rank].fd, message, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(l, rank, n < 0 ? errno : 0);
    } else if (message[0] == RT_FAREWELL) {
        l->peers[rank].left = true;
    } else if (message[0] == RT_QUESTION) {
        message[0] = RT_ANSWER;
        send(l->peers[rank].fd, message, 1, MSG_NOSIGNAL);
    } else if (message[0] == RT_ANSWER) {
        rt_lifeline_answered(l, rank);
    } else if (message[0] == RT_DEATH && is_ready(l->peers[rank].fd, POLLIN, TEXT_MS)) {
        n = recv(l->peers[rank].fd, message, RT_LIFELINE_TEXT_MAX, MSG_DONTWAIT);
        message[n > 0 ? n : 0] = 0;
        report(l, message, rank);
    }
}

static void *watch(void *data)
{
    struct rt_lifeline *l = data;
    struct pollfd *polled = l->polled;
    l->looked_ns = rt_now_ns();
    for (;;) {
        rt_lifeline_look(l);
        for (int r = 0; r < l->size; r++)
            polled[r] = (struct pollfd){.fd = l->peers[r].fd, .events = POLLIN};
        polled[l->size] = (struct pollfd){.fd = l->stop, .events = POLLIN};
        if (poll(polled, (nfds_t)l->size + 1, rt_lifeline_rest_ms(l)) < 0)
            continue;
        if (polled[l->size].revents)
            return NULL;
        for (int r = 0; r < l->size; r++)
            if (polled[r].fd >= 0 && polled[r].revents)
                hear(l, r);
    }
}

/* ---- from begin to end ---- */

static struct rt_lifeline *allocate(struct rt_fabric *f)
{
    struct rt_lifeline *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->rank = f->rank;
    l->size = f->size;
    l->stop = eventfd(0, EFD_CLOEXEC);
    l->peers = calloc((size_t)f->size, sizeof *l->peers);
    l->polled = calloc((size_t)f->size + 1, sizeof *l->polled);
    for (int r = 0; r < f->size && l->peers; r++)
        l->peers[r].fd = -1;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&l->news, &attributes);
    pthread_condattr_destroy(&attributes);
    return l;
}

static void release(struct rt_lifeline *l)
{
    if (l->peers)
        close_all(l);
    if (l->stop >= 0)
        close(l->stop);
    pthread_cond_destroy(&l->news);
    pthread_mutex_destroy(&l->lock);
    free(l->polled);
    free(l->peers);
    free(l);
}

struct rt_lifeline *rt_lifeline_new(struct rt_fabric *f, const char (*hosts)[RT_HOST_MAX],
                                    const struct rt_lifeline_user *user, int *ret_error,
                                    char *message, size_t message_bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct rt_lifeline *l = allocate(f);
    *ret_error = l && l->peers && l->polled && l->stop >= 0 ? 0 : -ENOMEM;
    if (!*ret_error) {
        l->hosts = hosts;
        l->user = *user;
        *ret_error = rt_lifeline_connect(l, f);
    }
    if (!*ret_error)
        *ret_error = -pthread_create(&l->thread, NULL, watch, l);
    if (*ret_error) {
        snprintf(message, message_bytes,
                 "can't watch over the ranks, with a connection from each to rank 0: %s",
                 strerror(-*ret_error));
        if (l)
            release(l);
        return NULL;
    }
    pthread_once(&once, watch_forks);
    current = l;
    return l;
}

int rt_lifeline_wait(struct rt_lifeline *l, int ms)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += (long)(ms % 1000) * 1000000;
    end.tv_sec += ms / 1000 + end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    int error = 0;
    pthread_mutex_lock(&l->lock);
    while (!l->known && error == 0)
        error = pthread_cond_timedwait(&l->news, &l->lock, &end);
    bool known = l->known;
    pthread_mutex_unlock(&l->lock);
    return known;
}

static void stop_watching(struct rt_lifeline *l)
{
    const uint64_t one = 1;
    current = NULL;
    if (write(l->stop, &one, sizeof one) == sizeof one)
        pthread_join(l->thread, NULL);
}

void rt_lifeline_free(struct rt_lifeline *l)
{
    if (!l)
        return;
    stop_watching(l);
    tell(l, RT_FAREWELL, "", -1);
    release(l);
}

void rt_lifeline_cut(struct rt_lifeline *l, const char *why)
{
    char text[RT_LIFELINE_TEXT_MAX];
    if (!l)
        return;
    stop_watching(l);
    if (why) {
        snprintf(text, sizeof text, "rank %d (%.255s, process %d) can't go on: %.180s", l->rank,
                 l->hosts[l->rank], (int)getpid(), why);
        tell(l, RT_DEATH, text, -1);
    }
    release(l);
}
