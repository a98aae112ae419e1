/* SPDX-License-Identifier: Apache-2.0 */
/* The lifeline among strangers, and of a rank that is stopped, over a fabric that is shared memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt-lifeline.h"
#include "rt-net.h"
#include "rt-ranks.h"

enum { RANKS = 3, PART_MAX = 1024, STRANGERS = 150, NOBODY = -1, WRONG = 1 };

#define VERIFY(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #condition);         \
            return WRONG;                                                                          \
        }                                                                                          \
    } while (0)

/* ---- the fabric ---- */

struct shared {
    pthread_barrier_t barrier;
    char parts[RANKS][PART_MAX];
    int gathered; /* rank 0's count of allgathers */
    bool has_strangers;
    int stopped; /* the rank that another stops, or NOBODY */
    bool is_far; /* on another host, it seems */
    pid_t pids[RANKS];
};

struct fabric {
    struct rt_fabric base;
    struct shared *shared;
    int gathered; /* long ones */
    int strangers[STRANGERS];
};

/* This process listens at one port alone. */
static int find_listener(union rt_net_place *ret)
{
    for (int fd = 3; fd < 64; fd++) {
        int listens = 0;
        socklen_t bytes = sizeof listens, place_bytes = sizeof *ret;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && listens)
            return getsockname(fd, &ret->any, &place_bytes);
    }
    return -1;
}

/* A third says nothing, a third a byte of something, a third a wrong word. They come before ranks
 * do; some may find no room in the queue. */
static void knock(struct fabric *f)
{
    union rt_net_place at = {0}, to = {.v4 = {.sin_family = AF_INET}};
    if (find_listener(&at))
        return;
    to.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    rt_net_set_port(&to, rt_net_port(&at));
    for (int i = 0; i < STRANGERS; i++) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        f->strangers[i] = fd;
        if (connect(fd, &to.any, sizeof to.v4) == 0 && i % 3 > 0)
            send(fd, "a word of a stranger", i % 3 == 1 ? 1 : 16, MSG_NOSIGNAL);
    }
}

static int allgather(struct rt_fabric *base, const void *mine, void *ret, size_t bytes)
{
    struct fabric *f = (struct fabric *)base;
    if (bytes > PART_MAX)
        return -EMSGSIZE;
    if (base->rank == 0 && f->shared->gathered++ == 0 && f->shared->has_strangers)
        knock(f);
    memcpy(f->shared->parts[base->rank], mine, bytes);
    pthread_barrier_wait(&f->shared->barrier);
    for (int r = 0; r < base->size; r++)
        memcpy((char *)ret + (size_t)r * bytes, f->shared->parts[r], bytes);
    /* of what a rank says of its process the number alone is known, as of another host */
    if (f->shared->is_far && bytes > 64 && ++f->gathered == 2)
        for (int r = 0; r < base->size; r++)
            if (r != base->rank)
                memset((char *)ret + (size_t)r * bytes + 8, 0, bytes - 8);
    pthread_barrier_wait(&f->shared->barrier);
    return 0;
}

static const struct rt_fabric_ops ops = {.allgather = allgather};

/* ---- ranks ---- */

struct news {
    pthread_mutex_t lock; /* of warnings */
    char warnings[4096];
    char death[512];
};

static void note_death(void *data, const char *text)
{
    struct news *n = data;
    snprintf(n->death, sizeof n->death, "%s", text);
}

static void note_warning(void *data, const char *text)
{
    struct news *n = data;
    pthread_mutex_lock(&n->lock);
    const size_t used = strlen(n->warnings);
    snprintf(n->warnings + used, sizeof n->warnings - used, "%s\n", text);
    pthread_mutex_unlock(&n->lock);
}

/* Others may be said to be silent, too, where this host has much to do. */
static bool is_warned(struct news *n, int rank, pid_t pid, const char *text)
{
    char expected[300];
    bool found = false;
    snprintf(expected, sizeof expected, "rank %d (host%d, process %d) %s", rank, rank, (int)pid,
             text);
    for (int ms = 0; ms < 20000 && !found; ms += 10) {
        pthread_mutex_lock(&n->lock);
        found = strstr(n->warnings, expected) != NULL;
        pthread_mutex_unlock(&n->lock);
        if (!found)
            poll(NULL, 0, 10);
    }
    return found;
}

/* By another rank, which is told of it, again, and when it goes on. */
static int stop_and_continue(const struct shared *s, int rank, struct news *n)
{
    const pid_t pid = s->pids[s->stopped];
    VERIFY(kill(pid, SIGSTOP) == 0);
    VERIFY(is_warned(n, s->stopped, pid,
                     s->is_far ? "has given no answer for 1.0 s: it is stopped, by a signal or a "
                                 "debugger, or without a processor, or its host is cut off; others"
                               : "has given no answer for 1.0 s: it is stopped, by a signal or a "
                                 "debugger; others wait for it\n"));
    VERIFY(is_warned(n, s->stopped, pid, "has given no answer for 2.0 s: it is stopped"));
    VERIFY(kill(pid, SIGCONT) == 0);
    VERIFY(is_warned(n, s->stopped, pid, "answers again, after "));
    return 0;
}

static int rank_of_job(int rank, int size, void *data)
{
    static const char hosts[RANKS][RT_HOST_MAX] = {"host0", "host1", "host2"};
    struct shared *s = data;
    struct fabric f = {.base = {.ops = &ops, .rank = rank, .size = size}, .shared = s};
    struct news news = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const struct rt_lifeline_user user = {.timeout_s = 30,
                                          .warning_ns = s->stopped == NOBODY ? 0 : 1000000000u,
                                          .died = note_death,
                                          .warn = note_warning,
                                          .data = &news};
    char message[256] = "";
    int error = -1;
    s->pids[rank] = getpid();
    struct rt_lifeline *l = rt_lifeline_new(&f.base, hosts, &user, &error, message, sizeof message);
    if (!l)
        fprintf(stderr, "rank %d: %s\n", rank, message);
    VERIFY(l && error == 0);
    pthread_barrier_wait(&s->barrier);
    if (s->stopped != NOBODY && rank == (s->stopped == 0 ? 1 : 0))
        VERIFY(stop_and_continue(s, rank, &news) == 0);
    pthread_barrier_wait(&s->barrier);
    if (rank == 1) {
        rt_lifeline_cut(l, "the test ends it");
        return 0;
    }
    VERIFY(rt_lifeline_wait(l, 20000));
    VERIFY(strstr(news.death, "rank 1 (host1, process "));
    VERIFY(strstr(news.death, ") can't go on: the test ends it"));
    rt_lifeline_free(l);
    return 0;
}

static void run(bool has_strangers, int stopped, bool is_far)
{
    pthread_barrierattr_t attributes;
    struct shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(s, MAP_FAILED);
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&s->barrier, &attributes, RANKS);
    pthread_barrierattr_destroy(&attributes);
    s->has_strangers = has_strangers;
    s->stopped = stopped;
    s->is_far = is_far;
    assert_int_equal(run_each(RANKS, true, rank_of_job, s), 0);
    pthread_barrier_destroy(&s->barrier);
    munmap(s, sizeof *s);
}

static void rt_lifeline_new_undisturbed_tells_of_an_end(void **state)
{
    (void)state;
    run(false, NOBODY, false);
}

static void rt_lifeline_new_in_a_silent_crowd_still_has_all_ranks(void **state)
{
    (void)state;
    run(true, NOBODY, false);
}

static void rt_lifeline_new_of_a_stopped_rank_says_so(void **state)
{
    (void)state;
    run(false, 2, false);
}

static void rt_lifeline_new_of_rank_0_that_is_stopped_elsewhere_says_what_may_be(void **state)
{
    (void)state;
    run(false, 0, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rt_lifeline_new_undisturbed_tells_of_an_end),
        cmocka_unit_test(rt_lifeline_new_in_a_silent_crowd_still_has_all_ranks),
        cmocka_unit_test(rt_lifeline_new_of_a_stopped_rank_says_so),
        cmocka_unit_test(rt_lifeline_new_of_rank_0_that_is_stopped_elsewhere_says_what_may_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
