/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define MAGIC        "RT-TCP1"
#define SHM_BYTES    ((uint64_t)256 << 20) /* left free, or ranks of a host talk by TCP */
#define LATER_NS     3000000000u           /* rank 0's answer comes that long after its deadline */
#define TRY_AGAIN_NS 50000000

struct hello {
    char magic[8];
    int32_t rank, size;
    struct rt_card card;
};

struct answer {
    char magic[8];
    struct rt_word word;
    char problem[1024]; /* "": the cards of all follow */
};

struct meeting {
    struct rt_job *job;
    struct rt_links *links;
    struct rt_card mine;
    const char *address; /* RT_ADDR */
    long port, seconds;
    union rt_net_place root, interface; /* `interface` where family is set */
    char *message;
    size_t message_bytes;
};

__attribute__((format(printf, 3, 4))) static int fail(const struct meeting *m, int error,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(m->message, m->message_bytes, format, args);
    va_end(args);
    return error;
}

/* ---- settings ---- */

/* The first of these that is set: as the tracer looks for them. */
static const char *const rank_names[] = {
    "RT_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK", NULL};
static const char *const size_names[] = {"RT_SIZE",      "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                         "SLURM_NTASKS", "WORLD_SIZE",           NULL};

static int read_number(const struct meeting *m, const char *name, long least, long most, long *ret)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return 0;
    const long value = strtol(text, &end, 10);
    if (*end || value < least || value > most)
        return fail(m, -EINVAL, "%s is '%s', expected a number from %ld to %ld", name, text, least,
                    most);
    *ret = value;
    return 1;
}

static int read_first(const struct meeting *m, const char *const *names, long *ret)
{
    int found = 0;
    for (; *names && found == 0; names++)
        found = read_number(m, *names, 0, 1 << 20, ret);
    return found;
}

static int read_settings(struct meeting *m)
{
    long rank = 0, size = 1;
    m->seconds = 30;
    int got_rank = read_first(m, rank_names, &rank);
    int got_size = got_rank < 0 ? got_rank : read_first(m, size_names, &size);
    if (got_rank < 0 || got_size < 0)
        return -EINVAL;
    if (got_rank != got_size || rank >= size)
        return fail(m, -EINVAL, "rank %ld of %ld: RT_RANK and RT_SIZE are wrong, or not both set",
                    rank, size);
    m->job->rank = (int)rank;
    m->job->size = (int)size;
    int got_port = read_number(m, "RT_PORT", 1, 65535, &m->port);
    if (got_port < 0 || read_number(m, "RT_START_TIMEOUT", 1, 1000000, &m->seconds) < 0)
        return -EINVAL;
    m->address = getenv("RT_ADDR");
    if (size > 1 && (!m->address || !*m->address || got_port == 0))
        return fail(m, -EINVAL,
                    "RT_ADDR and RT_PORT say where rank 0 waits for the others: %s is not set",
                    got_port == 0 ? "RT_PORT" : "RT_ADDR");
    return 0;
}

static void fill_card(struct meeting *m)
{
    const char *host = getenv("RT_HOST");
    struct statvfs shm;
    m->mine.pid = getpid();
    if (host && *host)
        snprintf(m->mine.host, sizeof m->mine.host, "%s", host);
    else
        gethostname(m->mine.host, sizeof m->mine.host - 1);
    rt_net_machine(m->mine.machine, sizeof m->mine.machine);
    m->mine.has_shm =
        statvfs("/dev/shm", &shm) == 0 && (uint64_t)shm.f_bavail * shm.f_frsize >= SHM_BYTES;
}

/* ---- addresses ---- */

static int resolve(struct meeting *m, int flags, struct addrinfo **ret)
{
    char port[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    if (m->interface.any.sa_family)
        hints.ai_family = m->interface.any.sa_family;
    snprintf(port, sizeof port, "%ld", m->port);
    int error = getaddrinfo(m->address, port, &hints, ret);
    return error ? fail(m, -EADDRNOTAVAIL, "RT_ADDR is '%s': %s", m->address, gai_strerror(error))
                 : 0;
}

static union rt_net_place place_of(const struct addrinfo *info)
{
    union rt_net_place place = {0};
    if (info->ai_family == AF_INET)
        memcpy(&place.v4, info->ai_addr, sizeof place.v4);
    else
        memcpy(&place.v6, info->ai_addr, sizeof place.v6);
    return place;
}

/* Where this rank takes part: the family of RT_ADDR, if that says it. */
static int find_interface(struct meeting *m)
{
    struct addrinfo *numeric;
    int family = AF_UNSPEC;
    if (resolve(m, AI_NUMERICHOST, &numeric) == 0) {
        family = numeric->ai_family;
        freeaddrinfo(numeric);
    }
    int found = rt_net_interface(family, &m->interface, m->mine.problem, sizeof m->mine.problem);
    if (found <= 0)
        m->interface.any.sa_family = AF_UNSPEC;
    return found < 0 ? found : 0;
}

/* Data comes to the address by which rank 0 is reached. */
static int listen_for_data(struct meeting *m, const union rt_net_place *own)
{
    m->mine.place = *own;
    rt_net_set_port(&m->mine.place, 0);
    m->links->base.listener = rt_net_listen(&m->mine.place);
    if (m->links->base.listener >= 0)
        return 0;
    snprintf(m->mine.problem, sizeof m->mine.problem, "can't listen for other ranks: %s",
             strerror(-m->links->base.listener));
    return m->links->base.listener;
}

static union rt_net_place own_place(int fd)
{
    union rt_net_place place = {0};
    socklen_t bytes = sizeof place;
    getsockname(fd, &place.any, &bytes);
    return place;
}

/* ---- rank 0 ---- */

/* By its number where RT_ADDR is one: then it listens nowhere else. */
static int listen_at_root(struct meeting *m)
{
    struct addrinfo *infos;
    char text[80];
    int fd = -EADDRNOTAVAIL;
    int error = resolve(m, AI_NUMERICHOST, &infos);
    const bool by_name = error != 0;
    if (by_name)
        error = resolve(m, 0, &infos);
    if (error)
        return error;
    m->root = place_of(infos);
    freeaddrinfo(infos);
    if (by_name && m->interface.any.sa_family)
        m->root = m->interface;
    else if (by_name)
        m->root = (union rt_net_place){.v6 = {.sin6_family = AF_INET6}};
    rt_net_set_port(&m->root, (uint16_t)m->port);
    fd = rt_net_listen(&m->root);
    if (fd == -EAFNOSUPPORT && by_name) {
        m->root = (union rt_net_place){.v4 = {.sin_family = AF_INET}};
        rt_net_set_port(&m->root, (uint16_t)m->port);
        fd = rt_net_listen(&m->root);
    }
    rt_net_text(&m->root, text, sizeof text);
    if (fd == -EADDRINUSE)
        return fail(
            m, fd, "rank 0 can't wait for the others: port %ld is in use (%s); set another RT_PORT",
            m->port, text);
    if (fd == -EADDRNOTAVAIL)
        return fail(m, fd,
                    "rank 0 can't wait for the others: RT_ADDR, %s, is no address of this host",
                    m->address);
    return fd >= 0 ? fd
                   : fail(m, fd, "rank 0 can't wait for the others at %s: %s", text, strerror(-fd));
}

/* A connection whose hello isn't complete. */
struct caller {
    int fd; /* -1: none */
    size_t got;
    struct hello hello;
};

struct hall {
    struct meeting *m;
    int listener;
    int *fds; /* by rank, of those that have come */
    int come;
    char problem[1024];
    struct caller *callers;
    struct pollfd *polled; /* the listener, then callers */
    int room;
};

static void problem_of(struct hall *h, int rank, const char *problem)
{
    const struct rt_card *c = &h->m->job->cards[rank];
    if (!*h->problem)
        snprintf(h->problem, sizeof h->problem, "rank %d (%.100s, process %d): %.500s", rank,
                 c->host, (int)c->pid, problem);
}

static void welcome(struct hall *h, struct caller *c)
{
    struct hello *o = &c->hello;
    const int size = h->m->job->size, rank = o->rank;
    const int fd = c->fd;
    c->fd = -1;
    if (memcmp(o->magic, MAGIC, sizeof o->magic) != 0 || rank < 0) {
        close(fd);
        return;
    }
    if (o->size != size || rank >= size || rank == 0 || h->fds[rank] >= 0) {
        if (!*h->problem)
            snprintf(h->problem, sizeof h->problem,
                     "process %d of %.100s is rank %d of %d, %s: RT_RANK and RT_SIZE are wrong, or "
                     "another job waits at the same RT_PORT",
                     (int)o->card.pid, o->card.host, rank, (int)o->size,
                     o->size != size ? "and rank 0 has another number of ranks"
                                     : "and another process is that too");
        close(fd);
        return;
    }
    h->fds[rank] = fd;
    h->come++;
    h->m->job->cards[rank] = o->card;
    o->card.problem[sizeof o->card.problem - 1] = 0;
    if (*o->card.problem)
        problem_of(h, rank, o->card.problem);
}

static void hear(struct hall *h, struct caller *c)
{
    ssize_t n = recv(c->fd, (char *)&c->hello + c->got, sizeof c->hello - c->got, MSG_DONTWAIT);
    if (n > 0)
        c->got += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(c->fd);
        c->fd = -1;
    }
    if (c->fd >= 0 && c->got == sizeof c->hello)
        welcome(h, c);
}

static void let_in(struct hall *h)
{
    int fd;
    for (int i = 0; i < h->room; i++) {
        if (h->callers[i].fd >= 0)
            continue;
        fd = rt_net_accept(h->listener);
        if (fd < 0)
            return;
        h->callers[i].fd = fd;
        h->callers[i].got = 0;
    }
}

static void wait_for_callers(struct hall *h, uint64_t deadline_ns)
{
    const uint64_t now = rt_net_now_ns();
    h->polled[0] = (struct pollfd){.fd = h->listener, .events = POLLIN};
    for (int i = 0; i < h->room; i++)
        h->polled[i + 1] = (struct pollfd){.fd = h->callers[i].fd, .events = POLLIN};
    if (now >= deadline_ns ||
        poll(h->polled, (nfds_t)h->room + 1, (int)((deadline_ns - now) / 1000000) + 1) <= 0)
        return;
    for (int i = 0; i < h->room; i++)
        if (h->callers[i].fd >= 0 && h->polled[i + 1].revents)
            hear(h, &h->callers[i]);
    if (h->polled[0].revents)
        let_in(h);
}

static void say_missing(struct hall *h)
{
    char where[80];
    rt_net_text(&h->m->root, where, sizeof where);
    size_t n =
        (size_t)snprintf(h->problem, sizeof h->problem,
                         "after %ld s (RT_START_TIMEOUT) %d of %d ranks have not come to rank 0 at "
                         "%s; missing: rank",
                         h->m->seconds, h->m->job->size - 1 - h->come, h->m->job->size, where);
    for (int r = 1; r < h->m->job->size && n + 1 < sizeof h->problem; r++)
        if (h->fds[r] < 0)
            n += (size_t)snprintf(h->problem + n, sizeof h->problem - n, " %d", r);
}

/* A rank that got no answer says so itself. */
static void answer_all(struct hall *h)
{
    const struct rt_job *job = h->m->job;
    const uint64_t end = rt_net_now_ns() + LATER_NS;
    struct answer answer = {.magic = MAGIC, .word = job->word};
    memcpy(answer.problem, h->problem, sizeof answer.problem);
    for (int r = 1; r < job->size; r++)
        if (h->fds[r] >= 0 && rt_net_send(h->fds[r], &answer, sizeof answer, end) == 0 &&
            !*answer.problem)
            rt_net_send(h->fds[r], job->cards, (size_t)job->size * sizeof *job->cards, end);
}

static int receive_ranks(struct hall *h)
{
    struct meeting *m = h->m;
    const uint64_t end = rt_net_now_ns() + (uint64_t)m->seconds * 1000000000u;
    m->job->cards[0] = m->mine;
    if (*m->mine.problem)
        problem_of(h, 0, m->mine.problem);
    /* with a problem, too, the others are awaited: they are told */
    while (h->come < m->job->size - 1 && rt_net_now_ns() < end)
        wait_for_callers(h, end);
    if (h->come < m->job->size - 1 && !*h->problem)
        say_missing(h);
    answer_all(h);
    return *h->problem ? fail(m, -ETIMEDOUT, "%s", h->problem) : 0;
}

static int be_root(struct meeting *m)
{
    const int size = m->job->size;
    struct hall h = {.m = m, .room = size + 16};
    h.listener = listen_at_root(m);
    if (h.listener < 0)
        return h.listener;
    h.fds = malloc((size_t)size * sizeof *h.fds);
    h.callers = calloc((size_t)h.room, sizeof *h.callers);
    h.polled = calloc((size_t)h.room + 1, sizeof *h.polled);
    int error = h.fds && h.callers && h.polled ? 0 : -ENOMEM;
    for (int r = 0; r < size && !error; r++)
        h.fds[r] = -1;
    for (int i = 0; i < h.room && !error; i++)
        h.callers[i].fd = -1;
    if (!error && getrandom(&m->job->word, sizeof m->job->word, 0) != sizeof m->job->word)
        error = -EIO;
    if (!error) {
        listen_for_data(m, &m->root);
        error = receive_ranks(&h);
    }
    for (int r = 0; h.fds && r < size; r++)
        if (h.fds[r] >= 0)
            close(h.fds[r]);
    for (int i = 0; h.callers && i < h.room; i++)
        if (h.callers[i].fd >= 0)
            close(h.callers[i].fd);
    free(h.fds);
    free(h.callers);
    free(h.polled);
    close(h.listener);
    return error;
}

/* ---- the others ---- */

static int try_root(struct meeting *m, uint64_t deadline_ns, const struct addrinfo *infos)
{
    const union rt_net_place *from = m->interface.any.sa_family ? &m->interface : NULL;
    int fd = -EADDRNOTAVAIL;
    for (const struct addrinfo *i = infos; i && fd < 0; i = i->ai_next) {
        m->root = place_of(i);
        fd = rt_net_connect(&m->root, from, deadline_ns);
    }
    return fd;
}

static int no_root(struct meeting *m, int error)
{
    char text[80];
    rt_net_text(&m->root, text, sizeof text);
    return fail(
        m, error,
        "rank %d did not reach rank 0 at %s within %ld s (RT_START_TIMEOUT): %s; RT_ADDR is %s, "
        "RT_PORT %ld",
        m->job->rank, text, m->seconds, strerror(-error), m->address, m->port);
}

/* Rank 0 may come later. */
static int reach_root(struct meeting *m, uint64_t deadline_ns)
{
    const struct timespec pause = {.tv_nsec = TRY_AGAIN_NS};
    struct addrinfo *infos;
    int fd = resolve(m, 0, &infos);
    if (fd < 0)
        return fd;
    while ((fd = try_root(m, deadline_ns, infos)) < 0 && rt_net_now_ns() < deadline_ns) {
        if (fd == -EADDRNOTAVAIL || fd == -EINVAL)
            break; /* this host's own addresses won't change */
        nanosleep(&pause, NULL);
    }
    freeaddrinfo(infos);
    return fd < 0 ? no_root(m, fd) : fd;
}

static int stranger(struct meeting *m)
{
    char text[80];
    rt_net_text(&m->root, text, sizeof text);
    return fail(m, -EPROTO, "rank %d: what listens at %s is not rank 0: set another RT_PORT",
                m->job->rank, text);
}

/* Rank 0 looks into RT_PORT's connections once it has begun: what closes or is silent isn't it. */
static int be_guest_at(struct meeting *m, int fd, uint64_t deadline_ns)
{
    struct hello hello = {.magic = MAGIC, .rank = m->job->rank, .size = m->job->size};
    struct answer answer = {0};
    const union rt_net_place own = own_place(fd);
    if (!*m->mine.problem)
        listen_for_data(m, &own);
    hello.card = m->mine;
    int error = rt_net_send(fd, &hello, sizeof hello, deadline_ns);
    if (!error)
        error = rt_net_receive(fd, &answer, sizeof answer, deadline_ns);
    if (error || memcmp(answer.magic, MAGIC, sizeof answer.magic) != 0)
        return *m->mine.problem       ? fail(m, -EINVAL, "%s", m->mine.problem)
               : error == -ECONNRESET ? fail(m, error,
                                             "rank %d: rank 0 has ended, or turned this rank away: "
                                             "its message says why",
                                             m->job->rank)
                                      : stranger(m);
    answer.problem[sizeof answer.problem - 1] = 0;
    if (*answer.problem)
        return fail(m, -ETIMEDOUT, "%s", answer.problem);
    m->job->word = answer.word;
    error = rt_net_receive(fd, m->job->cards, (size_t)m->job->size * sizeof *m->job->cards,
                           deadline_ns);
    /* rank 0 knows its own address as it sees it: this is how it was reached */
    const uint16_t port = rt_net_port(&m->job->cards[0].place);
    m->job->cards[0].place = m->root;
    rt_net_set_port(&m->job->cards[0].place, port);
    return error ? no_root(m, error) : 0;
}

static int be_guest(struct meeting *m)
{
    const uint64_t end = rt_net_now_ns() + (uint64_t)m->seconds * 1000000000u;
    int fd = reach_root(m, end);
    if (fd < 0)
        return fd;
    int error = be_guest_at(m, fd, end + LATER_NS);
    close(fd);
    return error;
}

static int fill_places(struct meeting *m)
{
    struct rt_job *job = m->job;
    struct rt_links *l = m->links;
    l->rank = job->rank;
    l->size = job->size;
    l->word = job->word;
    l->places = calloc((size_t)job->size, sizeof *l->places);
    for (int r = 0; r < job->size && l->places; r++)
        l->places[r] = job->cards[r].place;
    return l->places ? 0 : -ENOMEM;
}

int rt_rendezvous(struct rt_job *ret, struct rt_links *links, char *message, size_t message_bytes)
{
    struct meeting m = {
        .job = ret, .links = links, .message = message, .message_bytes = message_bytes};
    memset(ret, 0, sizeof *ret);
    rt_links_prepare(links);
    int error = read_settings(&m);
    if (error)
        return error;
    fill_card(&m);
    ret->cards = calloc((size_t)ret->size, sizeof *ret->cards);
    if (!ret->cards)
        return fail(&m, -ENOMEM, "no memory");
    if (ret->size == 1) {
        ret->cards[0] = m.mine;
        return fill_places(&m);
    }
    find_interface(&m);
    error = (ret->rank == 0 ? be_root : be_guest)(&m);
    if (!error)
        error = fill_places(&m);
    if (error) {
        rt_links_release(links);
        free(ret->cards);
        ret->cards = NULL;
    }
    return error;
}
