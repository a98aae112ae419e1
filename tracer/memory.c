/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - memory that is not malloc's: a handler that ends the program may have interrupted
 * malloc, and what the core needs under its lock must not wait for that.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "state.h"

static int open_new(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void rs_memory_no_signal(int error)
{
    static const struct timespec at_once;
    sigset_t too_large;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    if (error == EFBIG)
        sigtimedwait(&too_large, NULL, &at_once);
}

static int reserve_blocks(int fd, size_t bytes)
{
    int error = posix_fallocate(fd, 0, (off_t)bytes);
    rs_memory_no_signal(error);
    return error;
}

/* Every page has its block before it is touched: a write to a full tmpfs would be a SIGBUS. */
static void *map_file(const char *path, size_t bytes, size_t reserve)
{
    int fd = open_new(path);
    if (fd < 0)
        return NULL;
    void *p = MAP_FAILED;
    int error = reserve_blocks(fd, bytes);
    if (error == 0) {
        p = mmap(NULL, reserve, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        error = errno;
    }
    close(fd);
    if (p != MAP_FAILED)
        return p;
    unlink(path);
    errno = error;
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
    int why = errno;
    p = mmap(NULL, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
             0);
    if (p == MAP_FAILED)
        return NULL;
    errno = why;
    return p;
}

#define PIECE ((size_t)256 << 10)

void *rs_memory_keep(size_t bytes)
{
    static char *piece;
    static size_t left;
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > left) {
        size_t whole = bytes > PIECE ? bytes : PIECE;
        char *p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return NULL;
        if (whole - bytes <= left) /* the old piece has more room left */
            return p;
        piece = p;
        left = whole;
    }
    void *p = piece;
    piece += bytes;
    left -= bytes;
    return p;
}

bool rs_memory_grow(const char *path, size_t bytes)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    int error = reserve_blocks(fd, bytes);
    close(fd);
    errno = error;
    return error == 0;
}

bool rs_memory_detach(void *part, size_t bytes)
{
    return mmap(part, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}
