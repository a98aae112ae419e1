/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-door.h - lets in who connects to a port that strangers may find, too.
 *
 * Model: who connects says hello at once, in bytes of a known number. All are heard at the same
 * time, so that a silent one keeps nobody waiting. It is sent away after 5 s; where there is no
 * place or no descriptor left for the next, the one that is silent longest goes, after a quarter of
 * a second.
 *
 * Threads: one. Errors: negative errno.
 */
#ifndef RT_DOOR_H
#define RT_DOOR_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rt_caller;

struct rt_door {
    /* the user's, set before rt_door_open */
    int listener; /* nonblocking; stays the user's */
    int ranks;    /* that may come */
    size_t hello_bytes;
    /* Can this be the begin of a hello? Else it is a stranger's. */
    bool (*may_be)(void *data, const void *hello, size_t got);
    /* Of a whole hello: true, the connection, nonblocking, is the user's; false: it is closed. */
    bool (*welcome)(void *data, int fd, void *hello);
    void *data;
    /* the door's */
    int strangers; /* that said no hello */
    struct rt_caller *callers;
    char *hellos;
    struct pollfd *polled; /* the listener, then callers */
    int room;
    bool is_full; /* somebody is outside, for whom there is no place yet */
};

int rt_door_open(struct rt_door *d);
/* Waits for something to happen, not longer than until then, a time of rt_now_ns. An error: nobody
 * else gets in, -EMFILE for want of descriptors. */
int rt_door_serve(struct rt_door *d, uint64_t end_ns);
/* Sends away who hasn't said hello. Also of a zeroed one, and of one that didn't open. */
void rt_door_close(struct rt_door *d);

#endif
