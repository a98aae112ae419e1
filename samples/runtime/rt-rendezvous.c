/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-rendezvous.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rt-meeting.h"
#include "rt-place-names.h"
#include "rt-root.h"

#define START_S 10 /* after the rendezvous, with RT_START_TIMEOUT */

int rt_meeting_fail(const struct rt_meeting *m, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(m->message, m->message_bytes, format, args);
    va_end(args);
    return error;
}

/* ---- settings ---- */

static int read_number(const struct rt_meeting *m, const char *name, long least, long most,
                       long *ret)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return 0;
    const long value = strtol(text, &end, 10);
    if (*end || value < least || value > most)
        return rt_meeting_fail(m, -EINVAL, "%s is '%s', expected a number from %ld to %ld", name,
                               text, least, most);
    *ret = value;
    return 1;
}

/* Both, or neither. */
static int read_place(const struct rt_meeting *m, long *ret_rank, long *ret_size)
{
    int got_rank = 0, got_size = 0;
    for (int i = 0; i < RT_PLACE_NAMES && !got_rank && !got_size; i++) {
        const struct rt_place_names *n = &rt_place_names[i];
        if (n->mark && !getenv(n->mark))
            continue;
        got_rank = read_number(m, n->rank, 0, 1 << 20, ret_rank);
        got_size = got_rank < 0 ? got_rank : read_number(m, n->size, 0, 1 << 20, ret_size);
    }
    if (got_rank < 0 || got_size < 0)
        return -EINVAL;
    if (got_rank != got_size || *ret_rank >= *ret_size)
        return rt_meeting_fail(m, -EINVAL,
                               "rank %ld of %ld: RT_RANK and RT_SIZE are wrong, or not both set",
                               *ret_rank, *ret_size);
    return 0;
}

static int read_settings(struct rt_meeting *m)
{
    long rank = 0, size = 1;
    m->seconds = 30;
    if (read_place(m, &rank, &size))
        return -EINVAL;
    m->job->rank = (int)rank;
    m->job->size = (int)size;
    int got_port = read_number(m, "RT_PORT", 1, 65535, &m->port);
    if (got_port < 0 || read_number(m, "RT_START_TIMEOUT", 1, 1000000, &m->seconds) < 0)
        return -EINVAL;
    m->address = getenv("RT_ADDR");
    const char *name = getenv("RT_JOB");
    if (name && strlen(name) >= sizeof m->mine.job)
        return rt_meeting_fail(m, -EINVAL, "RT_JOB is '%.100s...', expected at most %zu bytes",
                               name, sizeof m->mine.job - 1);
    if (size > 1 && (!m->address || !*m->address || got_port == 0))
        return rt_meeting_fail(
            m, -EINVAL,
            "RT_ADDR and RT_PORT say where rank 0 waits for the others: %s is not set; rt-run, "
            "which starts programs without MPI, sets both",
            got_port == 0 ? "RT_PORT" : "RT_ADDR");
    return 0;
}

static void fill_hello(struct rt_meeting *m)
{
    const char *host = getenv("RT_HOST"), *job = getenv("RT_JOB");
    struct rt_hello *o = &m->mine;
    memcpy(o->magic, RT_MEETING_MAGIC, sizeof o->magic);
    o->rank = m->job->rank;
    o->size = m->job->size;
    snprintf(o->job, sizeof o->job, "%s", job ? job : "");
    o->card.pid = getpid();
    if (host && *host)
        snprintf(o->card.host, sizeof o->card.host, "%s", host);
    else
        gethostname(o->card.host, sizeof o->card.host - 1);
    rt_net_machine(o->card.machine, sizeof o->card.machine);
    rt_net_memory(o->card.memory, sizeof o->card.memory);
}

/* ---- addresses ---- */

static bool is_number(struct rt_meeting *m, int *ret_family)
{
    char ignored[RT_MEETING_TEXT_MAX];
    struct addrinfo *info;
    if (rt_root_resolve(m->address, m->port, AF_UNSPEC, AI_NUMERICHOST, &info, ignored,
                        sizeof ignored))
        return false;
    *ret_family = info->ai_family;
    freeaddrinfo(info);
    return true;
}

/* Where this rank takes part: the family of RT_ADDR, if that says it. */
static void find_interface(struct rt_meeting *m)
{
    struct rt_card *card = &m->mine.card;
    int family = AF_UNSPEC;
    is_number(m, &family);
    if (rt_net_interface(family, &m->interface, card->problem, sizeof card->problem) <= 0)
        m->interface.any.sa_family = AF_UNSPEC;
}

int rt_meeting_listen(struct rt_meeting *m, const union rt_net_place *own)
{
    struct rt_card *card = &m->mine.card;
    union rt_net_place any;
    int family;
    card->place = *own;
    rt_net_set_port(&card->place, 0);
    /* a host's own name is often that of its loopback, where other hosts don't come */
    const bool anywhere = rt_net_is_loopback(own) && !is_number(m, &family);
    const int fd = anywhere ? rt_net_listen_anywhere(&any) : rt_net_listen(&card->place);
    const int error = fd < 0 ? fd : rt_links_listen(m->links, fd);
    if (error)
        snprintf(card->problem, sizeof card->problem, "can't listen for other ranks: %s",
                 strerror(-error));
    else if (anywhere)
        rt_net_set_port(&card->place, rt_net_port(&any));
    return error;
}

/* ---- from begin to end ---- */

static int fill_places(struct rt_meeting *m)
{
    struct rt_job *job = m->job;
    struct rt_links *l = m->links;
    l->rank = job->rank;
    l->size = job->size;
    l->word = job->word;
    l->places = calloc((size_t)job->size, sizeof *l->places);
    for (int r = 0; r < job->size && l->places; r++)
        l->places[r] = job->cards[r].place;
    l->base.deadline_ns = rt_now_ns() + ((uint64_t)m->seconds + START_S) * 1000000000u;
    return l->places ? 0 : -ENOMEM;
}

int rt_rendezvous(struct rt_job *ret, struct rt_links *links, char *message, size_t message_bytes)
{
    struct rt_meeting m = {
        .job = ret, .links = links, .message = message, .message_bytes = message_bytes};
    memset(ret, 0, sizeof *ret);
    rt_links_prepare(links);
    int error = read_settings(&m);
    if (error)
        return error;
    fill_hello(&m);
    ret->cards = calloc((size_t)ret->size, sizeof *ret->cards);
    if (!ret->cards)
        return rt_meeting_fail(&m, -ENOMEM, "no memory");
    if (ret->size == 1) {
        ret->cards[0] = m.mine.card;
        return fill_places(&m);
    }
    find_interface(&m);
    error = (ret->rank == 0 ? rt_meeting_be_root : rt_meeting_be_guest)(&m);
    if (!error)
        error = fill_places(&m);
    if (error) {
        rt_links_release(links);
        free(ret->cards);
        ret->cards = NULL;
    }
    return error;
}
