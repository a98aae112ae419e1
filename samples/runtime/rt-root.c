/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-root.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int rt_root_resolve(const char *address, long port, int family, int flags, struct addrinfo **ret,
                    char *message, size_t message_bytes)
{
    char text[16];
    const struct addrinfo hints = {
        .ai_socktype = SOCK_STREAM, .ai_flags = flags, .ai_family = family};
    snprintf(text, sizeof text, "%ld", port);
    const int error = getaddrinfo(address, text, &hints, ret);
    if (!error)
        return 0;
    snprintf(message, message_bytes, "RT_ADDR is '%s': %s", address, gai_strerror(error));
    return -EADDRNOTAVAIL;
}

union rt_net_place rt_root_place(const struct addrinfo *info)
{
    union rt_net_place place = {0};
    if (info->ai_family == AF_INET)
        memcpy(&place.v4, info->ai_addr, sizeof place.v4);
    else
        memcpy(&place.v6, info->ai_addr, sizeof place.v6);
    return place;
}

static int refuse(int error, const char *address, const union rt_net_place *at, char *message,
                  size_t message_bytes)
{
    static const char cant[] = "rank 0 can't wait for the others";
    char text[80];
    rt_net_text(at, text, sizeof text);
    if (error == -EADDRINUSE)
        snprintf(message, message_bytes, "%s: port %d is in use (%s); set another RT_PORT", cant,
                 rt_net_port(at), text);
    else if (error == -EADDRNOTAVAIL)
        snprintf(message, message_bytes, "%s: RT_ADDR, %s, is no address of this host", cant,
                 address);
    else
        snprintf(message, message_bytes, "%s at %s: %s", cant, text, strerror(-error));
    return error;
}

int rt_root_listen(const char *address, long port, const union rt_net_place *interface,
                   union rt_net_place *ret, char *message, size_t message_bytes)
{
    const int family = interface ? interface->any.sa_family : AF_UNSPEC;
    struct addrinfo *infos;
    int error =
        rt_root_resolve(address, port, family, AI_NUMERICHOST, &infos, message, message_bytes);
    const bool by_name = error != 0;
    if (by_name)
        error = rt_root_resolve(address, port, family, 0, &infos, message, message_bytes);
    if (error)
        return error;
    *ret = rt_root_place(infos);
    freeaddrinfo(infos);
    if (by_name && family)
        *ret = *interface;
    else if (by_name)
        *ret = (union rt_net_place){.v6 = {.sin6_family = AF_INET6}};
    rt_net_set_port(ret, (uint16_t)port);
    int fd = rt_net_listen(ret);
    if (fd == -EAFNOSUPPORT && by_name && !family) {
        *ret = (union rt_net_place){.v4 = {.sin_family = AF_INET}};
        rt_net_set_port(ret, (uint16_t)port);
        fd = rt_net_listen(ret);
    }
    return fd >= 0 ? fd : refuse(fd, address, ret, message, message_bytes);
}
