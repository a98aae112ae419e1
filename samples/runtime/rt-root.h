/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-root.h - where rank 0 waits for the others: what RT_ADDR means there.
 */
#ifndef RT_ROOT_H
#define RT_ROOT_H

#include <netdb.h>

#include "rt-net.h"

/* `flags` of getaddrinfo. The caller frees *ret by freeaddrinfo. -EADDRNOTAVAIL and a message. */
int rt_root_resolve(const char *address, long port, int family, int flags, struct addrinfo **ret,
                    char *message, size_t message_bytes);
union rt_net_place rt_root_place(const struct addrinfo *info);

/* Listens at `port`, 0: a free one, of `address`: where that is a number nowhere else, by a name on
 * all of this host's addresses, but on `interface` alone where it isn't NULL and has a family.
 * *ret is where. Returns the socket, or a negative errno and a message. */
int rt_root_listen(const char *address, long port, const union rt_net_place *interface,
                   union rt_net_place *ret, char *message, size_t message_bytes);

#endif
