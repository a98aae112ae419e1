/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-memory-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt-file.h"

#define FILE_NAME "rt-memory"
#define LINK_TEXT "/memfd:" FILE_NAME

int rt_memory_file_grow(int fd, uint64_t bytes)
{
    struct rt_file_limit limit;
    rt_file_limit_begin(&limit);
    const int error = ftruncate(fd, (off_t)bytes) ? -errno : 0;
    rt_file_limit_end(&limit);
    return error;
}

static int fill(int fd, struct rt_memory_name *name)
{
    name->pid = getpid();
    name->fd = fd;
    if (fchmod(fd, 0600) || getrandom(name->token, sizeof name->token, 0) != sizeof name->token)
        return -errno;
    const int error = rt_memory_file_grow(fd, RT_MEMORY_FILE_HEAD);
    if (error)
        return error;
    return pwrite(fd, name->token, sizeof name->token, 0) == sizeof name->token ? 0 : -errno;
}

int rt_memory_file_new(struct rt_memory_name *ret)
{
    const int fd = memfd_create(FILE_NAME, MFD_CLOEXEC);
    const int error = fd < 0 ? -errno : fill(fd, ret);
    if (error && fd >= 0)
        close(fd);
    return error ? error : fd;
}

/* The link is looked at first: opening whatever has the number now could have effects. */
int rt_memory_file_open(const struct rt_memory_name *name)
{
    char path[64], target[64] = "";
    uint64_t token[2];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", name->pid, name->fd);
    if (readlink(path, target, sizeof target - 1) < 0)
        return -errno;
    if (strncmp(target, LINK_TEXT, sizeof LINK_TEXT - 1) != 0)
        return -ENOENT;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (pread(fd, token, sizeof token, 0) == sizeof token &&
        memcmp(token, name->token, sizeof token) == 0)
        return fd;
    close(fd);
    return -ENOENT;
}
