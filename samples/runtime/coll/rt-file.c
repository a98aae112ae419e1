/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int rt_file_open(const char *path, int flags, mode_t mode)
{
    struct stat st;
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    int error = S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
    close(fd);
    return error;
}

FILE *rt_file_read(const char *path, int *ret_error)
{
    int fd = rt_file_open(path, O_RDONLY, 0);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    *ret_error = fd < 0 ? fd : file ? 0 : -errno;
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

int rt_file_replaceable(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return 0;
    return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
}

const char *rt_file_why(int error)
{
    return error == -ENXIO ? "a pipe, a socket or a device, expected a file" : strerror(-error);
}

static sigset_t too_large(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    return set;
}

void rt_file_limit_begin(struct rt_file_limit *limit)
{
    const sigset_t set = too_large();
    sigset_t pending;
    const int error = errno;
    sigpending(&pending);
    limit->was_pending = sigismember(&pending, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set, &limit->before);
    errno = error;
}

/* The system sends it to the thread that writes: none is there for another one to take. */
void rt_file_limit_end(const struct rt_file_limit *limit)
{
    static const struct timespec at_once;
    const sigset_t set = too_large();
    const int error = errno;
    if (!limit->was_pending)
        while (sigtimedwait(&set, NULL, &at_once) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &limit->before, NULL);
    errno = error;
}
