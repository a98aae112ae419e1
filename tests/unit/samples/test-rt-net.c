/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that take and give little at a time, signals meanwhile, ends that close; addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "rt-net.h"

#define FOREVER UINT64_MAX
#define LENGTH  (1u << 20)

static uint64_t in_ms(unsigned ms)
{
    return rt_now_ns() + (uint64_t)ms * 1000000u;
}

static union rt_net_place any_port(void)
{
    return (union rt_net_place){
        .v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}};
}

static void make_pair(int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    const int little = 1;
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
}

static char pattern(unsigned i)
{
    return (char)(i * 7 + i / 251);
}

/* ---- little at a time ---- */

struct slow {
    int fd;
    bool right;
};

/* Of lengths that have nothing to do with what is sent. */
static void *read_slowly(void *argument)
{
    struct slow *s = argument;
    char piece[777];
    unsigned got = 0;
    s->right = true;
    while (got < LENGTH) {
        int n = rt_net_receive_some(s->fd, piece, 1 + got % sizeof piece);
        if (n == -EAGAIN)
            sched_yield();
        else if (n < 0)
            break;
        for (int i = 0; i < n; i++)
            s->right = s->right && piece[i] == pattern(got + (unsigned)i);
        got += n > 0 ? (unsigned)n : 0;
    }
    s->right = s->right && got == LENGTH;
    return NULL;
}

static void *write_slowly(void *argument)
{
    struct slow *s = argument;
    for (unsigned i = 0; i < LENGTH;) {
        char piece[777];
        unsigned n = 1 + i % sizeof piece;
        n = n < LENGTH - i ? n : LENGTH - i;
        for (unsigned k = 0; k < n; k++)
            piece[k] = pattern(i + k);
        if (rt_net_send(s->fd, piece, n, FOREVER))
            return NULL;
        i += n;
    }
    s->right = true;
    return NULL;
}

static void on_alarm(int signal)
{
    (void)signal;
}

/* Signals that don't restart calls, all the time. */
static void disturb(bool on)
{
    struct sigaction action = {.sa_handler = on_alarm};
    const struct itimerval often = {{0, on ? 300 : 0}, {0, on ? 300 : 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void send_through_full_socket_and_signals_sends_all(void **state)
{
    int fds[2];
    char *data = malloc(LENGTH);
    pthread_t thread;
    make_pair(fds);
    struct slow slow = {.fd = fds[1]};
    for (unsigned i = 0; i < LENGTH; i++)
        data[i] = pattern(i);
    disturb(true);
    pthread_create(&thread, NULL, read_slowly, &slow);
    assert_int_equal(rt_net_send(fds[0], data, LENGTH, FOREVER), 0);
    pthread_join(thread, NULL);
    disturb(false);
    assert_true(slow.right);
    free(data);
    close(fds[0]);
    close(fds[1]);
}

static void receive_in_pieces_and_signals_gets_all(void **state)
{
    int fds[2];
    char *data = malloc(LENGTH);
    pthread_t thread;
    make_pair(fds);
    struct slow slow = {.fd = fds[0]};
    disturb(true);
    pthread_create(&thread, NULL, write_slowly, &slow);
    assert_int_equal(rt_net_receive(fds[1], data, LENGTH, FOREVER), 0);
    pthread_join(thread, NULL);
    disturb(false);
    assert_true(slow.right);
    for (unsigned i = 0; i < LENGTH; i++)
        assert_int_equal(data[i], pattern(i));
    free(data);
    close(fds[0]);
    close(fds[1]);
}

static void receive_of_half_from_one_that_closes_is_connreset(void **state)
{
    int fds[2];
    char data[8];
    make_pair(fds);
    assert_int_equal(rt_net_send(fds[0], "half", 4, FOREVER), 0);
    close(fds[0]);
    assert_int_equal(rt_net_receive(fds[1], data, sizeof data, FOREVER), -ECONNRESET);
    assert_int_equal(rt_net_send(fds[1], "more", 4, FOREVER), -ECONNRESET);
    close(fds[1]);
}

static void deadline_that_passes_is_timedout(void **state)
{
    int fds[2];
    char *data = calloc(1, LENGTH);
    make_pair(fds);
    disturb(true); /* each signal begins the wait anew: it must not last for ever */
    assert_int_equal(rt_net_receive(fds[1], data, 1, in_ms(20)), -ETIMEDOUT);
    assert_int_equal(rt_net_send(fds[0], data, LENGTH, in_ms(20)), -ETIMEDOUT);
    disturb(false);
    assert_int_equal(rt_net_receive_some(fds[0], data, 1), -EAGAIN);
    free(data);
    close(fds[0]);
    close(fds[1]);
}

/* ---- connections ---- */

static void connect_and_accept_give_sockets_that_neither_block_nor_are_inherited(void **state)
{
    union rt_net_place at = any_port();
    const int listener = rt_net_listen(&at);
    assert_true(listener >= 0);
    assert_int_not_equal(rt_net_port(&at), 0);
    assert_int_equal(rt_net_accept(listener), -EAGAIN);
    const int a = rt_net_connect(&at, NULL, in_ms(10000));
    assert_true(a >= 0);
    const int b = rt_net_accept(listener);
    assert_true(b >= 0);
    const int fds[] = {listener, a, b};
    for (int i = 0; i < 3; i++) {
        assert_true(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
        assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
        close(fds[i]);
    }
}

static void connect_where_nobody_listens_is_refused(void **state)
{
    union rt_net_place at = any_port();
    const int listener = rt_net_listen(&at);
    close(listener);
    assert_int_equal(rt_net_connect(&at, NULL, in_ms(10000)), -ECONNREFUSED);
    /* the port may be the one that the socket has itself */
    assert_int_equal(rt_net_connect(&at, &at, in_ms(10000)), -ECONNREFUSED);
}

/* A listener whose queue is full doesn't answer. */
static void connect_without_answer_is_timedout(void **state)
{
    union rt_net_place at = any_port();
    int fds[64], n = 0, fd = 0;
    const int listener = rt_net_listen(&at);
    assert_int_equal(listen(listener, 0), 0);
    while (n < 64 && (fd = rt_net_connect(&at, NULL, in_ms(50))) >= 0)
        fds[n++] = fd;
    assert_int_equal(fd, -ETIMEDOUT);
    while (n > 0)
        close(fds[--n]);
    close(listener);
}

static void listen_at_taken_port_or_foreign_address_fails(void **state)
{
    union rt_net_place at = any_port(), same;
    const int listener = rt_net_listen(&at);
    same = at;
    assert_int_equal(rt_net_listen(&same), -EADDRINUSE);
    close(listener);
    at.v4.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, of documents */
    rt_net_set_port(&at, 0);
    assert_int_equal(rt_net_listen(&at), -EADDRNOTAVAIL);
}

/* ---- addresses ---- */

static void text_has_address_and_port(void **state)
{
    char text[80];
    union rt_net_place at = any_port();
    rt_net_set_port(&at, 4000);
    rt_net_text(&at, text, sizeof text);
    assert_string_equal(text, "127.0.0.1:4000");
    at = (union rt_net_place){.v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT}};
    rt_net_set_port(&at, 65535);
    rt_net_text(&at, text, sizeof text);
    assert_string_equal(text, "[::1]:65535");
    assert_int_equal(rt_net_port(&at), 65535);
}

static int interface_of(const char *name, int family, union rt_net_place *ret, char *message)
{
    setenv("RT_INTERFACE", name, 1);
    int found = rt_net_interface(family, ret, message, 256);
    unsetenv("RT_INTERFACE");
    return found;
}

static void interface_is_the_first_named_that_is_there(void **state)
{
    union rt_net_place at;
    char message[256] = "";
    assert_int_equal(rt_net_interface(AF_UNSPEC, &at, message, sizeof message), 0);
    assert_int_equal(interface_of("", AF_UNSPEC, &at, message), 0);
    assert_int_equal(interface_of("lo", AF_UNSPEC, &at, message), 1);
    assert_int_equal(at.any.sa_family, AF_INET);
    assert_int_equal(at.v4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_int_equal(rt_net_port(&at), 0);
    assert_int_equal(interface_of("nosuch0,lo", AF_INET, &at, message), 1);
    if (interface_of("lo", AF_INET6, &at, message) == 1)
        assert_int_equal(at.any.sa_family, AF_INET6);
}

static void interface_that_is_not_there_lists_those_that_are(void **state)
{
    union rt_net_place at;
    char message[256] = "";
    assert_int_equal(interface_of("l", AF_UNSPEC, &at, message), -ENODEV);
    assert_non_null(strstr(message, "RT_INTERFACE is 'l', which has no address here"));
    assert_non_null(strstr(message, " lo"));
    assert_int_equal(interface_of("lo0,nosuch0", AF_INET6, &at, message), -ENODEV);
    assert_non_null(strstr(message, "of IPv6"));
    assert_int_equal(interface_of(",,", AF_INET, &at, message), -ENODEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send_through_full_socket_and_signals_sends_all),
        cmocka_unit_test(receive_in_pieces_and_signals_gets_all),
        cmocka_unit_test(receive_of_half_from_one_that_closes_is_connreset),
        cmocka_unit_test(deadline_that_passes_is_timedout),
        cmocka_unit_test(connect_and_accept_give_sockets_that_neither_block_nor_are_inherited),
        cmocka_unit_test(connect_where_nobody_listens_is_refused),
        cmocka_unit_test(connect_without_answer_is_timedout),
        cmocka_unit_test(listen_at_taken_port_or_foreign_address_fails),
        cmocka_unit_test(text_has_address_and_port),
        cmocka_unit_test(interface_is_the_first_named_that_is_there),
        cmocka_unit_test(interface_that_is_not_there_lists_those_that_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
