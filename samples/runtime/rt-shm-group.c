/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-shm-group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rt-transport-shm.h"

#define COME_BYTES 64u /* before the region: how many have come */

struct group {
    struct rt_transport_shm shm; /* first: the transport */
    void *mapped;
    uint64_t bytes;
};

static int map(struct group *g, const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int error = ftruncate(fd, (off_t)g->bytes) ? -errno : 0;
    if (!error) {
        g->mapped = mmap(NULL, g->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        error = g->mapped == MAP_FAILED ? -errno : 0;
    }
    if (error)
        g->mapped = NULL;
    close(fd);
    return error;
}

static int take_place(struct group *g, const char *path, int rank, int size)
{
    uint32_t *come = g->mapped;
    int error = rt_transport_shm_init(&g->shm, (char *)g->mapped + COME_BYTES, rank, size);
    if (!error && __atomic_add_fetch(come, 1, __ATOMIC_ACQ_REL) == (uint32_t)size)
        unlink(path);
    return error;
}

struct rt_transport *rt_shm_group_new(const char *name, int rank, int size)
{
    char path[300];
    struct group *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    snprintf(path, sizeof path, "/dev/shm/%s", name);
    g->bytes = COME_BYTES + rt_shm_bytes(size);
    int error = map(g, path);
    if (!error)
        error = take_place(g, path, rank, size);
    if (!error)
        return &g->shm.base;
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
    rt_transport_shm_release(&g->shm);
    munmap(g->mapped, g->bytes);
    free(g);
}
