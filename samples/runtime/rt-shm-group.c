/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-shm-group.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rt-memory-file.h"
#include "rt-transport-shm.h"

struct group {
    struct rt_transport_shm shm; /* first: the transport */
    char *mapped;                /* the head, then the region */
    uint64_t bytes;
};

static int map(struct group *g, int fd)
{
    void *mapped = mmap(NULL, g->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    g->mapped = mapped;
    return 0;
}

/* Returns the descriptor, which stays open until all have mapped the file. */
static int make_region(struct group *g, struct rt_memory_name *ret)
{
    const int fd = rt_memory_file_new(ret);
    int error = fd < 0 ? fd : rt_memory_file_grow(fd, g->bytes);
    if (!error)
        error = map(g, fd);
    if (error && fd >= 0)
        close(fd);
    return error ? error : fd;
}

static void find_region(struct group *g, const struct rt_memory_name *name)
{
    const int fd = rt_memory_file_open(name);
    if (fd < 0)
        return;
    map(g, fd);
    close(fd);
}

static void free_group(struct group *g)
{
    rt_transport_shm_release(&g->shm);
    if (g->mapped)
        munmap(g->mapped, g->bytes);
    free(g);
}

/* Where one rank can't, none does. */
static int share(struct group *g, struct rt_transport *by)
{
    struct rt_memory_name name = {0};
    const int fd = by->rank == 0 ? make_region(g, &name) : -1;
    if (by->rank == 0 && fd < 0)
        name = (struct rt_memory_name){0};
    int error = rt_broadcast(by, &name, sizeof name, RT_UINT8, 0);
    if (!error && by->rank > 0 && name.pid)
        find_region(g, &name);
    int32_t shares = g->mapped && rt_transport_shm_init(&g->shm, g->mapped + RT_MEMORY_FILE_HEAD,
                                                        by->rank, by->size) == 0;
    if (!error)
        error = rt_allreduce(by, &shares, &shares, 1, RT_INT32, RT_MIN);
    if (fd >= 0)
        close(fd);
    return error ? error : shares ? 0 : -EOPNOTSUPP;
}

struct rt_transport *rt_shm_group_new(struct rt_transport *by)
{
    struct group *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->bytes = RT_MEMORY_FILE_HEAD + rt_shm_bytes(by->size);
    const int error = share(g, by);
    if (!error)
        return &g->shm.base;
    free_group(g);
    errno = -error;
    return NULL;
}

void rt_shm_group_free(struct rt_transport *t)
{
    if (t)
        free_group((struct group *)t);
}
