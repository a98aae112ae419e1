/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- addresses ---- */

static bool is_named(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && memcmp(at, name, n) == 0)
            return true;
    return false;
}

/* No link-local address, which means nothing without an interface. */
static bool take(const struct ifaddrs *i, const char *wanted, int family, union rt_net_place *ret)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || !is_named(wanted, i->ifa_name) ||
        i->ifa_addr->sa_family != family)
        return false;
    memset(ret, 0, sizeof *ret);
    if (family == AF_INET)
        memcpy(&ret->v4, i->ifa_addr, sizeof ret->v4);
    else
        memcpy(&ret->v6, i->ifa_addr, sizeof ret->v6);
    return family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&ret->v6.sin6_addr);
}

static void say_interfaces(const struct ifaddrs *all, const char *wanted, int family, char *message,
                           size_t bytes)
{
    size_t n = (size_t)snprintf(
        message, bytes, "RT_INTERFACE is '%s', which has no address%s here; this host has:", wanted,
        family == AF_INET    ? " of IPv4"
        : family == AF_INET6 ? " of IPv6"
                             : "");
    for (const struct ifaddrs *i = all; i && n < bytes; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET)
            n += (size_t)snprintf(message + n, bytes - n, " %s%s", i->ifa_name,
                                  i->ifa_flags & IFF_UP ? "" : " (down)");
}

static int find(const struct ifaddrs *all, const char *wanted, int family, union rt_net_place *ret)
{
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        if (take(i, wanted, family, ret))
            return 1;
    return 0;
}

int rt_net_interface(int family, union rt_net_place *ret, char *message, size_t message_bytes)
{
    const char *wanted = getenv("RT_INTERFACE");
    struct ifaddrs *all;
    int found = 0;
    if (!wanted || !*wanted)
        return 0;
    if (getifaddrs(&all)) {
        const int error = -errno;
        snprintf(message, message_bytes, "getifaddrs: %s", strerror(-error));
        return error;
    }
    if (family != AF_INET6)
        found = find(all, wanted, AF_INET, ret);
    if (!found && family != AF_INET)
        found = find(all, wanted, AF_INET6, ret);
    if (!found)
        say_interfaces(all, wanted, family, message, message_bytes);
    freeifaddrs(all);
    return found ? 1 : -ENODEV;
}

void rt_net_machine(char *ret, size_t bytes)
{
    char name[256] = "";
    struct stat st;
    gethostname(name, sizeof name - 1);
    snprintf(ret, bytes, "%s/%lu", name,
             stat("/proc/self/ns/net", &st) == 0 ? (unsigned long)st.st_ino : 0);
}

void rt_net_memory(char *ret, size_t bytes)
{
    struct stat numbers;
    if (stat("/proc/self/ns/pid", &numbers))
        snprintf(ret, bytes, "%s", "");
    else
        snprintf(ret, bytes, "%lu", (unsigned long)numbers.st_ino);
}

void rt_net_set_port(union rt_net_place *place, uint16_t port)
{
    if (place->any.sa_family == AF_INET6)
        place->v6.sin6_port = htons(port);
    else
        place->v4.sin_port = htons(port);
}

uint16_t rt_net_port(const union rt_net_place *place)
{
    return ntohs(place->any.sa_family == AF_INET6 ? place->v6.sin6_port : place->v4.sin_port);
}

bool rt_net_is_loopback(const union rt_net_place *place)
{
    const struct in6_addr *a = &place->v6.sin6_addr;
    if (place->any.sa_family == AF_INET)
        return (ntohl(place->v4.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
    return place->any.sa_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(a) ||
            (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == IN_LOOPBACKNET));
}

void rt_net_address(const union rt_net_place *place, char *ret, size_t bytes)
{
    const bool is_v6 = place->any.sa_family == AF_INET6;
    snprintf(ret, bytes, "?");
    inet_ntop(place->any.sa_family,
              is_v6 ? (const void *)&place->v6.sin6_addr : (const void *)&place->v4.sin_addr, ret,
              (socklen_t)bytes);
}

void rt_net_text(const union rt_net_place *place, char *ret, size_t bytes)
{
    char text[INET6_ADDRSTRLEN];
    rt_net_address(place, text, sizeof text);
    snprintf(ret, bytes, place->any.sa_family == AF_INET6 ? "[%s]:%d" : "%s:%d", text,
             rt_net_port(place));
}

/* ---- sockets ---- */

static socklen_t bytes_of(const union rt_net_place *place)
{
    return place->any.sa_family == AF_INET6 ? sizeof place->v6 : sizeof place->v4;
}

static int open_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

int rt_net_listen(union rt_net_place *at)
{
    socklen_t bytes = bytes_of(at);
    int fd = open_socket(at->any.sa_family), on = 1, off = 0;
    if (fd < 0)
        return fd;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, &at->any, bytes) || listen(fd, SOMAXCONN) || getsockname(fd, &at->any, &bytes)) {
        const int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

int rt_net_listen_anywhere(union rt_net_place *ret)
{
    *ret = (union rt_net_place){.v6 = {.sin6_family = AF_INET6}};
    int fd = rt_net_listen(ret);
    if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) {
        *ret = (union rt_net_place){.v4 = {.sin_family = AF_INET}};
        fd = rt_net_listen(ret);
    }
    return fd;
}

static int wait_for(int fd, short events, uint64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    for (;;) {
        const uint64_t now = rt_now_ns();
        if (now >= deadline_ns)
            return -ETIMEDOUT;
        const int n = poll(&p, 1, (int)((deadline_ns - now) / 1000000) + 1);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}

/* On one host a port that nobody listens on may be given to the socket that tries it: TCP connects
 * it to itself. */
static bool is_itself(int fd)
{
    union rt_net_place near = {0}, far = {0};
    socklen_t near_bytes = sizeof near, far_bytes = sizeof far;
    return getsockname(fd, &near.any, &near_bytes) == 0 &&
           getpeername(fd, &far.any, &far_bytes) == 0 && near_bytes == far_bytes &&
           memcmp(&near, &far, near_bytes) == 0;
}

int rt_net_connect(const union rt_net_place *to, const union rt_net_place *from,
                   uint64_t deadline_ns)
{
    int fd = open_socket(to->any.sa_family), error = 0;
    socklen_t bytes = sizeof error;
    if (fd < 0)
        return fd;
    if (from && bind(fd, &from->any, bytes_of(from)))
        error = errno;
    else if (connect(fd, &to->any, bytes_of(to)) && errno != EINPROGRESS && errno != EINTR)
        error = errno;
    if (!error)
        error = -wait_for(fd, POLLOUT, deadline_ns);
    if (!error && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes))
        error = errno;
    if (!error && is_itself(fd))
        error = ECONNREFUSED;
    if (!error)
        return fd;
    close(fd);
    return -error;
}

int rt_net_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    if (fd < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

int rt_net_send(int fd, const void *data, size_t bytes, uint64_t deadline_ns)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n >= 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (errno == EAGAIN) {
            int error = wait_for(fd, POLLOUT, deadline_ns);
            if (error)
                return error;
        } else if (errno != EINTR) {
            return errno == EPIPE ? -ECONNRESET : -errno;
        }
    }
    return 0;
}

int rt_net_receive_some(int fd, void *data, size_t bytes)
{
    ssize_t n;
    do
        n = recv(fd, data, bytes < INT_MAX ? bytes : INT_MAX, 0);
    while (n < 0 && errno == EINTR);
    return n > 0 ? (int)n : n == 0 ? -ECONNRESET : -errno;
}

int rt_net_receive(int fd, void *data, size_t bytes, uint64_t deadline_ns)
{
    char *at = data;
    while (bytes > 0) {
        int n = rt_net_receive_some(fd, at, bytes);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (n == -EAGAIN) {
            int error = wait_for(fd, POLLIN, deadline_ns);
            if (error)
                return error;
        } else {
            return n;
        }
    }
    return 0;
}
