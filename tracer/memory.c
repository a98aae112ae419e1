/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "state.h"

static int open_new(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Every page has its block before it is touched: a write to a full tmpfs would be a SIGBUS. */
static void *map_file(const char *path, size_t bytes, size_t reserve)
{
    int fd = open_new(path);
    if (fd < 0)
        return NULL;
    void *p = MAP_FAILED;
    if (posix_fallocate(fd, 0, (off_t)bytes) == 0)
        p = mmap(NULL, reserve, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p != MAP_FAILED)
        return p;
    unlink(path);
    return NULL;
}

void *rs_memory_map(const char *prefix, unsigned number, size_t bytes, size_t reserve,
                    char *ret_path, size_t path_size)
{
    snprintf(ret_path, path_size, "%s.%u", prefix, number);
    void *p = map_file(ret_path, bytes, reserve);
    if (p)
        return p;
    ret_path[0] = 0;
    p = mmap(NULL, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
             0);
    return p == MAP_FAILED ? NULL : p;
}

bool rs_memory_grow(const char *path, size_t bytes)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = posix_fallocate(fd, 0, (off_t)bytes) == 0;
    close(fd);
    return done;
}
