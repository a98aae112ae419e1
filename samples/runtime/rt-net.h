/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-net.h - this host's addresses, and TCP sockets that meet deadlines.
 *
 * Sockets are nonblocking and closed on exec. Times are rt_now_ns's. Waiting sleeps in poll.
 * Errors: negative errno; -ETIMEDOUT the deadline has passed, -ECONNRESET the other end has closed.
 */
#ifndef RT_NET_H
#define RT_NET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rt-clock.h"

/* An address with its port. */
union rt_net_place {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* An address of the interfaces named in RT_INTERFACE (comma separated; the first that this host
 * has), of family `family`, AF_UNSPEC: any, IPv4 before IPv6. 0 where RT_INTERFACE isn't set; 1,
 * and the address, port 0; or -ENODEV and a message, which lists what there is. */
int rt_net_interface(int family, union rt_net_place *ret, char *message, size_t message_bytes);
/* A word that two processes share whose loopback is one: host and network namespace. */
void rt_net_machine(char *ret, size_t bytes);
/* Of two processes of one machine: a word that they share if process numbers mean the same to both.
 * In containers they don't, though these may share the network. "" without /proc. */
void rt_net_memory(char *ret, size_t bytes);

/* Listens at `at`; where its port is 0 on any free one, which is put there. Returns the socket. */
int rt_net_listen(union rt_net_place *at);
/* ... on any free port of all this host's addresses, of both families where there are both. */
int rt_net_listen_anywhere(union rt_net_place *ret);
/* From the address `from`, NULL any. -ECONNREFUSED nobody listens there. */
int rt_net_connect(const union rt_net_place *to, const union rt_net_place *from,
                   uint64_t deadline_ns);
/* -EAGAIN: nobody is there. -EMFILE and the like: somebody is, and there is no room. */
int rt_net_accept(int listener);
/* What has come, at most `bytes`: how many; -EAGAIN none. */
int rt_net_receive_some(int fd, void *data, size_t bytes);
/* All of it, before the deadline. */
int rt_net_send(int fd, const void *data, size_t bytes, uint64_t deadline_ns);
int rt_net_receive(int fd, void *data, size_t bytes, uint64_t deadline_ns);
void rt_net_set_port(union rt_net_place *place, uint16_t port);
uint16_t rt_net_port(const union rt_net_place *place);
bool rt_net_is_loopback(const union rt_net_place *place);
/* Without its port: "10.0.0.1" */
void rt_net_address(const union rt_net_place *place, char *ret, size_t bytes);
/* "10.0.0.1:4000", "[fd00::1]:4000" */
void rt_net_text(const union rt_net_place *place, char *ret, size_t bytes);

#endif
