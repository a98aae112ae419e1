/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank dies in the midst of work; each other writes what it was told, and how long after, into
 * $DEATH_DIR/<rank>, and ends with status 3.
 *   runtime-death-check VICTIM WAY MICROSECONDS BEHAVIOUR [WORK]
 * WAY: kill, segv, exit, or poor: it gets no more descriptors. BEHAVIOUR of the others: ends; deaf:
 * goes on as if nothing had happened; stays, for RT_ON_DEATH=error: lives on for longer than it
 * could without, then ends. Or short: all end well after some allreduces, if nobody is killed
 * before. WORK: all, allreduces of all ranks, also where nothing is given; set, those of a process
 * set without the last rank, which waits for all others meanwhile; sets, they are added and
 * removed.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "rt.h"

static const char *way;
static long delay_us;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void limit_descriptors(rlim_t count)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static FILE *open_note(const char *name)
{
    char path[4096];
    limit_descriptors(RLIM_INFINITY);
    snprintf(path, sizeof path, "%s/%s", getenv("DEATH_DIR"), name);
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        _exit(9);
    }
    return f;
}

static void *die(void *unused)
{
    const struct timespec delay = {delay_us / 1000000, delay_us % 1000000 * 1000};
    nanosleep(&delay, NULL);
    FILE *f = open_note("victim");
    fprintf(f, "%d %" PRId64 "\n", (int)getpid(), now_ns());
    fclose(f);
    if (strcmp(way, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(way, "poor") == 0) {
        limit_descriptors(3);
        return NULL;
    }
    if (strcmp(way, "segv") == 0)
        raise(SIGSEGV); /* of this thread: it gets no further */
    _exit(0);
}

static void note_and_end(void)
{
    char name[16];
    const int64_t now = now_ns();
    snprintf(name, sizeof name, "%d", rt_rank());
    FILE *f = open_note(name);
    setvbuf(f, NULL, _IOFBF, BUFSIZ); /* all of it or nothing: the launcher kills */
    fprintf(f, "%" PRId64 " %s\n", now, rt_error());
    fclose(f);
    exit(3);
}

/* All that comes after a death fails alike, and ends. */
static void live_on(void)
{
    const struct timespec longer_than_grace = {.tv_sec = 1, .tv_nsec = 500000000};
    float one = 1;
    for (int i = 0; i < 3; i++) {
        int handle = rt_allreduce_async("more", &one, &one, 1, RT_FLOAT32, RT_SUM, 1, 1, NULL);
        if ((handle < 0 ? handle : rt_wait(handle)) != -ECONNRESET)
            exit(8);
    }
    nanosleep(&longer_than_grace, NULL);
    if (rt_barrier_async(NULL) != -ECONNRESET || rt_shutdown() != -ECONNRESET)
        exit(8);
}

/* ---- work ---- */

static int average(int set, int round)
{
    static float data[30000];
    const uint64_t count = round % 3 == 0 ? 30000 : 100;
    const struct rt_options options = {.set = set};
    int handle = rt_allreduce_async("data", data, data, count, RT_FLOAT32, RT_AVG, 1, 1, &options);
    return handle < 0 ? handle : rt_wait(handle);
}

static int work_in_all(int round)
{
    return average(RT_GLOBAL_SET, round);
}

static int add_set_of(int first, int n)
{
    int ranks[16];
    for (int i = 0; i < n; i++)
        ranks[i] = (first + i) % rt_size();
    return rt_add_process_set(ranks, n);
}

static int work_in_set(int round)
{
    static int set;
    if (round == 0)
        set = add_set_of(0, rt_size() - 1);
    if (set < 0)
        return set;
    return rt_process_set_included(set) == 1 ? average(set, round)
                                             : rt_wait(rt_barrier_async(NULL)); /* nobody comes */
}

/* Of two neighbours, or all. */
static int change_sets(int round)
{
    const int set = add_set_of(round / 2, round % 2 ? rt_size() : 2);
    int error = set < 0 ? set : 0;
    if (!error && rt_process_set_included(set) == 1)
        error = average(set, round);
    return error < 0 ? error : rt_remove_process_set(set);
}

static int (*work_called(const char *name))(int round)
{
    return strcmp(name, "set") == 0    ? work_in_set
           : strcmp(name, "sets") == 0 ? change_sets
                                       : work_in_all;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 9;
    way = argv[2];
    delay_us = atol(argv[3]);
    const int is_deaf = strcmp(argv[4], "deaf") == 0, stays = strcmp(argv[4], "stays") == 0;
    const int rounds = strcmp(argv[4], "short") == 0 ? 10 : INT_MAX;
    int (*work)(int round) = work_called(argc > 5 ? argv[5] : "all");
    if (rt_init() < 0) {
        fprintf(stderr, "%s\n", rt_error());
        return 9;
    }
    pthread_t thread;
    if (rt_rank() == atoi(argv[1]) && pthread_create(&thread, NULL, die, NULL) != 0)
        return 9;
    for (int i = 0; i < rounds; i++) {
        const int error = work(i);
        if (error < 0 && is_deaf)
            pause();
        if (error < 0 && stays)
            live_on();
        if (error < 0)
            note_and_end();
    }
    return rt_shutdown() < 0 ? 3 : 0;
}
