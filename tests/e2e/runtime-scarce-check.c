/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-scarce-check WHAT RANK N [always] - one rank of a job without MPI, whose rank RANK
 * doesn't get what it asks the system for, the Nth time from rt_init on: memory, a thread, a file
 * (a socket, or what else has a descriptor) or a map; "always": nor later. Every kind of operation
 * once.
 *
 * Exit status 0: all went right, with right results. 1: it was told an error, which is on standard
 * error. 2: a result was wrong, or an error without a text. 3: as 0, and nothing failed as fewer
 * were asked for.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt.h"

/* ---- what fails ---- */

enum { MEMORY, THREAD, FILES, MAP, KINDS };
static const char *const kinds[KINDS] = {"memory", "thread", "file", "map"};
static int kind = -1, left; /* left: atomic */
static bool for_good;

static bool fails(int what)
{
    if (what != kind)
        return false;
    const int now = __atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED);
    return now == 0 || (for_good && now < 0);
}

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t each);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);

#define NO_MEMORY(otherwise) (fails(MEMORY) ? (errno = ENOMEM, NULL) : (otherwise))

void *malloc(size_t n)
{
    return NO_MEMORY(__libc_malloc(n));
}
void *calloc(size_t n, size_t each)
{
    return NO_MEMORY(__libc_calloc(n, each));
}
void *realloc(void *p, size_t n)
{
    return NO_MEMORY(__libc_realloc(p, n));
}
void *aligned_alloc(size_t alignment, size_t n)
{
    return NO_MEMORY(__libc_memalign(alignment, n));
}

/* The library's own, by its name. */
#define NEXT(type, name)                                                                           \
    static type next;                                                                              \
    if (!next)                                                                                     \
    *(void **)&next = dlsym(RTLD_NEXT, name)

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *data)
{
    typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    NEXT(create_fn *, "pthread_create");
    return fails(THREAD) ? EAGAIN : next(thread, attributes, run, data);
}
int socket(int domain, int type, int protocol)
{
    typedef int socket_fn(int, int, int);
    NEXT(socket_fn *, "socket");
    return fails(FILES) ? (errno = EMFILE, -1) : next(domain, type, protocol);
}
int accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
    typedef int accept_fn(int, struct sockaddr *, socklen_t *, int);
    NEXT(accept_fn *, "accept4");
    return fails(FILES) ? (errno = EMFILE, -1) : next(fd, address, bytes, flags);
}
int eventfd(unsigned value, int flags)
{
    typedef int eventfd_fn(unsigned, int);
    NEXT(eventfd_fn *, "eventfd");
    return fails(FILES) ? (errno = EMFILE, -1) : next(value, flags);
}
int memfd_create(const char *name, unsigned flags)
{
    typedef int memfd_fn(const char *, unsigned);
    NEXT(memfd_fn *, "memfd_create");
    return fails(FILES) ? (errno = EMFILE, -1) : next(name, flags);
}
void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    typedef void *mmap_fn(void *, size_t, int, int, int, off_t);
    NEXT(mmap_fn *, "mmap");
    return fails(MAP) ? (errno = ENOMEM, MAP_FAILED)
                      : next(at, bytes, protection, flags, fd, offset);
}
int ftruncate(int fd, off_t bytes)
{
    typedef int truncate_fn(int, off_t);
    NEXT(truncate_fn *, "ftruncate");
    return fails(MAP) ? (errno = ENOSPC, -1) : next(fd, bytes);
}

/* ---- the run ---- */

#define COUNT ((uint64_t)50000)

static const char *self;

static void check(const char *what, int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "rank %s: %s: %s\n", self, what, rt_error());
    _exit(*rt_error() ? 1 : 2);
}

static void right(const char *what, bool is)
{
    if (is)
        return;
    fprintf(stderr, "rank %s: %s: wrong result\n", self, what);
    _exit(2);
}

static void wait_for(const char *what, int handle)
{
    check(what, handle);
    check(what, rt_wait(handle));
}

static void reduce(const char *what, const struct rt_options *options, int ranks)
{
    static float data[4][COUNT];
    const uint64_t count[] = {1, 3, 1000, COUNT};
    int handle[4];
    char name[4][40];
    for (int i = 0; i < 4; i++) {
        snprintf(name[i], sizeof name[i], "%s.%d", what, i);
        for (uint64_t k = 0; k < count[i]; k++)
            data[i][k] = (float)(k % 7);
        handle[i] = rt_allreduce_async(name[i], data[i], data[i], count[i], RT_FLOAT32, RT_SUM, 1,
                                       1, options);
        check(what, handle[i]);
    }
    for (int i = 0; i < 4; i++)
        check(what, rt_wait(handle[i]));
    for (int i = 0; i < 4; i++)
        for (uint64_t k = 0; k < count[i]; k++)
            right(what, data[i][k] == (float)((int)(k % 7) * ranks));
}

static void move(void)
{
    const int n = rt_size();
    static int32_t in[300], out[300];
    uint64_t splits[8];
    struct rt_parts parts = {0};
    for (int i = 0; i < 300; i++)
        in[i] = rt_rank();
    wait_for("allgather",
             rt_allgather_async("gather", in, (uint64_t)rt_rank() + 1, 3, RT_INT32, &parts, NULL));
    right("allgather", parts.total == (uint64_t)(n * (n + 1) / 2));
    for (uint64_t k = 0; k < 3; k++)
        right("allgather", ((int32_t *)parts.data)[(parts.total - 1) * 3 + k] == n - 1);
    rt_parts_clear(&parts);
    for (int r = 0; r < n; r++)
        splits[r] = 2;
    wait_for("alltoall", rt_alltoall_async("all", in, splits, 5, RT_INT32, &parts, NULL));
    for (int r = 0; r < n; r++)
        right("alltoall", ((int32_t *)parts.data)[r * 10] == r && parts.rows[r] == 2);
    rt_parts_clear(&parts);
    for (int i = 0; i < 300; i++)
        in[i] = i;
    wait_for("reducescatter",
             rt_reducescatter_async("scatter", in, out, 100, 3, RT_INT32, RT_MAX, 1, 1, NULL));
    right("reducescatter", rt_rank() > 0 || out[5] == 5);
    in[0] = rt_rank() + 5;
    wait_for("broadcast", rt_broadcast_async("cast", in, 1, RT_INT32, n - 1, NULL));
    right("broadcast", in[0] == n + 4);
    wait_for("barrier", rt_barrier_async(NULL));
}

static void run(void)
{
    const int ranks[] = {0, 1};
    int last;
    check("rt_init", rt_init());
    check("rt_timeline_start", rt_timeline_start(getenv("SCARCE_TIMELINE"), 1));
    reduce("sum", NULL, rt_size());
    move();
    const int set = rt_add_process_set(ranks, 2);
    check("rt_add_process_set", set);
    const struct rt_options in_set = {.set = set};
    if (rt_process_set_included(set) == 1)
        reduce("sum-in-set", &in_set, 2);
    check("rt_remove_process_set", rt_remove_process_set(set));
    reduce("sum", NULL, rt_size());
    if (rt_rank() == 1)
        reduce("other", NULL, 1); /* the rest have joined */
    wait_for("join", rt_join_async(&last, NULL));
    check("rt_timeline_stop", rt_timeline_stop());
    check("rt_shutdown", rt_shutdown());
}

int main(int argc, char **argv)
{
    self = getenv("RT_RANK");
    if (argc < 4 || !self)
        return 9;
    for_good = argc > 4;
    left = atoi(argv[3]);
    for (int i = 0; i < KINDS && strcmp(argv[2], self) == 0; i++)
        if (strcmp(argv[1], kinds[i]) == 0)
            kind = i;
    run();
    return __atomic_load_n(&left, __ATOMIC_RELAXED) > 0 && kind >= 0 ? 3 : 0;
}
