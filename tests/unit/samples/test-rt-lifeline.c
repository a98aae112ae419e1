/* SPDX-License-Identifier: Apache-2.0 */
/* The lifeline among strangers, over a fabric that is shared memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt-lifeline.h"
#include "rt-net.h"
#include "rt-ranks.h"

enum { RANKS = 3, PART_MAX = 1024, STRANGERS = 150, WRONG = 1 };

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
};

struct fabric {
    struct rt_fabric base;
    struct shared *shared;
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
    pthread_barrier_wait(&f->shared->barrier);
    return 0;
}

static const struct rt_fabric_ops ops = {.allgather = allgather};

/* ---- ranks ---- */

static void note_death(void *data, const char *text)
{
    snprintf(data, 512, "%s", text);
}

static int rank_of_job(int rank, int size, void *data)
{
    static const char hosts[RANKS][RT_HOST_MAX] = {"host0", "host1", "host2"};
    struct fabric f = {.base = {.ops = &ops, .rank = rank, .size = size}, .shared = data};
    char message[256] = "", told[512] = "";
    int error = -1;
    struct rt_lifeline *l =
        rt_lifeline_new(&f.base, hosts, 30, note_death, told, &error, message, sizeof message);
    if (!l)
        fprintf(stderr, "rank %d: %s\n", rank, message);
    VERIFY(l && error == 0);
    pthread_barrier_wait(&f.shared->barrier);
    if (rank == 1) {
        rt_lifeline_cut(l, "the test ends it");
        return 0;
    }
    VERIFY(rt_lifeline_wait(l, 20000));
    VERIFY(strstr(told, "rank 1 (host1, process "));
    VERIFY(strstr(told, ") can't go on: the test ends it"));
    rt_lifeline_free(l);
    return 0;
}

static void run(bool has_strangers)
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
    assert_int_equal(run_each(RANKS, true, rank_of_job, s), 0);
    pthread_barrier_destroy(&s->barrier);
    munmap(s, sizeof *s);
}

static void rt_lifeline_new_undisturbed_tells_of_an_end(void **state)
{
    (void)state;
    run(false);
}

static void rt_lifeline_new_in_a_silent_crowd_still_has_all_ranks(void **state)
{
    (void)state;
    run(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rt_lifeline_new_undisturbed_tells_of_an_end),
        cmocka_unit_test(rt_lifeline_new_in_a_silent_crowd_still_has_all_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
