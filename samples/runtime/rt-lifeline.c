/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-lifeline.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt-door.h"
#include "rt-net.h"

#define ADDRESS_MAX 16
#define CONNECT_NS  2000000000u
#define HELLOS_NS   10000000000u /* of all; they come with the connections */
#define TEXT_MS     5000
#define TEXT_MAX    512
#define FAREWELL    'F'
#define DEATH       'D'

/* What rank 0 tells all at the start. */
struct invitation {
    uint64_t token; /* so that nobody else is taken for a rank */
    int32_t count;
    union rt_net_place address[ADDRESS_MAX];
};

struct hello {
    uint64_t token;
    int32_t rank, pid;
};

/* The other end of a connection. */
struct peer {
    int fd; /* -1 none */
    int pid;
    bool left; /* said farewell */
};

struct rt_lifeline {
    int rank, size;
    const char (*hosts)[RT_HOST_MAX];
    struct peer *peers; /* by rank; but for rank 0 only that of rank 0 */
    struct pollfd *polled;
    unsigned timeout_s;
    int stop; /* an eventfd; read by nobody, so that it stays readable */
    rt_death_fn *died;
    void *data;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool known; /* a death */
};

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

/* ---- connections ---- */

static bool is_loopback(const struct ifaddrs *a)
{
    return a->ifa_flags & IFF_LOOPBACK;
}

static bool is_usable(const struct ifaddrs *a)
{
    if (!a->ifa_addr || !(a->ifa_flags & IFF_UP))
        return false;
    if (a->ifa_addr->sa_family == AF_INET)
        return true;
    /* one of a link needs the interface's number, which is another on another host */
    return a->ifa_addr->sa_family == AF_INET6 &&
           !IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)(void *)a->ifa_addr)->sin6_addr);
}

/* Those of the network first: the loopback's of another host is its own. */
static void add_addresses(struct invitation *to, const struct ifaddrs *all, bool loopback,
                          uint16_t port)
{
    for (const struct ifaddrs *a = all; a && to->count < ADDRESS_MAX; a = a->ifa_next) {
        if (!is_usable(a) || is_loopback(a) != loopback)
            continue;
        union rt_net_place *p = &to->address[to->count++];
        memcpy(p, a->ifa_addr, a->ifa_addr->sa_family == AF_INET ? sizeof p->v4 : sizeof p->v6);
        rt_net_set_port(p, port);
    }
}

/* Returns the listening socket. */
static int invite(struct invitation *ret)
{
    union rt_net_place any;
    struct ifaddrs *all = NULL;
    const int fd = rt_net_listen_anywhere(&any);
    if (fd < 0)
        return fd;
    if (getrandom(&ret->token, sizeof ret->token, 0) != sizeof ret->token || getifaddrs(&all)) {
        close(fd);
        return -EIO;
    }
    add_addresses(ret, all, false, rt_net_port(&any));
    add_addresses(ret, all, true, rt_net_port(&any));
    freeifaddrs(all);
    return fd;
}

/* What was said and isn't acknowledged counts, too: while there is such the kernel doesn't ask. */
static void ask_for_signs_of_life(int fd, unsigned timeout_s)
{
    const int on = 1, idle = timeout_s > 1 ? (int)timeout_s / 2 : 1;
    const int between = timeout_s > 10 ? (int)timeout_s / 10 : 1;
    const unsigned limit_ms = timeout_s * 1000;
    if (timeout_s == 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
}

static bool is_ready(int fd, short events, int ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, ms) == 1 && p.revents & events;
}

static bool connect_to(struct rt_lifeline *l, const union rt_net_place *to, uint64_t token)
{
    const struct hello hello = {token, l->rank, (int32_t)getpid()};
    int fd = rt_net_connect(to, NULL, rt_now_ns() + CONNECT_NS);
    if (fd < 0)
        return false;
    if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
        close(fd);
        return false;
    }
    ask_for_signs_of_life(fd, l->timeout_s);
    l->peers[0].fd = fd;
    return true;
}

/* First as the fabric's own data goes: what cuts that off must not leave the lifeline whole. */
static bool accept_invitation(struct rt_lifeline *l, const struct rt_fabric *f,
                              const struct invitation *from)
{
    bool done = false;
    if (f->root && from->count > 0) {
        union rt_net_place root = *f->root;
        rt_net_set_port(&root, rt_net_port(&from->address[0]));
        done = connect_to(l, &root, from->token);
    }
    for (int i = 0; i < from->count && !done; i++)
        done = connect_to(l, &from->address[i], from->token);
    return done;
}

struct guests {
    struct rt_lifeline *l;
    uint64_t token;
    int missing;
};

static bool may_be_hello(void *data, const void *hello, size_t got)
{
    const struct guests *g = data;
    return memcmp(hello, &g->token, got < sizeof g->token ? got : sizeof g->token) == 0;
}

static bool welcome(void *data, int fd, void *from)
{
    struct guests *g = data;
    const struct hello *hello = from;
    if (hello->rank <= 0 || hello->rank >= g->l->size || g->l->peers[hello->rank].fd >= 0)
        return false;
    ask_for_signs_of_life(fd, g->l->timeout_s);
    g->l->peers[hello->rank] = (struct peer){.fd = fd, .pid = hello->pid};
    g->missing--;
    return true;
}

/* Of all who connected; others who found the port are sent away. Fails where one is missing: it
 * would take the end of its connection for this rank's. */
static int receive_hellos(struct rt_lifeline *l, int listener, uint64_t token, int expected)
{
    const uint64_t end = rt_now_ns() + HELLOS_NS;
    struct guests guests = {l, token, expected};
    struct rt_door door = {.listener = listener,
                           .ranks = l->size,
                           .hello_bytes = sizeof(struct hello),
                           .may_be = may_be_hello,
                           .welcome = welcome,
                           .data = &guests};
    int error = rt_door_open(&door);
    while (!error && guests.missing > 0)
        error = rt_now_ns() < end ? rt_door_serve(&door, end) : -ETIMEDOUT;
    rt_door_close(&door);
    return error;
}

/* ---- the thread ---- */

/* To the peers that are still there, but `but`. */
static void tell(struct rt_lifeline *l, char kind, const char *text, int but)
{
    char message[TEXT_MAX + 1] = {kind};
    snprintf(message + 1, sizeof message - 1, "%s", text);
    for (int r = 0; r < l->size; r++)
        if (l->peers[r].fd >= 0 && r != but)
            send(l->peers[r].fd, message, kind == FAREWELL ? 1 : sizeof message, MSG_NOSIGNAL);
}

static void report(struct rt_lifeline *l, const char *text, int whose)
{
    if (l->rank == 0)
        tell(l, DEATH, text, whose);
    pthread_mutex_lock(&l->lock);
    bool first = !l->known;
    l->known = true;
    pthread_mutex_unlock(&l->lock);
    if (first)
        l->died(l->data, text);
    pthread_mutex_lock(&l->lock);
    pthread_cond_broadcast(&l->news);
    pthread_mutex_unlock(&l->lock);
}

/* `error`: of the connection; 0: it was closed. */
static void hang_up(struct rt_lifeline *l, int rank, int error)
{
    struct peer *p = &l->peers[rank];
    const bool is_silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
    char text[TEXT_MAX];
    close(p->fd);
    p->fd = -1;
    if (p->left)
        return;
    int n = snprintf(text, sizeof text, "rank %d (%.255s, process %d) is gone: ", rank,
                     l->hosts[rank], p->pid);
    if (is_silent)
        snprintf(text + n, sizeof text - (size_t)n,
                 "no sign of life from its host for %u s (RT_HOST_TIMEOUT): down, or cut off",
                 l->timeout_s);
    else
        snprintf(text + n, sizeof text - (size_t)n, "killed, or ended without rt_shutdown");
    report(l, text, rank);
}

static void hear(struct rt_lifeline *l, int rank)
{
    char message[TEXT_MAX + 1];
    ssize_t n = recv(l->peers[rank].fd, message, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(l, rank, n < 0 ? errno : 0);
    } else if (message[0] == FAREWELL) {
        l->peers[rank].left = true;
    } else if (message[0] == DEATH && is_ready(l->peers[rank].fd, POLLIN, TEXT_MS)) {
        n = recv(l->peers[rank].fd, message, TEXT_MAX, MSG_DONTWAIT);
        message[n > 0 ? n : 0] = 0;
        report(l, message, rank);
    }
}

static void *watch(void *data)
{
    struct rt_lifeline *l = data;
    struct pollfd *polled = l->polled;
    for (;;) {
        for (int r = 0; r < l->size; r++)
            polled[r] = (struct pollfd){.fd = l->peers[r].fd, .events = POLLIN};
        polled[l->size] = (struct pollfd){.fd = l->stop, .events = POLLIN};
        if (poll(polled, (nfds_t)l->size + 1, -1) < 0)
            continue;
        if (polled[l->size].revents)
            return NULL;
        for (int r = 0; r < l->size; r++)
            if (polled[r].fd >= 0 && polled[r].revents)
                hear(l, r);
    }
}

/* ---- from begin to end ---- */

/* And whether rank 0 has a connection to each that has one to it; if not no rank begins. */
static int gather_pids(struct rt_lifeline *l, struct rt_fabric *f, int state)
{
    struct {
        int32_t pid, error;
    } mine = {(int32_t)getpid(), state}, *all = calloc((size_t)l->size, sizeof *all);
    int error = all ? f->ops->allgather(f, &mine, all, sizeof mine) : -ENOMEM;
    for (int r = 0; r < l->size && !error; r++)
        l->peers[r].pid = all[r].pid;
    if (!error)
        error = all[0].error;
    free(all);
    return error;
}

/* All ranks hear of how many there is one. */
static int count_connected(struct rt_lifeline *l, struct rt_fabric *f, bool mine, int *ret)
{
    const uint8_t connected = mine;
    uint8_t *all = calloc((size_t)l->size, 1);
    int error = all ? f->ops->allgather(f, &connected, all, 1) : -ENOMEM;
    *ret = 0;
    for (int r = 1; r < l->size && !error; r++)
        *ret += all[r];
    free(all);
    return error;
}

static int connect_all(struct rt_lifeline *l, struct rt_fabric *f)
{
    struct invitation mine = {0}, *all = calloc((size_t)l->size, sizeof *all);
    int connected = 0, listener = l->rank == 0 ? invite(&mine) : -1;
    int error = all ? f->ops->allgather(f, &mine, all, sizeof mine) : -ENOMEM, state = 0;
    bool done = false;
    if (!error && l->rank != 0)
        done = accept_invitation(l, f, &all[0]);
    if (!error)
        error = count_connected(l, f, done, &connected);
    if (!error && l->rank == 0)
        state = receive_hellos(l, listener, mine.token, connected);
    if (!error && l->rank == 0 && connected < l->size - 1)
        fprintf(stderr,
                "rt: %d of %d ranks found no way to rank 0 by TCP: their death will not be "
                "noticed\n",
                l->size - 1 - connected, l->size - 1);
    if (listener >= 0)
        close(listener);
    free(all);
    return error ? error : gather_pids(l, f, state);
}

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
                                    unsigned timeout_s, rt_death_fn *died, void *data,
                                    int *ret_error, char *message, size_t message_bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct rt_lifeline *l = allocate(f);
    *ret_error = l && l->peers && l->polled && l->stop >= 0 ? 0 : -ENOMEM;
    if (!*ret_error) {
        l->hosts = hosts;
        l->timeout_s = timeout_s;
        l->died = died;
        l->data = data;
        *ret_error = connect_all(l, f);
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
    tell(l, FAREWELL, "", -1);
    release(l);
}

void rt_lifeline_cut(struct rt_lifeline *l, const char *why)
{
    char text[TEXT_MAX];
    if (!l)
        return;
    stop_watching(l);
    if (why) {
        snprintf(text, sizeof text, "rank %d (%.255s, process %d) can't go on: %.180s", l->rank,
                 l->hosts[l->rank], (int)getpid(), why);
        tell(l, DEATH, text, -1);
    }
    release(l);
}
