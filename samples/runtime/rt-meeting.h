/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-meeting.h - one rank's part in the rendezvous: rank 0's, and that of the others.
 *
 * Of rt-rendezvous alone.
 */
#ifndef RT_MEETING_H
#define RT_MEETING_H

#include "rt-rendezvous.h"

#define RT_MEETING_MAGIC    "RT-TCP2"
#define RT_MEETING_LATER_NS 3000000000u /* rank 0's answer comes so long after its deadline */
#define RT_MEETING_TEXT_MAX 1024

struct rt_hello {
    char magic[8];
    int32_t rank, size;
    char job[64]; /* RT_JOB; "" */
    struct rt_card card;
};

struct rt_answer {
    char magic[8];
    struct rt_word word;
    char problem[RT_MEETING_TEXT_MAX]; /* "": the cards of all follow */
};

struct rt_meeting {
    struct rt_job *job;
    struct rt_links *links;
    struct rt_hello mine;
    const char *address; /* RT_ADDR */
    long port, seconds;
    union rt_net_place root, interface; /* `interface` where family is set */
    char *message;
    size_t message_bytes;
};

/* Both fill the cards and the word, or give a message. */
int rt_meeting_be_root(struct rt_meeting *m);
int rt_meeting_be_guest(struct rt_meeting *m);

/* Fills the message; returns `error`. */
__attribute__((format(printf, 3, 4))) int rt_meeting_fail(const struct rt_meeting *m, int error,
                                                          const char *format, ...);
/* Other ranks reach this one at `own`; what is wrong stands in the card. */
int rt_meeting_listen(struct rt_meeting *m, const union rt_net_place *own);

#endif
