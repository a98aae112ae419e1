/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-lifeline-parts.h - what the lifeline knows, and its parts: how it is connected, and who gives
 * no answer.
 *
 * Of rt-lifeline alone.
 */
#ifndef RT_LIFELINE_PARTS_H
#define RT_LIFELINE_PARTS_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "rt-lifeline.h"

#define RT_LIFELINE_TEXT_MAX 512

/* The first byte of all that is said. */
enum rt_lifeline_word {
    RT_FAREWELL = 'F',
    RT_DEATH = 'D',    /* a text follows, of RT_LIFELINE_TEXT_MAX bytes */
    RT_QUESTION = 'Q', /* are you there? */
    RT_ANSWER = 'A',
};

/* The other end of a connection. */
struct peer {
    int fd; /* -1 none */
    int pid;
    uint64_t start;  /* of its process; 0: not to be seen from here */
    bool left;       /* said farewell */
    bool asked;      /* and hasn't answered yet */
    unsigned silent; /* looks since */
};

struct rt_lifeline {
    int rank, size;
    const char (*hosts)[RT_HOST_MAX];
    struct peer *peers; /* by rank; but for rank 0 only that of rank 0 */
    struct pollfd *polled;
    struct rt_lifeline_user user;
    uint64_t looked_ns;
    int stop; /* an eventfd; read by nobody, so that it stays readable */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool known; /* a death */
};

/* rt-lifeline-connect.c. Collective. */
int rt_lifeline_connect(struct rt_lifeline *l, struct rt_fabric *f);

/* rt-lifeline-ask.c, of the lifeline's thread. How long it may sleep, for poll. */
int rt_lifeline_rest_ms(const struct rt_lifeline *l);
/* Asks who is there, where it is time, and says who hasn't answered for long. */
void rt_lifeline_look(struct rt_lifeline *l);
void rt_lifeline_answered(struct rt_lifeline *l, int rank);

#endif
