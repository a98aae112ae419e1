/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-shm-group.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt-file.h"
#include "rt-transport-shm.h"

/* Before the region. */
struct door {
    uint32_t come, size; /* atomic: how many have come, of how many */
    char spare[56];
};
_Static_assert(sizeof(struct door) == 64, "the region keeps its alignment");

struct group {
    struct rt_transport_shm shm; /* first: the transport */
    void *mapped;
    uint64_t bytes;
    struct group *next;
    char path[300];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct group *groups; /* of this process; under the lock */

/* Pages that there is no room for would end the process, by SIGBUS, when it comes to them. */
static int reserve(int fd, uint64_t bytes)
{
    struct rt_file_limit limit;
    rt_file_limit_begin(&limit);
    int error = -posix_fallocate(fd, 0, (off_t)bytes);
    rt_file_limit_end(&limit);
    return error;
}

static int map(struct group *g)
{
    int fd = open(g->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    /* another's, of more ranks, must not be cut off */
    struct stat st;
    int error = fstat(fd, &st) ? -errno : st.st_size > (off_t)g->bytes ? -EPROTO : 0;
    if (!error)
        error = reserve(fd, g->bytes);
    if (!error) {
        g->mapped = mmap(NULL, g->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        error = g->mapped == MAP_FAILED ? -errno : 0;
    }
    if (error)
        g->mapped = NULL;
    if (error && error != -EPROTO)
        unlink(g->path); /* this rank will never come, so the group is none */
    close(fd);
    return error;
}

static int take_place(struct group *g, int rank, int size)
{
    struct door *door = g->mapped;
    uint32_t before = 0;
    if (!__atomic_compare_exchange_n(&door->size, &before, (uint32_t)size, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) &&
        before != (uint32_t)size)
        return -EPROTO;
    int error = rt_transport_shm_init(&g->shm, door + 1, rank, size);
    if (!error && __atomic_add_fetch(&door->come, 1, __ATOMIC_ACQ_REL) == (uint32_t)size)
        unlink(g->path);
    return error;
}

static void remember(struct group *g)
{
    pthread_mutex_lock(&lock);
    g->next = groups;
    groups = g;
    pthread_mutex_unlock(&lock);
}

static void forget(struct group *g)
{
    pthread_mutex_lock(&lock);
    struct group **place = &groups;
    while (*place != g)
        place = &(*place)->next;
    *place = g->next;
    pthread_mutex_unlock(&lock);
}

void rt_shm_group_abandon(void)
{
    pthread_mutex_lock(&lock);
    for (struct group *g = groups; g; g = g->next)
        unlink(g->path);
    pthread_mutex_unlock(&lock);
}

struct rt_transport *rt_shm_group_new(const char *name, int rank, int size)
{
    struct group *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    snprintf(g->path, sizeof g->path, "/dev/shm/%s", name);
    g->bytes = sizeof(struct door) + rt_shm_bytes(size);
    int error = map(g);
    if (!error)
        error = take_place(g, rank, size);
    if (!error) {
        remember(g);
        return &g->shm.base;
    }
    if (g->mapped)
        munmap(g->mapped, g->bytes);
    free(g);
    errno = -error;
    return NULL;
}

void rt_shm_group_free(struct rt_transport *t)
{
    if (!t)
        return;
    struct group *g = (struct group *)t;
    forget(g);
    rt_transport_shm_release(&g->shm);
    munmap(g->mapped, g->bytes);
    free(g);
}
