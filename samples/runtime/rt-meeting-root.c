/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 at the rendezvous: takes in who comes, and tells all of all. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rt-meeting.h"
#include "rt-root.h"

#define HELLO_NS 5000000000u /* who connects says hello at once */
#define HURRY_NS 250000000u  /* ... at the latest so long after, where others want the place */
#define CALLERS  64          /* beside one a rank */

/* A connection whose hello isn't complete. */
struct caller {
    int fd; /* -1: none */
    size_t got;
    uint64_t since_ns;
    struct rt_hello hello;
};

struct hall {
    struct rt_meeting *m;
    int listener;
    int *fds; /* by rank, of those that have come */
    int come, strangers;
    uint64_t end_ns;
    char problem[RT_MEETING_TEXT_MAX];
    struct caller *callers;
    struct pollfd *polled; /* the listener, then callers */
    int room;
    bool is_full; /* somebody is at the door, for whom there is no place yet */
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

static void turn_away(struct caller *c)
{
    close(c->fd);
    c->fd = -1;
}

/* "missing: rank 1 3-7" */
static void say_missing(struct hall *h)
{
    char where[80], list[600] = "", strangers[80] = "";
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
    if (h->strangers > 0)
        snprintf(strangers, sizeof strangers, "; %d connections came that were no ranks'",
                 h->strangers);
    rt_net_text(&h->m->root, where, sizeof where);
    problem(h,
            "after %ld s (RT_START_TIMEOUT) %d of %d ranks have not come to rank 0 at %s; missing: "
            "rank%s%s%s",
            h->m->seconds, missing, size, where, list, n < sizeof list - 24 ? "" : " ...",
            strangers);
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
    h->end_ns = 0;
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

/* Whether this one is no rank of ours; it is told why. */
static bool refuse(struct hall *h, const struct caller *c)
{
    const struct rt_hello *o = &c->hello;
    const struct rt_job *job = h->m->job;
    char who[200];
    snprintf(who, sizeof who, "process %d of %.100s is rank %d of %d", (int)o->card.pid,
             o->card.host, (int)o->rank, (int)o->size);
    if (*o->job && *h->m->mine.job && strcmp(o->job, h->m->mine.job) != 0) {
        char text[300];
        snprintf(text, sizeof text,
                 "%s of another job (RT_JOB) than the one that waits at its RT_PORT", who);
        answer(h, c->fd, text);
        h->strangers++;
        return true;
    }
    if (o->size != job->size || o->rank >= job->size) {
        problem(h,
                "%s, but rank 0 has %d ranks: RT_RANK and RT_SIZE are wrong, or another job waits "
                "at the same RT_PORT",
                who, job->size);
    } else if (o->rank == 0) {
        problem(h, "%s, and rank 0 is process %d of %.100s: RT_RANK is wrong", who,
                (int)job->cards[0].pid, job->cards[0].host);
    } else if (h->fds[o->rank] >= 0 && !has_gone(h->fds[o->rank])) {
        problem(h,
                "%s, and process %d of %.100s is that too: RT_RANK is wrong, or another job waits "
                "at the same RT_PORT",
                who, (int)job->cards[o->rank].pid, job->cards[o->rank].host);
    } else {
        return false;
    }
    answer(h, c->fd, h->problem);
    return true;
}

#define END_TEXT(text) ((text)[sizeof(text) - 1] = 0)

static void welcome(struct hall *h, struct caller *c)
{
    struct rt_hello *o = &c->hello;
    END_TEXT(o->job);
    END_TEXT(o->card.host);
    END_TEXT(o->card.machine);
    END_TEXT(o->card.problem);
    if (o->rank < 0)
        h->strangers++;
    if (o->rank < 0 || refuse(h, c)) {
        turn_away(c);
        return;
    }
    if (h->fds[o->rank] >= 0)
        close(h->fds[o->rank]);
    else
        h->come++;
    h->fds[o->rank] = c->fd;
    c->fd = -1;
    h->m->job->cards[o->rank] = o->card;
    problem_of(h, o->rank);
}

static void hear(struct hall *h, struct caller *c)
{
    ssize_t n = recv(c->fd, (char *)&c->hello + c->got, sizeof c->hello - c->got, MSG_DONTWAIT);
    const bool has_closed = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (n > 0)
        c->got += (size_t)n;
    const size_t known = c->got < sizeof c->hello.magic ? c->got : sizeof c->hello.magic;
    if (has_closed || memcmp(c->hello.magic, RT_MEETING_MAGIC, known) != 0) {
        h->strangers++;
        turn_away(c);
    } else if (c->got == sizeof c->hello) {
        welcome(h, c);
    }
}

/* Free; or of the one that is silent longest, NULL where that isn't long. */
static struct caller *find_place(struct hall *h, bool free)
{
    struct caller *oldest = NULL;
    for (int i = 0; i < h->room; i++) {
        struct caller *c = &h->callers[i];
        if (free && c->fd < 0)
            return c;
        if (c->fd >= 0 && (!oldest || c->since_ns < oldest->since_ns))
            oldest = c;
    }
    if (!oldest || rt_now_ns() - oldest->since_ns < HURRY_NS)
        return NULL;
    h->strangers++;
    turn_away(oldest);
    return oldest;
}

static bool has_callers(const struct hall *h)
{
    for (int i = 0; i < h->room; i++)
        if (h->callers[i].fd >= 0)
            return true;
    return false;
}

static void let_in(struct hall *h)
{
    struct caller *c = NULL;
    for (int i = 0; i < h->room && (c = find_place(h, true)); i++) {
        int fd = rt_net_accept(h->listener);
        if (fd == -EMFILE && has_callers(h)) {
            c = find_place(h, false);
            fd = c ? rt_net_accept(h->listener) : -EBUSY;
        }
        h->is_full = fd == -EBUSY;
        if (fd == -EAGAIN || fd == -ECONNABORTED || fd == -EINTR || fd == -EBUSY)
            return;
        if (fd < 0) {
            no_way_in(h, fd);
            return;
        }
        *c = (struct caller){.fd = fd, .since_ns = rt_now_ns()};
    }
    h->is_full = !c;
}

static void drop_silent(struct hall *h, uint64_t now)
{
    for (int i = 0; i < h->room; i++) {
        if (h->callers[i].fd >= 0 && now - h->callers[i].since_ns > HELLO_NS) {
            h->strangers++;
            turn_away(&h->callers[i]);
        }
    }
}

static void wait_for_callers(struct hall *h)
{
    const uint64_t now = rt_now_ns();
    const uint64_t rest = now < h->end_ns ? h->end_ns - now : 0;
    const uint64_t most = h->is_full ? HURRY_NS / 4 : HELLO_NS;
    nfds_t n = 1, at = 1;
    drop_silent(h, now);
    h->polled[0] = (struct pollfd){.fd = h->is_full ? -1 : h->listener, .events = POLLIN};
    for (int i = 0; i < h->room; i++) /* poll takes no more than there may be descriptors */
        if (h->callers[i].fd >= 0)
            h->polled[n++] = (struct pollfd){.fd = h->callers[i].fd, .events = POLLIN};
    const int got = poll(h->polled, n, (int)((rest < most ? rest : most) / 1000000) + 1);
    if (got < 0 && errno != EINTR)
        no_way_in(h, -errno);
    if (got < 0)
        return;
    for (int i = 0; i < h->room && at < n; i++)
        if (h->callers[i].fd >= 0 && h->polled[at++].revents)
            hear(h, &h->callers[i]);
    if (h->polled[0].revents || h->is_full)
        let_in(h);
}

static int receive_ranks(struct hall *h)
{
    struct rt_meeting *m = h->m;
    const int others = m->job->size - 1;
    h->end_ns = rt_now_ns() + (uint64_t)m->seconds * 1000000000u;
    m->job->cards[0] = m->mine.card;
    problem_of(h, 0);
    while (!all_are_here(h) && rt_now_ns() < h->end_ns)
        wait_for_callers(h);
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
    for (int i = 0; h->callers && i < h->room; i++)
        if (h->callers[i].fd >= 0)
            close(h->callers[i].fd);
    free(h->fds);
    free(h->callers);
    free(h->polled);
    close(h->listener);
}

int rt_meeting_be_root(struct rt_meeting *m)
{
    const int size = m->job->size;
    struct hall h = {.m = m, .room = size + CALLERS};
    h.listener = listen_at_root(m);
    if (h.listener < 0)
        return h.listener;
    h.fds = malloc((size_t)size * sizeof *h.fds);
    h.callers = calloc((size_t)h.room, sizeof *h.callers);
    h.polled = calloc((size_t)h.room + 1, sizeof *h.polled);
    int error = h.fds && h.callers && h.polled ? 0 : rt_meeting_fail(m, -ENOMEM, "no memory");
    for (int r = 0; r < size && h.fds; r++)
        h.fds[r] = -1;
    for (int i = 0; i < h.room && h.callers; i++)
        h.callers[i].fd = -1;
    if (!error && getrandom(&m->job->word, sizeof m->job->word, 0) != sizeof m->job->word)
        error = rt_meeting_fail(m, -EIO, "no random numbers: %s", strerror(errno));
    if (!error) {
        rt_meeting_listen(m, &m->root);
        error = receive_ranks(&h);
    }
    leave(&h);
    return error;
}
