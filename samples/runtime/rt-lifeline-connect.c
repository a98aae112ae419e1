/* SPDX-License-Identifier: Apache-2.0 */
/* The lifeline's connections: all ranks connect to rank 0, which knows them from strangers. */
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt-door.h"
#include "rt-lifeline-parts.h"
#include "rt-net.h"
#include "rt-process.h"

#define ADDRESS_MAX 16
#define CONNECT_NS  2000000000u
#define HELLOS_NS   10000000000u /* of all; they come with the connections */

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
    const unsigned limit_ms = timeout_s ? timeout_s * 1000 : INT_MAX;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
    if (timeout_s == 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
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
    ask_for_signs_of_life(fd, l->user.timeout_s);
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
    ask_for_signs_of_life(fd, g->l->user.timeout_s);
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

/* ---- all together ---- */

/* What each says of its process. */
struct introduction {
    int32_t pid, error;
    uint64_t start;
    char machine[RT_HOST_MAX + 32], memory[48];
};

/* And whether rank 0 has a connection to each that has one to it; if not no rank begins. */
static int introduce(struct rt_lifeline *l, struct rt_fabric *f, int state)
{
    struct introduction mine = {.pid = (int32_t)getpid(), .error = state};
    struct introduction *all = calloc((size_t)l->size, sizeof *all);
    mine.start = rt_process_start(mine.pid);
    rt_net_machine(mine.machine, sizeof mine.machine);
    rt_net_memory(mine.memory, sizeof mine.memory);
    int error = all ? f->ops->allgather(f, &mine, all, sizeof mine) : -ENOMEM;
    for (int r = 0; r < l->size && !error; r++) {
        const bool is_beside = *mine.memory &&
                               memcmp(all[r].memory, mine.memory, sizeof mine.memory) == 0 &&
                               memcmp(all[r].machine, mine.machine, sizeof mine.machine) == 0;
        l->peers[r].pid = all[r].pid;
        l->peers[r].start = is_beside ? all[r].start : 0;
    }
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

int rt_lifeline_connect(struct rt_lifeline *l, struct rt_fabric *f)
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
    return error ? error : introduce(l, f, state);
}
