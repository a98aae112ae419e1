/* SPDX-License-Identifier: Apache-2.0 */
/* The other ranks at the rendezvous: reach rank 0, and hear from it who the others are. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rt-meeting.h"
#include "rt-root.h"

#define TRY_AGAIN_NS 50000000
#define TRY_NS       3000000000u /* one of several addresses */

static int try_root(struct rt_meeting *m, uint64_t deadline_ns, const struct addrinfo *infos)
{
    const union rt_net_place *from = m->interface.any.sa_family ? &m->interface : NULL;
    int fd = -EADDRNOTAVAIL;
    for (const struct addrinfo *i = infos; i && fd < 0; i = i->ai_next) {
        const uint64_t soon = rt_now_ns() + TRY_NS;
        m->root = rt_root_place(i);
        fd = rt_net_connect(&m->root, from,
                            infos->ai_next && soon < deadline_ns ? soon : deadline_ns);
    }
    return fd;
}

static int no_root(struct rt_meeting *m, int error)
{
    char text[80];
    rt_net_text(&m->root, text, sizeof text);
    return rt_meeting_fail(m, error,
                           "rank %d did not reach rank 0 at %s within %ld s (RT_START_TIMEOUT): "
                           "%s; RT_ADDR is %s, RT_PORT %ld",
                           m->job->rank, text, m->seconds, strerror(-error), m->address, m->port);
}

/* This host's own addresses won't change, nor will its limits. */
static bool stays(int error)
{
    return error == -EADDRNOTAVAIL || error == -EINVAL || error == -EMFILE || error == -EACCES ||
           error == -EAFNOSUPPORT;
}

/* Rank 0 may come later. */
static int reach_root(struct rt_meeting *m, uint64_t deadline_ns)
{
    const struct timespec pause = {.tv_nsec = TRY_AGAIN_NS};
    struct addrinfo *infos;
    int why = 0;
    int fd = rt_root_resolve(m->address, m->port, m->interface.any.sa_family, 0, &infos, m->message,
                             m->message_bytes);
    if (fd < 0)
        return fd;
    while ((fd = try_root(m, deadline_ns, infos)) < 0 && rt_now_ns() < deadline_ns && !stays(fd)) {
        why = fd;
        nanosleep(&pause, NULL);
    }
    freeaddrinfo(infos);
    /* the last try had no time */
    return fd < 0 ? no_root(m, fd == -ETIMEDOUT && why ? why : fd) : fd;
}

static int stranger(struct rt_meeting *m)
{
    char text[80];
    rt_net_text(&m->root, text, sizeof text);
    return rt_meeting_fail(m, -EPROTO,
                           "rank %d: what listens at %s is not rank 0: set another RT_PORT",
                           m->job->rank, text);
}

/* Rank 0 looks into RT_PORT's connections once it has begun: what closes or is silent isn't it. */
static int no_answer(struct rt_meeting *m, int error)
{
    if (*m->mine.card.problem)
        return rt_meeting_fail(m, -EINVAL, "%s", m->mine.card.problem);
    if (error == -ECONNRESET)
        return rt_meeting_fail(m, error,
                               "rank %d: rank 0 has ended, or turned this rank away: its message "
                               "says why",
                               m->job->rank);
    return stranger(m);
}

/* Where rank 0 and those beside it are, as seen from here: rank 0 knows its own address otherwise,
 * and by its name others beside it have reached it on the loopback. */
static void fill_in_root(struct rt_meeting *m)
{
    struct rt_card *cards = m->job->cards;
    for (int r = 0; r < m->job->size; r++) {
        const uint16_t port = rt_net_port(&cards[r].place);
        const bool is_beside = strcmp(cards[r].machine, cards[0].machine) == 0 &&
                               strcmp(m->mine.card.machine, cards[0].machine) != 0 &&
                               rt_net_is_loopback(&cards[r].place);
        if (r > 0 && !is_beside)
            continue;
        cards[r].place = m->root;
        rt_net_set_port(&cards[r].place, port);
    }
}

static int be_guest_at(struct rt_meeting *m, int fd, uint64_t deadline_ns)
{
    struct rt_answer answer = {0};
    union rt_net_place own = {0};
    socklen_t bytes = sizeof own;
    getsockname(fd, &own.any, &bytes);
    if (!*m->mine.card.problem)
        rt_meeting_listen(m, &own);
    int error = rt_net_send(fd, &m->mine, sizeof m->mine, deadline_ns);
    if (!error)
        error = rt_net_receive(fd, &answer, sizeof answer, deadline_ns);
    if (error || memcmp(answer.magic, RT_MEETING_MAGIC, sizeof answer.magic) != 0)
        return no_answer(m, error);
    answer.problem[sizeof answer.problem - 1] = 0;
    if (*answer.problem)
        return rt_meeting_fail(m, -ETIMEDOUT, "%s", answer.problem);
    m->job->word = answer.word;
    error = rt_net_receive(fd, m->job->cards, (size_t)m->job->size * sizeof *m->job->cards,
                           deadline_ns);
    if (error)
        return no_root(m, error);
    fill_in_root(m);
    return 0;
}

int rt_meeting_be_guest(struct rt_meeting *m)
{
    const uint64_t end = rt_now_ns() + (uint64_t)m->seconds * 1000000000u;
    int fd = reach_root(m, end);
    if (fd < 0)
        return fd;
    int error = be_guest_at(m, fd, end + RT_MEETING_LATER_NS);
    close(fd);
    return error;
}
