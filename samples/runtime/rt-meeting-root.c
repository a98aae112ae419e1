/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 at the rendezvous: takes in who comes, and tells all of all. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rt-door.h"
#include "rt-meeting.h"
#include "rt-root.h"

struct hall {
    struct rt_meeting *m;
    struct rt_door door;
    int *fds; /* by rank, of those that have come */
    int come;
    uint64_t end_ns;
    char problem[RT_MEETING_TEXT_MAX];
    char turned_away[400]; /* the last of another job; "" */
};

/* ---- problems ---- */

/* The first is told. Who comes now is told, too, but not waited for long. */
__attribute__((format(printf, 2, 3))) static void problem(struct hall *h, const char *format, ...)
{
    const uint64_t soon = rt_now_ns() + RT_MEETING_LATER_NS;
    va_list args;
    if (*h->problem)
        return;
    va_start(args, format);
    vsnprintf(h->problem, sizeof h->problem, format, args);
    va_end(args);
    if (h->end_ns > soon)
        h->end_ns = soon;
}

static void problem_of(struct hall *h, int rank)
{
    const struct rt_card *c = &h->m->job->cards[rank];
    if (*c->problem)
        problem(h, "rank %d (%.100s, process %d): %.500s", rank, c->host, (int)c->pid, c->problem);
}

static void answer(const struct hall *h, int fd, const char *text)
{
    const struct rt_job *job = h->m->job;
    const uint64_t end = rt_now_ns() + RT_MEETING_LATER_NS;
    struct rt_answer a = {.magic = RT_MEETING_MAGIC, .word = job->word};
    snprintf(a.problem, sizeof a.problem, "%s", text);
    /* a rank that got no answer says so itself */
    if (rt_net_send(fd, &a, sizeof a, end) == 0 && !*text)
        rt_net_send(fd, job->cards, (size_t)job->size * sizeof *job->cards, end);
}

/* "missing: rank 1 3-7" */
static void say_missing(struct hall *h)
{
    char where[80], list[400] = "", strangers[80] = "";
    const int size = h->m->job->size, missing = size - 1 - h->come;
    size_t n = 0;
    for (int r = 1; r < size && n < sizeof list - 24; r++) {
        int last = r;
        if (h->fds[r] >= 0)
            continue;
        while (last + 1 < size && h->fds[last + 1] < 0)
            last++;
        if (last - r >= 2)
            n += (size_t)snprintf(list + n, sizeof list - n, " %d-%d", r, last);
        else
            n += (size_t)snprintf(list + n, sizeof list - n, " %d", r);
        r = last - r >= 2 ? last : r;
    }
    if (h->door.strangers > 0)
        snprintf(strangers, sizeof strangers, "; %d connections came that were no ranks'",
                 h->door.strangers);
    rt_net_text(&h->m->root, where, sizeof where);
    problem(h,
            "after %ld s (RT_START_TIMEOUT) %d of %d ranks have not come to rank 0 at %s; missing: "
            "rank%s%s%s%s%s",
            h->m->seconds, missing, size, where, list, n < sizeof list - 24 ? "" : " ...",
            strangers, *h->turned_away ? "; turned away: " : "", h->turned_away);
}

/* Nobody else gets in. */
static void no_way_in(struct hall *h, int error)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (error == -EMFILE)
        problem(h,
                "rank 0 can't take in all ranks: its %ld descriptors (ulimit -n) are in use, %d of "
                "%d ranks have come",
                (long)limit.rlim_cur, h->come + 1, h->m->job->size);
    else
        problem(h, "rank 0 can't take in all ranks: %s; %d of %d ranks have come", strerror(-error),
                h->come + 1, h->m->job->size);
}

/* ---- who comes ---- */

/* Left before it had an answer. */
static bool has_gone(int fd)
{
    char byte;
    const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Another may come in the place of one that was killed while it waited. */
static bool all_are_here(struct hall *h)
{
    const int others = h->m->job->size - 1;
    for (int r = 1; r <= others && h->come == others; r++) {
        if (has_gone(h->fds[r])) {
            close(h->fds[r]);
            h->fds[r] = -1;
            h->come--;
        }
    }
    return h->come == others;
}

/* Who has another name than this job, or none where this one has one, or the reverse, is no concern
 * of this job's. */
static bool is_of_another_job(struct hall *h, const struct rt_hello *o, const char *who)
{
    const char *mine = h->m->mine.job;
    char name[90] = "a job without RT_JOB";
    if (strcmp(o->job, mine) == 0)
        return false;
    if (*o->job)
        snprintf(name, sizeof name, "job '%s' (RT_JOB)", o->job);
    snprintf(h->turned_away, sizeof h->turned_away,
             "%s of %s; the job that waits at its RT_PORT has %s RT_JOB: set another RT_PORT, or "
             "RT_JOB alike on all ranks of a job",
             who, name, *mine ? (*o->job ? "another" : "an") : "no");
    return true;
}

/* Whether this one is no rank of ours; it is told why. */
static bool refuse(struct hall *h, int fd, const struct rt_hello *o)
{
    const struct rt_job *job = h->m->job;
    char who[200];
    snprintf(who, sizeof who, "process %d of %.100s is rank %d of %d", (int)o->card.pid,
             o->card.host, (int)o->rank, (int)o->size);
    if (is_of_another_job(h, o, who)) {
        answer(h, fd, h->turned_away);
        return true;
    }
    if (o->size != job->size || o->rank >= job->size) {
        problem(h,
                "%s, but rank 0 has %d ranks: RT_RANK and RT_SIZE are wrong, or another job comes "
                "to the same RT_PORT; jobs with RT_JOB, a name of each, are told apart",
                who, job->size);
    } else if (o->rank == 0) {
        problem(h, "%s, and rank 0 is process %d of %.100s: RT_RANK is wrong", who,
                (int)job->cards[0].pid, job->cards[0].host);
    } else if (h->fds[o->rank] >= 0 && !has_gone(h->fds[o->rank])) {
        problem(h,
                "%s, and process %d of %.100s is that too: RT_RANK is wrong, or another job comes "
                "to the same RT_PORT; jobs with RT_JOB, a name of each, are told apart",
                who, (int)job->cards[o->rank].pid, job->cards[o->rank].host);
    } else {
        return false;
    }
    answer(h, fd, h->problem);
    return true;
}

#define END_TEXT(text) ((text)[sizeof(text) - 1] = 0)

static bool may_be_hello(void *data, const void *hello, size_t got)
{
    const size_t known = sizeof((struct rt_hello *)NULL)->magic;
    (void)data;
    return memcmp(hello, RT_MEETING_MAGIC, got < known ? got : known) == 0;
}

static bool welcome(void *data, int fd, void *hello)
{
    struct hall *h = data;
    struct rt_hello *o = hello;
    END_TEXT(o->job);
    END_TEXT(o->card.host);
    END_TEXT(o->card.machine);
    END_TEXT(o->card.problem);
    if (o->rank < 0)
        h->door.strangers++;
    if (o->rank < 0 || refuse(h, fd, o))
        return false;
    if (h->fds[o->rank] >= 0)
        close(h->fds[o->rank]);
    else
        h->come++;
    h->fds[o->rank] = fd;
    h->m->job->cards[o->rank] = o->card;
    problem_of(h, o->rank);
    return true;
}

static int receive_ranks(struct hall *h)
{
    struct rt_meeting *m = h->m;
    const int others = m->job->size - 1;
    int error = 0;
    h->end_ns = rt_now_ns() + (uint64_t)m->seconds * 1000000000u;
    m->job->cards[0] = m->mine.card;
    problem_of(h, 0);
    while (!error && !all_are_here(h) && rt_now_ns() < h->end_ns)
        error = rt_door_serve(&h->door, h->end_ns);
    if (error)
        no_way_in(h, error);
    if (h->come < others)
        say_missing(h);
    for (int r = 1; r <= others; r++)
        if (h->fds[r] >= 0)
            answer(h, h->fds[r], h->problem);
    return *h->problem ? rt_meeting_fail(m, -ETIMEDOUT, "%s", h->problem) : 0;
}

/* ---- from begin to end ---- */

/* The launcher's socket, if it is one that listens at RT_PORT: what this process has now under that
 * number may be anything. It stays open, for the next rt_init. */
static int handed_down(struct rt_meeting *m)
{
    const char *text = getenv("RT_LISTEN_FD");
    const int fd = text && *text ? atoi(text) : -1;
    int listens = 0;
    socklen_t bytes = sizeof listens, place_bytes = sizeof m->root;
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) || !listens ||
        getsockname(fd, &m->root.any, &place_bytes) || rt_net_port(&m->root) != m->port)
        return -1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static int listen_at_root(struct rt_meeting *m)
{
    const int fd = handed_down(m);
    return fd >= 0 ? fd
                   : rt_root_listen(m->address, m->port, &m->interface, &m->root, m->message,
                                    m->message_bytes);
}

static void leave(struct hall *h)
{
    for (int r = 0; h->fds && r < h->m->job->size; r++)
        if (h->fds[r] >= 0)
            close(h->fds[r]);
    free(h->fds);
    rt_door_close(&h->door);
    close(h->door.listener);
}

int rt_meeting_be_root(struct rt_meeting *m)
{
    const int size = m->job->size;
    struct hall h = {.m = m};
    h.door = (struct rt_door){.listener = listen_at_root(m),
                              .ranks = size,
                              .hello_bytes = sizeof(struct rt_hello),
                              .may_be = may_be_hello,
                              .welcome = welcome,
                              .data = &h};
    if (h.door.listener < 0)
        return h.door.listener;
    h.fds = malloc((size_t)size * sizeof *h.fds);
    int error = h.fds && rt_door_open(&h.door) == 0 ? 0 : rt_meeting_fail(m, -ENOMEM, "no memory");
    for (int r = 0; r < size && h.fds; r++)
        h.fds[r] = -1;
    if (!error && getrandom(&m->job->word, sizeof m->job->word, 0) != sizeof m->job->word)
        error = rt_meeting_fail(m, -EIO, "no random numbers: %s", strerror(errno));
    if (!error) {
        rt_meeting_listen(m, &m->root);
        error = receive_ranks(&h);
    }
    leave(&h);
    return error;
}
