/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that come in any order, by halves, from strangers; and messages over them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rt-post.h"
#include "tcp-ranks.h"

enum { WRONG = 1 };

#define SOON (rt_now_ns() + 20000000000u)
#define VERIFY(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, l->rank, #condition);      \
            return WRONG;                                                                          \
        }                                                                                          \
    } while (0)

/* As a rank does, word for word. */
struct hello {
    unsigned char word[16];
    int32_t rank, tag;
};

static int knock(struct rt_links *l, int rank)
{
    return rt_net_connect(&l->places[rank], NULL, SOON);
}

static int wait_for_link(struct rt_links *l, int rank, int tag)
{
    int fd;
    while ((fd = l->base.in(&l->base, rank, tag)) == -EAGAIN) {
        struct pollfd p = {.fd = l->base.news, .events = POLLIN};
        if (poll(&p, 1, 20000) != 1)
            return -ETIMEDOUT;
    }
    return fd;
}

static int say(int fd, int value)
{
    return rt_net_send(fd, &value, sizeof value, SOON);
}

static int hear(int fd)
{
    int value = -1;
    int error = rt_net_receive(fd, &value, sizeof value, SOON);
    return error ? error : value;
}

/* Every other rank connects with several tags before anybody asks. */
static int any_order_rank(struct rt_links *l, void *argument)
{
    enum { TAGS = 5 };
    for (int d = 1; d < l->size; d++)
        for (int tag = TAGS; tag-- > 0;) {
            const int to = (l->rank + d) % l->size;
            const int fd = l->base.out(&l->base, to, tag - 2);
            VERIFY(fd >= 0);
            VERIFY(say(fd, l->rank * 100 + tag) == 0);
            close(fd);
        }
    for (int tag = 0; tag < TAGS; tag++)
        for (int r = 0; r < l->size; r++) {
            if (r == l->rank)
                continue;
            const int fd = wait_for_link(l, r, tag - 2);
            VERIFY(fd >= 0);
            VERIFY(hear(fd) == r * 100 + tag);
            close(fd);
        }
    VERIFY(l->base.in(&l->base, (l->rank + 1) % l->size, 0) == -EAGAIN);
    return 0;
}

static void links_come_in_any_order_by_rank_and_tag(void **state)
{
    assert_int_equal(run_links(5, false, false, any_order_rank, NULL), 0);
    assert_int_equal(run_links(3, true, true, any_order_rank, NULL), 0);
}

static int same_tag_rank(struct rt_links *l, void *argument)
{
    for (int i = 0; i < 3; i++) {
        const int fd = l->rank ? l->base.out(&l->base, 0, 9) : wait_for_link(l, 1, 9);
        VERIFY(fd >= 0);
        VERIFY(l->rank ? say(fd, i) == 0 : hear(fd) == i);
        close(fd);
    }
    return 0;
}

static void links_of_one_tag_come_in_order(void **state)
{
    assert_int_equal(run_links(2, false, false, same_tag_rank, NULL), 0);
}

static int stranger_rank(struct rt_links *l, void *argument)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
    struct hello hello = {.rank = 1, .tag = 4};
    if (l->rank == 0) {
        const int fd = wait_for_link(l, 1, 4);
        VERIFY(fd >= 0);
        VERIFY(hear(fd) == 4711);
        close(fd);
        VERIFY(l->base.in(&l->base, 1, 4) == -EAGAIN);
        VERIFY(l->waiting == NULL);
        return 0;
    }
    memcpy(hello.word, &l->word, sizeof hello.word);
    const int silent = knock(l, 0), half = knock(l, 0), junk = knock(l, 0), gone = knock(l, 0);
    const int beyond = knock(l, 0), below = knock(l, 0), liar = knock(l, 0);
    VERIFY(silent >= 0 && half >= 0 && junk >= 0 && gone >= 0 && liar >= 0);
    VERIFY(rt_net_send(half, &hello, sizeof hello - 1, SOON) == 0);
    VERIFY(rt_net_send(junk, request, sizeof request, SOON) == 0);
    close(gone);
    hello.rank = 2;
    VERIFY(rt_net_send(beyond, &hello, sizeof hello, SOON) == 0);
    hello.rank = -1;
    VERIFY(rt_net_send(below, &hello, sizeof hello, SOON) == 0);
    hello.rank = 1;
    hello.word[15] ^= 1;
    VERIFY(rt_net_send(liar, &hello, sizeof hello, SOON) == 0);
    const int fd = l->base.out(&l->base, 0, 4);
    VERIFY(fd >= 0);
    VERIFY(say(fd, 4711) == 0);
    /* whoever isn't one of the job's is sent away, with no answer */
    VERIFY(hear(junk) == -ECONNRESET && hear(liar) == -ECONNRESET);
    VERIFY(hear(beyond) == -ECONNRESET && hear(below) == -ECONNRESET);
    const int fds[] = {silent, half, junk, beyond, below, liar, fd};
    for (unsigned i = 0; i < sizeof fds / sizeof *fds; i++)
        close(fds[i]);
    return 0;
}

/* Nobody waits for those who say nothing: the test would take too long. */
static void strangers_are_sent_away_and_cost_no_wait(void **state)
{
    const uint64_t start = rt_now_ns();
    for (int i = 0; i < 20; i++)
        assert_int_equal(run_links(2, false, false, stranger_rank, NULL), 0);
    print_message("20 times in %llu ms\n", (unsigned long long)(rt_now_ns() - start) / 1000000);
}

/* The hello in two halves, the second after rank 0 has looked. */
static int half_hello_rank(struct rt_links *l, void *argument)
{
    struct hello hello = {.rank = 1, .tag = 4};
    memcpy(hello.word, &l->word, sizeof hello.word);
    if (l->rank == 0) {
        while (!l->callers)
            VERIFY(l->base.in(&l->base, 1, 4) == -EAGAIN);
        VERIFY(l->base.in(&l->base, 1, 4) == -EAGAIN);
        __atomic_store_n((int *)argument, 1, __ATOMIC_RELEASE);
        const int fd = wait_for_link(l, 1, 4);
        VERIFY(fd >= 0);
        VERIFY(hear(fd) == 5);
        close(fd);
        return 0;
    }
    const int fd = knock(l, 0);
    VERIFY(fd >= 0);
    VERIFY(rt_net_send(fd, &hello, 10, SOON) == 0);
    while (!__atomic_load_n((int *)argument, __ATOMIC_ACQUIRE))
        sched_yield();
    VERIFY(rt_net_send(fd, (char *)&hello + 10, sizeof hello - 10, SOON) == 0);
    VERIFY(say(fd, 5) == 0);
    close(fd);
    return 0;
}

static void hello_that_comes_in_pieces_is_understood(void **state)
{
    int looked = 0;
    assert_int_equal(run_links(2, false, false, half_hello_rank, &looked), 0);
}

static int full_rank(struct rt_links *l, void *argument)
{
    struct rlimit limit;
    if (l->rank == 1) {
        const int fd = l->base.out(&l->base, 0, 4);
        VERIFY(fd >= 0);
        VERIFY(hear(fd) == 6);
        close(fd);
        return 0;
    }
    struct pollfd p = {.fd = l->base.news, .events = POLLIN};
    VERIFY(poll(&p, 1, 20000) == 1);
    VERIFY(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    VERIFY(setrlimit(RLIMIT_NOFILE, &none) == 0);
    const int error = l->base.in(&l->base, 1, 4);
    VERIFY(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    VERIFY(error == -EMFILE); /* else it would look again and again, and nobody would know */
    const int fd = wait_for_link(l, 1, 4);
    VERIFY(fd >= 0);
    VERIFY(say(fd, 6) == 0);
    close(fd);
    return 0;
}

static void link_that_finds_no_descriptor_is_an_error(void **state)
{
    assert_int_equal(run_links(2, true, false, full_rank, NULL), 0);
}

enum { CROWD = 300 };

/* Strangers that say nothing: few are kept, and where descriptors are few none keeps a rank out. */
static int crowd_rank(struct rt_links *l, void *argument)
{
    static int held[CROWD];
    struct rlimit limit;
    const int least = *(const int *)argument;
    if (l->rank == 0) {
        VERIFY(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        const struct rlimit few = {.rlim_cur = (rlim_t)least, .rlim_max = limit.rlim_max};
        VERIFY(!least || setrlimit(RLIMIT_NOFILE, &few) == 0);
        const int fd = wait_for_link(l, 1, 4);
        VERIFY(fd >= 0 && fd < 200);
        VERIFY(say(fd, 6) == 0);
        close(fd);
        return 0;
    }
    for (int i = 0; i < CROWD; i++)
        VERIFY((held[i] = knock(l, 0)) >= 0);
    const int fd = l->base.out(&l->base, 0, 4);
    VERIFY(fd >= 0);
    VERIFY(hear(fd) == 6);
    for (int i = 0; i < CROWD; i++)
        close(held[i]);
    close(fd);
    return 0;
}

static void crowd_of_silent_strangers_takes_no_descriptors(void **state)
{
    for (int least = 0; least <= 40; least += 40)
        assert_int_equal(run_links(2, true, false, crowd_rank, &least), 0);
}

static int gone_rank(struct rt_links *l, void *argument)
{
    int *const steps = argument;
    if (l->rank == 1) {
        while (__atomic_load_n(steps, __ATOMIC_ACQUIRE) == 0)
            sched_yield();
        return 0;
    }
    VERIFY(l->base.check(&l->base, 1) == 0);
    __atomic_store_n(steps, 1, __ATOMIC_RELEASE);
    while (l->base.check(&l->base, 1) == 0)
        sched_yield();
    VERIFY(l->base.check(&l->base, 1) == -ECONNRESET);
    VERIFY(l->base.out(&l->base, 1, 0) < 0);
    return 0;
}

static void check_knows_who_has_gone(void **state)
{
    int steps = 0;
    assert_int_equal(run_links(2, false, false, gone_rank, &steps), 0);
}

/* ---- messages ---- */

static const size_t lengths[] = {0, 1, 7, 8, 9, 4096, 3000001, 2};
enum { KINDS = sizeof lengths / sizeof *lengths, TIMES = 12 };

static int post_all(struct rt_links *l, struct rt_post *p, uint8_t *data)
{
    for (int i = 0; i < TIMES; i++)
        for (int r = 0; r < l->size; r++) {
            const size_t n = lengths[(i + r + l->rank) % KINDS];
            if (r == l->rank)
                continue;
            memset(data, l->rank * 16 + i, n);
            const struct rt_bytes message = {.data = data, .n = n};
            VERIFY(rt_post_send(p, r, &message) == 0);
        }
    return 0;
}

static int is_filled(const struct rt_bytes *b, uint8_t value)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->data[i] != value)
            return 0;
    return 1;
}

/* All send all before anybody looks: more than sockets hold waits. */
static int post_rank(struct rt_links *l, void *argument)
{
    struct rt_post *p = rt_post_new(l);
    uint8_t *data = malloc(3000001);
    int got[TCP_RANKS_MAX] = {0}, left = TIMES * (l->size - 1), from;
    VERIFY(p && data);
    VERIFY(post_all(l, p, data) == 0);
    while (left > 0) {
        struct rt_bytes message;
        const int n = rt_post_receive(p, &from, &message);
        VERIFY(n >= 0);
        if (n == 0) {
            sched_yield();
            continue;
        }
        const int i = got[from]++;
        VERIFY(message.n == lengths[(i + l->rank + from) % KINDS]);
        VERIFY(is_filled(&message, (uint8_t)(from * 16 + i)));
        free(message.data);
        left--;
    }
    VERIFY(rt_post_flush(p) == 0);
    __atomic_add_fetch((int *)argument, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n((int *)argument, __ATOMIC_ACQUIRE) < l->size)
        sched_yield(); /* an end that closes is an error to those who still look */
    rt_post_free(p);
    free(data);
    return 0;
}

static void messages_of_all_lengths_come_whole_and_in_order(void **state)
{
    int *through =
        mmap(NULL, 3 * sizeof *through, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(through != MAP_FAILED);
    assert_int_equal(run_links(4, false, false, post_rank, &through[0]), 0);
    assert_int_equal(run_links(3, true, true, post_rank, &through[1]), 0);
    assert_int_equal(run_links(1, false, false, post_rank, &through[2]), 0);
    munmap(through, 3 * sizeof *through);
}

struct race {
    int is_small, sent, read; /* atomic */
};

static int at(const int *counter)
{
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

enum { BYTES = 100000, ALL = 1200, AHEAD = 100 };

static int slow_reader(struct rt_links *l, struct rt_post *p, struct race *race)
{
    const int little = 1 << 20; /* of what connections to this socket buffer */
    setsockopt(l->socket, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    __atomic_store_n(&race->is_small, 1, __ATOMIC_RELEASE);
    while (race->read < ALL) {
        struct rt_bytes got;
        int n, from;
        while (at(&race->sent) < ALL && at(&race->sent) < race->read + AHEAD)
            sched_yield();
        while ((n = rt_post_receive(p, &from, &got)) == 0)
            sched_yield();
        VERIFY(n == 1 && got.n == BYTES);
        free(got.data);
        __atomic_add_fetch(&race->read, 1, __ATOMIC_ACQ_REL);
    }
    return 0;
}

/* While messages wait for a slow reader new ones come: what has gone isn't kept. */
static int race_rank(struct rt_links *l, void *argument)
{
    struct race *race = argument;
    struct rt_post *p = rt_post_new(l);
    struct rt_bytes message = {.data = calloc(1, BYTES), .n = BYTES}, got;
    int from, result = 0;
    VERIFY(p && message.data);
    if (l->rank == 1)
        result = slow_reader(l, p, race);
    while (!at(&race->is_small))
        sched_yield();
    while (l->rank == 0 && race->sent < ALL) {
        VERIFY(rt_post_send(p, 1, &message) == 0);
        VERIFY(mallinfo2().hblkhd < (size_t)ALL * BYTES / 2);
        __atomic_add_fetch(&race->sent, 1, __ATOMIC_ACQ_REL);
        while (at(&race->read) < race->sent - AHEAD)
            VERIFY(rt_post_receive(p, &from, &got) == 0);
    }
    if (l->rank == 0)
        VERIFY(rt_post_flush(p) == 0);
    free(message.data);
    rt_post_free(p);
    return result;
}

static void messages_that_wait_take_no_room_when_gone(void **state)
{
    struct race race = {0};
    assert_int_equal(run_links(2, false, false, race_rank, &race), 0);
}

/* Rank 1 knows the word, but not how to go on. */
static int broken_post_rank(struct rt_links *l, void *argument)
{
    const int what = *(const int *)argument;
    const uint64_t absurd[] = {UINT64_MAX, UINT64_MAX - 7, RT_POST_MAX + 1, (uint64_t)1 << 63};
    if (l->rank == 1) {
        const int fd = l->base.out(&l->base, 0, RT_POST_TAG);
        const uint64_t length = what < 4 ? absurd[what] : 1000;
        VERIFY(fd >= 0);
        VERIFY(rt_net_send(fd, &length, what == 4 ? 3 : sizeof length, SOON) == 0);
        if (what != 4)
            rt_net_send(fd, "some bytes that don't fit", 25, SOON);
        if (what < 4)
            VERIFY(hear(fd) == -ECONNRESET); /* until rank 0 has looked */
        close(fd);
        return 0;
    }
    struct rt_post *p = rt_post_new(l);
    struct rt_bytes message;
    int from, n;
    VERIFY(p);
    while ((n = rt_post_receive(p, &from, &message)) == 0)
        sched_yield();
    VERIFY(n == (what < 4 ? -EPROTO : -ECONNRESET));
    rt_post_free(p);
    return 0;
}

static void post_of_absurd_length_or_that_ends_within_is_an_error(void **state)
{
    for (int what = 0; what < 6; what++)
        assert_int_equal(run_links(2, false, false, broken_post_rank, &what), 0);
}

static int left_post_rank(struct rt_links *l, void *argument)
{
    struct rt_post *p = rt_post_new(l);
    const struct rt_bytes message = {.data = calloc(1, 1 << 20), .n = 1 << 20};
    int error = 0;
    VERIFY(p && message.data);
    if (l->rank == 0) {
        for (int i = 0; i < 1000 && !error; i++)
            error = rt_post_send(p, 1, &message);
        if (!error)
            error = rt_post_flush(p);
        VERIFY(error == -ECONNRESET);
        error = rt_post_send(p, 1, &message);
        VERIFY(error == -ECONNRESET);
    }
    free(message.data);
    rt_post_free(p);
    return 0;
}

static void send_to_one_who_has_gone_is_connreset(void **state)
{
    assert_int_equal(run_links(2, false, false, left_post_rank, NULL), 0);
    assert_int_equal(run_links(2, true, false, left_post_rank, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_come_in_any_order_by_rank_and_tag),
        cmocka_unit_test(links_of_one_tag_come_in_order),
        cmocka_unit_test(strangers_are_sent_away_and_cost_no_wait),
        cmocka_unit_test(hello_that_comes_in_pieces_is_understood),
        cmocka_unit_test(link_that_finds_no_descriptor_is_an_error),
        cmocka_unit_test(crowd_of_silent_strangers_takes_no_descriptors),
        cmocka_unit_test(check_knows_who_has_gone),
        cmocka_unit_test(messages_of_all_lengths_come_whole_and_in_order),
        cmocka_unit_test(messages_that_wait_take_no_room_when_gone),
        cmocka_unit_test(post_of_absurd_length_or_that_ends_within_is_an_error),
        cmocka_unit_test(send_to_one_who_has_gone_is_connreset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
